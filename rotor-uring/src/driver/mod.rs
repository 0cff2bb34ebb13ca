//! `Driver`: the sockets of a ring, and the turn of it: what was written goes out, what came is
//! handed to the sockets, and their machines are told.

mod asking;
mod completing;
mod socket;
mod spare;
mod streams;
#[cfg(test)]
mod tests;
mod turn;
mod work;

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rotor_core::backend::Clock;
use rotor_core::{EventSet, Interest, OffloadPool, Time, Token};

use self::socket::{Ready, Socket};
use self::spare::Spare;
use crate::config::UringConfig;
use crate::key::{Id, Kind};
use crate::refused::{Refused, Step};
use crate::ring::{Ring, Wait, Watch};
use crate::slots::Slots;
use crate::stats::UringStats;

pub(crate) struct Driver {
    ring: Ring,
    sockets: Slots<Socket>,
    /// Those that were written to in this turn.
    written: Vec<Id>,
    /// Those that were given something in this turn.
    given: Vec<Id>,
    /// Streams whose peer has ended its side since the last turn's end.
    ended: Vec<Id>,
    /// Streams that have something, or may have, for which the kernel is to be asked.
    unread: Vec<Id>,
    /// Those whose machines are to be told of what they hold already.
    holding: Vec<Id>,
    /// What machines are to be told of with the next wait, since it came in the midst of a turn.
    late: Ready,
    /// Dropped, and still sending; and until when. In order, as all have the same time.
    lingering: VecDeque<(Time, Id)>,
    has_more: bool,
    spare: Spare,
    waker: OwnedFd,
    config: UringConfig,
    clock: Clock,
}

/// How many sockets there is address space for at once. 65,536, which is 3.5 MiB of it; with more they
/// move.
const SOCKETS: usize = 65_536;

/// How often a driver that ends looks for what has completed, for each socket, at the most.
const SETTLES_MAX: usize = 64;

/// What a socket is, when it is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Made {
    Stream,
    /// A stream whose attempt to connect may not have ended.
    Connecting,
    /// A listener, or a socket of datagrams.
    Asked,
}

impl Driver {
    pub(crate) fn open(config: UringConfig, waker: OwnedFd) -> Result<Driver, Refused> {
        let ring = Ring::open(&config)?;
        let mut driver = Driver {
            ring,
            sockets: Slots::with_room_for(SOCKETS),
            written: Vec::new(),
            given: Vec::new(),
            ended: Vec::new(),
            unread: Vec::new(),
            holding: Vec::new(),
            late: Ready::new(),
            lingering: VecDeque::new(),
            has_more: false,
            spare: Spare::new(),
            waker,
            config,
            clock: Clock::new(),
        };
        driver.watch_waker();
        // Now, so that what refuses it is known at once.
        driver.ring.enter(Wait::Poll).map_err(Refused::at(Step::Enter))?;
        Ok(driver)
    }

    /// Waits on the waker: each write to it is told of, and none need be read.
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

    /// Takes a socket over.
    pub(crate) fn insert(&mut self, fd: OwnedFd, made: Made) -> Id {
        let mut socket = Socket::new(fd, made != Made::Asked);
        socket.is_connecting = made == Made::Connecting;
        socket.awaits_room = socket.is_connecting;
        self.sockets.insert(socket)
    }

    /// Lends the descriptor of a socket that is in use.
    pub(crate) fn with_fd<T>(
        &self,
        id: Id,
        call: impl FnOnce(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        let fd = self.sockets.get(id).and_then(Socket::fd);
        call(fd.ok_or(io::ErrorKind::NotConnected)?)
    }

    pub(crate) fn register(&mut self, id: Id, token: Token, interest: Interest) -> io::Result<()> {
        let Some(socket) = self.sockets.get_mut(id) else { return Err(gone()) };
        if socket.token().is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        socket.register(token);
        socket.note_interest(interest);
        // Of one that connects, the end is to be known in any case.
        let polls_room =
            (interest.is_writable() || socket.is_connecting) && mem::take(&mut socket.awaits_room);
        if socket.holds_something() {
            self.holding.push(id);
        }
        if socket.is_stream && socket.intake.has_ended() {
            self.ended.push(id);
        }
        self.give(id);
        if polls_room {
            self.poll_room(id);
        }
        Ok(())
    }

    pub(crate) fn deregister(&mut self, id: Id) -> io::Result<()> {
        let Some(socket) = self.sockets.get_mut(id) else { return Err(gone()) };
        if !socket.deregister() {
            return Err(io::ErrorKind::NotFound.into());
        }
        socket.awaits_room |= socket.polls_room;
        if socket.polls_gone {
            // What it told now, nobody would hear; who has the stream next has it watched anew.
            self.ring.cancel(id.key(Kind::Gone));
        }
        self.take_back(id);
        Ok(())
    }

    /// Has the kernel give a socket what comes, if its machine wants to hear of it; else only that it is
    /// gone.
    fn give(&mut self, id: Id) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        if !socket.is_in_use() {
            return;
        }
        if !socket.reads {
            self.unread.push(id);
        } else if socket.intake.give() {
            self.hand_over(id);
        }
    }

