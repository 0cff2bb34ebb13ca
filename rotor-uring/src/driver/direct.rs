//! The operations of listeners and datagram sockets, which read with system calls.

use std::error::Error;
use std::io;
use std::mem;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketAddrAny, SocketFlags, acceptfrom_with};

use super::Driver;
use super::socket::Socket;
use crate::key::Id;

impl Driver {
    /// Accepts the next connection; returns it with its peer's address.
    ///
    /// Each connection takes a call. A multishot accept would take all that wait, however many,
    /// before the machine can say that it has no room for them; and it does not report their
    /// addresses. It would save mostly the call that finds no connection, which makes a socket and
    /// its descriptor before it looks. So after a connection was accepted, this first checks
    /// whether there is another (doc/decisions/0108).
    pub(crate) fn accept(&mut self, id: Id) -> io::Result<(OwnedFd, Option<SocketAddrAny>)> {
        let checks_backlog =
            self.sockets.get_mut(id).is_some_and(|socket| mem::take(&mut socket.checks_backlog));
        if checks_backlog && !self.has_waiting(id) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut accepted = self.accept_direct(id);
        if accepted.as_ref().is_err_and(is_out_of_descriptors) {
            self.flush_submissions();
            accepted = self.accept_direct(id);
        }
        if let Some(socket) = self.sockets.get_mut(id) {
            socket.checks_backlog = accepted.is_ok();
        }
        accepted
    }

    fn accept_direct(&mut self, id: Id) -> io::Result<(OwnedFd, Option<SocketAddrAny>)> {
        self.ring.stats().direct_calls += 1;
        // Non-blocking, since sendfile(2) has no flag for that.
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        self.with_fd(id, |fd| Ok(acceptfrom_with(fd, flags)?))
    }

    /// Whether a connection waits.
    pub(crate) fn has_waiting(&self, id: Id) -> bool {
        let Some(fd) = self.sockets.get(id).and_then(Socket::fd) else { return false };
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // An error counts as a connection: `accept` reports it.
        !matches!(poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&at_once)), Ok(0))
    }

    /// Called after a system call that sends a datagram. If there was no room, its machine will be
    /// told when there is.
    pub(crate) fn await_room_if_full(&mut self, id: Id, result: &io::Result<usize>) {
        if matches!(result, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
            self.await_room(id);
        }
    }
}

/// Whether no descriptor is left, in the process or in the system. Then streams that were dropped in
/// this turn may still have theirs, until what waits is [submitted](Driver::flush_submissions).
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    // A `ListenError` has the system's error as its source.
    let source = error.get_ref().and_then(Error::source).and_then(|source| source.downcast_ref());
    matches!(Errno::from_io_error(source.unwrap_or(error)), Some(Errno::MFILE | Errno::NFILE))
}
