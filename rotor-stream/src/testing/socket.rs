//! `ScriptedSocket` and its other end, `Peer`: a byte stream in memory that does what a test says.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::rc::Rc;

use rotor_core::net::StreamSocket;
use rotor_core::{BackendHandle, EventSet, Interest, Scope, Source, Token};

use super::memory::{MemoryHandle, Readiness, Target, World};

/// A byte stream in memory whose other end, a [`Peer`], is in the hands of a test.
///
/// It keeps strictly to edges: each change is reported once, so a machine that forgets to read or
/// write until `WouldBlock` stands still, and the test shows it. With `SHORT_READ_DRAINS`, it lets
/// its machine take a short read for an emptied socket, as the kernel's sockets do.
pub struct Scripted<const SHORT_READ_DRAINS: bool> {
    end: End,
}

/// The usual scripted socket: every read goes on until `WouldBlock`.
pub type ScriptedSocket = Scripted<false>;

/// The other end of a scripted socket: what the peer does, and what it got.
///
/// Clones name the same end. Nothing here runs the loop: give it turns, or use a
/// [`Driver`](super::Driver).
#[derive(Clone)]
pub struct Peer {
    end: End,
}

/// What both ends share.
#[derive(Clone)]
struct End {
    world: World,
    state: Rc<RefCell<State>>,
}

struct State {
    registered: Option<(Token, Interest)>,
    connection: Connection,
    incoming: VecDeque<u8>,
    /// How many of the incoming bytes are before the urgent one.
    urgent_at: Option<usize>,
    /// What follows the incoming bytes.
    after: After,
    read_max: usize,
    written: Vec<u8>,
    /// How many bytes the socket still takes.
    room: usize,
    write_max: usize,
    write_error: Option<ErrorKind>,
    /// The error that `take_error` gives, once.
    error: Option<ErrorKind>,
    write_ended: bool,
    is_dropped: bool,
    operations: Operations,
    address: Option<SocketAddr>,
    before_read: Option<BeforeRead>,
}

/// What happens just before a read.
type BeforeRead = Box<dyn FnOnce(&Peer)>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Connection {
    Connecting,
    Connected,
    Failed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    /// Perhaps more.
    Open,
    End,
    /// This error, once; then the end.
    Error(ErrorKind),
}

/// How often a socket was asked to do something, successful or not.
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
    /// Registrations.
    pub registrations: usize,
}

/// A connected pair: the socket for the machine, the peer for the test.
pub fn pair<const SHORT_READ_DRAINS: bool>(world: &World) -> (Scripted<SHORT_READ_DRAINS>, Peer) {
    let end = End::new(world, Connection::Connected, None);
    (Scripted { end: end.clone() }, Peer { end })
}

impl End {
    fn new(world: &World, connection: Connection, address: Option<SocketAddr>) -> End {
        let state = State {
            registered: None,
            connection,
            incoming: VecDeque::new(),
            urgent_at: None,
            after: After::Open,
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
        End { world: world.clone(), state: Rc::new(RefCell::new(state)) }
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.borrow_mut())
    }

    /// Reports an edge: what has changed and, unless edges are narrow, all that is so.
    fn report(&self, changed: EventSet) {
        if self.world.has_narrow_edges() {
            return self.world.report(self.state.clone(), changed);
        }
        self.report_all(changed);
    }

    /// Reports what has changed and all that is so.
    fn report_all(&self, changed: EventSet) {
        let events = changed | self.with(|state| state.events());
        self.world.report(self.state.clone(), events);
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
    /// What is so now.
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
        let is_failed = is_refused || matches!(self.after, After::Error(_));
        add(!self.incoming.is_empty() || self.after != After::Open, EventSet::READABLE);
        add(self.room > 0 || self.write_error.is_some() || is_failed, EventSet::WRITABLE);
        add(self.after != After::Open || is_refused, EventSet::READ_CLOSED);
        add(self.write_error.is_some() || is_refused, EventSet::WRITE_CLOSED);
        add(is_failed || self.error.is_some(), EventSet::ERROR);
        add(self.urgent_at.is_some(), EventSet::URGENT);
        events
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
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
            After::Open => Err(ErrorKind::WouldBlock.into()),
            After::End => Ok(0),
            After::Error(kind) => {
                // The error is pending once (`SO_ERROR`); whoever reads on finds the end.
                self.after = After::End;
                self.error = None;
                Err(kind.into())
            }
        }
    }

    fn write<'a>(&mut self, slices: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
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

/// What the peer does.
impl Peer {
    /// Sends bytes; they can be read at once, with an edge.
    pub fn send(&self, bytes: &[u8]) {
        self.end.with(|state| state.incoming.extend(bytes));
        self.end.report(EventSet::READABLE);
    }