    /// Hands the operation to the kernel that gives a socket what comes.
    fn hand_over(&mut self, id: Id) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        socket.given_in = self.ring.stats().enters as u32;
        socket.was_given = true;
        socket.is_polled = socket.bulk.is_much();
        let Some(fd) = socket.fd() else { return };
        match socket.kind() {
            Kind::Receive => self.ring.receive(fd, id),
            Kind::Arrived => self.ring.poll(fd, Watch::Arrived(id)),
            _ => self.ring.poll(fd, Watch::Readable(id)),
        }
    }

    /// Has the kernel give no more. Returns whether it did.
    fn take_back(&mut self, id: Id) -> bool {
        let Some(socket) = self.sockets.get_mut(id) else { return false };
        let was_given = socket.intake.take_back();
        if was_given {
            let key = id.key(socket.kind());
            self.ring.cancel(key);
        }
        was_given
    }

    /// The machine of a socket that is full is told when it is not.
    fn await_room(&mut self, id: Id) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        match socket.token() {
            Some(_) => self.poll_room(id),
            None => socket.awaits_room = true,
        }
    }

    /// Has the kernel tell, once, when there is room.
    fn poll_room(&mut self, id: Id) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        if socket.polls_room || socket.is_dropped {
            return;
        }
        socket.polls_room = true;
        socket.was_given = true;
        if let Some(fd) = socket.fd.as_ref() {
            self.ring.poll(fd.as_fd(), Watch::Room(id));
        }
    }

    /// Has the kernel tell when a stream is gone of which nothing is received that would tell: its
    /// peer has ended its side, or its machine does not read what is there.
    fn watch_end(&mut self, id: Id) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        if socket.polls_gone || socket.is_dropped || socket.token().is_none() {
            return;
        }
        let Some(fd) = socket.fd.as_ref() else { return };
        self.ring.poll(fd.as_fd(), Watch::Gone(id));
        (socket.polls_gone, socket.was_given) = (true, true);
    }

    /// Tells a socket's machine something.
    fn tell(&mut self, id: Id, events: EventSet, ready: &mut Ready) {
        if let Some(socket) = self.sockets.get_mut(id) {
            socket.tell(events, ready);
        }
    }

    /// Nobody has the socket any more. What it had taken is still sent, for a while.
    pub(crate) fn drop_socket(&mut self, id: Id) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        socket.is_dropped = true;
        socket.deregister();
        if let Some(work) = &mut socket.work {
            work.inbox.clear(&mut self.ring);
        }
        if socket.polls_room {
            self.ring.cancel(id.key(Kind::Room));
        }
        if socket.polls_gone {
            self.ring.cancel(id.key(Kind::Gone));
        }
        let lingers = socket.has_unsent();
        self.take_back(id);
        if lingers {
            self.linger(id);
        } else {
            self.close(id);
        }
    }

    /// Notes until when a stream that was dropped may send. Those whose time is over leave the list from
    /// its front, so one that sends for long keeps those behind it there, which are done.
    fn linger(&mut self, id: Id) {
        let Driver { lingering, sockets, clock, config, .. } = self;
        if lingering.len() == lingering.capacity() {
            lingering.retain(|(_, id)| sockets.get(*id).is_some());
            // As many come as are left before this is done again.
            lingering.reserve(lingering.len() + 1);
        }
        lingering.push_back((clock.now() + config.linger, id));
    }

    /// Closes a socket that was dropped, and forgets it if the kernel has.
    fn close(&mut self, id: Id) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let is_stream = socket.is_stream;
        match socket.fd.take() {
            // With the others of the turn, and behind what it still has the kernel do.
            Some(fd) if is_stream && socket.was_given => self.ring.close(fd),
            Some(fd) => {
                // An address is free as soon as who had it is gone.
                if socket.was_given {
                    self.settle();
                }
                drop(fd);
            }
            None => {}
        }
        self.forget(id);
    }

    /// A stream that has nothing to do keeps nothing for it.
    fn put_to_rest(&mut self, id: Id) {
        if let Some(work) = self.sockets.get_mut(id).and_then(Socket::rest) {
            self.spare.give_work(work);
        }
    }

    /// Frees the slot, if nobody knows the socket any more.
    fn forget(&mut self, id: Id) {
        if self.sockets.get(id).is_some_and(Socket::is_forgotten) {
            self.sockets.remove(id);
        }
    }

    /// Takes back what streams still send that were dropped too long ago.
    fn end_lingering(&mut self) {
        if self.lingering.is_empty() {
            return;
        }
        let now = self.clock.now();
        while let Some((until, id)) = self.lingering.front().copied()
            && until <= now
        {
            self.lingering.pop_front();
            let Some(socket) = self.sockets.get_mut(id) else { continue };
            self.ring.stats().lingered_too_long += 1;
            let sending = socket.work.as_mut().and_then(|work| work.outgo.give_up());
            match sending {
                Some(key) => self.ring.cancel(key),
                None => self.close(id),
            }
        }
    }
}

/// What was written in the last turn leaves now, and what was written behind it, where the kernel has
/// room. Of a stream with more than that the peer hears of a reset.
impl Drop for Driver {
    fn drop(&mut self) {
        self.config.events_max = usize::MAX;
        self.end_turn();
        // As a rule twice or three times. Where the queue of completions is small, what came for sockets
        // before they were dropped is in the way; but a waker that was used completes each time then.
        for _ in 0..=SETTLES_MAX * self.sockets.len() {
            let completed = self.ring.stats().completed;
            self.settle();
            if self.ring.stats().completed == completed {
                break;
            }
        }
        self.sockets.values().filter(|socket| socket.has_unsent()).for_each(Socket::cut_off);
    }
}

fn gone() -> io::Error {
    io::ErrorKind::NotConnected.into()
}
