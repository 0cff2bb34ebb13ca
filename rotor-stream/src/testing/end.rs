//! `SharedEnd`: what the two ends of a scripted stream share.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::rc::Rc;

use rotor_core::{EventSet, Interest, Token};

use super::memory::{Readiness, Target, World};

/// A handle of the state that both ends share.
#[derive(Clone)]
pub(super) struct SharedEnd {
    pub(super) world: World,
    pub(super) state: Rc<RefCell<State>>,
}

/// The state of a stream between its two ends.
pub(super) struct State {
    pub(super) registered: Option<(Token, Interest)>,
    pub(super) connection: Connection,
    pub(super) incoming: VecDeque<u8>,
    /// How many of the incoming bytes are before the urgent one.
    pub(super) urgent_at: Option<usize>,
    /// What follows the incoming bytes.
    pub(super) after: InputEnd,
    pub(super) read_max: usize,
    pub(super) written: Vec<u8>,
    /// How many more bytes the socket takes.
    pub(super) room: usize,
    pub(super) write_max: usize,
    pub(super) write_error: Option<ErrorKind>,
    /// The error that `take_error` returns, once.
    pub(super) error: Option<ErrorKind>,
    pub(super) write_ended: bool,
    pub(super) is_dropped: bool,
    pub(super) operations: Operations,
    pub(super) address: Option<SocketAddr>,
    pub(super) before_read: Option<BeforeRead>,
}

/// What happens just before a read.
pub(super) type BeforeRead = Box<dyn FnOnce(&SharedEnd)>;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Connection {
    Connecting,
    Connected,
    Failed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum InputEnd {
    /// More bytes may follow.
    Open,
    End,
    /// This error, once; then the end.
    Error(ErrorKind),
}

/// How often each operation of a socket was called, successfully or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Operations {
    /// Calls of `read`.
    pub reads: usize,
    /// Calls of `write` and `write_vectored`.
    pub writes: usize,
    /// Calls of `flush`.
    pub flushes: usize,
    /// Calls of `shutdown`.
    pub shutdowns: usize,
    /// Calls of `reset`.
    pub resets: usize,
    /// Registrations.
    pub registrations: usize,
}

impl SharedEnd {
    pub(super) fn new(
        world: &World,
        connection: Connection,
        address: Option<SocketAddr>,
    ) -> SharedEnd {
        let state = State {
            registered: None,
            connection,
            incoming: VecDeque::new(),
            urgent_at: None,
            after: InputEnd::Open,
            read_max: usize::MAX,
            written: Vec::new(),
            room: usize::MAX,
            write_max: usize::MAX,
            write_error: None,
            error: None,
            write_ended: false,
            is_dropped: false,
            operations: Operations::default(),
            address,
            before_read: None,
        };
        SharedEnd { world: world.clone(), state: Rc::new(RefCell::new(state)) }
    }

    pub(super) fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.borrow_mut())
    }

    /// Reports an edge: what has changed and, unless edges are narrow, the whole current state.
    pub(super) fn report(&self, changed: EventSet) {
        if self.world.has_narrow_edges() {
            return self.world.report(self.state.clone(), changed);
        }
        self.report_all(changed);
    }

    /// Reports what has changed and the whole current state.
    pub(super) fn report_all(&self, changed: EventSet) {
        let events = changed | self.with(|state| state.events());
        self.world.report(self.state.clone(), events);
    }
}

impl SharedEnd {
    /// Decides an attempt to connect according to the target.
    pub(super) fn decide(&self, target: Target) {
        self.with(|state| match target {
            Target::Accepts => state.connection = Connection::Connected,
            Target::Hangs => {}
            Target::Fails(kind) | Target::FailsAtOnce(kind) => {
                state.connection = Connection::Failed;
                state.error = Some(kind);
            }
        });
        match target {
            Target::Accepts => self.world.record_connection(self.clone()),
            Target::Hangs => self.world.record_hanging(self.clone()),
            Target::Fails(_) | Target::FailsAtOnce(_) => {}
        }
    }
}

impl Readiness for RefCell<State> {
    fn registered(&self) -> Option<(Token, Interest)> {
        self.borrow().registered
    }

    fn events(&self) -> EventSet {
        self.borrow().events()
    }
}

impl State {
    /// Returns the current state as events.
    fn events(&self) -> EventSet {
        if self.connection == Connection::Connecting {
            return EventSet::EMPTY;
        }
        let mut events = EventSet::EMPTY;
        let mut add = |is: bool, event: EventSet| {
            if is {
                events |= event;
            }
        };
        let is_refused = self.connection == Connection::Failed;
        let is_failed = is_refused || matches!(self.after, InputEnd::Error(_));
        add(!self.incoming.is_empty() || self.after != InputEnd::Open, EventSet::READABLE);
        add(self.room > 0 || self.write_error.is_some() || is_failed, EventSet::WRITABLE);
        add(self.after != InputEnd::Open || is_refused, EventSet::READ_CLOSED);
        add(self.write_error.is_some() || is_refused, EventSet::WRITE_CLOSED);
        add(is_failed || self.error.is_some(), EventSet::ERROR);
        add(self.urgent_at.is_some(), EventSet::URGENT);
        events
    }

    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.operations.reads += 1;
        match self.connection {
            Connection::Connecting => return Err(ErrorKind::WouldBlock.into()),
            Connection::Failed => {
                return Err(self.error.take().unwrap_or(ErrorKind::NotConnected).into());
            }
            Connection::Connected => {}
        }
        // With `SO_OOBINLINE` a read never passes the urgent mark (sockatmark(3)).
        let before_mark = self.urgent_at.filter(|before| *before > 0).unwrap_or(usize::MAX);
        let count = buffer.len().min(self.read_max).min(self.incoming.len()).min(before_mark);
        if count > 0 {
            self.urgent_at = self.urgent_at.and_then(|before| before.checked_sub(count));
            for (slot, byte) in buffer.iter_mut().zip(self.incoming.drain(..count)) {
                *slot = byte;
            }
            return Ok(count);
        }
        match self.after {
            InputEnd::Open => Err(ErrorKind::WouldBlock.into()),
            InputEnd::End => Ok(0),
            InputEnd::Error(kind) => {
                // The error is reported once (`SO_ERROR`); further reads return the end.
                self.after = InputEnd::End;
                self.error = None;
                Err(kind.into())
            }
        }
    }

    pub(super) fn write<'a>(
        &mut self,
        slices: impl Iterator<Item = &'a [u8]>,
    ) -> io::Result<usize> {
        self.operations.writes += 1;
        if let Some(kind) = self.write_error {
            return Err(kind.into());
        }
        if self.connection != Connection::Connected {
            return Err(ErrorKind::NotConnected.into());
        }
        if self.write_ended {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let mut left = self.room.min(self.write_max);
        if left == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        let before = self.written.len();
        for slice in slices {
            let count = slice.len().min(left);
            self.written.extend_from_slice(&slice[..count]);
            left -= count;
        }
        let count = self.written.len() - before;
        self.room = if self.room == usize::MAX { usize::MAX } else { self.room - count };
        Ok(count)
    }
}
