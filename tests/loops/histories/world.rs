//! Plays a script with sockets that the test holds. Machines only record the events of sockets.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;

use rotor_core::net::{ListenOptions, Listener, Net, StreamSocket};
use rotor_core::{Config, EventSet, Interest, Notifier, Response, Scope};

use super::script::{Operation, Step};
use super::settling::Settling;
use crate::actor::{Actor, Call, actor};
use crate::loops::{OnLoop, Rig};

/// Where to listen, and what to connect to.
pub(super) struct Place<N: Net> {
    pub(super) listen: <N::Listener as Listener>::Address,
    pub(super) target: <N::Stream as StreamSocket>::Target,
}

/// The events of each socket, by the number of its registration.
#[derive(Default)]
struct Reports {
    events: Vec<EventSet>,
    notifier: Option<Notifier>,
}

/// One direction of a connection. The byte at each position is computed, so no data is stored.
#[derive(Clone, Copy, Default)]
struct Direction {
    salt: usize,
    written: usize,
    read: usize,
    is_filled: bool,
    /// Its writer has ended it, or is gone.
    has_ended: bool,
}

impl Direction {
    fn bytes(&self, from: usize, count: usize) -> Vec<u8> {
        (from..from + count).map(|at| ((at + self.salt) % 251) as u8).collect()
    }
}

struct Socket<S> {
    stream: S,
    connection: usize,
    side: usize,
    /// The number of its registration, if it has one.
    registration: Option<usize>,
    interest: Interest,
    /// A read has found nothing, or the socket was just registered: the next change is reported.
    awaits_input: bool,
    /// The same for room to write.
    awaits_room: bool,
    /// Something was written in this step.
    has_written: bool,
    cannot_write: bool,
    failure_is_noted: bool,
    handshake: Handshake,
}

/// The state of a handshake. Sockets without TLS have completed it from the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Handshake {
    Pending,
    Completed,
    Failed,
}

struct World<L: OnLoop, N: Net, P> {
    rig: Rig<Actor<Reports>, L>,
    place: P,
    settling: Settling,
    listener: Option<N::Listener>,
    /// The place of the last listener.
    known: Option<Place<N>>,
    sockets: Vec<Option<Socket<N::Stream>>>,
    connections: Vec<[Direction; 2]>,
    /// Connections that were not accepted yet.
    waiting: VecDeque<usize>,
    history: Vec<String>,
}

/// Plays a script, and returns what has happened, line by line. `place` returns where to listen
/// next, or where the listener listens.
pub(super) fn play<L: OnLoop, N: Net>(
    script: &[Step],
    settling: Settling,
    place: impl Fn(Option<&N::Listener>) -> Place<N>,
) -> Vec<String> {
    let mut rig = Rig::<Actor<Reports>, L>::new(&Config::new(), Reports::default());
    rig.add(|scope| {
        scope.notifier = Some(scope.notifier());
        Response::ok(actor(|_, _| Response::keep(())))
    });
    let mut world = World::<L, N, _> {
        rig,
        place,
        settling,
        listener: None,
        known: None,
        sockets: Vec::new(),
        connections: Vec::new(),
        waiting: VecDeque::new(),
        history: Vec::new(),
    };
    for step in script {
        let mut line = format!("{step:?}:");
        world.step(step, &mut line);
        world.settle();
        world.observe(&mut line);
        world.history.push(line);
    }
    world.finish();
    world.history
}

impl<L: OnLoop, N: Net, P: Fn(Option<&N::Listener>) -> Place<N>> World<L, N, P> {
    /// Takes turns until nothing moves any more.
    fn settle(&mut self) {
        for _ in 0..self.settling.turns {
            self.advance();
            if self.settling.only_polls {
                self.rig.context(|reports| reports.notifier.as_ref().map(Notifier::wakeup));
            }
            self.rig.turn();
        }
    }

    /// Continues handshakes, and sends what TLS has still to send.
    fn advance(&mut self) {
        for socket in self.sockets.iter_mut().flatten() {
            let stream = &mut socket.stream;
            if socket.handshake == Handshake::Pending {
                let mut result = Ok(());
                self.rig.with(|instance| {
                    let _ended = instance.add_machine_with(|scope| {
                        result = stream.handshake(scope);
                        Response::done()
                    });
                });
                socket.handshake = match result {
                    Ok(()) => Handshake::Completed,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => Handshake::Pending,
                    Err(_) => Handshake::Failed,
                };
            }
            // An error is found again by what the script does next.
            let _result = stream.flush();
        }
    }

