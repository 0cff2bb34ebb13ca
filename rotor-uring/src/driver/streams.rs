//! The operations of streams: read, write, shut down.

use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rotor_core::net::ReadBuf;
use rustix::net::{self, SendAncillaryBuffer, SendFlags};

use super::socket::Socket;
use super::{Driver, not_connected};
use crate::intake::Source;
use crate::key::Id;

/// Longer data is passed to the kernel at once, from where it is, in bytes. 16 KiB: to copy less is
/// cheaper than a system call.
pub(super) const DIRECT_BYTES_MIN: usize = 16 * 1024;

impl Driver {
    /// Reads delivered data; if the kernel does not deliver, reads with a system call.
    pub(crate) fn read(&mut self, id: Id, buf: &mut ReadBuf<'_>) -> io::Result<()> {
        let Some(socket) = self.sockets.get_mut(id) else { return Err(not_connected()) };
        // If `buf` has no room, nothing is read. That does not mean that there is nothing to read,
        // after which the machine would wait for more.
        if let Some(buffers) = socket.buffers.as_mut().filter(|buffers| !buffers.inbox.is_empty()) {
            buffers.inbox.read(buf, &mut self.ring);
            if !socket.intake.is_delivering() {
                socket.enters_at_input = self.ring.stats().enters as u32;
            }
            // Sockets that got data in this turn are looked at when it ends; this one may have
            // older data.
            if !socket.is_listed {
                self.recycle_idle_buffers(id);
            }
            return Ok(());
        }
        match socket.intake.read_source() {
            // The kernel does not know of the operation yet, so a system call takes only earlier
            // data.
            Source::Nothing
                if socket.intake.is_delivering()
                    && socket.enters_at_input == self.ring.stats().enters as u32 =>
            {
                self.read_direct(id, buf)
            }
            Source::Nothing => Err(io::ErrorKind::WouldBlock.into()),
            Source::End => Ok(()),
            Source::Error(error) => Err(io::Error::from_raw_os_error(error)),
            Source::SystemCall => self.read_direct(id, buf),
        }
    }

    /// Reads with a system call. If that has emptied the socket, the kernel delivers again.
    fn read_direct(&mut self, id: Id, buf: &mut ReadBuf<'_>) -> io::Result<()> {
        self.ring.stats().direct_calls += 1;
        let enters = self.ring.stats().enters as u32;
        let Some(socket) = self.sockets.get_mut(id) else { return Err(not_connected()) };
        socket.enters_at_input = enters;
        let fd = socket.fd.as_ref().ok_or_else(not_connected)?;
        let requested = buf.remaining();
        let result = buf.recv(fd.as_fd());
        if let Ok(count) = result {
            socket.bulk.on_read(count, requested);
        }
        match &result {
            Ok(0) if requested > 0 => {
                socket.intake.set_ended();
                if let Some(error) = socket.intake.take_error() {
                    return Err(io::Error::from_raw_os_error(error));
                }
                self.ended.push(id);
            }
            // The rest, if there is one, is delivered like later data.
            Ok(count) if *count < requested => self.deliver_input(id),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.deliver_input(id),
            _ => {}
        }
        result.map(drop)
    }

    /// Whether the next data will be reported without a read that fails with `WouldBlock` first.
    pub(crate) fn is_drained(&self, id: Id) -> bool {
        let socket = self.sockets.get(id);
        socket.is_some_and(|socket| !socket.has_unread() && socket.intake.is_delivering())
    }

    /// Returns how much memory the unread data of a stream takes, in bytes. What it has to send is
    /// not counted: nobody would be told when that is sent.
    #[inline]
    pub(crate) fn held_bytes(&self, id: Id) -> usize {
        let buffers = self.sockets.get(id).and_then(|socket| socket.buffers.as_ref());
        buffers.map_or(0, |buffers| buffers.inbox.held_bytes())
    }

