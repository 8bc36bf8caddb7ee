//! A command of somebody else in a process of its own, from which nothing comes back but one small file.
//!
//! Where the system allows it, the process has namespaces of its own: no network, no way to reach or outlive its siblings (its first process takes all
//! the others with it), and a file system that is read-only but for one private directory, so that one call can leave nothing for the next. What is
//! possible is found out by [`Isolation::of_this_system`], before data are opened. Input, output and errors are nowhere; the environment is empty but for the search
//! path. Address space, file sizes and time are limited, and it runs on one processor, so that what it does there does not slow the others down.

use std::ffi::{CString, OsString};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// How far a command is kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Namespaces: no network, no processes that stay, nothing written outside of its directory.
    Full,
    /// Limits and a process group only: it may reach the network, and leave processes and files behind.
    Limits,
    /// Commands are not run on this system.
    None,
}

/// Limits of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limits {
    pub(crate) until: Instant,
    /// Bytes of address space, and of a file.
    pub(crate) memory: u64,
    /// Processor that it runs on, of those that there are.
    pub(crate) processor: usize,
    pub(crate) isolation: Isolation,
}

#[cfg(not(target_os = "linux"))]
impl Isolation {
    /// What this system offers.
    pub fn of_this_system() -> Isolation {
        Isolation::None
    }
}

/// Runs a command to its end, or to the end of its time; how it ended is not told.
#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_: &[OsString], _: &[OsString], _: &Path, _: Limits) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
mod linux {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    fn check(result: libc::c_int) -> io::Result<()> {
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn limit(what: libc::__rlimit_resource_t, most: u64) -> io::Result<()> {
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: a pointer to a local of the right type.
        check(unsafe { libc::setrlimit(what, &limit) })
    }

    /// Sets or clears "read-only" of the mount at a path, and of those below it.
    fn read_only(path: &CString, set: bool, below: bool) -> io::Result<()> {
        // SAFETY: zeros are a value of this type.
        let mut attributes: libc::mount_attr = unsafe { std::mem::zeroed() };
        if set {
            attributes.attr_set = libc::MOUNT_ATTR_RDONLY;
        } else {
            attributes.attr_clr = libc::MOUNT_ATTR_RDONLY;
        }
        let flags = if below { libc::AT_RECURSIVE } else { 0 };
        let size = std::mem::size_of::<libc::mount_attr>();
        // SAFETY: path and attributes live beyond the call, which has the size of the latter.
        let result = unsafe { libc::syscall(libc::SYS_mount_setattr, libc::AT_FDCWD, path.as_ptr(), flags, &attributes, size) };
        check(result as libc::c_int)
    }

    /// Namespaces of its own, of which the next process that is made here is the first. Called between fork and exec: system calls alone.
    fn unshare(root: &CString, own: &CString) -> io::Result<()> {
        let apart = libc::CLONE_NEWNS | libc::CLONE_NEWNET | libc::CLONE_NEWPID | libc::CLONE_NEWIPC;
        // SAFETY: no pointers.
        check(unsafe { libc::unshare(apart | libc::CLONE_NEWUSER) }).or_else(|_| check(unsafe { libc::unshare(apart) }))?;
        let mount = |from: &CString, to: &CString, flags| {
            // SAFETY: the strings live beyond the call, and null stands for no type and no options.
            check(unsafe { libc::mount(from.as_ptr(), to.as_ptr(), std::ptr::null(), flags, std::ptr::null()) })
        };
        mount(root, root, libc::MS_REC | libc::MS_PRIVATE)?;
        mount(own, own, libc::MS_BIND)?;
        read_only(root, true, true)?;
        read_only(own, false, false)
    }

    /// Goes on as the first process of the namespaces; the one that called waits for it, dies with it, and takes it with it.
    fn become_first() -> io::Result<()> {
        // SAFETY: system calls; between fork and exec there is one thread.
        unsafe {
            match libc::fork() {
                -1 => Err(io::Error::last_os_error()),
                0 => check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong)),
                child => {
                    libc::syscall(libc::SYS_close_range, 0u32, u32::MAX, 0u32);
                    let mut status = 0;
                    while libc::waitpid(child, &mut status, 0) == -1 && *libc::__errno_location() == libc::EINTR {}
                    libc::_exit(0)
                }
            }
        }
    }

    /// No privileges for the user 0, now and for ever: `SECBIT_NOROOT`, `SECBIT_NO_SETUID_FIXUP` and their locks.
    const WITHOUT_ROOT: libc::c_ulong = 0b1111;

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

    pub(crate) fn run(command: &[OsString], arguments: &[OsString], directory: &Path, limits: Limits) -> io::Result<()> {
        let Some((program, first)) = command.split_first() else { return Err(io::ErrorKind::InvalidInput.into()) };
        let own = CString::new(directory.as_os_str().as_bytes())?;
        let root = CString::new("/")?;
        let mut call = Command::new(program);
        call.args(first).args(arguments).current_dir(directory).env_clear();
        call.env("HOME", directory).env("TMPDIR", directory).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        // One processor is all there is.
        call.env("OMP_NUM_THREADS", "1").env("OPENBLAS_NUM_THREADS", "1").env("LC_ALL", "C.UTF-8");
        call.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        // SAFETY: system calls and copies of numbers; nothing is allocated, and no lock is taken.
        unsafe {
            call.pre_exec(move || {
                // It ends with the thread that waits for it, and gains nothing by programs of others.
                check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong))?;
                check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1 as libc::c_ulong, 0, 0, 0))?;
                pin(limits.processor)?;
                limit(libc::RLIMIT_CORE, 0)?;
                limit(libc::RLIMIT_FSIZE, limits.memory)?;
                if limits.isolation == Isolation::Full {
                    unshare(&root, &own)?;
                    become_first()?;
                    // Whoever it is, it can't undo any of this: no number of a user stands for privileges.
                    check(libc::prctl(libc::PR_SET_SECUREBITS, WITHOUT_ROOT))?;
                    // The directory as it is mounted here.
                    check(libc::chdir(own.as_ptr()))?;
                }
                limit(libc::RLIMIT_AS, limits.memory)
            });
        }
        let mut child = call.spawn()?;
        let group = child.id() as libc::pid_t;
        while matches!(child.try_wait(), Ok(None)) && Instant::now() < limits.until {
            std::thread::sleep(Duration::from_millis(2));
        }
        // SAFETY: the group of a child that is not waited for, or that has just ended and has members left; never that of anybody else.
        unsafe { libc::kill(-group, libc::SIGKILL) };
        child.wait().map(|_| ())
    }

    impl Isolation {
        /// What this system offers, by trying.
        pub fn of_this_system() -> Isolation {
            let works = |isolation| {
                let name = format!("privfit-probe-{}-{:?}", std::process::id(), std::thread::current().id());
                let directory = std::env::temp_dir().join(name.replace(['(', ')'], ""));
                if std::fs::create_dir(&directory).is_err() {
                    return false;
                }
                let until = Instant::now() + Duration::from_secs(10);
                let limits = Limits { until, memory: 1 << 30, processor: 0, isolation };
                let words = ["sh", "-c", "echo apart > found"].map(OsString::from);
                let ran = run(&words, &[], &directory, limits).is_ok() && directory.join("found").exists();
                let _ = std::fs::remove_dir_all(&directory);
                ran
            };
            [Isolation::Full, Isolation::Limits].into_iter().find(|i| works(*i)).unwrap_or(Isolation::None)
        }
    }
}

#[cfg(target_os = "linux")]
pub(crate) use linux::run;
