//! A connection: two ends, and between them a pipe of bytes each way.
//!
//! ```text
//!   write ──▶ [ under way │ arrived ] ──▶ read        at most a window of bytes, in segments with arrival times
//! ```
//!
//! The end of a stream and a reset travel as segments too, behind the bytes that were written before them.

use std::collections::VecDeque;
use std::io;
use std::net::Shutdown;
use std::time::Duration;

use rotor_core::{EventSet, Interest, Time, Token};

use super::{Place, filter};
use crate::Fault;
use crate::table::Key;
use crate::trace::{Way, What};
use crate::world::{Due, World};

/// Two ends: 0 connected, 1 accepted.
pub(crate) struct Link {
    pub(crate) serial: u32,
    pub(crate) ends: [End; 2],
}

pub(crate) struct End {
    pub(crate) host: u32,
    pub(crate) place: Place,
    /// Whether a socket, or a listener's backlog, has it.
    pub(crate) is_open: bool,
    pub(crate) is_connected: bool,
    registered: Option<(Token, Interest)>,
    /// The next change is owed: an operation answered `WouldBlock`, or the socket was just registered.
    owes: Owed,
    /// To be told once.
    error: Option<io::ErrorKind>,
    /// No byte will come or go any more.
    is_dead: bool,
    input: Pipe,
    input_shut: bool,
    output_shut: bool,
    busy_until: Time,
}

#[derive(Clone, Copy, Default)]
struct Owed {
    read: bool,
    write: bool,
}

/// The bytes towards an end.
struct Pipe {
    bytes: VecDeque<u8>,
    /// How many of them have arrived.
    arrived: usize,
    segments: VecDeque<Segment>,
    window: usize,
    is_slow: bool,
    ended: bool,
    /// What is under way waits for a partition to heal.
    stalled: bool,
    room_is_due: bool,
    last_arrival: Time,
}

#[derive(Clone, Copy)]
struct Segment {
    at: Time,
    carries: Carries,
}

#[derive(Clone, Copy)]
enum Carries {
    Bytes(usize),
    End,
    Reset,
}

const FAILED: EventSet = EventSet::ERROR;

/// How often a connection attempt is repeated: after 1, 2, 4, … seconds; 127 s in all, as Linux does.
const SYN_TRIES: u32 = 7;

impl Link {
    pub(crate) fn new(serial: u32, ends: [End; 2]) -> Link {
        Link { serial, ends }
    }
}

impl End {
    pub(crate) fn new(host: u32, place: Place, is_open: bool) -> End {
        End {
            host,
            place,
            is_open,
            is_connected: false,
            registered: None,
            owes: Owed::default(),
            error: None,
            is_dead: false,
            input: Pipe::new(0, false),
            input_shut: false,
            output_shut: false,
            busy_until: Time::ZERO,
        }
    }

    /// Whether nothing more will come or go; a kernel then forgets who the peer was.
    pub(super) fn has_ended(&self) -> bool {
        self.is_dead || self.output_shut && self.input.ended
    }

    fn is_readable(&self) -> bool {
        self.input.arrived > 0 || self.input.ended || self.is_dead || self.input_shut
    }
}

fn other(side: u8) -> u8 {
    1 - side
}

/// Making connections.
impl World {
    /// Makes the pipes of a connection that is being established.
    fn open_pipes(&mut self, link: Key) {
        for side in 0..2 {
            let Some(host) = self.links.get(link).map(|link| link.ends[side].host) else { return };
            let is_slow = self.hits(Fault::SlowReader, host);
            let window = if is_slow {
                self.random.usize(1..=self.network.window.min(64))
            } else {
                self.network.window
            };
            let Some(link) = self.links.get_mut(link) else { return };
            link.ends[side].is_connected = side == 1;
            link.ends[side].input = Pipe::new(window, is_slow);
        }
    }

