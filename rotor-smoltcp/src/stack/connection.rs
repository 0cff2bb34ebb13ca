//! `Connection`: a connection of the stack, and the events for its machine.

use std::io;
use std::time::Duration;

use rotor_core::{EventSet, Interest, Time, Token};
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket;
use smoltcp::socket::tcp::{Socket, State};
use smoltcp::time::Instant;
use smoltcp::wire::TcpSeqNumber;

use super::flow::Flow;
use super::sequence::Sequence;
use super::time_wait::Numbers;
use crate::slots::Id;

/// How soon a connection asks again for the window of its peer.
const WINDOW_PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// The number of duplicate acknowledgements that make smoltcp retransmit at once (RFC 5681 §3.2).
const DUPLICATE_ACKS: u8 = 3;

/// Who holds a connection.
///
/// ```text
///  first packet ─▶ HalfOpen ──handshake──▶ Waiting ──accept──▶ Open ──drop──▶ Detached ─▶ removed
///                     │ too late, reset                          ▲
///                     ▼                                          │ the peer answers
///                  removed                     connect ─▶ Connecting
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// A listener; the peer has not completed the handshake.
    HalfOpen(Id),
    /// A listener; the connection waits to be accepted.
    Waiting(Id),
    /// A machine, which waits for the peer's response.
    Connecting,
    /// A machine.
    Open,
    /// No machine: the connection sends what it has buffered, and ends.
    Detached,
}

pub(super) struct Connection {
    /// A set of its own, so that smoltcp need not search among all connections.
    pub(super) set: SocketSet<'static>,
    handle: SocketHandle,
    pub(super) flow: Flow,
    pub(super) sequence: Sequence,
    pub(super) phase: Phase,
    token: Option<Token>,
    interest: Interest,
    /// The number of the peer's first byte, known after its first segment.
    pub(super) first: Option<TcpSeqNumber>,
    /// How many bytes the machine has read, modulo 2³².
    read_bytes: u32,
    /// How many unread bytes the machine was told of.
    reported_bytes: usize,
    reported_end: bool,
    reported_failure: bool,
    /// A write has found no room, or the connection attempt has not ended.
    pub(super) wants_room: bool,
    /// The machine has shut down reading.
    pub(super) is_read_shut_down: bool,
    /// Why the connection ended, if not in order, until that was reported.
    pub(super) failure: Option<io::ErrorKind>,
    pub(super) has_failed: bool,
    /// When it is looked at again, even if nothing arrives.
    pub(super) due: Option<Time>,
    /// When its holder has waited long enough.
    pub(super) give_up_at: Option<Time>,
    /// It probes for the window of its peer.
    pub(super) probes_window: bool,
    /// When the peer has owed an answer for too long.
    pub(super) answer_deadline: Option<Time>,
    /// It is in `dirty`, since it may have something to send.
    pub(super) is_dirty: bool,
    /// It is in `changed`, since its machine may have to be told something.
    pub(super) is_changed: bool,
    /// It is in `unresolved`, waiting for the hardware address of its peer.
    pub(super) is_unresolved: bool,
    /// It was dropped and has not ended.
    pub(super) is_lingering: bool,
    /// A reset of ours was sent to the peer, or was about to be.
    has_reset: bool,
    /// How many segments of the peer did not acknowledge our end, while nothing else was
    /// unacknowledged.
    duplicate_acks_of_end: u8,
}

impl Connection {
    pub(super) fn new(flow: Flow, phase: Phase, socket: Socket<'static>) -> Connection {
        let mut set = SocketSet::new(Vec::with_capacity(1));
        let handle = set.add(socket);
        Connection {
            set,
            handle,
            flow,
            sequence: Sequence::default(),
            phase,
            first: None,
            read_bytes: 0,
            token: None,
            interest: Interest::Both,
            reported_bytes: 0,
            reported_end: false,
            reported_failure: false,
            wants_room: phase == Phase::Connecting,
            is_read_shut_down: false,
            failure: None,
            has_failed: false,
            due: None,
            give_up_at: None,
            probes_window: false,
            answer_deadline: None,
            is_dirty: false,
            is_changed: false,
            is_unresolved: false,
            is_lingering: false,
            has_reset: false,
            duplicate_acks_of_end: 0,
        }
    }

    /// Returns its socket for another connection, after its own was forgotten.
    ///
    /// smoltcp may remember in a socket that it has to retransmit at once. If it had nothing to
    /// send but a reset or our end, it would do so in the next connection, whatever the window of
    /// that peer. This cannot be seen from outside, so sockets with such an end are not reused.
    pub(super) fn into_socket(mut self) -> Option<Socket<'static>> {
        if self.has_reset || self.duplicate_acks_of_end >= DUPLICATE_ACKS {
            return None;
        }
        match self.set.remove(self.handle) {
            socket::Socket::Tcp(socket) => Some(socket),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn socket(&mut self) -> &mut Socket<'static> {
        self.set.get_mut(self.handle)
    }

