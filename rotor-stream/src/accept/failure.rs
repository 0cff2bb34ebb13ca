//! What an error of accepting means: a connection that is past, or want of something.

use std::io;

/// Whether an error of accepting names one connection, which is past: the next one may be fine.
pub(super) fn is_past(error: &io::Error) -> bool {
    use io::ErrorKind::*;
    matches!(
        error.kind(),
        ConnectionAborted
            | ConnectionReset
            // No connection at all, but a signal; the next attempt may bring one all the same.
            | Interrupted
            // accept(2): firewall rules forbid this one.
            | PermissionDenied
            | TimedOut
            | HostUnreachable
            | NetworkUnreachable
            | NetworkDown
    ) || is_of_network(error)
}

/// Whether there is no descriptor left: `ENFILE` or `EMFILE`, which are these numbers on every
/// Unix.
pub(super) fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(23 | 24))
}

/// Whether it is an error that was waiting in a connection, which Linux hands over with it;
/// accept(2) names them, to be treated like `EAGAIN`.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_of_network(error: &io::Error) -> bool {
    use rustix::io::Errno;
    const WAITING: [Errno; 8] = [
        Errno::NETDOWN,
        Errno::PROTO,
        Errno::NOPROTOOPT,
        Errno::HOSTDOWN,
        Errno::NONET,
        Errno::HOSTUNREACH,
        Errno::OPNOTSUPP,
        Errno::NETUNREACH,
    ];
    Errno::from_io_error(error).is_some_and(|error| WAITING.contains(&error))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn is_of_network(_: &io::Error) -> bool {
    false
}
