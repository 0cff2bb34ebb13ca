//! Random operations on some datagram sockets: what they return is equal on every loop, and whoever
//! has found nothing to receive is told of the next datagram.
//!
//! Left out is where loops may differ: how many datagrams fit into a queue, and on smoltcp whether a
//! peer receives, which is not told there.

use std::cell::Cell;
use std::fmt::Write as _;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::net as unix;
use std::path::PathBuf;

use rotor_core::net::DatagramSocket;
use rotor_core::{Config, EventSet, Interest, Notifier, Response, Scope};
use rotor_sim::net::SimUnixDatagram;
use rotor_test_kit::Directory;

use super::compare;
use super::settling::Settling;
use crate::actor::{Actor, Call, actor};
use crate::loops::{
    DatagramOn, Mio, OnKernel, OnLoop, OnSmoltcp, Rig, Simulated, UnixDatagramOn, local,
};

const SOCKETS: usize = 4;

/// How many datagrams wait at a socket at most: fewer than fit into the queue of a Unix socket.
const WAITING_MAX: usize = 5;

/// An operation on a socket, by its number.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Bind(usize),
    Drop(usize),
    /// To the socket of the second number, or to where it was; so many bytes.
    SendTo(usize, usize, usize),
    /// To the socket of the second number, or to where it was.
    Connect(usize, usize),
    Send(usize, usize),
    /// Into a buffer of so many bytes.
    Receive(usize, usize),
    Register(usize, Interest),
    Deregister(usize),
}

fn operations(seed: u64, may_connect: bool) -> Vec<Operation> {
    use Operation::{Bind, Connect, Deregister, Drop, Receive, Register, Send, SendTo};
    let mut random = fastrand::Rng::with_seed(seed);
    let mut operations: Vec<_> = (0..SOCKETS).map(Bind).collect();
    for _ in 0..random.usize(10..60) {
        let (at, to) = (random.usize(..SOCKETS), random.usize(..SOCKETS));
        let bytes = random.usize(0..1_000) >> random.u32(0..11);
        operations.push(match random.u32(0..100) {
            0..4 => Bind(at),
            4..8 => Drop(at),
            8..38 => SendTo(at, to, bytes),
            38..44 if may_connect => Connect(at, to),
            44..58 if may_connect => Send(at, bytes),
            38..85 => Receive(at, if random.bool() { bytes } else { 2_000 }),
            85..89 => Register(at, Interest::Readable),
            89 => Register(at, Interest::Writable),
            90..96 => Register(at, Interest::Both),
            _ => Deregister(at),
        });
    }
    operations
}

/// The events of each socket, by the number of its registration.
#[derive(Default)]
struct Reports {
    events: Vec<EventSet>,
    notifier: Option<Notifier>,
}

struct Socket<D> {
    socket: D,
    /// The number of its registration, if it has one for reading.
    registration: Option<usize>,
    /// A receive has found nothing, or it was just registered: the next datagram is reported.
    awaits_input: bool,
    /// It is connected only once: a Unix socket loses what waits if it gets another peer.
    is_connected: bool,
}

struct World<L: OnLoop, D: DatagramSocket> {
    rig: Rig<Actor<Reports>, L>,
    sockets: [Option<Socket<D>>; SOCKETS],
    /// Where each socket is, or was last.
    known: [Option<D::Address>; SOCKETS],
    /// How many datagrams wait at each socket, at most.
    waiting: [usize; SOCKETS],
    sent: u8,
}

