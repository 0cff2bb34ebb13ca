//! What stands for processes: loops that greet whoever connects, at a path of the test's own.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::thread::yield_now;
use std::time::{Duration, Instant};

use rotor_core::hand_over::{HandOver, HandOverError, RejectedSuccessors};
use rotor_core::net::{ListenOptions, Listener, TcpListener};
use rotor_core::threads::LoopGroup;
use rotor_core::{
    Config, EventSet, Exit, Infallible, Interest, Loop, Machine, Response, Scope, Time,
};
use rotor_test_kit::Directory;

/// How long is waited for what comes at once on a machine that does nothing else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Says a word to each who connects.
pub(crate) struct Greeter {
    /// None once it drains.
    listener: Option<TcpListener>,
    word: &'static str,
}

/// The word of one that takes all its time to drain.
pub(crate) const SLOW: &str = "slow";

impl Greeter {
    fn greet(&mut self) {
        while let Some(Ok((mut socket, _))) = self.listener.as_mut().map(Listener::accept) {
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

/// A directory of a test's own.
pub(crate) struct Place(pub(crate) Directory);

impl Place {
    pub(crate) fn new() -> Place {
        Place(Directory::create())
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.join("hand-over")
    }
}

/// What stands for a process: its loops.
pub(crate) struct Process {
    pub(crate) group: LoopGroup,
    pub(crate) address: SocketAddr,
}

pub(crate) const ANY: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// Makes the loops, and is not ready yet.
pub(crate) fn make_process(hand_over: &mut HandOver, loops: usize, word: &'static str) -> Process {
    let queues = hand_over.tcp("web", ANY, &ListenOptions::new(), loops).expect("a port is free");
    let address = queues.local_address();
    let group = LoopGroup::start(queues, move |listeners, _| {
        let mut creator = Loop::new(&Config::new())?;
        for listener in listeners {
            creator.add_machine_with(|scope| {
                Response::attempt(|| {
                    let mut listener = TcpListener::from_std(listener, scope)?;
                    scope.register(&mut listener, Interest::Readable)?;
                    Ok(Response::ok(Greeter { listener: Some(listener), word }))
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

/// One that serves, with so many loops.
pub(crate) fn start(place: &Place, loops: usize, word: &'static str) -> Process {
    let mut hand_over = at(place).expect("nobody is in the way");
    let process = make_process(&mut hand_over, loops, word);
    hand_over.ready(process.group.handle(), PATIENCE).expect("it serves");
    process
}

/// The same with one loop, and what counts those who do not follow it.
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

/// Whether nobody listens: a queue that is full and that nobody serves is something else.
pub(crate) fn is_refused(address: SocketAddr) -> bool {
    let connected = TcpStream::connect_timeout(&address, Duration::from_secs(1));
    connected.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// Waits until it is so.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        yield_now();
    }
}
