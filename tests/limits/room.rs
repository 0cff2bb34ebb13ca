//! Silent clients take all slots, all places of a listener or all descriptors. Others are served
//! nevertheless.
//!
//! This is a separate program, because the limit of descriptors applies to the whole process.
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "clients with plain sockets, outside of any loop")]

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use rotor::http::Status;
use rotor::http::server::{
    Head, HttpAccept, HttpSeed, Next, NoUpgrade, Response, Scope, Server, ServerConfig,
};
use rotor::net::{ListenOptions, TcpListener};
use rotor::stream::{Accept, AcceptConfig};
use rotor::{Config, Loop, LoopInstance};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How many connections there is room for.
const ROOM: usize = 60;
/// How many silent connections exist before the first honest client connects.
const SILENT: usize = 100;
const HONEST: usize = 20;
/// The maximum number of turns until an honest client is answered while others go on connecting.
const FEW_TURNS: usize = 20;

struct Hello;

impl Server for Hello {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        _: (),
        _: &Head<'_>,
        answer: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        answer.send(Status::OK, "text/plain", b"hello").expect("an answer");
        Next::finished()
    }
}

type App = HttpAccept<Hello, TcpListener>;

struct Test {
    instance: LoopInstance<App>,
    address: SocketAddr,
    /// The silent connections that take the resource.
    silent: Vec<TcpStream>,
    /// Keeps descriptors in use so that nobody else can have them.
    taken: Vec<File>,
}

impl Test {
    fn new(config: Config, accept: AcceptConfig) -> Test {
        // Any silent connection may be closed, however short its silence: nothing here waits for
        // time to pass. Pauses are so long that the tests cannot succeed because of one.
        let accept = accept.idle_min(Duration::ZERO).pause(Duration::from_secs(3_600));
        let mut creator = Loop::<App>::new(&config).expect("a loop");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let seed = HttpSeed::new((), ServerConfig::new());
        creator
            .add_machine_with(|scope| {
                Accept::bind(&address, &ListenOptions::new(), seed, accept, scope)
            })
            .expect("a listener");
        let mut instance = creator.instantiate(());
        let address = instance.machines().iter().find_map(|(_, machine)| machine.local_address());
        Test {
            instance,
            address: address.expect("an address"),
            silent: Vec::new(),
            taken: Vec::new(),
        }
    }

    fn connect(&mut self) -> TcpStream {
        // If no descriptors are left, this frees one for the client.
        self.taken.pop();
        let client = TcpStream::connect(self.address).expect("the listener listens");
        client.set_nonblocking(true).expect("a socket");
        client
    }

    fn connect_silent(&mut self, count: usize) {
        for _ in 0..count {
            let client = self.connect();
            self.silent.push(client);
        }
    }

    fn turn(&mut self) {
        // The wait has a short timeout, in case the kernel is late.
        self.instance.turn(Some(Duration::from_millis(100))).expect("a turn");
    }

    /// Uses up all descriptors except `left`.
    fn leave_descriptors(&mut self, left: usize) {
        while let Ok(file) = File::open("/dev/null") {
            self.taken.push(file);
        }
        self.taken.truncate(self.taken.len() - left);
    }

    /// Each silent client has been accepted at some time. After that each honest client is answered
    /// soon.
    fn check_honest_clients(mut self, what: &str) {
        let stats = self.instance.stats();
        for _ in 0..2_000 {
            if stats.read().spawned == 1 + SILENT as u64 {
                break;
            }
            self.turn();
        }
        let filled = stats.read();
        assert_eq!(filled.spawned, 1 + SILENT as u64, "{what}: {filled:?}");
        assert!(filled.alive <= 1 + ROOM as u64, "{what}: {filled:?}");
        for number in 0..HONEST {
            self.connect_silent(2);
            let mut client = self.connect();
            self.connect_silent(2);
            client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("the system takes it");
            let turns = (0..FEW_TURNS).find(|_| {
                self.turn();
                is_answered(&mut client)
            });
            assert!(turns.is_some(), "{what}: client {number} waits: {:?}", stats.read());
        }
        let end = stats.read();
        assert!(end.made_room >= HONEST as u64, "{what}: {end:?}");
        assert_eq!((end.failed, end.panicked), (0, 0), "{what}");
    }
}

fn is_answered(client: &mut TcpStream) -> bool {
    let mut answer = [0; 512];
    match client.read(&mut answer) {
        Ok(count) => {
            assert!(answer[..count].ends_with(b"hello"), "an answer, not an end");
            true
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
            false
        }
    }
}

#[test]
fn honest_clients_are_served_in_a_few_turns_despite_many_silent_ones() {
    let mut slots = Test::new(Config::new().machines_max(1 + ROOM), AcceptConfig::new());
    slots.connect_silent(SILENT);
    slots.check_honest_clients("slots");

    let mut places = Test::new(Config::new(), AcceptConfig::new().connections_max(ROOM));
    places.connect_silent(SILENT);
    places.check_honest_clients("places of a listener");

    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(512), maximum }).expect("a lower limit");
    let mut descriptors = Test::new(Config::new(), AcceptConfig::new());
    descriptors.connect_silent(SILENT);
    descriptors.leave_descriptors(ROOM);
    descriptors.check_honest_clients("descriptors");
}