/// Plays operations, and returns what has happened, line by line. `address` makes the address of a
/// new socket; `name` returns what is equal for equal addresses.
fn play<L: OnLoop, D: DatagramSocket>(
    operations: &[Operation],
    settling: Settling,
    address: impl Fn() -> D::Address,
    name: impl Fn(&D::Address) -> String,
) -> Vec<String> {
    let mut rig = Rig::<Actor<Reports>, L>::new(&Config::new(), Reports::default());
    rig.add(|scope| {
        scope.notifier = Some(scope.notifier());
        Response::ok(actor(|_, _| Response::keep(())))
    });
    let (sockets, known) = Default::default();
    let mut world = World::<L, D> { rig, sockets, known, waiting: [0; SOCKETS], sent: 0 };
    let play_one = |operation: &Operation| {
        let mut line = format!("{operation:?}:");
        match *operation {
            Operation::Bind(at) if world.sockets[at].is_none() => world.bind(at, &address()),
            Operation::Receive(at, room) => world.receive(at, room, &name, &mut line),
            other => world.operate(other, &mut line),
        }
        world.settle(settling);
        line
    };
    operations.iter().map(play_one).collect()
}

impl<L: OnLoop, D: DatagramSocket> World<L, D> {
    fn bind(&mut self, at: usize, address: &D::Address) {
        let (bound, _) = self.ask(|scope| D::bind(address, scope));
        let socket = bound.expect("it is free");
        self.known[at] = socket.local_address().ok();
        self.waiting[at] = 0;
        let (registration, awaits_input, is_connected) = (None, false, false);
        self.sockets[at] = Some(Socket { socket, registration, awaits_input, is_connected });
    }

    /// Does an operation of a socket that is there.
    fn operate(&mut self, operation: Operation, line: &mut String) {
        use Operation::{Bind, Connect, Deregister, Drop, Receive, Register, Send, SendTo};
        let (Bind(at)
        | Drop(at)
        | SendTo(at, ..)
        | Connect(at, _)
        | Send(at, _)
        | Receive(at, _)
        | Register(at, _)
        | Deregister(at)) = operation;
        let Some(mut socket) = self.sockets[at].take() else { return };
        match operation {
            Drop(_) => return,
            SendTo(_, to, bytes) if self.waiting[to] < WAITING_MAX => {
                let datagram = self.next_datagram(bytes);
                if let Some(target) = &self.known[to] {
                    self.waiting[to] += 1;
                    note(line, socket.socket.send_to(&datagram, target));
                }
            }
            Connect(_, to) if !socket.is_connected => {
                if let Some(peer) = &self.known[to] {
                    let connected = socket.socket.connect(peer);
                    socket.is_connected = connected.is_ok();
                    note(line, connected.map(|()| 0));
                }
            }
            Send(_, bytes) if self.waiting.iter().all(|waiting| *waiting < WAITING_MAX) => {
                let datagram = self.next_datagram(bytes);
                self.waiting.iter_mut().for_each(|waiting| *waiting += 1);
                note(line, socket.socket.send(&datagram));
            }
            Register(_, interest) => {
                let (done, number) = self.ask(|scope| scope.register(&mut socket.socket, interest));
                if done.is_ok() {
                    socket.awaits_input = interest.is_readable();
                    socket.registration = socket.awaits_input.then_some(number);
                }
                note(line, done.map(|()| 0));
            }
            Deregister(_) => {
                let (done, _) = self.ask(|scope| scope.deregister(&mut socket.socket));
                (socket.registration, socket.awaits_input) = (None, false);
                note(line, done.map(|()| 0));
            }
            Bind(_) | Receive(..) | SendTo(..) | Connect(..) | Send(..) => {}
        }
        self.sockets[at] = Some(socket);
    }

    fn next_datagram(&mut self, bytes: usize) -> Vec<u8> {
        self.sent = self.sent.wrapping_add(1);
        vec![self.sent; bytes]
    }