    pub(crate) fn connect(&mut self, link: Key) {
        let Some(Link { serial, ends }) = self.links.get(link) else { return };
        let (serial, from, to) = (*serial, ends[0].host, ends[1].host);
        self.record(from, What::Connect(serial));
        let at = self.local(from) + self.latency(from, to);
        if self.hits(Fault::ConnectHang, from) {
            self.schedule(at + Duration::from_secs(127), Due::ConnectFailed(link, io::ErrorKind::TimedOut));
        } else if self.hits(Fault::ConnectRefused, from) {
            self.schedule(at, Due::ConnectFailed(link, io::ErrorKind::ConnectionRefused));
        } else {
            self.schedule(at, Due::Syn(link, 0));
        }
    }

    /// A connection attempt reaches its target.
    pub(crate) fn syn(&mut self, link: Key, tries: u32) {
        let Some(found) = self.links.get(link) else { return };
        let (from, to) = (found.ends[0].host, found.ends[1].host);
        let place = found.ends[1].place.clone();
        let is_blocked = to == u32::MAX || self.is_blocked(from, to);
        let listener = if is_blocked { None } else { self.listener_at(&place) };
        let has_room = listener.is_some_and(|listener| self.has_backlog_room(listener));
        if is_blocked || (listener.is_some() && !has_room) {
            let due = if tries + 1 < SYN_TRIES {
                Due::Syn(link, tries + 1)
            } else {
                Due::ConnectFailed(link, io::ErrorKind::TimedOut)
            };
            return self.schedule(self.now + Duration::from_secs(1 << tries), due);
        }
        let back = self.now + self.latency(to, from);
        match listener {
            None => self.schedule(back, Due::ConnectFailed(link, io::ErrorKind::ConnectionRefused)),
            Some(listener) => {
                self.establish(link, listener);
                self.schedule(back, Due::Connected(link));
            }
        }
    }

    /// Gives a connection to a listener.
    pub(crate) fn establish(&mut self, link: Key, listener: Key) {
        self.progress += 1;
        self.open_pipes(link);
        if let Some(link) = self.links.get_mut(link) {
            link.ends[1].is_open = true;
        }
        self.queue_connection(listener, link);
    }

    /// The connecting end hears that it is connected.
    pub(crate) fn connected(&mut self, link: Key) {
        let Some(found) = self.links.get(link) else { return };
        let (from, to, serial) = (found.ends[0].host, found.ends[1].host, found.serial);
        if self.is_blocked(from, to) {
            return self.schedule(self.now + Duration::from_secs(1), Due::Connected(link));
        }
        if let Some(found) = self.links.get_mut(link)
            && !found.ends[0].is_dead
            && found.ends[0].is_open
        {
            found.ends[0].is_connected = true;
            self.progress += 1;
            self.record(from, What::Connected(serial));
            let readable = self.links.get(link).is_some_and(|link| link.ends[0].is_readable());
            let events = if readable { EventSet::READABLE } else { EventSet::EMPTY };
            self.edge(link, 0, EventSet::WRITABLE | events);
        }
    }

    pub(crate) fn connect_failed(&mut self, link: Key, why: io::ErrorKind) {
        let Some(found) = self.links.get_mut(link) else { return };
        let (serial, host) = (found.serial, found.ends[0].host);
        found.ends[0].error = Some(why);
        found.ends[0].is_dead = true;
        self.progress += 1;
        let why = if why == io::ErrorKind::TimedOut { "nobody answers" } else { "refused" };
        self.record(host, What::ConnectFailed(serial, why));
        self.edge(link, 0, EventSet::WRITABLE | EventSet::READ_CLOSED | EventSet::WRITE_CLOSED | FAILED);
    }
}