    #[inline]
    pub(super) fn state(&self) -> State {
        self.set.get::<Socket<'_>>(self.handle).state()
    }

    /// Whether it has nothing more to send, and nothing more can arrive.
    pub(super) fn is_over(&self) -> bool {
        let socket = self.set.get::<Socket<'_>>(self.handle);
        // smoltcp forgets the peer once that was told of an abort.
        socket.state() == State::Closed && socket.remote_endpoint().is_none()
    }

    /// Called before it sends. Returns whether that is a reset.
    pub(super) fn record_reset(&mut self) -> bool {
        let is_reset = self.state() == State::Closed && !self.is_over();
        self.has_reset |= is_reset;
        is_reset
    }

    /// Called after a segment of the peer was handled; `before` is the state before that.
    pub(super) fn record_duplicate_ack(&mut self, before: State) {
        let socket = self.set.get::<Socket<'_>>(self.handle);
        let has_ended = matches!(before, State::FinWait1 | State::Closing | State::LastAck);
        if has_ended && socket.state() == before && socket.send_queue() == 0 {
            self.duplicate_acks_of_end = self.duplicate_acks_of_end.saturating_add(1);
        }
    }

    pub(super) fn register(&mut self, token: Token, interest: Interest) -> io::Result<()> {
        if self.token.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        (self.token, self.interest) = (Some(token), interest);
        // The new machine has not been told anything yet.
        (self.reported_bytes, self.reported_end, self.reported_failure) = (0, false, false);
        Ok(())
    }

    pub(super) fn deregister(&mut self) -> io::Result<()> {
        self.token.take().map(|_| ()).ok_or(io::ErrorKind::NotFound.into())
    }

    /// Called when its socket is dropped.
    pub(super) fn detach(&mut self) {
        self.token = None;
        self.phase = Phase::Detached;
    }

    /// Returns how many sequence numbers the peer has used since its first packet, up to the first
    /// gap: one for each byte, and one for its end.
    fn received_numbers(&self) -> u32 {
        let socket = self.set.get::<Socket<'_>>(self.handle);
        // A buffer has at most 16 MiB.
        let unread = socket.recv_queue() as u32;
        self.read_bytes.wrapping_add(unread).wrapping_add(u32::from(has_peer_ended(socket.state())))
    }

    /// Called after a segment with this number was handled; `before` is the state before that.
    pub(super) fn record_first_number(&mut self, number: TcpSeqNumber, before: State) {
        let had_none = matches!(before, State::Listen | State::SynSent);
        let has_none = matches!(self.state(), State::Listen | State::SynSent | State::Closed);
        if had_none && !has_none {
            self.first = Some(number + 1);
        }
    }

    /// Returns the number that the peer uses next. `None` if that is not known, or if nothing more
    /// will come.
    pub(super) fn expected_number(&self) -> Option<TcpSeqNumber> {
        let TcpSeqNumber(first) = self.first.filter(|_| self.state() != State::Closed)?;
        Some(TcpSeqNumber(first.wrapping_add(self.received_numbers() as i32)))
    }

    /// Returns what has to be remembered in TIME-WAIT; `None` until the peer's end was
    /// acknowledged.
    pub(super) fn time_wait_numbers(&self) -> Option<Numbers> {
        let expected = self.expected_number().filter(|_| self.state() == State::TimeWait)?;
        let sent = self.sequence.sent()?;
        (self.sequence.last_acknowledged() == Some(expected)).then_some(Numbers { sent, expected })
    }

    /// Whether it only waits for its machine to read the last bytes: both sides have ended, and
    /// everything is acknowledged. smoltcp throws these bytes away when TIME-WAIT is over.
    pub(super) fn holds_last_bytes(&self) -> bool {
        let socket = self.set.get::<Socket<'_>>(self.handle);
        socket.recv_queue() > 0 && self.time_wait_numbers().is_some()
    }

    /// Whether a new connection may begin with this number, from and to the same ports.
    pub(super) fn gives_way(&self, number: TcpSeqNumber) -> bool {
        // With a lower one it may be a late segment of before (RFC 9293 §3.10.7.4).
        let is_new = self.expected_number().is_some_and(|expected| number >= expected);
        self.is_over() || is_new && self.holds_last_bytes()
    }

