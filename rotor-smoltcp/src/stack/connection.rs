//! `Connection`: what the stack knows of a connection, and what its machine is to be told.

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

/// How soon a connection asks again how much its peer takes.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// As many acknowledgements of the same have smoltcp send again at once (RFC 5681, section 3.2).
const REPETITIONS: u8 = 3;

/// Who has a connection.
///
/// ```text
///  a first packet ─▶ HalfOpen ──handshake──▶ Waiting ──accept──▶ Open ──drop──▶ Left ─▶ forgotten
///                       │ too late, reset                          ▲
///                       ▼                                          │ the peer answers
///                   forgotten                  connect ─▶ Connecting
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// A listener: the peer has not completed the handshake.
    HalfOpen(Id),
    /// A listener: it waits to be accepted.
    Waiting(Id),
    /// A machine, which waits for the peer's answer.
    Connecting,
    /// A machine.
    Open,
    /// Nobody: it sends what it had taken, and ends.
    Left,
}

pub(super) struct Connection {
    /// A set of its own, so that nothing is looked for among all connections.
    pub(super) set: SocketSet<'static>,
    handle: SocketHandle,
    pub(super) flow: Flow,
    pub(super) sequence: Sequence,
    pub(super) phase: Phase,
    token: Option<Token>,
    interest: Interest,
    /// The number of the first byte of its peer, once one was acknowledged.
    first: Option<TcpSeqNumber>,
    /// How many bytes the machine has read, as numbers count.
    read_bytes: u32,
    /// How many unread bytes the machine knows of.
    told_bytes: usize,
    told_end: bool,
    told_failure: bool,
    /// A write found no room; or the attempt to connect has not ended.
    pub(super) wants_room: bool,
    /// The machine reads no more.
    pub(super) is_deaf: bool,
    /// Why it ended, if not in order; until somebody has asked.
    pub(super) failure: Option<io::ErrorKind>,
    pub(super) has_failed: bool,
    /// When it is looked at again, whatever comes.
    pub(super) due: Option<Time>,
    /// When whoever has it has waited long enough.
    pub(super) give_up_at: Option<Time>,
    /// It asks how much its peer takes.
    pub(super) asks_for_room: bool,
    /// When the peer has owed an answer for too long.
    pub(super) answer_due: Option<Time>,
    /// It is in the list of those that may have something to send.
    pub(super) is_dirty: bool,
    /// It is in the list of those that may have something to tell.
    pub(super) is_changed: bool,
    /// It is in the list of those that wait to know where their peer is.
    pub(super) is_unresolved: bool,
    /// It is among those that nobody has, and that have not ended.
    pub(super) lingers: bool,
    /// Its peer was, or was to be, told of a reset of ours.
    has_reset: bool,
    /// How often its peer has said something, and not that it has our end, where it owed nothing else.
    end_repetitions: u8,
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
            told_bytes: 0,
            told_end: false,
            told_failure: false,
            wants_room: phase == Phase::Connecting,
            is_deaf: false,
            failure: None,
            has_failed: false,
            due: None,
            give_up_at: None,
            asks_for_room: false,
            answer_due: None,
            is_dirty: false,
            is_changed: false,
            is_unresolved: false,
            lingers: false,
            has_reset: false,
            end_repetitions: 0,
        }
    }

    /// Its socket, which nothing knows any more, for another connection.
    ///
    /// Where smoltcp was to send again at once, and had nothing to send but a reset or its end, it would still do
    /// so in that one, whatever the window of the peer. Nobody sees whether it would, so that nothing but such an
    /// end may have come before.
    pub(super) fn into_socket(mut self) -> Option<Socket<'static>> {
        if self.has_reset || self.end_repetitions >= REPETITIONS {
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

    /// Whether it has nothing to send any more, and nothing can come.
    pub(super) fn is_over(&self) -> bool {
        let socket = self.set.get::<Socket<'_>>(self.handle);
        // It forgets the peer once that was told of an abort.
        socket.state() == State::Closed && socket.remote_endpoint().is_none()
    }

    /// It is about to send.
    pub(super) fn note_reset(&mut self) {
        self.has_reset |= self.state() == State::Closed && !self.is_over();
    }

    /// Its peer has said something, before which it was in that state.
    pub(super) fn note_repetition(&mut self, before: State) {
        let socket = self.set.get::<Socket<'_>>(self.handle);
        let has_ended = matches!(before, State::FinWait1 | State::Closing | State::LastAck);
        if has_ended && socket.state() == before && socket.send_queue() == 0 {
            self.end_repetitions = self.end_repetitions.saturating_add(1);
        }
    }

    pub(super) fn register(&mut self, token: Token, interest: Interest) -> io::Result<()> {
        if self.token.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        (self.token, self.interest) = (Some(token), interest);
        // Who registers knows of nothing yet.
        (self.told_bytes, self.told_end, self.told_failure) = (0, false, false);
        Ok(())
    }

    pub(super) fn deregister(&mut self) -> io::Result<()> {
        self.token.take().map(|_| ()).ok_or(io::ErrorKind::NotFound.into())
    }

    /// It is no machine's any more.
    pub(super) fn leave(&mut self) {
        self.token = None;
        self.phase = Phase::Left;
    }

    /// How many numbers its peer has used since its first packet, as far as nothing is missing: those of
    /// bytes, and that of its end.
    fn came(&self) -> u32 {
        let socket = self.set.get::<Socket<'_>>(self.handle);
        // A buffer has 16 MiB at most.
        let unread = socket.recv_queue() as u32;
        self.read_bytes.wrapping_add(unread).wrapping_add(u32::from(has_peer_ended(socket.state())))
    }

    /// What was acknowledged tells which number its peer began with. Called behind all that was sent,
    /// before anything comes.
    pub(super) fn note_acknowledged(&mut self) {
        if self.first.is_none()
            && let Some(TcpSeqNumber(acknowledged)) = self.sequence.take_acknowledged()
        {
            self.first = Some(TcpSeqNumber(acknowledged.wrapping_sub(self.came() as i32)));
        }
    }

    /// The number that its peer uses next. Nothing where that is not known, or nothing is to come.
    pub(super) fn expected(&self) -> Option<TcpSeqNumber> {
        let TcpSeqNumber(first) = self.first.filter(|_| self.state() != State::Closed)?;
        Some(TcpSeqNumber(first.wrapping_add(self.came() as i32)))
    }

    /// What is to be known of it once both sides have ended, and the peer was told that it has.
    pub(super) fn last_numbers(&self) -> Option<Numbers> {
        let expected = self.expected().filter(|_| self.state() == State::TimeWait)?;
        let sent = self.sequence.sent()?;
        (self.sequence.told() == Some(expected)).then_some(Numbers { sent, expected })
    }

    /// The machine has read so much more, as far as that.
    pub(super) fn note_read(&mut self, bytes: usize) {
        // Numbers go round.
        self.read_bytes = self.read_bytes.wrapping_add(bytes as u32);
        self.told_bytes = self.socket().recv_queue();
    }

    /// Whether it has something that its peer has not acknowledged, its first packet included.
    pub(super) fn has_unsent(&mut self) -> bool {
        let socket = self.socket();
        socket.send_queue() > 0 || matches!(socket.state(), State::SynSent | State::SynReceived)
    }

    /// Has it asked how much its peer takes, where it waits to hear that and nothing would make it ask;
    /// says whether it does.
    ///
    /// smoltcp takes the window of every acknowledgement, also of one that was overtaken (RFC 9293,
    /// section 3.10.7.4, leaves those out). Where such a one says that there is no room, and the time to
    /// send again comes, it finds that it may not, and sets no time for a probe: both sides wait for ever.
    /// A probe of keep-alive is answered with the window, too.
    pub(super) fn ask_for_room(&mut self, next: Option<Instant>) -> bool {
        let is_asked = self.asks_for_room;
        let socket = self.socket();
        let has_begun = !matches!(
            socket.state(),
            State::Closed | State::Listen | State::SynSent | State::SynReceived | State::TimeWait
        );
        if is_asked || next.is_some() || !has_begun || socket.send_queue() == 0 {
            return false;
        }
        socket.set_keep_alive(Some(ASK_AGAIN.into()));
        self.asks_for_room = true;
        true
    }

    /// Its peer has said something.
    pub(super) fn note_answer(&mut self) {
        self.answer_due = None;
        if std::mem::take(&mut self.asks_for_room) {
            // It had none, or it would have asked by itself.
            self.socket().set_keep_alive(None);
        }
    }

    /// Notes since when its peer owes an answer, if it does: what was sent, our end, or a probe is
    /// not acknowledged. smoltcp has such a time, and counts silence of both sides in it.
    pub(super) fn note_debt(&mut self, now: Time, patience: Duration) {
        let is_in_use = matches!(self.phase, Phase::Open | Phase::Waiting(_)) && !self.has_failed;
        // Whoever resets it expects nothing more.
        let is_in_use = is_in_use && self.state() != State::Closed;
        let socket = self.socket();
        let has_ended = matches!(socket.state(), State::FinWait1 | State::LastAck | State::Closing);
        let until = if has_ended || socket.send_queue() > 0 {
            Some(now + patience)
        } else {
            // Not before it is probed.
            socket.keep_alive().map(|idle| now + idle.into() + patience)
        };
        let due = self.answer_due.unwrap_or(Time::NEVER);
        self.answer_due = until.filter(|_| is_in_use).map(|until| until.min(due));
    }

    /// It has ended, and not in order.
    pub(super) fn fail(&mut self, kind: io::ErrorKind) {
        (self.failure, self.has_failed) = (Some(kind), true);
    }

    /// Whom to tell what has changed since it was told last.
    pub(super) fn news(&mut self) -> Option<(Token, EventSet)> {
        let token = self.token?;
        if self.phase == Phase::Connecting {
            return None;
        }
        let mut events = EventSet::EMPTY;
        let (has_failed, is_deaf) = (self.has_failed, self.is_deaf);
        let socket = self.set.get::<Socket<'_>>(self.handle);
        let unread = socket.recv_queue();
        let has_room = socket.can_send() || !socket.may_send();
        let has_ended = has_peer_ended(socket.state());
        if unread > self.told_bytes && !is_deaf {
            events |= EventSet::READABLE;
        }
        self.told_bytes = unread;
        if has_ended && !std::mem::replace(&mut self.told_end, true) {
            events |= EventSet::READABLE | EventSet::READ_CLOSED;
        }
        if !self.interest.is_readable() {
            events = EventSet::EMPTY;
        }
        if has_room && self.interest.is_writable() && std::mem::take(&mut self.wants_room) {
            events |= EventSet::WRITABLE;
        }
        if has_failed && !std::mem::replace(&mut self.told_failure, true) {
            events |= EventSet::ERROR | EventSet::READ_CLOSED | EventSet::WRITE_CLOSED;
        }
        if events.is_empty() { None } else { Some((token, events)) }
    }
}

/// Whether the peer will send no more.
fn has_peer_ended(state: State) -> bool {
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
