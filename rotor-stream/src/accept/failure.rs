//! What an error of `accept` means: one connection is gone, or something is missing.

use std::error::Error;
use std::io;

use crate::error::StreamError;

/// Returns whether an error of `accept` concerns one connection, which is gone; the next one may be
/// fine.
pub(super) fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::*;
    matches!(
        error.kind(),
        ConnectionAborted
            | ConnectionReset
            // A signal, not a connection; the next attempt may still succeed.
            | Interrupted
            // accept(2): firewall rules forbid this connection.
            | PermissionDenied
            | TimedOut
            | HostUnreachable
            | NetworkUnreachable
            | NetworkDown
    ) || is_pending_network_error(error)
}

/// Returns whether no descriptor is left: `ENFILE` or `EMFILE`, which have these numbers on every
/// Unix.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(23 | 24))
}

/// Returns whether a machine could not be made because no descriptor was left for it, or because
/// the system cannot watch its socket: its error, or a cause of it, says so.
pub(super) fn is_for_lack_of_descriptors(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.downcast_ref().is_some_and(is_out_of_descriptors)
            || error.downcast_ref().is_some_and(is_out_of_watches)
        {
            return true;
        }
        next = error.source();
    }
    false
}

/// Returns whether a socket could not be registered for want of memory or, on Linux, because the
/// user's processes watch too many (`max_user_watches`, epoll(7)): `ENOMEM` or `ENOSPC`. As the
/// error of something else, `ENOSPC` would be a full disk.
fn is_out_of_watches(error: &StreamError) -> bool {
    matches!(error, StreamError::Socket(error) if matches!(error.raw_os_error(), Some(12 | 28)))
}

/// Returns whether this is a pending error of the new connection, which Linux returns from
/// `accept`. accept(2) lists these errors and says to treat them like `EAGAIN`.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_pending_network_error(error: &io::Error) -> bool {
    use rustix::io::Errno;
    const PENDING: [Errno; 8] = [
        Errno::NETDOWN,
        Errno::PROTO,
        Errno::NOPROTOOPT,
        Errno::HOSTDOWN,
        Errno::NONET,
        Errno::HOSTUNREACH,
        Errno::OPNOTSUPP,
        Errno::NETUNREACH,
    ];
    Errno::from_io_error(error).is_some_and(|error| PENDING.contains(&error))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn is_pending_network_error(_: &io::Error) -> bool {
    false
}
