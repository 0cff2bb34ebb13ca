//! `Driver`: the sockets of a ring, and its turn: what was written is submitted, what has arrived
//! is passed to the sockets, and their machines are told.

mod completions;
mod direct;
mod socket;
mod spare;
mod stream_buffers;
mod streams;
#[cfg(test)]
mod tests;
mod turn;

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rotor_core::backend::Clock;
use rotor_core::{EventSet, Interest, OffloadPool, Time, Token};

pub(crate) use self::direct::is_out_of_descriptors;
use self::socket::{Ready, Socket};
use self::spare::Spare;
use crate::config::UringConfig;
use crate::key::{Id, Kind};
use crate::refused::{RingUnavailable, Step};
use crate::ring::{Ring, Wait, Watch};
use crate::slots::Slots;
use crate::stats::UringStats;

pub(crate) struct Driver {
    ring: Ring,
    sockets: Slots<Socket>,
    /// Sockets that were written to in this turn.
    written: Vec<Id>,
    /// Sockets to which data was delivered in this turn.
    delivered: Vec<Id>,
    /// Streams whose peer has ended its side since the end of the last turn.
    ended: Vec<Id>,
    /// Streams that have or may have input which the kernel does not deliver.
    unread: Vec<Id>,
    /// Sockets whose machines have to be told of what they hold already.
    unreported: Vec<Id>,
    /// Events for the next wait, which came during the turn.
    late_events: Ready,
    /// Dropped streams that are still sending, and until when they may. In order, because all get
    /// the same time.
    lingering: VecDeque<(Time, Id)>,
    has_more: bool,
    spare: Spare,
    waker: OwnedFd,
    config: UringConfig,
    clock: Clock,
}

/// How many sockets have reserved address space: 65,536, which is 3.5 MiB of it. With more of them,
/// the table moves.
const SOCKETS: usize = 65_536;

/// How many operations the drop of a socket submits at most: three cancellations, and the close.
const DROP_OPERATIONS_MAX: usize = 4;

/// How often a driver submits and looks for completions at most, for each socket that is dropped, by
/// itself or with the driver.
const FLUSHES_MAX: usize = 64;

/// The kind of a new socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SocketKind {
    Stream,
    /// A stream that may not be connected yet.
    Connecting,
    /// A listener or a datagram socket.
    Direct,
}

impl Driver {
    pub(crate) fn open(config: UringConfig, waker: OwnedFd) -> Result<Driver, RingUnavailable> {
        let ring = Ring::open(&config)?;
        let mut driver = Driver {
            ring,
            sockets: Slots::with_capacity(SOCKETS),
            written: Vec::new(),
            delivered: Vec::new(),
            ended: Vec::new(),
            unread: Vec::new(),
            unreported: Vec::new(),
            late_events: Ready::new(),
            lingering: VecDeque::new(),
            has_more: false,
            spare: Spare::new(),
            waker,
            config,
            clock: Clock::new(),
        };
        driver.watch_waker();
        // Now, so that a refusal is known at once.
        driver.ring.enter(Wait::Poll).map_err(RingUnavailable::at(Step::Enter))?;
        Ok(driver)
    }

    /// Polls the waker: each write to it is reported, and none has to be read.
    fn watch_waker(&mut self) {
        self.ring.poll(self.waker.as_fd(), Watch::Waker);
    }

    pub(crate) fn stats(&mut self) -> UringStats {
        UringStats { sockets: self.sockets.len(), ..*self.ring.stats() }
    }

    pub(crate) fn pool(&self) -> Option<OffloadPool> {
        self.config.pool.clone()
    }

    #[inline]
    pub(crate) fn coarse_now(&self) -> Time {
        self.clock.coarse_now()
    }

    pub(crate) fn may_have_more(&self) -> bool {
        self.has_more
    }

    /// Returns how many full waits take all completions that there are now.
    pub(crate) fn full_waits(&self) -> usize {
        self.completions_max().div_ceil(self.config.events_max)
    }

    /// Returns how many completion queues hold all completions that there are now.
    fn full_queues(&self) -> usize {
        self.completions_max().div_ceil(self.config.completions as usize)
    }

    /// Returns how many completions there are now at most. Each operation has at most one, or two, if
    /// it stays; and receives have one more for each buffer that they fill.
    fn completions_max(&self) -> usize {
        let operations = self.ring.outstanding() + self.written.len();
        2 * operations + usize::from(self.config.buffers)
    }

    /// Takes over a socket.
    pub(crate) fn insert(&mut self, fd: OwnedFd, kind: SocketKind) -> Id {
        let mut socket = Socket::new(fd, kind != SocketKind::Direct);
        socket.is_connecting = kind == SocketKind::Connecting;
        socket.awaits_room = socket.is_connecting;
        self.sockets.insert(socket)
    }

