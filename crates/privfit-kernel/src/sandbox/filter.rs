//! The system calls that a command does not have: those that lead out of its namespaces.
//!
//! Sockets with a path and sockets of the host (a path is no matter of the network's namespace), keyrings, asynchronous calls that go past this filter, and the call by which a process would outlive the one that waits for it.
//! Pairs of connected streams stay, because languages use them inside of one program. Everything else is as it was: this is no list of what is harmless, but of what namespaces leave open.

use libc::{c_int, sock_filter};

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: u32 = 0;

/// Where the filter finds the number of a call, its architecture, and its first two arguments.
const NUMBER: u32 = 0;
const MACHINE: u32 = 4;
const FIRST: u32 = 16;
const SECOND: u32 = 24;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

fn refuse(error: c_int) -> u32 {
    libc::SECCOMP_RET_ERRNO | error as u32
}

fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

fn load(at: u32) -> sock_filter {
    statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at)
}

fn end(with: u32) -> sock_filter {
    statement(libc::BPF_RET | libc::BPF_K, with)
}

/// Goes on if the number that was loaded is this one, and otherwise after so many instructions.
fn unless(k: u32, skip: usize) -> sock_filter {
    sock_filter { code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, jt: 0, jf: skip as u8, k }
}

/// What is done for one call: every way through it ends.
fn of_call(number: libc::c_long, body: &[sock_filter]) -> Vec<sock_filter> {
    [&[unless(number as u32, body.len())], body].concat()
}

/// The filter. On machines that it does not know it refuses everything, so that no command runs there.
pub(super) fn program() -> Vec<sock_filter> {
    let same = sock_filter { jt: 1, ..unless(ARCHITECTURE, 0) };
    let mut out = vec![load(MACHINE), same, end(refuse(libc::ENOSYS)), load(NUMBER)];
    // Numbers of another set of calls on the same machine.
    let others = sock_filter { code: (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16, jt: 0, jf: 1, k: 0x4000_0000 };
    out.extend([others, end(refuse(libc::ENOSYS))]);
    for number in [libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key, libc::SYS_io_uring_setup] {
        out.extend(of_call(number, &[end(refuse(libc::ENOSYS))]));
    }
    let stays = [load(FIRST), unless(libc::PR_SET_PDEATHSIG as u32, 1), end(refuse(libc::EPERM)), end(ALLOW)];
    out.extend(of_call(libc::SYS_prctl, &stays));
    let mut families = vec![load(FIRST)];
    for family in [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK] {
        families.extend([unless(family as u32, 1), end(ALLOW)]);
    }
    families.push(end(refuse(libc::EAFNOSUPPORT)));
    out.extend(of_call(libc::SYS_socket, &families));
    // A connected stream can't be sent elsewhere; datagrams could.
    let kind = statement(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0xf);
    let pair = [load(SECOND), kind, unless(libc::SOCK_STREAM as u32, 1), end(ALLOW), end(refuse(libc::EPERM))];
    out.extend(of_call(libc::SYS_socketpair, &pair));
    out.push(end(ALLOW));
    out
}