/// What travels.
impl World {
    fn send(&mut self, link: Key, from: u8, carries: Carries) {
        let Some(found) = self.links.get(link) else { return };
        let (sender, receiver) =
            (found.ends[usize::from(from)].host, found.ends[usize::from(other(from))].host);
        let transmission = match carries {
            Carries::Bytes(bytes) => self.network.transmission(bytes),
            Carries::End | Carries::Reset => Duration::ZERO,
        };
        let latency = self.latency(sender, receiver);
        let now = self.local(sender);
        let Some(found) = self.links.get_mut(link) else { return };
        let end = &mut found.ends[usize::from(from)];
        let departed = now.max(end.busy_until) + transmission;
        end.busy_until = departed;
        let pipe = &mut found.ends[usize::from(other(from))].input;
        let at = (departed + latency).max(pipe.last_arrival);
        pipe.last_arrival = at;
        pipe.segments.push_back(Segment { at, carries });
        self.schedule(at, Due::Arrive(link, other(from)));
    }

    /// What was under way reaches an end, as far as it is time.
    pub(crate) fn arrive(&mut self, link: Key, side: u8) {
        let Some(found) = self.links.get(link) else { return };
        let (host, peer) = (found.ends[usize::from(side)].host, found.ends[usize::from(other(side))].host);
        let (is_blocked, now) = (self.is_blocked(host, peer), self.now);
        let Some(found) = self.links.get_mut(link) else { return };
        let end = &mut found.ends[usize::from(side)];
        if is_blocked {
            end.input.stalled = true;
            return;
        }
        let (mut events, mut was_reset, mut meets_nobody) = (EventSet::EMPTY, false, false);
        while let Some(segment) = end.input.segments.front()
            && segment.at <= now
        {
            match segment.carries {
                Carries::Bytes(bytes) => {
                    events |= EventSet::READABLE;
                    end.input.arrived += bytes;
                    meets_nobody |= !end.is_open;
                }
                Carries::End => {
                    events |= EventSet::READABLE | EventSet::READ_CLOSED;
                    end.input.ended = true;
                }
                Carries::Reset => was_reset = true,
            }
            end.input.segments.pop_front();
        }
        self.progress += 1;
        if was_reset {
            self.reset_end(link, side);
        } else if meets_nobody {
            self.send(link, side, Carries::Reset);
        } else if !events.is_empty() {
            self.edge(link, side, events);
        }
    }

    /// A reset reaches an end.
    fn reset_end(&mut self, link: Key, side: u8) {
        let drops_input = self.roll(Fault::ResetDropsInput);
        let Some(found) = self.links.get_mut(link) else { return };
        let (serial, end) = (found.serial, &mut found.ends[usize::from(side)]);
        let host = end.host;
        if end.is_dead {
            return;
        }
        end.is_dead = true;
        end.error = Some(io::ErrorKind::ConnectionReset);
        if drops_input {
            end.input.bytes.clear();
            end.input.arrived = 0;
        }
        end.input.segments.clear();
        self.record(host, What::Reset(serial, side));
        let all = EventSet::READABLE | EventSet::WRITABLE | EventSet::READ_CLOSED | EventSet::WRITE_CLOSED;
        self.edge(link, side, all | FAILED);
        self.free_if_closed(link);
    }

    /// Resets a connection in the middle: both ends hear of it.
    pub(crate) fn cut(&mut self, link: Key) {
        self.reset_end(link, 0);
        self.reset_end(link, 1);
    }

    /// The writer hears that its peer has made room.
    pub(crate) fn room(&mut self, link: Key, side: u8) {
        let Some(found) = self.links.get_mut(link) else { return };
        found.ends[usize::from(other(side))].input.room_is_due = false;
        self.edge(link, side, EventSet::WRITABLE);
    }