    /// Lends the descriptor of a socket.
    pub(crate) fn with_fd<T>(
        &self,
        id: Id,
        call: impl FnOnce(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        let fd = self.sockets.get(id).and_then(Socket::fd);
        call(fd.ok_or(io::ErrorKind::NotConnected)?)
    }

    pub(crate) fn register(&mut self, id: Id, token: Token, interest: Interest) -> io::Result<()> {
        let Some(socket) = self.sockets.get_mut(id) else { return Err(not_connected()) };
        if socket.token().is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        socket.register(token);
        socket.set_interest(interest);
        // If it is connecting, its machine has to hear of the result in any case.
        let polls_room =
            (interest.is_writable() || socket.is_connecting) && mem::take(&mut socket.awaits_room);
        if socket.has_unreported_input() {
            self.unreported.push(id);
        }
        if socket.is_stream && socket.intake.has_ended() {
            self.ended.push(id);
        }
        if polls_room && socket.polls_room && !socket.is_connecting {
            // A poll that stays may have reported the room to nobody, and does not report it again.
            socket.notify(EventSet::WRITABLE, &mut self.late_events);
        }
        self.deliver_input(id);
        if polls_room {
            self.poll_room(id);
        }
        Ok(())
    }

    pub(crate) fn deregister(&mut self, id: Id) -> io::Result<()> {
        let Some(socket) = self.sockets.get_mut(id) else { return Err(not_connected()) };
        if !socket.deregister() {
            return Err(io::ErrorKind::NotFound.into());
        }
        socket.awaits_room |= socket.polls_room;
        if socket.polls_closed {
            // Nobody would hear what it reports now. The next machine of the stream gets a new
            // poll.
            self.ring.cancel(id.key(Kind::Closed));
        }
        self.stop_input(id);
        Ok(())
    }

    /// Makes the kernel deliver the input of a socket if its machine wants it; otherwise the stream
    /// is only watched for its end.
    fn deliver_input(&mut self, id: Id) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        if !socket.wants_input() {
            return;
        }
        if !socket.reads {
            self.unread.push(id);
        } else if socket.intake.start_delivery() {
            self.submit_input(id);
        }
    }

