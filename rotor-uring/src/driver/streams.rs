//! The operations of streams: read, write, shut down.

use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rotor_core::net::ReadBuf;
use rustix::net::{self, SendAncillaryBuffer, SendFlags};

use super::socket::Socket;
use super::{Driver, gone};
use crate::intake::Source;
use crate::key::Id;
use crate::ring::Ring;

/// Longer data is passed to the kernel at once, from where it is, in bytes. 16 KiB: to copy less is
/// cheaper than a system call.
pub(super) const DIRECT_BYTES_MIN: usize = 16 * 1024;

impl Driver {
    /// Reads delivered data; if the kernel does not deliver, reads with a system call.
    pub(crate) fn read(&mut self, id: Id, buf: &mut ReadBuf<'_>) -> io::Result<()> {
        let Some(socket) = self.sockets.get_mut(id) else { return Err(gone()) };
        // If `buf` has no room, nothing is read. That does not mean that there is nothing to read,
        // after which the machine would wait for more.
        if let Some(work) = socket.work.as_mut().filter(|work| !work.inbox.is_empty()) {
            work.inbox.read(buf, &mut self.ring);
            if !socket.intake.is_given() {
                socket.given_in = self.ring.stats().enters as u32;
            }
            // Sockets that got data in this turn are looked at when it ends; this one may have
            // older data.
            if !socket.is_noted {
                self.put_to_rest(id);
            }
            return Ok(());
        }
        match socket.intake.source() {
            // The kernel does not know of the operation yet, so a system call takes only earlier
            // data.
            Source::Nothing
                if socket.intake.is_given()
                    && socket.given_in == self.ring.stats().enters as u32 =>
            {
                self.ask(id, buf)
            }
            Source::Nothing => Err(io::ErrorKind::WouldBlock.into()),
            Source::End => Ok(()),
            Source::Error(error) => Err(io::Error::from_raw_os_error(error)),
            Source::Ask => self.ask(id, buf),
        }
    }

    /// Reads with a system call. If that has emptied the socket, the kernel delivers again.
    fn ask(&mut self, id: Id, buf: &mut ReadBuf<'_>) -> io::Result<()> {
        self.ring.stats().direct_calls += 1;
        let enters = self.ring.stats().enters as u32;
        let Some(socket) = self.sockets.get_mut(id) else { return Err(gone()) };
        socket.given_in = enters;
        let fd = socket.fd.as_ref().ok_or_else(gone)?;
        let asked = buf.remaining();
        let result = buf.recv(fd.as_fd());
        if let Ok(count) = result {
            socket.bulk.note_read(count, asked);
        }
        match &result {
            Ok(0) if asked > 0 => {
                socket.intake.note_end();
                self.ended.push(id);
            }
            // The rest, if there is one, is delivered like later data.
            Ok(count) if *count < asked => self.give(id),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.give(id),
            _ => {}
        }
        result.map(drop)
    }

    /// Whether the next data will be reported without a read that fails with `WouldBlock` first.
    pub(crate) fn is_drained(&self, id: Id) -> bool {
        let socket = self.sockets.get(id);
        socket.is_some_and(|socket| !socket.has_unread() && socket.intake.is_given())
    }

    /// Takes bytes, to be sent when the turn ends. Much data is passed to the kernel at once.
    pub(crate) fn write(&mut self, id: Id, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let Driver { spare, sockets, written, .. } = self;
        let Some(socket) = sockets.get_mut(id) else { return Err(gone()) };
        if let Some(work) = &socket.work {
            work.outgo.check()?;
        }
        if !socket.has_unsent() {
            let len: usize = slices.iter().map(|slice| slice.len()).sum();
            // If it is not registered, nobody would tell its machine that the connection has
            // failed.
            if len == 0 || len > DIRECT_BYTES_MIN || socket.token().is_none() {
                return self.write_now(id, slices);
            }
            written.push(id);
        }
        socket.work(spare).outgo.write(slices, || spare.take())
    }

    fn write_now(&mut self, id: Id, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.ring.stats().direct_calls += 1;
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        self.now(id, |fd| Ok(net::sendmsg(fd, slices, &mut SendAncillaryBuffer::default(), flags)?))
    }

    /// Makes a call that passes bytes to the kernel. If that has no room, the machine is told when
    /// it has.
    fn now(
        &mut self,
        id: Id,
        call: impl FnOnce(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let result = self.with_fd(id, call);
        self.called(id, &result);
        result
    }

    /// Sends with a system call that reads the data itself, if everything that was written has been
    /// sent.
    pub(crate) fn send_by(
        &mut self,
        id: Id,
        call: impl FnOnce(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let Some(socket) = self.sockets.get_mut(id) else { return Err(gone()) };
        if let Some(work) = &mut socket.work {
            work.outgo.check()?;
            if !work.outgo.is_empty() {
                return Err(work.outgo.wait_for_room());
            }
        }
        self.ring.stats().direct_calls += 1;
        self.now(id, call)
    }

    /// Submits what was written, unless a send is under way.
    pub(super) fn send_next(&mut self, id: Id) {
        let Driver { sockets, ring, .. } = self;
        let Some(socket) = sockets.get_mut(id) else { return };
        if let Some(memory) = socket.work.as_mut().and_then(|work| work.outgo.next()) {
            send(ring, socket, memory, 0, id);
        }
    }

    /// Shuts down one direction or both. Our end is sent after what was written.
    pub(crate) fn shutdown(&mut self, id: Id, how: Shutdown) -> io::Result<()> {
        let Some(socket) = self.sockets.get_mut(id) else { return Err(gone()) };
        let is_later = how != Shutdown::Read && !socket.work(&mut self.spare).outgo.end();
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
        // It does not linger to send the rest.
        let work = self.sockets.get_mut(id).and_then(|socket| socket.work.as_mut());
        if let Some(key) = work.and_then(|work| work.outgo.give_up()) {
            self.ring.cancel(key);
        }
        Ok(())
    }

    /// Returns the error of the socket, once.
    pub(crate) fn take_error(&mut self, id: Id) -> io::Result<Option<io::Error>> {
        let kept = self.sockets.get_mut(id).and_then(Socket::take_error);
        if kept.is_some() {
            return Ok(kept);
        }
        self.with_fd(id, |fd| Ok(net::sockopt::socket_error(fd)?.err().map(io::Error::from)))
    }
}

/// Submits a send of the memory, from that position on.
pub(super) fn send(ring: &mut Ring, socket: &mut Socket, memory: Vec<u8>, from: usize, id: Id) {
    let Some(fd) = &socket.fd else { return };
    let key = ring.send(fd.as_fd(), memory, from, id);
    if let Some(work) = &mut socket.work {
        work.outgo.set_sending(key);
    }
}