    /// Partitions have healed, or a host has its power back: what waited goes on.
    pub(crate) fn resume_stalled(&mut self) {
        let stalled: Vec<(Key, u8)> = self
            .links
            .iter()
            .flat_map(|(key, link)| [(key, 0u8), (key, 1)].map(|(key, side)| (key, side, link)))
            .filter(|(_, side, link)| link.ends[usize::from(*side)].input.stalled)
            .map(|(key, side, _)| (key, side))
            .collect();
        for (link, side) in stalled {
            let Some(found) = self.links.get_mut(link) else { continue };
            found.ends[usize::from(side)].input.stalled = false;
            let at = self.now + self.random_duration(Duration::from_millis(200));
            self.schedule(at, Due::Arrive(link, side));
        }
    }

    /// No receiver is slow any more, and writers that wait hear of the room.
    pub(crate) fn widen_windows(&mut self) {
        let window = self.network.window;
        let slow: Vec<(Key, u8)> = self
            .links
            .iter()
            .flat_map(|(key, link)| [(key, 0u8, link), (key, 1, link)])
            .filter(|(_, side, link)| link.ends[usize::from(*side)].input.is_slow)
            .map(|(key, side, _)| (key, side))
            .collect();
        for (link, side) in slow {
            let Some(found) = self.links.get_mut(link) else { continue };
            let pipe = &mut found.ends[usize::from(side)].input;
            pipe.is_slow = false;
            pipe.window = window;
            self.edge(link, other(side), EventSet::WRITABLE);
        }
    }

    /// Reports a change to the socket at an end, if it is registered and the contract or the dice ask for it.
    fn edge(&mut self, link: Key, side: u8, events: EventSet) {
        let Some(found) = self.links.get(link) else { return };
        let end = &found.ends[usize::from(side)];
        let Some((token, interest)) = end.registered else { return };
        let (events, host) = (filter(interest, events), end.host);
        let is_owed = end.owes.read && events.is_readable() || end.owes.write && events.is_writable();
        if events.is_empty() || !is_owed && self.roll(Fault::OwedEdgesOnly) {
            return;
        }
        if let Some(found) = self.links.get_mut(link) {
            let owes = &mut found.ends[usize::from(side)].owes;
            owes.read &= !events.is_readable();
            owes.write &= !events.is_writable();
        }
        self.push_edge(host, token, events);
    }
}

/// What sockets do.
impl World {
    pub(crate) fn register_end(
        &mut self,
        link: Key,
        side: u8,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        let Some(found) = self.links.get(link) else { return Err(io::ErrorKind::NotConnected.into()) };
        let host = found.ends[usize::from(side)].host;
        if found.ends[usize::from(side)].registered.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if self.hits(Fault::RegisterFails, host) {
            return Err(io::Error::from_raw_os_error(28));
        }
        self.token_is_used(host, token);
        let Some(found) = self.links.get_mut(link) else { return Ok(()) };
        let peer_room = found.ends[usize::from(other(side))].input.has_room();
        let end = &mut found.ends[usize::from(side)];
        end.registered = Some((token, interest));
        end.owes = Owed { read: true, write: true };
        let mut events = EventSet::EMPTY;
        if end.is_dead || end.is_connected && peer_room {
            events |= EventSet::WRITABLE;
        }
        if end.is_readable() {
            events |= EventSet::READABLE;
        }
        if !events.is_empty() {
            self.edge(link, side, events);
        }
        Ok(())
    }

    pub(crate) fn deregister_end(&mut self, link: Key, side: u8) -> io::Result<()> {
        let end = self.links.get_mut(link).map(|link| &mut link.ends[usize::from(side)]);
        let Some((host, (token, _))) = end.and_then(|end| Some((end.host, end.registered.take()?))) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        self.token_is_unused(host, token);
        Ok(())
    }

    /// The faults that an operation meets before it looks at its connection.
    fn before(&mut self, link: Key, host: u32) -> io::Result<()> {
        if self.hits(Fault::Interrupted, host) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if self.hits(Fault::Reset, host) {
            self.cut(link);
        }
        Ok(())
    }