    /// Sends an urgent byte, which stays in its place among the others, as with `SO_OOBINLINE`: a
    /// read stops short of it, and the next one begins with it. Of several, the last one is the
    /// urgent one.
    pub fn send_urgent(&self, byte: u8) {
        self.end.with(|state| {
            state.urgent_at = Some(state.incoming.len());
            state.incoming.push_back(byte);
        });
        self.end.report(EventSet::READABLE | EventSet::URGENT);
    }

    /// Ends its side, after what it has sent: reads give 0 from then on.
    pub fn end(&self) {
        self.end.with(|state| state.after = After::End);
        self.end.report(EventSet::READABLE | EventSet::READ_CLOSED);
    }

    /// Makes reading fail, after what the peer has sent, and go on as ended.
    pub fn fail_read(&self, kind: ErrorKind) {
        self.end.with(|state| state.after = After::Error(kind));
        self.end.report(EventSet::READABLE | EventSet::READ_CLOSED);
    }

    /// Resets the connection: after what the peer has sent, reads fail, and writes fail from now
    /// on.
    pub fn reset(&self) {
        self.end.with(|state| {
            state.after = After::Error(ErrorKind::ConnectionReset);
            state.write_error = Some(ErrorKind::BrokenPipe);
            state.error = Some(ErrorKind::ConnectionReset);
        });
        let all = EventSet::READ_CLOSED | EventSet::WRITE_CLOSED | EventSet::ERROR;
        self.end.report(EventSet::READABLE | EventSet::WRITABLE | all);
    }

    /// Makes all writes fail from now on, without an edge.
    pub fn fail_writes(&self, kind: ErrorKind) {
        self.end.with(|state| state.write_error = Some(kind));
    }

    /// Lets each read give at most so many bytes.
    pub fn limit_reads(&self, bytes: usize) {
        self.end.with(|state| state.read_max = bytes.max(1));
    }

    /// Lets each write take at most so many bytes.
    pub fn limit_writes(&self, bytes: usize) {
        self.end.with(|state| state.write_max = bytes.max(1));
    }

    /// Takes no more than `bytes` from now on, until [`make_room`](Peer::make_room): what a peer
    /// does that does not read.
    pub fn limit_room(&self, bytes: usize) {
        self.end.with(|state| state.room = bytes);
    }

    /// Takes so many bytes more, with an edge if there was no room.
    pub fn make_room(&self, bytes: usize) {
        let had_none = self.end.with(|state| {
            let had_none = state.room == 0;
            state.room = state.room.saturating_add(bytes);
            had_none
        });
        if had_none && bytes > 0 {
            self.end.report(EventSet::WRITABLE);
        }
    }

    /// Does something just before the next read of the machine: for what happens between two of its
    /// calls.
    pub fn before_read(&self, f: impl FnOnce(&Peer) + 'static) {
        self.end.with(|state| state.before_read = Some(Box::new(f)));
    }

    /// Reports what is so once more, as backends may.
    pub fn report_spuriously(&self) {
        self.end.report_all(EventSet::EMPTY);
    }

    /// Reports that there is something to read and to write, whether there is or not.
    pub fn report_falsely(&self) {
        self.end
            .world
            .report_falsely(self.end.state.clone(), EventSet::READABLE | EventSet::WRITABLE);
    }

    /// Reports that both sides have ended and that the socket has failed, whether it is so or not.
    pub fn report_end_falsely(&self) {
        let events = EventSet::READ_CLOSED | EventSet::WRITE_CLOSED | EventSet::ERROR;
        self.end.world.report_falsely(self.end.state.clone(), events);
    }

    /// Decides an attempt to connect that hangs, with an edge.
    ///
    /// # Panics
    ///
    /// When it was decided before.
    pub fn decide(&self, target: Target) {
        let is_connecting = self.end.with(|state| state.connection == Connection::Connecting);
        assert!(is_connecting, "this attempt to connect was decided before");
        self.end.settle(target);
        self.end.report_all(EventSet::EMPTY);
    }
}

/// What the peer got.
impl Peer {
    /// What was written and not yet taken.
    pub fn take_received(&self) -> Vec<u8> {
        self.end.with(|state| std::mem::take(&mut state.written))
    }

    /// How many bytes were written and not yet taken.
    pub fn received_len(&self) -> usize {
        self.end.with(|state| state.written.len())
    }

    /// Whether the machine has ended its side, or dropped the socket.
    pub fn is_ended(&self) -> bool {
        self.end.with(|state| state.write_ended || state.is_dropped)
    }

    /// Whether the machine has dropped the socket.
    pub fn is_dropped(&self) -> bool {
        self.end.with(|state| state.is_dropped)
    }