    /// Takes bytes, to be sent when the turn ends. Much data is passed to the kernel at once.
    pub(crate) fn write(&mut self, id: Id, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let Driver { spare, sockets, written, .. } = self;
        let Some(socket) = sockets.get_mut(id) else { return Err(not_connected()) };
        if let Some(buffers) = &socket.buffers {
            buffers.outbox.check_open()?;
        }
        if !socket.has_unsent() {
            let len: usize = slices.iter().map(|slice| slice.len()).sum();
            // If it is not registered, nobody would tell its machine that the connection has
            // failed.
            if len == 0 || len > DIRECT_BYTES_MIN || socket.token().is_none() {
                return self.write_direct(id, slices);
            }
            written.push(id);
        }
        socket.buffers_mut(spare).outbox.write(slices, || spare.take_memory())
    }

    fn write_direct(&mut self, id: Id, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.ring.stats().direct_calls += 1;
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        self.send_direct(id, |fd| {
            Ok(net::sendmsg(fd, slices, &mut SendAncillaryBuffer::default(), flags)?)
        })
    }

    /// Makes a call that passes bytes to the kernel. If that has no room, the machine is told when
    /// it has.
    fn send_direct(
        &mut self,
        id: Id,
        call: impl FnOnce(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let result = self.with_fd(id, call);
        self.await_room_if_full(id, &result);
        result
    }

    /// Sends with a system call that reads the data itself, if everything that was written has been
    /// sent.
    pub(crate) fn send_with(
        &mut self,
        id: Id,
        call: impl FnOnce(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let Some(socket) = self.sockets.get_mut(id) else { return Err(not_connected()) };
        if let Some(buffers) = &mut socket.buffers {
            buffers.outbox.check_open()?;
            if !buffers.outbox.is_empty() {
                return Err(buffers.outbox.wait_for_room());
            }
        }
        self.ring.stats().direct_calls += 1;
        self.send_direct(id, call)
    }

    /// Submits what was written, unless a send is under way.
    pub(super) fn send_next(&mut self, id: Id) {
        let Driver { sockets, ring, .. } = self;
        let Some(socket) = sockets.get_mut(id) else { return };
        let (Some(fd), Some(buffers)) = (&socket.fd, &mut socket.buffers) else { return };
        if let Some(memory) = buffers.outbox.take_next() {
            let key = ring.send(fd.as_fd(), memory, id);
            buffers.outbox.set_in_flight(key);
        }
    }

    /// Shuts down one direction or both. Our end is sent after what was written.
    pub(crate) fn shutdown(&mut self, id: Id, how: Shutdown) -> io::Result<()> {
        let Some(socket) = self.sockets.get_mut(id) else { return Err(not_connected()) };
        let is_later =
            how != Shutdown::Read && !socket.buffers_mut(&mut self.spare).outbox.request_end();
        let how = match how {
            Shutdown::Write if is_later => return Ok(()),
            Shutdown::Both if is_later => net::Shutdown::Read,
            Shutdown::Read => net::Shutdown::Read,
            Shutdown::Write => net::Shutdown::Write,
            Shutdown::Both => net::Shutdown::Both,
        };
        self.with_fd(id, |fd| Ok(net::shutdown(fd, how)?))
    }

    /// Makes the stream end with a reset when it is dropped: the kernel resets a connection that is
    /// closed with a linger time of zero (socket(7), `SO_LINGER`).
    pub(crate) fn reset(&mut self, id: Id) -> io::Result<()> {
        self.with_fd(id, |fd| Ok(net::sockopt::set_socket_linger(fd, Some(Duration::ZERO))?))?;
        let Some(socket) = self.sockets.get_mut(id) else { return Ok(()) };
        socket.resets_on_close = true;
        // It does not linger to send the rest.
        if let Some(key) = socket.buffers.as_mut().and_then(|buffers| buffers.outbox.abandon()) {
            self.ring.cancel(key);
        }
        Ok(())
    }

    /// Returns the error of the socket, once.
    pub(crate) fn take_error(&mut self, id: Id) -> io::Result<Option<io::Error>> {
        let stored = self.sockets.get_mut(id).and_then(Socket::take_error);
        if stored.is_some() {
            return Ok(stored);
        }
        self.with_fd(id, |fd| Ok(net::sockopt::socket_error(fd)?.err().map(io::Error::from)))
    }
}