    /// Called when the machine has read `bytes` more.
    pub(super) fn record_read(&mut self, bytes: usize) {
        // The count wraps around, like sequence numbers.
        self.read_bytes = self.read_bytes.wrapping_add(bytes as u32);
        self.reported_bytes = self.socket().recv_queue();
    }

    /// Whether something is unacknowledged, including its first packet.
    pub(super) fn has_unsent(&mut self) -> bool {
        let socket = self.socket();
        socket.send_queue() > 0 || matches!(socket.state(), State::SynSent | State::SynReceived)
    }

    /// Probes for the window of the peer if the connection waits for that and has no timer. Returns
    /// whether it began to probe.
    ///
    /// smoltcp takes the window from each acknowledgement, even from one that was overtaken, which
    /// RFC 9293 §3.10.7.4 ignores. If such a window is zero when a retransmission is due, smoltcp
    /// finds that it must not send, and sets no timer for a probe: both sides would wait forever. A
    /// keep-alive probe makes the peer send its window, too.
    pub(super) fn probe_window(&mut self, next: Option<Instant>) -> bool {
        let is_probing = self.probes_window;
        let socket = self.socket();
        let has_begun = !matches!(
            socket.state(),
            State::Closed | State::Listen | State::SynSent | State::SynReceived | State::TimeWait
        );
        if is_probing || next.is_some() || !has_begun || socket.send_queue() == 0 {
            return false;
        }
        socket.set_keep_alive(Some(WINDOW_PROBE_INTERVAL.into()));
        self.probes_window = true;
        true
    }

    /// Called when the peer has sent a segment.
    pub(super) fn record_answer(&mut self) {
        self.answer_deadline = None;
        if std::mem::take(&mut self.probes_window) {
            // The machine had set none, or there would have been a timer.
            self.socket().set_keep_alive(None);
        }
    }

    /// Notes since when the peer has owed an answer, if it does: data, our end, or a probe is not
    /// acknowledged. smoltcp's own timeout also counts time in which neither side has to send
    /// anything.
    pub(super) fn update_answer_deadline(&mut self, now: Time, patience: Duration) {
        let is_in_use = matches!(self.phase, Phase::Open | Phase::Waiting(_)) && !self.has_failed;
        // After a reset, no answer is expected.
        let is_in_use = is_in_use && self.state() != State::Closed;
        let socket = self.socket();
        let has_ended = matches!(socket.state(), State::FinWait1 | State::LastAck | State::Closing);
        let until = if has_ended || socket.send_queue() > 0 {
            Some(now + patience)
        } else {
            // Not before the probe is sent.
            socket.keep_alive().map(|idle| now + idle.into() + patience)
        };
        let due = self.answer_deadline.unwrap_or(Time::NEVER);
        self.answer_deadline = until.filter(|_| is_in_use).map(|until| until.min(due));
    }

    /// Records that it has failed.
    pub(super) fn fail(&mut self, kind: io::ErrorKind) {
        (self.failure, self.has_failed) = (Some(kind), true);
    }

    /// Returns the machine's token and what has changed since it was last told.
    pub(super) fn take_events(&mut self) -> Option<(Token, EventSet)> {
        let token = self.token?;
        if self.phase == Phase::Connecting {
            return None;
        }
        let mut events = EventSet::EMPTY;
        let (has_failed, is_read_shut_down) = (self.has_failed, self.is_read_shut_down);
        let socket = self.set.get::<Socket<'_>>(self.handle);
        let unread = socket.recv_queue();
        let has_room = socket.can_send() || !socket.may_send();
        let has_ended = has_peer_ended(socket.state());
        if unread > self.reported_bytes && !is_read_shut_down {
            events |= EventSet::READABLE;
        }
        self.reported_bytes = unread;
        if has_ended && !std::mem::replace(&mut self.reported_end, true) {
            events |= EventSet::READABLE | EventSet::READ_CLOSED;
        }
        if !self.interest.is_readable() {
            events = EventSet::EMPTY;
        }
        if has_room && self.interest.is_writable() && std::mem::take(&mut self.wants_room) {
            events |= EventSet::WRITABLE;
        }
        if has_failed && !std::mem::replace(&mut self.reported_failure, true) {
            events |= EventSet::ERROR | EventSet::READ_CLOSED | EventSet::WRITE_CLOSED;
        }
        if events.is_empty() { None } else { Some((token, events)) }
    }
}

/// Whether the peer will send nothing more.
pub(super) fn has_peer_ended(state: State) -> bool {
    match state {
        State::CloseWait | State::LastAck | State::Closing | State::TimeWait | State::Closed => {
            true
        }
        State::Listen
        | State::SynSent
        | State::SynReceived
        | State::Established
        | State::FinWait1
        | State::FinWait2 => false,
    }
}