    fn receive(
        &mut self,
        at: usize,
        room: usize,
        name: impl Fn(&D::Address) -> String,
        line: &mut String,
    ) {
        let Some(socket) = &mut self.sockets[at] else { return };
        let mut buffer = vec![0; room];
        let received = socket.socket.receive_from(&mut buffer);
        let is_told = socket.registration.is_none_or(|number| {
            self.rig.context(|reports| std::mem::take(&mut reports.events[number])).is_readable()
        });
        let is_nothing = received.as_ref().is_err_and(|e| e.kind() == ErrorKind::WouldBlock);
        // Events may be spurious.
        if socket.awaits_input && !is_told && !is_nothing {
            *line += " [not told]";
        }
        socket.awaits_input = is_nothing && socket.registration.is_some();
        self.waiting[at] = if is_nothing { 0 } else { self.waiting[at].saturating_sub(1) };
        if let Ok((len, from)) = &received {
            let is_from = |known: &D::Address| name(known) == name(from);
            let from = self.known.iter().position(|known| known.as_ref().is_some_and(is_from));
            write!(line, " {:?} from {from:?}", buffer[..*len].first()).expect("there is memory");
        }
        note(line, received.map(|(len, _)| len));
    }

    /// Takes turns until nothing moves any more.
    fn settle(&mut self, settling: Settling) {
        for _ in 0..settling.turns {
            if settling.only_polls {
                self.rig.context(|reports| reports.notifier.as_ref().map(Notifier::wakeup));
            }
            self.rig.turn();
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
}

fn note(line: &mut String, result: io::Result<usize>) {
    match result {
        Ok(count) => write!(line, " {count}"),
        // `EDESTADDRREQ` (errno(3)) has no kind: a socket of UDP without a peer.
        Err(error) if matches!(error.raw_os_error(), Some(89 | 39)) => {
            write!(line, " NotConnected")
        }
        Err(error) => write!(line, " {:?}", error.kind()),
    }
    .expect("there is memory");
}

fn at_address<L: OnLoop>(operations: &[Operation], settling: Settling) -> Vec<String> {
    play::<L, DatagramOn<L>>(operations, settling, local, SocketAddr::to_string)
}

fn at_path<L: OnKernel>(operations: &[Operation], settling: Settling) -> Vec<String> {
    let (directory, count) = (Directory::create(), Cell::new(0));
    let address = || {
        count.set(count.get() + 1);
        let path = directory.join(count.get().to_string());
        unix::SocketAddr::from_pathname(path).expect("it is short")
    };
    let name = |address: &unix::SocketAddr| format!("{address:?}");
    play::<L, UnixDatagramOn<L>>(operations, settling, address, name)
}

fn at_simulated_path(operations: &[Operation], settling: Settling) -> Vec<String> {
    let count = Cell::new(0);
    let address = || {
        count.set(count.get() + 1);
        PathBuf::from(format!("/run/{}", count.get()))
    };
    let name = |path: &PathBuf| path.display().to_string();
    play::<Simulated, SimUnixDatagram>(operations, settling, address, name)
}

fn any(seed: u64) -> Vec<Operation> {
    operations(seed, true)
}

#[cfg(target_os = "linux")]
#[test]
fn random_datagram_operations_return_the_same_on_io_uring_as_on_mio() {
    use crate::loops::OnUring;
    match <OnUring as OnLoop>::refusal() {
        Some(refusal) => eprintln!("skipped: {refusal}"),
        None => {
            compare(any, at_address::<Mio>, at_address::<OnUring>, Settling::ON_KERNEL);
            compare(any, at_path::<Mio>, at_path::<OnUring>, Settling::ON_KERNEL);
        }
    }
}

#[test]
fn random_datagram_operations_return_the_same_on_smoltcp_as_on_mio() {
    let unconnected = |seed| operations(seed, false);
    let on_smoltcp = at_address::<OnSmoltcp>;
    compare(unconnected, at_address::<Mio>, on_smoltcp, Settling::IN_VIRTUAL_TIME);
}

#[test]
fn random_datagram_operations_return_the_same_in_the_simulator_as_on_mio() {
    let simulated = at_address::<Simulated>;
    compare(any, at_address::<Mio>, simulated, Settling::IN_VIRTUAL_TIME);
    compare(any, at_path::<Mio>, at_simulated_path, Settling::IN_VIRTUAL_TIME);
}
