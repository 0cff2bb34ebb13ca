//! The system calls that the kernel's sockets make themselves on Linux; on other systems, functions
//! of the standard library.

use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::mem;
use std::os::fd::AsFd;

use crate::net::stream_socket::copy_file_chunk;

/// Reads by a direct system call. The function of the C library is a cancellation point, and
/// therefore does extra work at each call in a process with several threads.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline]
pub(super) fn receive(socket: &mut (impl AsFd + Read), buffer: &mut [u8]) -> io::Result<usize> {
    let (count, _) = rustix::net::recv(socket, buffer, rustix::net::RecvFlags::empty())?;
    Ok(count)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[inline]
pub(super) fn receive(socket: &mut (impl AsFd + Read), buffer: &mut [u8]) -> io::Result<usize> {
    socket.read(buffer)
}

/// Reads as many bytes as the vector has spare capacity, which need not be initialized.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn receive_spare(
    socket: &mut (impl AsFd + Read),
    into: &mut Vec<u8>,
) -> io::Result<usize> {
    let room = rustix::buffer::spare_capacity(into);
    let (count, _) = rustix::net::recv(socket, room, rustix::net::RecvFlags::empty())?;
    Ok(count)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn receive_spare(
    socket: &mut (impl AsFd + Read),
    into: &mut Vec<u8>,
) -> io::Result<usize> {
    let len = into.len();
    into.resize(into.capacity(), 0);
    let read = receive(socket, &mut into[len..]);
    into.truncate(len + *read.as_ref().unwrap_or(&0));
    read
}

/// Writes by a direct system call, as `receive` reads. If the peer is gone, this returns an error
/// and raises no signal.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline]
pub(super) fn send(socket: &mut (impl AsFd + Write), bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::net::send(socket, bytes, rustix::net::SendFlags::NOSIGNAL)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[inline]
pub(super) fn send(socket: &mut (impl AsFd + Write), bytes: &[u8]) -> io::Result<usize> {
    socket.write(bytes)
}

/// Writes from several slices, as `send` does from one.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn send_vectored(
    socket: &mut (impl AsFd + Write),
    slices: &[IoSlice<'_>],
) -> io::Result<usize> {
    use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
    Ok(sendmsg(socket, slices, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn send_vectored(
    socket: &mut (impl AsFd + Write),
    slices: &[IoSlice<'_>],
) -> io::Result<usize> {
    socket.write_vectored(slices)
}

/// Lets the kernel send a part of a file, or copies it if the kernel cannot.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn send_file<S: AsFd + Write>(
    socket: &mut S,
    file: &File,
    offset: u64,
    count: usize,
) -> io::Result<usize> {
    match send_file_by_kernel(&*socket, file, offset, count) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            copy_file_chunk(socket, file, offset, count)
        }
        other => other,
    }
}

/// Lets the kernel send up to `count` bytes of a file, from `offset` on (sendfile(2)). For
/// implementations of kernel sockets on other backends. The socket must be non-blocking.
///
/// # Errors
///
/// [`Unsupported`](io::ErrorKind::Unsupported) if the kernel cannot send the file: the file has no
/// pages (`EINVAL`), the call is not available (`ENOSYS`), or the call could raise SIGPIPE, because
/// the process does not ignore that signal. Then nothing was sent, and the bytes must be copied.
/// Otherwise the system's error.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn send_file_by_kernel(
    socket: impl AsFd,
    file: &File,
    offset: u64,
    count: usize,
) -> io::Result<usize> {
    use rustix::io::Errno;
    if !crate::net::sigpipe::is_ignored() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    // With a separate offset, since the file's own offset is shared by all who have the file open.
    match rustix::fs::sendfile(socket, file, Some(&mut { offset }), count) {
        Err(Errno::INVAL | Errno::NOSYS) => Err(io::ErrorKind::Unsupported.into()),
        other => Ok(other?),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn send_file(
    socket: &mut impl Write,
    file: &File,
    offset: u64,
    count: usize,
) -> io::Result<usize> {
    copy_file_chunk(socket, file, offset, count)
}

/// The first value of a listener's flag for [`accept_next`].
pub(super) fn initially_false<L>(_: &L) -> bool {
    false
}

/// Accepts the next connection, if there is one. After a connection was accepted, it first checks
/// whether there is another one, since usually there is not: an `accept` that finds none makes a
/// socket and its descriptor before it looks, and then destroys them (doc/decisions/0108).
///
/// On systems where `is_readable` cannot know, it returns `true`, so `accept` is always called:
/// there, a selector may report the next connection only after a call has found none.
pub(super) fn accept_next<T>(
    checks_first: &mut bool,
    is_waiting: impl FnOnce() -> bool,
    accept: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    if mem::take(checks_first) && !is_waiting() {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let accepted = accept();
    *checks_first = accepted.is_ok();
    accepted
}

/// Returns whether a listener has a connection in its queue, by poll(2), as accept(2) describes.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn is_readable(listener: &impl AsFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    // An error counts as a connection: `accept` then returns the error.
    !matches!(poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&at_once)), Ok(0))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn is_readable(_: &impl AsFd) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// Pending connections and, as negative numbers, errors: the result of each call, and the
    /// numbers of calls and checks so far.
    #[test]
    fn after_a_connection_the_queue_is_checked_before_accept() {
        let (calls, looked) = (Cell::new(0), Cell::new(0));
        let ask = |checks_first: &mut bool, waiting: &RefCell<Vec<i32>>| {
            let is_waiting = || {
                looked.set(looked.get() + 1);
                !waiting.borrow().is_empty()
            };
            let accepted = accept_next(checks_first, is_waiting, || {
                calls.set(calls.get() + 1);
                match waiting.borrow_mut().pop() {
                    Some(number @ 0..) => Ok(number),
                    Some(_) => Err(io::ErrorKind::ConnectionAborted.into()),
                    None => Err(io::ErrorKind::WouldBlock.into()),
                }
            });
            (accepted.map_err(|error| error.kind()), calls.get(), looked.get())
        };
        let none = Err(io::ErrorKind::WouldBlock);
        let checks_first = &mut initially_false(&());
        // A spurious event: nothing was accepted, so the call itself reports that.
        assert_eq!(ask(checks_first, &RefCell::default()), (none, 1, 0));
        let two = &RefCell::new(vec![2, 1]);
        assert_eq!(ask(checks_first, two), (Ok(1), 2, 0));
        assert_eq!(ask(checks_first, two), (Ok(2), 3, 1));
        assert_eq!(ask(checks_first, two), (none, 3, 2));
        // The next event.
        assert_eq!(ask(checks_first, &RefCell::new(vec![3])), (Ok(3), 4, 2));
        // An error says nothing about the queue: the next call is made.
        let aborted = &RefCell::new(vec![4, -1]);
        assert_eq!(ask(checks_first, aborted), (Err(io::ErrorKind::ConnectionAborted), 5, 3));
        assert_eq!(ask(checks_first, aborted), (Ok(4), 6, 3));
        assert_eq!(ask(checks_first, aborted), (none, 6, 4));
    }
}