    /// Asks within the scope of a new machine, which records the events of what is registered.
    fn ask<R>(&mut self, ask: impl FnOnce(&mut Scope<'_, Reports>) -> R) -> (R, usize) {
        let number = self.rig.context(|reports| {
            reports.events.push(EventSet::EMPTY);
            reports.events.len() - 1
        });
        let mut result = None;
        self.rig.add(|scope| {
            result = Some(ask(scope));
            Response::ok(actor(move |call, scope: &mut Scope<'_, Reports>| {
                if let Call::Ready(events) = call {
                    scope.events[number] |= events;
                }
                Response::keep(())
            }))
        });
        (result.expect("the closure ran"), number)
    }

    fn open_sockets(&self) -> Vec<usize> {
        (0..self.sockets.len()).filter(|at| self.sockets[*at].is_some()).collect()
    }

    fn step(&mut self, step: &Step, line: &mut String) {
        match step {
            Step::Listen if self.listener.is_none() => self.listen(line),
            Step::Listen => {}
            Step::CloseListener => {
                self.listener = None;
                self.waiting.clear();
            }
            Step::Connect => self.connect(line),
            Step::Accept => self.accept(line),
            Step::Operate(pick, operations) => {
                let open = self.open_sockets();
                let Some(at) = pick.checked_rem(open.len()).map(|index| open[index]) else {
                    return;
                };
                for (number, operation) in operations.iter().enumerate() {
                    let Some(socket) = self.sockets[at].take() else { break };
                    let (connection, side) = (socket.connection, socket.side);
                    self.sockets[at] = self.operate(socket, *operation, number == 0, line);
                    self.connections[connection][side].has_ended |= self.sockets[at].is_none();
                }
            }
        }
    }

    fn listen(&mut self, line: &mut String) {
        let place = (self.place)(None);
        let options = ListenOptions::new();
        let (bound, _) = self.ask(|scope| N::Listener::bind(&place.listen, &options, scope));
        note(line, bound.as_ref().map(drop));
        self.listener = bound.ok();
        self.known = Some((self.place)(self.listener.as_ref()));
    }

    fn connect(&mut self, line: &mut String) {
        let Some(place) = self.known.take() else { return };
        let (begun, number) = self.ask(|scope| {
            let mut stream = N::Stream::connect(&place.target, scope)?;
            scope.register(&mut stream, Interest::Both)?;
            stream.set_nodelay(true)?;
            Ok::<_, io::Error>(stream)
        });
        self.known = Some(place);
        self.settle();
        let is_told = self.rig.context(|reports| reports.events[number].is_writable());
        match begun.and_then(|mut stream| Ok((stream.has_connected()?, stream))) {
            // Paths are refused in more than one way, and at once.
            Err(_) => *line += " refused",
            Ok((is_connected, stream)) => {
                write!(line, " {is_connected}, told {is_told}").expect("there is memory");
                let salt = 7 * self.connections.len();
                let direction = |salt| Direction { salt, ..Direction::default() };
                self.waiting.push_back(self.connections.len());
                self.connections.push([direction(salt), direction(salt + 100)]);
                self.add(stream, self.connections.len() - 1, 0, number);
            }
        }
    }

    fn accept(&mut self, line: &mut String) {
        let Some(listener) = &mut self.listener else { return };
        let accepted = listener.accept();
        note(line, accepted.as_ref().map(drop));
        let Ok((mut stream, _)) = accepted else { return };
        stream.set_nodelay(true).expect("it can be");
        let (registered, number) = self.ask(|scope| scope.register(&mut stream, Interest::Both));
        registered.expect("it is new");
        let connection = self.waiting.pop_front().expect("somebody has connected");
        self.add(stream, connection, 1, number);
    }

    fn add(&mut self, stream: N::Stream, connection: usize, side: usize, number: usize) {
        self.sockets.push(Some(Socket {
            stream,
            connection,
            side,
            registration: Some(number),
            interest: Interest::Both,
            awaits_input: true,
            awaits_room: false,
            has_written: false,
            cannot_write: false,
            failure_is_noted: false,
            handshake: Handshake::Pending,
        }));
    }