    /// Submits the operation for the input of a socket.
    fn submit_input(&mut self, id: Id) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        socket.enters_at_input = self.ring.stats().enters as u32;
        socket.had_operation = true;
        socket.input_is_poll = socket.bulk.is_on();
        let Some(fd) = socket.fd() else { return };
        match socket.input_operation() {
            Kind::Receive => self.ring.receive(fd, id),
            Kind::ReadableOnce => self.ring.poll(fd, Watch::ReadableOnce(id)),
            _ => self.ring.poll(fd, Watch::Readable(id)),
        }
    }

    /// Stops the delivery of input. Returns whether there was an operation to cancel.
    fn stop_input(&mut self, id: Id) -> bool {
        let Some(socket) = self.sockets.get_mut(id) else { return false };
        let was_delivering = socket.intake.stop_delivery();
        if was_delivering {
            let key = id.key(socket.input_operation());
            self.ring.cancel(key);
        }
        was_delivering
    }

    /// Makes sure that the machine of a full socket is told when there is room.
    fn await_room(&mut self, id: Id) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        match socket.token() {
            Some(_) => self.poll_room(id),
            None => socket.awaits_room = true,
        }
    }

    /// Polls once for room.
    fn poll_room(&mut self, id: Id) {
        self.watch_room(id, Watch::Room(id));
    }

    fn watch_room(&mut self, id: Id, watch: Watch) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        if socket.polls_room || (socket.is_dropped && !socket.has_unsent()) {
            return;
        }
        socket.polls_room = true;
        socket.had_operation = true;
        if let Some(fd) = socket.fd.as_ref() {
            self.ring.poll(fd.as_fd(), watch);
        }
    }

    /// Polls for the end of a stream that no other operation would report: the peer has ended its
    /// side, or the machine does not read what is there.
    fn watch_end(&mut self, id: Id) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        if socket.polls_closed || socket.is_dropped || socket.token().is_none() {
            return;
        }
        let Some(fd) = socket.fd.as_ref() else { return };
        self.ring.poll(fd.as_fd(), Watch::Closed(id));
        (socket.polls_closed, socket.had_operation) = (true, true);
    }

    /// Adds an event for a socket's machine.
    fn notify(&mut self, id: Id, events: EventSet, ready: &mut Ready) {
        if let Some(socket) = self.sockets.get_mut(id) {
            socket.notify(events, ready);
        }
    }

    /// Handles a dropped socket. What was written to it is still sent, for a while.
    pub(crate) fn drop_socket(&mut self, id: Id) {
        // A completion that no wait has taken may have delivered bytes to it.
        self.take_rest();
        // The kernel gets all operations of a drop together. If it executed the cancellation later,
        // it would deliver bytes before, and then close the stream as if they had been read. What
        // has completed may make other streams submit more.
        let mut flushes_left = FLUSHES_MAX;
        while flushes_left > 0 && !self.ring.has_room_for(DROP_OPERATIONS_MAX) {
            flushes_left -= 1;
            self.flush_submissions();
            self.take_rest();
        }
        let enters = self.ring.stats().enters as u32;
        let Some(socket) = self.sockets.get_mut(id) else { return };
        socket.is_dropped = true;
        socket.deregister();
        let has_new_receive = socket.has_new_receive(enters) && !socket.resets_on_close;
        if socket.has_unread() {
            // As if the kernel still had them: the peer must not take them for read (RFC 1122
            // §4.2.2.13).
            socket.set_reset_on_close();
        }
        if let Some(buffers) = &mut socket.buffers {
            buffers.inbox.clear(&mut self.ring);
        }
        if socket.polls_closed {
            self.ring.cancel(id.key(Kind::Closed));
        }
        let lingers = socket.has_unsent();
        self.stop_input(id);
        if lingers {
            return self.linger(id);
        }
        if has_new_receive {
            // The kernel executes it now, and says what it has received. What arrives later stays in
            // the kernel. At the end of the turn, it would execute the close just behind it.
            self.flush_submissions();
            self.take_rest();
        }
        self.close(id);
    }

    /// Notes until when a dropped stream may send. Streams leave the list from its front when their
    /// time has passed. So a stream that sends for long keeps finished ones behind it in the list.
    fn linger(&mut self, id: Id) {
        let until = self.clock.now() + self.config.linger;
        if self.lingering.len() == self.lingering.capacity() {
            self.forget_sent();
            // Room for as many as are left: then the list is cleaned again.
            self.lingering.reserve(self.lingering.len() + 1);
        }
        self.lingering.push_back((until, id));
    }

    /// Removes the streams that have sent everything from the list of the dropped ones.
    fn forget_sent(&mut self) {
        let Driver { lingering, sockets, .. } = self;
        lingering.retain(|(_, id)| sockets.get(*id).is_some_and(Socket::has_unsent));
    }

    /// Returns whether a dropped stream still sends.
    pub(crate) fn has_unsent(&self) -> bool {
        let mut lingering = self.lingering.iter().filter_map(|(_, id)| self.sockets.get(*id));
        lingering.any(Socket::has_unsent)
    }

    /// Stops a dropped stream if it is still sending.
    fn cut_off_lingering(&mut self, id: Id) {
        let socket = self.sockets.get_mut(id).filter(|socket| socket.has_unsent());
        let Some(socket) = socket else { return };
        self.ring.stats().lingered_too_long += 1;
        let sending = socket.buffers.as_mut().and_then(|buffers| buffers.outbox.abandon());
        match sending {
            Some(key) => self.ring.cancel(key),
            None => {
                socket.set_reset_on_close();
                self.close(id);
            }
        }
    }

    /// Closes a dropped socket, and forgets it if the kernel has no operations of it.
    fn close(&mut self, id: Id) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let is_stream = socket.is_stream;
        if socket.polls_room {
            self.ring.cancel(id.key(Kind::Room));
        }
        match socket.fd.take() {
            // Together with the others of the turn, and after the operations that the kernel still
            // has.
            Some(fd) if is_stream && socket.had_operation => self.ring.close(fd),
            Some(fd) => {
                // An address must be free as soon as its socket was dropped.
                if socket.had_operation {
                    self.flush_submissions();
                }
                drop(fd);
            }
            None => {}
        }
        self.remove_if_unused(id);
    }

    /// Takes back the `StreamBuffers` of a stream that has nothing to do.
    fn recycle_idle_buffers(&mut self, id: Id) {
        if let Some(buffers) = self.sockets.get_mut(id).and_then(Socket::take_idle_buffers) {
            self.spare.recycle_buffers(buffers);
        }
    }

    /// Frees the slot, if nothing uses the socket any more.
    fn remove_if_unused(&mut self, id: Id) {
        if self.sockets.get(id).is_some_and(Socket::is_unused) {
            self.sockets.remove(id);
        }
    }

    /// Stops dropped streams whose time to send has passed, or that are too many. Called when the
    /// kernel has got what was written: before that, most of them are not slow.
    fn expire_lingering(&mut self) {
        if self.lingering.is_empty() {
            return;
        }
        if self.lingering.len() > self.config.lingering_max {
            self.forget_sent();
        }
        let now = self.clock.now();
        while let Some((until, id)) = self.lingering.front().copied()
            && (until <= now || self.lingering.len() > self.config.lingering_max)
        {
            self.lingering.pop_front();
            self.cut_off_lingering(id);
        }
    }
}

/// Sends what was written in the last turn, and what was written after it, as far as the kernel has
/// room. Streams with more than that are reset.
impl Drop for Driver {
    fn drop(&mut self) {
        self.config.events_max = usize::MAX;
        self.end_turn();
        // Usually two or three times; more often if the completion queue is small, because data
        // that arrived for dropped sockets comes first. A used waker then completes each time, so
        // there is a limit.
        for _ in 0..=FLUSHES_MAX * self.sockets.len() {
            let completed = self.ring.stats().completed;
            self.flush_submissions();
            if self.ring.stats().completed == completed {
                break;
            }
        }
        self.sockets
            .values()
            .filter(|socket| socket.has_unsent())
            .for_each(Socket::set_reset_on_close);
    }
}

fn not_connected() -> io::Error {
    io::ErrorKind::NotConnected.into()
}