    fn would_block(&mut self, link: Key, side: u8, way: Way) -> io::Error {
        if let Some(found) = self.links.get_mut(link) {
            let (serial, end) = (found.serial, &mut found.ends[usize::from(side)]);
            match way {
                Way::Read => end.owes.read = true,
                Way::Write => end.owes.write = true,
            }
            let host = end.host;
            self.record(host, What::Blocked(serial, side, way));
        }
        io::ErrorKind::WouldBlock.into()
    }

    /// `WouldBlock` though there is something to do; the edge that the contract owes follows.
    fn pretend_to_block(&mut self, link: Key, side: u8, way: Way) -> io::Error {
        let registered = self.links.get(link).and_then(|link| {
            let end = &link.ends[usize::from(side)];
            Some((end.host, end.registered?.0))
        });
        if let Some((host, token)) = registered {
            let events = if way == Way::Read { EventSet::READABLE } else { EventSet::WRITABLE };
            self.push_edge_later(host, token, events, Duration::from_millis(2));
        }
        self.would_block(link, side, way)
    }

    /// At most `most`: all of it, or, when the dice say so, less; one byte as often as not.
    fn shortened(&mut self, fault: Fault, most: usize) -> usize {
        if most < 2 || !self.roll(fault) {
            most
        } else if self.random.bool() {
            1
        } else {
            self.random.usize(1..=most)
        }
    }

    pub(crate) fn read(&mut self, link: Key, side: u8, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(found) = self.links.get(link) else { return Ok(0) };
        let host = found.ends[usize::from(side)].host;
        self.before(link, host)?;
        let Some(found) = self.links.get_mut(link) else { return Ok(0) };
        let (serial, end) = (found.serial, &mut found.ends[usize::from(side)]);
        if buffer.is_empty() || end.input_shut {
            return Ok(0);
        }
        if end.input.arrived == 0 {
            return match end.error.take() {
                Some(error) => Err(error.into()),
                None if end.is_dead || end.input.ended => {
                    self.record(host, What::ReadEnd(serial, side));
                    self.progress += 1;
                    Ok(0)
                }
                None => Err(self.would_block(link, side, Way::Read)),
            };
        }
        let most = end.input.arrived.min(buffer.len());
        let (registered, is_dead) = (end.registered.is_some(), end.is_dead);
        if registered && !is_dead && self.roll(Fault::WouldBlock) {
            return Err(self.pretend_to_block(link, side, Way::Read));
        }
        let taken = self.shortened(Fault::ShortRead, most);
        let Some(found) = self.links.get_mut(link) else { return Ok(0) };
        found.ends[usize::from(side)].input.take(&mut buffer[..taken]);
        self.progress += 1;
        self.record(host, What::Read(serial, side, taken));
        self.report_room(link, side);
        Ok(taken)
    }

    /// Tells the peer, after a while, that there is room again.
    fn report_room(&mut self, link: Key, side: u8) {
        let Some(found) = self.links.get_mut(link) else { return };
        let peer = &found.ends[usize::from(other(side))];
        let (to, is_owed) = (peer.host, peer.owes.write && peer.registered.is_some());
        let end = &mut found.ends[usize::from(side)];
        if !is_owed || end.input.room_is_due {
            return;
        }
        end.input.room_is_due = true;
        let (host, is_slow) = (end.host, end.input.is_slow);
        let mut after = self.latency(host, to);
        if is_slow {
            after += self.random_duration(Duration::from_millis(100));
        }
        self.schedule(self.local(host) + after, Due::Room(link, other(side)));
    }

