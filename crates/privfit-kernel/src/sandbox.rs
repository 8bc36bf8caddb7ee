//! A command of somebody else in a process of its own, from which nothing comes back but one small file.
//!
//! The process has namespaces of its own: no network, processes that nobody outside sees and that end with its first one, and a file system that is read-only, without
//! devices but the harmless ones, and with what is to be hidden covered. It works in a file system in memory that no other process sees and that goes with it: rows come in, and
//! labels go out, through files in memory, so that nothing of it is ever on a disk and nothing has to be tidied. A filter of system calls closes ways around
//! namespaces (sockets with a path, keyrings, asynchronous calls). Input, output, errors and all other open files are nowhere; it has no terminal; the environment is empty but for the
//! search path. Its time is kept by a process between it and us, which leaves its namespaces last; address space and file sizes are limited, and it runs on one processor.
//!
//! A system that does not offer all of this runs no commands: that is found out by [`is_possible`], before data are opened.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[cfg(target_os = "linux")]
mod filter;

/// Directories and a file that must be in the directory of a call: where it works, what becomes its devices, and what covers what is hidden.
const WORK: &str = "work";
const DEVICES: &str = "devices";
const EMPTY: &str = "empty";
const HOLLOW: &str = "hollow";
/// Names of the files of a call.
const ROWS: &str = "rows.csv";
const LABELS: &str = "labels.txt";

/// One call.
pub(crate) struct Call<'a> {
    /// Program and first arguments; the paths of rows, points and labels follow them.
    pub(crate) command: &'a [OsString],
    /// The directory that was made ready by [`prepare`].
    pub(crate) directory: &'a Path,
    /// The file with the points.
    pub(crate) points: &'a Path,
    /// Files and directories that the command must not see.
    pub(crate) hidden: &'a [PathBuf],
    /// What it reads.
    pub(crate) rows: &'a File,
    /// Most bytes of its answer.
    pub(crate) most: u64,
    /// How long it may run.
    pub(crate) time: Duration,
    /// Bytes of address space, and of a file.
    pub(crate) memory: u64,
    /// Processor that it runs on, of those that there are.
    pub(crate) processor: usize,
}