    /// How many of the bytes sent were not read.
    pub fn unread_len(&self) -> usize {
        self.end.with(|state| state.incoming.len())
    }

    /// How often the socket was asked to do something.
    pub fn operations(&self) -> Operations {
        self.end.with(|state| state.operations)
    }
}

/// What a world has of its sockets.
impl World {
    /// The other ends of the connections that machines have made, oldest first; each is handed out
    /// once.
    pub fn take_connections(&self) -> Vec<Peer> {
        self.take_noted_connections()
    }

    /// The other ends of the attempts to connect that hang, oldest first; each is handed out once.
    /// What becomes of them is for [`Peer::decide`] to say.
    pub fn take_hanging(&self) -> Vec<Peer> {
        self.take_noted_hanging()
    }
}

impl<const D: bool> Read for Scripted<D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(f) = self.end.with(|state| state.before_read.take()) {
            f(&Peer { end: self.end.clone() });
        }
        self.end.with(|state| state.read(buffer))
    }
}

impl<const D: bool> Write for Scripted<D> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.end.with(|state| state.write(std::iter::once(bytes)))
    }

    fn write_vectored(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.end.with(|state| state.write(slices.iter().map(|slice| &slice[..])))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.end.with(|state| state.operations.flushes += 1);
        Ok(())
    }
}

impl<const D: bool> Source for Scripted<D> {
    fn register(
        &mut self,
        backend: &dyn BackendHandle,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        MemoryHandle::check(backend, &self.end.world)?;
        self.end.with(|state| {
            if state.registered.is_some() {
                return Err(io::Error::new(
                    ErrorKind::AlreadyExists,
                    "a scripted socket is registered already",
                ));
            }
            state.registered = Some((token, interest));
            state.operations.registrations += 1;
            Ok(())
        })?;
        let (is_connecting, target) = self.end.with(|state| {
            let target = state.address.map(|address| self.end.world.target_at(&address));
            (state.connection == Connection::Connecting, target)
        });
        // A kernel tells nobody how connecting ended before there is a registration.
        if is_connecting {
            self.end.settle(target.unwrap_or(Target::Hangs));
        }
        self.end.report_all(EventSet::EMPTY);
        Ok(())
    }

    fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
        MemoryHandle::check(backend, &self.end.world)?;
        self.end.with(|state| state.registered = None);
        Ok(())
    }
}

impl End {
    /// Makes of an attempt to connect what the target says.
    fn settle(&self, target: Target) {
        self.with(|state| match target {
            Target::Accepts => state.connection = Connection::Connected,
            Target::Hangs => {}
            Target::Fails(kind) | Target::FailsAtOnce(kind) => {
                state.connection = Connection::Failed;
                state.error = Some(kind);
            }
        });
        let peer = Peer { end: self.clone() };
        match target {
            Target::Accepts => self.world.note_connection(peer),
            Target::Hangs => self.world.note_hanging(peer),
            Target::Fails(_) | Target::FailsAtOnce(_) => {}
        }
    }
}

impl<const D: bool> StreamSocket for Scripted<D> {
    type Target = SocketAddr;

    fn connect<C>(target: &SocketAddr, scope: &Scope<'_, C>) -> io::Result<Self> {
        let world = scope.backend().expect::<MemoryHandle>("a scripted socket")?.world();
        if let Target::FailsAtOnce(kind) = world.target_at(target) {
            return Err(kind.into());
        }
        Ok(Scripted { end: End::new(world, Connection::Connecting, Some(*target)) })
    }

    fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        self.end.with(|state| {
            state.operations.shutdowns += 1;
            if state.write_error.is_some() {
                return Err(ErrorKind::NotConnected.into());
            }
            state.write_ended |= how != Shutdown::Read;
            Ok(())
        })
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        self.end.with(|state| state.address)
    }

    fn local_address(&self) -> Option<SocketAddr> {
        None
    }

    fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(self.end.with(|state| state.error.take()).map(io::Error::from))
    }

    fn is_connected(&self) -> bool {
        self.end.with(|state| state.connection == Connection::Connected)
    }

    fn holds_input(&self) -> bool {
        false
    }

    fn short_read_drains(&self) -> bool {
        D
    }
}

impl<const D: bool> Drop for Scripted<D> {
    fn drop(&mut self) {
        self.end.with(|state| {
            state.is_dropped = true;
            state.registered = None;
        });
    }
}

impl<const D: bool> fmt::Debug for Scripted<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scripted")
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.end.with(|state| {
            f.debug_struct("Peer")
                .field("received", &state.written.len())
                .field("unread", &state.incoming.len())
                .finish_non_exhaustive()
        })
    }
}