    pub(crate) fn write(&mut self, link: Key, side: u8, bytes: &[u8]) -> io::Result<usize> {
        let Some(found) = self.links.get(link) else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let host = found.ends[usize::from(side)].host;
        self.before(link, host)?;
        let Some(found) = self.links.get_mut(link) else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let (serial, end) = (found.serial, &mut found.ends[usize::from(side)]);
        if end.is_dead || end.output_shut {
            return Err(end.error.take().unwrap_or(io::ErrorKind::BrokenPipe).into());
        }
        if bytes.is_empty() {
            return Ok(0);
        }
        let (is_connected, is_registered) = (end.is_connected, end.registered.is_some());
        let room = found.ends[usize::from(other(side))].input.room();
        if !is_connected || room == 0 {
            return Err(self.would_block(link, side, Way::Write));
        }
        if is_registered && self.roll(Fault::WouldBlock) {
            return Err(self.pretend_to_block(link, side, Way::Write));
        }
        let taken = self.shortened(Fault::ShortWrite, room.min(bytes.len()));
        let Some(found) = self.links.get_mut(link) else { return Ok(0) };
        found.ends[usize::from(other(side))].input.bytes.extend(&bytes[..taken]);
        self.progress += 1;
        self.record(host, What::Written(serial, side, taken));
        self.send(link, side, Carries::Bytes(taken));
        Ok(taken)
    }

    pub(crate) fn shutdown_end(&mut self, link: Key, side: u8, how: Shutdown) -> io::Result<()> {
        let Some(found) = self.links.get_mut(link) else { return Err(io::ErrorKind::NotConnected.into()) };
        let (serial, end) = (found.serial, &mut found.ends[usize::from(side)]);
        if end.is_dead || !end.is_connected {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let host = end.host;
        if how != Shutdown::Write {
            end.input_shut = true;
        }
        if how != Shutdown::Read && !end.output_shut {
            end.output_shut = true;
            self.record(host, What::Shutdown(serial, side));
            self.send(link, side, Carries::End);
        }
        Ok(())
    }

    pub(crate) fn take_error(&mut self, link: Key, side: u8) -> Option<io::Error> {
        self.links.get_mut(link)?.ends[usize::from(side)].error.take().map(io::Error::from)
    }

    /// The socket at an end is dropped.
    pub(crate) fn close_end(&mut self, link: Key, side: u8) {
        let _ = self.deregister_end(link, side);
        let Some(found) = self.links.get_mut(link) else { return };
        let (serial, end) = (found.serial, &mut found.ends[usize::from(side)]);
        let host = end.host;
        end.is_open = false;
        let leaves_unread = end.input.arrived > 0 || !end.input.segments.is_empty() && end.input_shut;
        let (is_dead, was_shut) = (end.is_dead || !end.is_connected, end.output_shut);
        end.output_shut = true;
        self.record(host, What::Closed(serial, side));
        if !is_dead && !self.hosts[host as usize].is_silent {
            if leaves_unread {
                self.send(link, side, Carries::Reset);
            } else if !was_shut {
                self.send(link, side, Carries::End);
            }
        }
        self.free_if_closed(link);
    }

    fn free_if_closed(&mut self, link: Key) {
        if self.links.get(link).is_some_and(|link| !link.ends[0].is_open && !link.ends[1].is_open) {
            self.links.remove(link);
        }
    }
}

impl Pipe {
    fn new(window: usize, is_slow: bool) -> Pipe {
        Pipe {
            bytes: VecDeque::new(),
            arrived: 0,
            segments: VecDeque::new(),
            window,
            is_slow,
            ended: false,
            stalled: false,
            room_is_due: false,
            last_arrival: Time::ZERO,
        }
    }

    fn room(&self) -> usize {
        self.window.saturating_sub(self.bytes.len())
    }

    fn has_room(&self) -> bool {
        self.room() > 0
    }

    fn take(&mut self, buffer: &mut [u8]) {
        let (first, second) = self.bytes.as_slices();
        let from_first = first.len().min(buffer.len());
        buffer[..from_first].copy_from_slice(&first[..from_first]);
        let left = buffer.len() - from_first;
        buffer[from_first..].copy_from_slice(&second[..left]);
        self.bytes.drain(..buffer.len());
        self.arrived -= buffer.len();
    }
}