/// Makes a directory ready for calls.
pub(crate) fn prepare(directory: &Path) -> io::Result<()> {
    for name in [WORK, DEVICES, HOLLOW] {
        let path = directory.join(name);
        if !path.is_dir() {
            std::fs::create_dir(path)?;
        }
    }
    std::fs::write(directory.join(EMPTY), b"")
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_: &Call<'_>) -> io::Result<Vec<u8>> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn memory_file() -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{memory_file, run};

/// Whether commands can be kept apart here, by trying with all that is to be hidden.
pub(crate) fn is_possible(directory: &Path, hidden: &[PathBuf]) -> bool {
    let answer = || {
        let command = ["sh", "-c", "test $(wc -c < \"$1\") = 0 && echo apart > \"$3\"", "sh"].map(OsString::from);
        let (points, rows) = (directory.join(EMPTY), memory_file()?);
        let time = Duration::from_secs(10);
        run(&Call {
            command: &command,
            directory,
            points: &points,
            hidden,
            rows: &rows,
            most: 64,
            time,
            memory: 1 << 30,
            processor: 0,
        })
    };
    answer().is_ok_and(|answer| answer == b"apart\n")
}

#[cfg(target_os = "linux")]
mod linux {
    use super::*;
    use std::ffi::{CStr, CString};
    use std::io::{Read, Seek};
    use std::os::fd::{AsRawFd, FromRawFd, RawFd};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    /// Bytes that a command may write besides its rows, in so many files: little enough to be gone in no time.
    const OWN_BYTES: u64 = 64 << 20;
    const OWN_FILES: u64 = 4096;
    /// No privileges for the user 0, now and for ever: `SECBIT_NOROOT`, `SECBIT_NO_SETUID_FIXUP` and their locks.
    const WITHOUT_ROOT: libc::c_ulong = 0b1111;
    const KEYCTL_JOIN_SESSION_KEYRING: libc::c_long = 1;
    const DEVICE_FILES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

    /// A file in memory, without a name.
    pub(crate) fn memory_file() -> io::Result<File> {
        // SAFETY: a name that lives beyond the call; the number is a new file of ours.
        unsafe {
            let number = libc::memfd_create(c"privfit".as_ptr(), libc::MFD_CLOEXEC);
            if number < 0 { Err(io::Error::last_os_error()) } else { Ok(File::from_raw_fd(number)) }
        }
    }

    fn check(result: libc::c_int) -> io::Result<()> {
        if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn limit(what: libc::__rlimit_resource_t, most: u64) -> io::Result<()> {
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: a pointer to a local of the right type.
        check(unsafe { libc::setrlimit(what, &limit) })
    }

    /// Sets and clears properties of the mount at a path, and of those below it.
    fn properties(path: &CStr, set: u64, clear: u64, below: bool) -> io::Result<()> {
        // SAFETY: zeros are a value of this type.
        let mut attributes: libc::mount_attr = unsafe { std::mem::zeroed() };
        (attributes.attr_set, attributes.attr_clr) = (set, clear);
        let flags = if below { libc::AT_RECURSIVE } else { 0 };
        let size = std::mem::size_of::<libc::mount_attr>();
        // SAFETY: path and attributes live beyond the call, which has the size of the latter.
        let result = unsafe { libc::syscall(libc::SYS_mount_setattr, libc::AT_FDCWD, path.as_ptr(), flags, &attributes, size) };
        check(result as libc::c_int)
    }

    fn mount(from: &CStr, to: &CStr, kind: Option<&CStr>, flags: libc::c_ulong, options: Option<&CStr>) -> io::Result<()> {
        let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
        // SAFETY: the strings live beyond the call, and null stands for no type and no options.
        check(unsafe { libc::mount(from.as_ptr(), to.as_ptr(), pointer(kind), flags, pointer(options).cast()) })
    }

    /// Writes a short file of the system at once.
    fn write(path: &CStr, text: &[u8]) -> io::Result<()> {
        // SAFETY: path and text live beyond the calls, which have the length of the latter.
        unsafe {
            let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
            check(file)?;
            let written = libc::write(file, text.as_ptr().cast(), text.len());
            let result = if written == text.len() as isize { Ok(()) } else { Err(io::Error::last_os_error()) };
            libc::close(file);
            result
        }
    }

    /// Copies all of a file, from its beginning, to the place of another.
    fn copy(from: RawFd, to: RawFd) -> io::Result<()> {
        let mut at: libc::off_t = 0;
        loop {
            // SAFETY: open files, and a pointer to a local.
            match unsafe { libc::sendfile(to, from, &mut at, 1 << 30) } {
                -1 => return Err(io::Error::last_os_error()),
                0 => return Ok(()),
                _ => {}
            }
        }
    }

    fn pin(processor: usize) -> io::Result<()> {
        // SAFETY: a set of processors is plain bits, and its size is given.
        unsafe {
            let size = std::mem::size_of::<libc::cpu_set_t>();
            let mut allowed: libc::cpu_set_t = std::mem::zeroed();
            check(libc::sched_getaffinity(0, size, &mut allowed))?;
            let count = libc::CPU_COUNT(&allowed).max(1) as usize;
            let mut own: libc::cpu_set_t = std::mem::zeroed();
            let there = (0..libc::CPU_SETSIZE as usize).filter(|i| libc::CPU_ISSET(*i, &allowed));
            for (_, i) in there.enumerate().filter(|(number, _)| *number == processor % count) {
                libc::CPU_SET(i, &mut own);
            }
            check(libc::sched_setaffinity(0, size, &own))
        }
    }

    /// Everything that is needed between fork and exec, where nothing may be allocated.
    struct Entry {
        work: CString,
        devices: CString,
        device_files: Vec<(CString, CString)>,
        shared: CString,
        rows: CString,
        labels: CString,
        /// What covers what.
        hidden: Vec<(CString, CString)>,
        options: CString,
        user: [Vec<u8>; 2],
        rows_file: RawFd,
        answer_file: RawFd,
        most: u64,
        time: Duration,
        memory: u64,
        processor: usize,
        filter: Vec<libc::sock_filter>,
    }

    fn text(path: impl AsRef<std::ffi::OsStr>) -> io::Result<CString> {
        Ok(CString::new(path.as_ref().as_bytes())?)
    }

    impl Entry {
        fn new(call: &Call<'_>, answer: &File) -> io::Result<Entry> {
            let directory = call.directory;
            let (work, devices) = (directory.join(WORK), directory.join(DEVICES));
            let cover = |path: &PathBuf| Ok((text(directory.join(if path.is_dir() { HOLLOW } else { EMPTY }))?, text(path)?));
            let device = |name: &&str| Ok((text(Path::new("/dev").join(name))?, text(devices.join(name))?));
            let rows = call.rows.metadata()?.len();
            // SAFETY: no pointers.
            let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
            Ok(Entry {
                device_files: DEVICE_FILES.iter().map(device).collect::<io::Result<_>>()?,
                shared: text(devices.join("shm"))?,
                rows: text(work.join(ROWS))?,
                labels: text(work.join(LABELS))?,
                hidden: call.hidden.iter().map(cover).collect::<io::Result<_>>()?,
                options: CString::new(format!("size={},nr_inodes={OWN_FILES},mode=0700", rows + OWN_BYTES))?,
                user: [user, group].map(|own| format!("{own} {own} 1\n").into_bytes()),
                rows_file: call.rows.as_raw_fd(),
                answer_file: answer.as_raw_fd(),
                most: call.most,
                time: call.time,
                memory: call.memory,
                processor: call.processor,
                filter: filter::program(),
                work: text(work)?,
                devices: text(devices)?,
            })
        }

        /// Called between fork and exec: system calls alone. What returns is the first process of the namespaces.
        fn enter(&self) -> io::Result<()> {
            // SAFETY: system calls with numbers.
            unsafe {
                // No terminal, no signals to others, no keys of the session.
                check(libc::setsid())?;
                libc::syscall(libc::SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, 0);
                check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1 as libc::c_ulong, 0, 0, 0))?;
                // No file of ours goes through exec but input, output and errors, which are nowhere.
                check(libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) as libc::c_int)?;
            }
            pin(self.processor)?;
            limit(libc::RLIMIT_CORE, 0)?;
            // Where memory is short, it ends before anybody else.
            let _ = write(c"/proc/self/oom_score_adj", b"1000");
            self.unshare()?;
            self.cover()?;
            self.furnish()?;
            self.divide()
        }

        /// Namespaces of its own, of which the next process that is made here is the first.
        fn unshare(&self) -> io::Result<()> {
            let apart = libc::CLONE_NEWNS | libc::CLONE_NEWNET | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
            // SAFETY: no pointers.
            if unsafe { libc::unshare(apart | libc::CLONE_NEWUSER) } == 0 {
                // It stays who it is, and nobody else is anybody.
                write(c"/proc/self/setgroups", b"deny")?;
                write(c"/proc/self/uid_map", &self.user[0])?;
                return write(c"/proc/self/gid_map", &self.user[1]);
            }
            // SAFETY: no pointers.
            check(unsafe { libc::unshare(apart) })
        }

        /// What there is becomes read-only and has no devices; what is hidden is covered.
        fn cover(&self) -> io::Result<()> {
            mount(c"/", c"/", None, libc::MS_REC | libc::MS_PRIVATE, None)?;
            self.hidden.iter().try_for_each(|(with, path)| mount(with, path, None, libc::MS_BIND, None))?;
            let set = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOSUID;
            properties(c"/", set, 0, true)
        }

        /// A place to work in, with the rows, and the harmless devices.
        fn furnish(&self) -> io::Result<()> {
            let flags = libc::MS_NOSUID | libc::MS_NODEV;
            mount(c"privfit", &self.work, Some(c"tmpfs"), flags, Some(&self.options))?;
            // SAFETY: paths that live beyond the calls; files that were just opened.
            unsafe {
                let rows = libc::open(self.rows.as_ptr(), libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY | libc::O_CLOEXEC, 0o600);
                check(rows)?;
                copy(self.rows_file, rows)?;
                libc::close(rows);
            }
            mount(c"privfit", &self.devices, Some(c"tmpfs"), flags, Some(c"size=16m,nr_inodes=256,mode=0755"))?;
            for (device, path) in &self.device_files {
                // SAFETY: a path that lives beyond the call; a file that was just opened.
                unsafe {
                    let file = libc::open(path.as_ptr(), libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC, 0o666);
                    check(file)?;
                    libc::close(file);
                }
                mount(device, path, None, libc::MS_BIND, None)?;
                properties(path, 0, libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_RDONLY, false)?;
            }
            // SAFETY: a path that lives beyond the call.
            check(unsafe { libc::mkdir(self.shared.as_ptr(), 0o700) })?;
            mount(&self.devices, c"/dev", None, libc::MS_MOVE, None)
        }

        /// Goes on as the first process of the namespaces; the one that called keeps the time, waits until all processes are gone, and hands out the answer.
        fn divide(&self) -> io::Result<()> {
            // SAFETY: system calls; between fork and exec there is one thread.
            unsafe {
                // It ends with the thread that waits for it.
                check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong))?;
                match libc::fork() {
                    -1 => Err(io::Error::last_os_error()),
                    0 => self.settle(),
                    child => {
                        libc::dup2(self.answer_file, 0);
                        libc::syscall(libc::SYS_close_range, 1u32, u32::MAX, 0u32);
                        self.wait(child);
                        let _ = self.hand_out();
                        libc::_exit(0)
                    }
                }
            }
        }

        /// The last preparations: processes of its own in sight, no privileges, limits, the filter.
        fn settle(&self) -> io::Result<()> {
            let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
            // Where processes can't be shown, none are.
            mount(c"proc", c"/proc", Some(c"proc"), flags, None)
                .or_else(|_| mount(c"privfit", c"/proc", Some(c"tmpfs"), flags, Some(c"size=4k,mode=0755")))?;
            // SAFETY: a path that lives beyond the call, and a list of as many instructions as are said.
            unsafe {
                check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong))?;
                check(libc::prctl(libc::PR_SET_SECUREBITS, WITHOUT_ROOT))?;
                check(libc::chdir(self.work.as_ptr()))?;
                limit(libc::RLIMIT_FSIZE, self.memory)?;
                limit(libc::RLIMIT_AS, self.memory)?;
                let program = libc::sock_fprog { len: self.filter.len() as u16, filter: self.filter.as_ptr().cast_mut() };
                check(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER as libc::c_ulong, &program))
            }
        }

        /// Until it ends, or its time does; with the first process all others of its namespaces are gone.
        fn wait(&self, child: libc::pid_t) {
            // SAFETY: pointers to locals, and a child of ours that was not waited for.
            unsafe {
                let now = || {
                    let mut time: libc::timespec = std::mem::zeroed();
                    libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time);
                    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
                };
                let (began, mut status) = (now(), 0);
                while libc::waitpid(child, &mut status, libc::WNOHANG) == 0 {
                    if now().saturating_sub(began) >= self.time {
                        libc::kill(child, libc::SIGKILL);
                        while libc::waitpid(child, &mut status, 0) == -1 && *libc::__errno_location() == libc::EINTR {}
                        return;
                    }
                    libc::usleep(1000);
                }
            }
        }

        /// Copies the answer to the first open file. Pipes, links, devices and what is too long are none.
        fn hand_out(&self) -> io::Result<()> {
            // SAFETY: a path and a local that live beyond the calls; a file that was just opened.
            unsafe {
                let file = libc::open(self.labels.as_ptr(), libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK);
                check(file)?;
                let mut found: libc::stat = std::mem::zeroed();
                check(libc::fstat(file, &mut found))?;
                if found.st_mode & libc::S_IFMT == libc::S_IFREG && found.st_size as u64 <= self.most {
                    copy(file, 0)?;
                }
                Ok(())
            }
        }
    }

    /// Runs a command to its end, or to the end of its time, and returns what it wrote; how it ended is not shown.
    pub(crate) fn run(call: &Call<'_>) -> io::Result<Vec<u8>> {
        let Some((program, first)) = call.command.split_first() else { return Err(io::ErrorKind::InvalidInput.into()) };
        let work = call.directory.join(WORK);
        let mut answer = memory_file()?;
        let entry = Entry::new(call, &answer)?;
        let mut command = Command::new(program);
        command.args(first).arg(work.join(ROWS)).arg(call.points).arg(work.join(LABELS)).env_clear();
        command.env("HOME", &work).env("TMPDIR", &work).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        // One processor is all there is.
        command.env("OMP_NUM_THREADS", "1").env("OPENBLAS_NUM_THREADS", "1").env("LC_ALL", "C.UTF-8");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: system calls and copies of numbers; nothing is allocated, and no lock is taken.
        unsafe { command.pre_exec(move || entry.enter()) };
        command.spawn()?.wait()?;
        let mut bytes = Vec::new();
        answer.rewind()?;
        answer.take(call.most + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
