//! Stand-ins for processes: loops that greet each client, and a hand-over path for each test.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rotor_core::hand_over::{HandOver, HandOverError, RejectedSuccessors};
use rotor_core::net::{ListenOptions, Listener, TcpListener};
use rotor_core::threads::LoopGroup;
use rotor_core::{
    Config, EventSet, Exit, Infallible, Interest, Loop, Machine, Response, Scope, Time,
};
pub(crate) use rotor_test_kit::PATIENCE;
use rotor_test_kit::{Directory, until};

/// Sends a word to each client.
pub(crate) struct Greeter {
    /// `None` once it drains.
    listener: Option<TcpListener>,
    word: &'static str,
    gate: SharedGate,
}

/// Makes the handler wait that accepts the first client of a process.
pub(crate) struct Gate {
    /// Tells that it waits.
    pub(crate) began: Sender<()>,
    /// Until this is dropped at the other end.
    pub(crate) end: Receiver<()>,
}

/// The gate of a process, until a handler has passed it.
type SharedGate = Arc<Mutex<Option<Gate>>>;

/// The word of a greeter that uses up all of its time to drain.
pub(crate) const SLOW: &str = "slow";

impl Greeter {
    fn greet(&mut self) {
        while let Some(Ok((mut socket, _))) = self.listener.as_mut().map(Listener::accept) {
            let gate = self.gate.lock().expect("nobody panics with it").take();
            if let Some(Gate { began, end }) = gate {
                let _ = began.send(());
                let _ = end.recv();
            }
            let _gone = socket.write(self.word.as_bytes());
        }
    }
}

impl Machine for Greeter {
    type Context = ();
    type Seed = Infallible;

    fn ready(mut self, _: EventSet, _: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        self.greet();
        Response::keep(self)
    }

    fn draining(mut self, _: Time, _: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        self.greet();
        self.listener = None;
        if self.word == SLOW { Response::keep(self) } else { Response::done() }
    }
}

/// A directory for one test.
pub(crate) struct Place(pub(crate) Directory);

impl Place {
    pub(crate) fn new() -> Place {
        Place(Directory::create())
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.join("hand-over")
    }
}

/// Stands for a process: a group of loops.
pub(crate) struct Process {
    pub(crate) group: LoopGroup,
    pub(crate) address: SocketAddr,
}

pub(crate) const ANY: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// Makes the loops, but does not report ready yet.
pub(crate) fn make_process(hand_over: &mut HandOver, loops: usize, word: &'static str) -> Process {
    make_process_with(hand_over, loops, word, SharedGate::default())
}

/// The same, with a gate for the loop that accepts first.
pub(crate) fn make_process_with(
    hand_over: &mut HandOver,
    loops: usize,
    word: &'static str,
    gate: SharedGate,
) -> Process {
    let queues = hand_over.tcp("web", ANY, &ListenOptions::new(), loops).expect("a port is free");
    let address = queues.local_address();
    let group = LoopGroup::start(queues, move |listeners, _| {
        let mut creator = Loop::new(&Config::new())?;
        for listener in listeners {
            creator.add_machine_with(|scope| {
                Response::attempt(|| {
                    let mut listener = TcpListener::from_std(listener, scope)?;
                    scope.register(&mut listener, Interest::Readable)?;
                    let gate = gate.clone();
                    Ok(Response::ok(Greeter { listener: Some(listener), word, gate }))
                })
            })?;
        }
        Ok(creator.instantiate(()))
    });
    Process { group: group.expect("threads are left"), address }
}

pub(crate) fn at(place: &Place) -> Result<HandOver, HandOverError> {
    HandOver::at(place.path())
}

/// A process that serves with this many loops.
pub(crate) fn start(place: &Place, loops: usize, word: &'static str) -> Process {
    let mut hand_over = at(place).expect("nobody is in the way");
    let process = make_process(&mut hand_over, loops, word);
    hand_over.ready(process.group.handle(), PATIENCE).expect("it serves");
    process
}

/// The same with one loop; also returns the counter of rejected successors.
pub(crate) fn start_counting(
    place: &Place,
    ready_within: Duration,
) -> (Process, RejectedSuccessors) {
    let mut hand_over = at(place).expect("nobody is in the way").ready_within(ready_within);
    let (process, rejected_successors) =
        (make_process(&mut hand_over, 1, "1"), hand_over.rejected_successors());
    hand_over.ready(process.group.handle(), PATIENCE).expect("it serves");
    (process, rejected_successors)
}

impl Process {
    /// Waits until it has drained by itself.
    pub(crate) fn wait_until_drained(self) {
        for exit in self.group.join() {
            assert_eq!(exit.expect("it can wait"), Exit::Drained { dropped: 0 });
        }
    }

    pub(crate) fn end(self) {
        self.group.handle().drain(PATIENCE);
        self.wait_until_drained();
    }
}

pub(crate) fn greeting(address: SocketAddr) -> String {
    let mut text = String::new();
    let mut socket = TcpStream::connect(address).expect("somebody listens");
    socket.read_to_string(&mut text).expect("it is greeted");
    text
}

/// Whether nobody listens. A full backlog that nobody accepts from does not count.
pub(crate) fn is_refused(address: SocketAddr) -> bool {
    let connected = TcpStream::connect_timeout(&address, Duration::from_secs(1));
    connected.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// Waits until the condition holds.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    until(what, || is_so().then_some(()));
}
