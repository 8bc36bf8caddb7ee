//! Runs a command under ptrace and stops it before and after every system call, so that a test can end it there, make the call fail,
//! or note what it did. All threads are followed; a call is numbered in the order in which calls begin.

use std::collections::HashMap;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// A call that begins, or one that has ended.
pub(crate) struct Stop {
    /// Number of the call, from 0.
    pub(crate) number: usize,
    /// The thread that makes it.
    pub(crate) thread: i32,
    /// Its number in the table of the kernel.
    pub(crate) call: i64,
    /// What it was given.
    pub(crate) arguments: [u64; 6],
    /// What it gave back; none while it begins.
    pub(crate) result: Option<i64>,
}

/// What happens at a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Nothing.
    Go,
    /// The whole process ends at once, as by a power switch for one process.
    Kill,
    /// The call does nothing and gives back this error; only where a call begins.
    Fail(i32),
    /// The call gets this in the place of its third argument, the length of a write; only where a call begins.
    Shorten(u64),
}

/// What became of the command.
pub(crate) struct Outcome {
    /// Exit code, if it ended by itself.
    pub(crate) code: Option<i32>,
    /// It was ended by `Act::Kill`.
    pub(crate) killed: bool,
    /// Number of calls that began.
    pub(crate) calls: usize,
    /// What it printed.
    pub(crate) stdout: String,
    /// What it said.
    pub(crate) stderr: String,
}

fn request(request: libc::c_uint, thread: i32, address: usize, data: usize) -> bool {
    // SAFETY: plain numbers; the kernel refuses what does not fit, and memory of this process is written only by `info` below.
    unsafe { libc::ptrace(request, thread, address, data) != -1 }
}

/// Registers by their place in the kernel's `struct user`.
const RAX: usize = 8 * libc::RAX as usize;
const RDX: usize = 8 * libc::RDX as usize;
const ORIG_RAX: usize = 8 * libc::ORIG_RAX as usize;

/// Where a stopped thread is: 1 begins a call, 2 has ended one.
fn info(thread: i32) -> Option<(u8, i64, [u64; 6])> {
    // SAFETY: all zeros is a value of this plain structure, and the kernel writes at most its size.
    unsafe {
        let mut info: libc::ptrace_syscall_info = std::mem::zeroed();
        let size = std::mem::size_of_val(&info);
        if libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, thread, size, &mut info) == -1 {
            return None;
        }
        match info.op {
            libc::PTRACE_SYSCALL_INFO_ENTRY => Some((1, info.u.entry.nr as i64, info.u.entry.args)),
            libc::PTRACE_SYSCALL_INFO_EXIT => Some((2, info.u.exit.sval, [0; 6])),
            _ => None,
        }
    }
}

/// Bytes of a stopped process.
pub(crate) fn memory(thread: i32, address: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0u8; length];
    let mut done = 0;
    while done < length {
        let here = libc::iovec { iov_base: bytes[done..].as_mut_ptr().cast(), iov_len: length - done };
        let there = libc::iovec { iov_base: (address as usize + done) as *mut libc::c_void, iov_len: length - done };
        // SAFETY: `here` is the rest of `bytes`.
        let read = unsafe { libc::process_vm_readv(thread, &here, 1, &there, 1, 0) };
        if read <= 0 {
            break;
        }
        done += read as usize;
    }
    bytes.truncate(done);
    bytes
}

