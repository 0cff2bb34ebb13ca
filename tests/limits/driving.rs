//! Loops that are driven turn by turn, and their clients.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rotor::net::{ListenOptions, Listener, TcpListener};
use rotor::{Config, Loop, LoopInstance, Machine, Response, Stats, Time};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::echo::{CountsEchoes, EchoServer};

/// How long a test waits before it gives up. It is far longer than anything here takes, so it does
/// not measure speed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(100);

/// More turns than any test here needs, unless the loop spins.
const TURNS_MAX: usize = 2_000;

/// As many descriptors as the tests need at most.
const SOCKETS_MAX: u64 = 10_000;

/// Tells a loop that spins from one that works: it must be idle this many turns after the last
/// event.
const TURNS_TO_IDLE: usize = 10;

/// Allows this process more descriptors than the 1,024 that are usual: several tests at a time hold
/// both ends of hundreds of connections.
pub(crate) fn allow_many_sockets() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // macOS allows this process no more than 10,240, even if the hard limit is infinite.
    let wanted = maximum.map_or(SOCKETS_MAX, |maximum| maximum.min(SOCKETS_MAX));
    if current.is_some_and(|current| current < wanted) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum })
            .expect("up to the hard limit");
    }
}

#[derive(Default)]
pub(crate) struct Total {
    pub(crate) bytes: usize,
}

impl CountsEchoes for Total {
    fn received(&mut self, bytes: usize) {
        self.bytes += bytes;
    }
}

/// A loop with `count` echo servers, each on its own address.
pub(crate) fn echo_servers(
    config: &Config,
    count: usize,
) -> (LoopInstance<EchoServer<Total, TcpListener>>, Vec<SocketAddr>) {
    allow_many_sockets();
    let mut creator = Loop::new(config).expect("a descriptor is left");
    let mut addresses = Vec::new();
    for _ in 0..count {
        let added = creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let any = (Ipv4Addr::LOCALHOST, 0).into();
                let listener = TcpListener::bind(&any, &ListenOptions::new(), scope)?;
                addresses.extend(listener.local_address());
                Ok(Response::ok(EchoServer::listen(listener, scope)?))
            })
        });
        added.expect("a free port");
    }
    (creator.instantiate(Total::default()), addresses)
}

/// Takes turns until `done` holds. Returns how many.
pub(crate) fn drive<M: Machine>(
    instance: &mut LoopInstance<M>,
    mut done: impl FnMut() -> bool,
) -> usize {
    let began = Instant::now();
    for turn in 0..TURNS_MAX {
        if done() {
            return turn;
        }
        assert!(began.elapsed() < PATIENCE, "it never happens: {:?}", instance.stats());
        // The wait has a short timeout, in case the kernel is late. The condition decides.
        let ended = instance.turn(Some(Duration::from_millis(100))).expect("the backend waits");
        assert_eq!(ended, None, "the loop has ended");
    }
    panic!("it spins: not done after {TURNS_MAX} turns: {:?}", instance.stats());
}

/// Takes turns without waiting until nothing is left to do. Fails if the loop never gets there.
pub(crate) fn run_until_idle<M: Machine>(instance: &mut LoopInstance<M>) -> Stats {
    let stats = instance.stats();
    for _ in 0..TURNS_TO_IDLE {
        let before = work_count(&stats.read());
        instance.turn(Some(Duration::ZERO)).expect("the backend waits");
        let rests = instance.next_deadline().unwrap_or(Time::NEVER) > instance.now();
        if rests && work_count(&stats.read()) == before {
            return stats.read();
        }
    }
    panic!("it spins: {:?}", stats.read());
}

fn work_count(stats: &Stats) -> u64 {
    stats.events + stats.wakeups + stats.timeouts + stats.stale
}

/// A client that never blocks.
pub(crate) struct Client {
    socket: TcpStream,
}

impl Client {
    /// Connects. The kernel completes the handshake whether or not the server has accepted.
    pub(crate) fn connect(address: SocketAddr) -> Client {
        let socket = TcpStream::connect(address).expect("the listener is open");
        socket.set_nonblocking(true).expect("a socket");
        Client { socket }
    }

    /// Connects and sends a request.
    pub(crate) fn ask(address: SocketAddr) -> Client {
        let mut client = Client::connect(address);
        client.socket.write_all(b"?").expect("the system takes it");
        client
    }

    /// Whether there is input, EOF or an error.
    pub(crate) fn is_answered(&self) -> bool {
        !matches!(self.socket.peek(&mut [0]), Err(e) if e.kind() == ErrorKind::WouldBlock)
    }

    /// Checks that the response equals the request.
    pub(crate) fn check_answer(&mut self) {
        let mut answer = [0; 2];
        let length = self.socket.read(&mut answer).expect("an answer, not a reset");
        assert_eq!(&answer[..length], b"?", "an answer, not an end");
    }

    pub(crate) fn is_ended(&mut self) -> bool {
        matches!(self.socket.read(&mut [0]), Ok(0))
    }

    /// Writes until the kernel takes no more. Returns how many bytes it took.
    pub(crate) fn flood(&mut self) -> usize {
        let mut sent = 0;
        loop {
            match self.socket.write(&[b'.'; 65_536]) {
                Ok(count) => sent += count,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return sent,
                Err(e) => panic!("{e}"),
            }
        }
    }
}

/// Removes the clients with a response from `waiting` and returns them.
pub(crate) fn take_answered(waiting: &mut Vec<Client>) -> Vec<Client> {
    let (mut answered, left): (Vec<Client>, Vec<Client>) =
        std::mem::take(waiting).into_iter().partition(Client::is_answered);
    *waiting = left;
    answered.iter_mut().for_each(Client::check_answer);
    answered
}
