//! The server on real sockets, on every loop: the client writes, then the loop runs a turn.

mod mixed;

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use rotor_core::net::{ListenOptions, Listener};
use rotor_core::{Config, Exit, Response};
use rotor_http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::loops::{End, ListenerOn, OnLoop, Rig, local, on_every_loop};
use crate::probe::{Probe, TestContext, get, post, request};
use crate::rules::{self, Rule};
use crate::wire::{take, transcript};

struct TestServer<L: OnLoop> {
    rig: Rig<HttpAccept<Probe, ListenerOn<L>>, L>,
    address: SocketAddr,
}

/// As many descriptors as the tests need at most.
const SOCKETS_MAX: u64 = 10_000;

/// Allows this process more descriptors than the 1,024 that are usual: several tests at a time hold
/// both ends of hundreds of connections.
fn allow_many_sockets() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // macOS allows this process no more than 10,240, even if the hard limit is infinite.
    let wanted = maximum.map_or(SOCKETS_MAX, |maximum| maximum.min(SOCKETS_MAX));
    if current.is_some_and(|current| current < wanted) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum })
            .expect("up to the hard limit");
    }
}

impl<L: OnLoop> TestServer<L> {
    fn new(config: ServerConfig) -> TestServer<L> {
        allow_many_sockets();
        let mut rig = Rig::new(&Config::new().machines_max(5_000), TestContext::default());
        let mut address = None;
        rig.add(|scope| {
            Response::attempt(|| {
                let listener = ListenerOn::<L>::bind(&local(), &ListenOptions::new(), scope)?;
                address = listener.local_address();
                Ok(server::listen(listener, HttpSeed::new((), config), scope))
            })
        });
        TestServer { rig, address: address.expect("the listener has an address") }
    }

    fn connect(&mut self) -> L::End {
        self.rig.connect(self.address)
    }

    /// Writes in pieces of `piece` bytes, with a turn of the loop after each. A server that has
    /// closed accepts no more.
    fn write(&mut self, end: &mut L::End, mut bytes: &[u8], piece: usize) {
        while !bytes.is_empty() {
            match end.write(&bytes[..piece.min(bytes.len())]) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
            self.rig.turn();
        }
    }

    /// Shuts down the client's side and reads to the end of the server's. A server that was sent
    /// more than it drains resets the connection after its answer.
    fn finish(&mut self, end: &mut L::End) -> Vec<u8> {
        let _closed_already = end.end();
        let (got, failed) = self.rig.hear(end, None);
        assert!(failed.is_none_or(|error| error.kind() == ErrorKind::ConnectionReset));
        got
    }

    /// The server's answer to these bytes followed by EOF.
    fn ask(&mut self, bytes: &[u8], piece: usize) -> Vec<u8> {
        let mut end = self.connect();
        self.write(&mut end, bytes, piece);
        self.finish(&mut end)
    }
}

on_every_loop!(a_server_keeps_every_rule);
fn a_server_keeps_every_rule<L: OnLoop>() {
    let mut served = TestServer::<L>::new(ServerConfig::new());
    for Rule { number, name, input, expected, .. } in rules::all() {
        // Each byte alone, unless the input is so long that the server would not wait for it.
        for piece in [usize::MAX, 1 + input.len() / 4_000] {
            let bytes = served.ask(&input, piece);
            assert_eq!(transcript(&bytes), expected, "{number} {name}, {piece} octets at once");
        }
    }
    served.rig.until(|rig| rig.machines() == 1);
}

on_every_loop!(an_honest_client_is_served_beside_hundreds_of_hostile_ones);
/// The hostile clients differ: they send nothing, half a head or half a body, request much and read
/// none of it, or pipeline requests.
fn an_honest_client_is_served_beside_hundreds_of_hostile_ones<L: OnLoop>() {
    let mut served = TestServer::<L>::new(ServerConfig::new());
    let hostile: [Vec<u8>; 6] = [
        Vec::new(),
        b"GET / HTTP/1.1\r\nHost".to_vec(),
        request("POST /", "Content-Length: 1000\r\n", "x"),
        get("/big"),
        get("/stream").repeat(20),
        get("/").repeat(2_000),
    ];
    let mut ends = Vec::new();
    for number in 0..300 {
        let mut end = served.connect();
        let _may_be_full = end.write(&hostile[number % hostile.len()]);
        ends.push(end);
    }
    let mut honest = served.connect();
    for _ in 0..50 {
        honest.write_all(&get("/honest")).expect("room for one request");
        let mut got = Vec::new();
        while take(&mut &got[..]).is_err() {
            served.rig.turn();
            let mut chunk = [0; 4096];
            if let Ok(count) = honest.read(&mut chunk) {
                got.extend_from_slice(&chunk[..count]);
            }
        }
        assert_eq!(transcript(&got), "200 GET /honest");
    }
    drop(ends);
}

on_every_loop!(requests_that_had_arrived_before_a_drain_are_answered);
fn requests_that_had_arrived_before_a_drain_are_answered<L: OnLoop>() {
    const CLIENTS: usize = 200;
    for is_accepted in [false, true] {
        let mut served = TestServer::<L>::new(ServerConfig::new());
        let mut ends: Vec<_> = (0..CLIENTS).map(|_| served.rig.begin(served.address)).collect();
        if is_accepted {
            served.rig.until(|rig| rig.machines() == 1 + CLIENTS);
        }
        for end in &mut ends {
            served.rig.until(|_| end.has_connected().expect("there is room in the queue"));
            end.write_all(&post("/order", "pay!")).expect("it fits");
        }
        served.rig.with(|instance| instance.handle().drain(Duration::from_secs(60)));
        for end in &mut ends {
            let answer = transcript(&served.finish(end));
            assert_eq!(answer, "200 POST /order pay! close", "accepted: {is_accepted}");
        }
        assert_eq!(served.rig.run(), Exit::Drained { dropped: 0 });
    }
}