/// A text that ends with a zero byte; paths are short, and a page border may come right after one.
pub(crate) fn text(thread: i32, address: u64) -> String {
    let mut bytes = Vec::new();
    while bytes.len() < 4096 {
        let at = address + bytes.len() as u64;
        let part = memory(thread, at, 256.min(4096 - at as usize % 4096));
        let end = part.iter().position(|b| *b == 0);
        bytes.extend_from_slice(&part[..end.unwrap_or(part.len())]);
        if end.is_some() || part.is_empty() {
            break;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A file without a name, for what a command prints: a pipe could fill up while the command is stopped.
fn unnamed() -> std::fs::File {
    use std::os::fd::FromRawFd;
    // SAFETY: the text ends with a zero byte, and the new descriptor belongs to nobody else.
    unsafe {
        let fd = libc::memfd_create(c"output".as_ptr(), libc::MFD_CLOEXEC);
        assert!(fd >= 0, "no file in memory");
        std::fs::File::from_raw_fd(fd)
    }
}

fn content(mut file: std::fs::File) -> String {
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Runs a command to its end; `decide` is asked at every stop.
pub(crate) fn run(command: &mut Command, mut decide: impl FnMut(&Stop) -> Act) -> Outcome {
    let (stdout, stderr) = (unnamed(), unnamed());
    command.stdin(Stdio::null()).stdout(stdout.try_clone().unwrap()).stderr(stderr.try_clone().unwrap());
    // SAFETY: between fork and exec only this one call is made.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        })
    };
    #[allow(clippy::zombie_processes, reason = "waited for by number below")]
    let leader = command.spawn().expect("a command under ptrace").id() as i32;
    let mut outcome = Outcome { code: None, killed: false, calls: 0, stdout: String::new(), stderr: String::new() };
    // Calls under way by thread, with the error that they are to give back.
    let mut under_way: HashMap<i32, (Stop, Option<i32>)> = HashMap::new();
    let mut begun = false;
    loop {
        let mut status = 0;
        // SAFETY: writes one number. Children of other threads of this test are not touched.
        let thread = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD) };
        assert!(thread > 0, "the traced command is lost");
        if !libc::WIFSTOPPED(status) {
            under_way.remove(&thread);
            if thread != leader {
                continue;
            }
            outcome.code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
            (outcome.stdout, outcome.stderr) = (content(stdout), content(stderr));
            return outcome;
        }
        let signal = libc::WSTOPSIG(status);
        if !begun {
            let options = libc::PTRACE_O_TRACESYSGOOD
                | libc::PTRACE_O_TRACECLONE
                | libc::PTRACE_O_TRACEFORK
                | libc::PTRACE_O_TRACEVFORK
                | libc::PTRACE_O_EXITKILL;
            assert!(request(libc::PTRACE_SETOPTIONS, thread, 0, options as usize), "no options for ptrace");
            begun = true;
        } else if signal == libc::SIGTRAP | 0x80 {
            match stopped(thread, &mut under_way, &mut outcome.calls, &mut decide) {
                Act::Kill => {
                    outcome.killed = true;
                    // SAFETY: the process that was started above, which has not been waited for yet.
                    unsafe { libc::kill(leader, libc::SIGKILL) };
                }
                _ => drop(request(libc::PTRACE_SYSCALL, thread, 0, 0)),
            }
            continue;
        } else if status >> 16 == 0 && signal != libc::SIGSTOP && signal != libc::SIGTRAP {
            request(libc::PTRACE_SYSCALL, thread, 0, signal as usize);
            continue;
        }
        // The first stop of the process or of a new thread, or the news of one: nothing that the command should see.
        request(libc::PTRACE_SYSCALL, thread, 0, 0);
    }
}

/// One stop at a call.
fn stopped(
    thread: i32,
    under_way: &mut HashMap<i32, (Stop, Option<i32>)>,
    calls: &mut usize,
    decide: &mut impl FnMut(&Stop) -> Act,
) -> Act {
    match (info(thread), under_way.remove(&thread)) {
        (Some((1, call, arguments)), _) => {
            let stop = Stop { number: *calls, thread, call, arguments, result: None };
            *calls += 1;
            let act = decide(&stop);
            let mut error = None;
            match act {
                // No such call: the kernel skips it.
                Act::Fail(number) if request(libc::PTRACE_POKEUSER, thread, ORIG_RAX, usize::MAX) => error = Some(number),
                Act::Shorten(length) => drop(request(libc::PTRACE_POKEUSER, thread, RDX, length as usize)),
                _ => {}
            }
            under_way.insert(thread, (stop, error));
            act
        }
        (Some((2, result, _)), Some((mut stop, error))) => {
            let result = match error {
                Some(number) => {
                    request(libc::PTRACE_POKEUSER, thread, RAX, -i64::from(number) as usize);
                    -i64::from(number)
                }
                None => result,
            };
            stop.result = Some(result);
            decide(&stop)
        }
        _ => Act::Go,
    }
}