    /// Operates on a socket, and returns it unless it was dropped.
    fn operate(
        &mut self,
        mut socket: Socket<N::Stream>,
        operation: Operation,
        is_first: bool,
        line: &mut String,
    ) -> Option<Socket<N::Stream>> {
        use Operation::{Deregister, Drop, Register, Reset};
        let needs_handshake = !matches!(operation, Drop | Reset | Register(_) | Deregister);
        if needs_handshake && socket.handshake != Handshake::Completed {
            write!(line, " {:?}", socket.handshake).expect("there is memory");
            return Some(socket);
        }
        match operation {
            Operation::Write(count) => self.write(&mut socket, count, line),
            Operation::Fill => self.fill(&mut socket),
            Operation::Read(count) => self.read(&mut socket, count, line),
            Operation::ShutdownWrite => {
                let result = socket.stream.shutdown(Shutdown::Write);
                let direction = &mut self.connections[socket.connection][socket.side];
                if socket.stream.is_secure() {
                    // TLS sends that it is the end; if the peer is gone, that is a write that fails.
                    (socket.has_written, direction.has_ended) = (true, true);
                    return Some(socket);
                }
                direction.has_ended |= result.is_ok();
                // Whether the peer is gone already depends on what came first in this step.
                let is_early = !is_first && is(&result, ErrorKind::NotConnected);
                note(line, if is_early { Ok(()) } else { result.as_ref().copied() });
            }
            // TLS has seen it before, or not, depending on whether it had something to send.
            Operation::TakeError if socket.stream.is_secure() => {}
            Operation::TakeError => {
                let error = socket.stream.take_error().expect("it can be asked");
                if is_first && !socket.cannot_write {
                    note(line, error.as_ref().map_or(Ok(()), Err));
                }
            }
            Operation::Register(interest) => {
                let (result, number) =
                    self.ask(|scope| scope.register(&mut socket.stream, interest));
                note(line, result.as_ref().copied());
                if result.is_ok() {
                    (socket.registration, socket.interest) = (Some(number), interest);
                    (socket.awaits_input, socket.awaits_room) = (interest.is_readable(), false);
                }
            }
            Operation::Deregister => {
                let (result, _) = self.ask(|scope| scope.deregister(&mut socket.stream));
                note(line, result.as_ref().copied());
                socket.registration = None;
            }
            // What was written in this step may be lost with it.
            Operation::Reset if socket.has_written => {}
            Operation::Reset => {
                note(line, socket.stream.reset().as_ref().copied());
                return None;
            }
            Operation::Drop => return None,
        }
        Some(socket)
    }

    fn write(&mut self, socket: &mut Socket<N::Stream>, count: usize, line: &mut String) {
        socket.has_written = true;
        let direction = &mut self.connections[socket.connection][socket.side];
        match socket.stream.write(&direction.bytes(direction.written, count)) {
            Ok(taken) => direction.written += taken,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if !direction.is_filled {
                    *line += " no room";
                }
            }
            Err(_) => socket.cannot_write = true,
        }
    }

    fn fill(&mut self, socket: &mut Socket<N::Stream>) {
        socket.has_written = true;
        let direction = &mut self.connections[socket.connection][socket.side];
        direction.is_filled = true;
        loop {
            match socket.stream.write(&direction.bytes(direction.written, 30_000)) {
                Ok(0) => break,
                Ok(taken) => direction.written += taken,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return socket.cannot_write = true,
            }
        }
        if let Some(number) = socket.registration {
            socket.awaits_room = socket.interest.is_writable();
            let events = self.rig.context(|reports| std::mem::take(&mut reports.events[number]));
            socket.awaits_input &= !events.is_readable();
        }
    }

    fn read(&mut self, socket: &mut Socket<N::Stream>, count: usize, line: &mut String) {
        let direction = &mut self.connections[socket.connection][1 - socket.side];
        let before = direction.read;
        let mut chunk = vec![0; 100_000];
        let end = loop {
            let most = chunk.len().min(count - (direction.read - before));
            match socket.stream.read(&mut chunk[..most]) {
                _ if most == 0 => break "all",
                Ok(0) => break "end",
                Ok(got) => {
                    assert_eq!(chunk[..got], direction.bytes(direction.read, got));
                    direction.read += got;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break "nothing",
                // A write has taken the error, or will. With TLS, an end without notice is an error, too.
                Err(_)
                    if (socket.cannot_write || socket.has_written)
                        && !socket.stream.is_secure() =>
                {
                    break "end";
                }
                Err(_) => break "failed",
            }
        };
        assert!(direction.read <= direction.written, "more came than was written");
        if !direction.is_filled {
            write!(line, " {} {end}", direction.read - before).expect("there is memory");
        }
        socket.awaits_input &= end != "end" && end != "failed";
        if let Some(number) = socket.registration.filter(|_| end == "nothing") {
            let events = self.rig.context(|reports| std::mem::take(&mut reports.events[number]));
            socket.awaits_room &= !events.is_writable();
            socket.awaits_input = socket.interest.is_readable();
        }
    }

    /// Notes what a step has changed for the open sockets.
    fn observe(&mut self, line: &mut String) {
        for at in self.open_sockets() {
            let Some(socket) = &mut self.sockets[at] else { continue };
            let (connection, side) = (socket.connection, socket.side);
            socket.has_written = false;
            if socket.handshake != Handshake::Completed {
                write!(line, " [{connection}.{side} {:?}]", socket.handshake).expect("memory");
                continue;
            }
            if !socket.cannot_write
                && let Err(error) = socket.stream.write(&[])
            {
                socket.cannot_write = error.kind() != ErrorKind::WouldBlock;
            }
            // TLS may have nothing to send by which this would be noticed.
            let is_known = socket.cannot_write && !socket.stream.is_secure();
            if is_known && !std::mem::replace(&mut socket.failure_is_noted, true) {
                write!(line, " [{connection}.{side} cannot write]").expect("there is memory");
            }
            let Some(number) = socket.registration.filter(|_| socket.awaits_input) else {
                continue;
            };
            let is_told = self.rig.context(|reports| reports.events[number].is_readable());
            if is_told {
                socket.awaits_input = false;
            }
            // Events may be spurious. So what counts is whether there is something to be told of.
            let has_input = self.has_input(connection, side);
            if !is_told && has_input && !self.connections[connection][1 - side].is_filled {
                write!(line, " [{connection}.{side} is not told]").expect("there is memory");
            }
        }
    }

    /// Whether there is something to read, or the end.
    fn has_input(&self, connection: usize, side: usize) -> bool {
        let direction = self.connections[connection][1 - side];
        direction.has_ended || direction.read < direction.written
    }

    /// Reads everything, ends all connections, and notes how they have ended.
    fn finish(&mut self) {
        self.drain();
        for at in self.open_sockets() {
            let Some(socket) = &self.sockets[at] else { continue };
            let Some(number) = socket.registration.filter(|_| socket.awaits_room) else { continue };
            let peers = self.sockets.iter().flatten();
            let is_alone = peers.filter(|one| one.connection == socket.connection).count() < 2;
            let is_told = self.rig.context(|reports| reports.events[number].is_writable());
            assert!(
                is_alone || socket.cannot_write || is_told,
                "{at} is not told that there is room"
            );
        }
        for socket in self.sockets.iter_mut().flatten() {
            // It may have ended, or failed.
            let _result = socket.stream.shutdown(Shutdown::Write);
        }
        self.drain();
    }

    /// Reads everything that comes.
    fn drain(&mut self) {
        for round in 0..20 {
            for at in self.open_sockets() {
                let mut line = format!("finally {at}:");
                let Some(mut socket) = self.sockets[at].take() else { continue };
                if socket.handshake == Handshake::Completed {
                    self.read(&mut socket, usize::MAX, &mut line);
                }
                self.sockets[at] = Some(socket);
                if round == 19 {
                    self.history.push(line);
                }
            }
            self.settle();
        }
    }
}

fn is(result: &io::Result<()>, kind: ErrorKind) -> bool {
    result.as_ref().is_err_and(|error| error.kind() == kind)
}

fn note(line: &mut String, result: Result<(), &io::Error>) {
    match result {
        Ok(()) => *line += " ok",
        Err(error) => write!(line, " {:?}", error.kind()).expect("there is memory"),
    }
}
