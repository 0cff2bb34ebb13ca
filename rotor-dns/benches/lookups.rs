//! What a lookup costs: known already; and asked of a server on loopback that answers at once.
//!
//! ```text
//! # 100,000 of each if no number is given; 1,000 with `--test`
//! cargo bench -p rotor-dns --bench lookups [LOOKUPS]
//! ```
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench reads the clock, runs a server and prints"
)]

use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::Instant;

use rotor_core::net::Inet;
use rotor_core::{Compose2, Config, Future, Infallible, Loop, Machine, Outcome, Response, Scope};
use rotor_dns::{Dns, Kind, LookupResult, Question, ResolvConf, Resolver, ResolverConfig};

/// How many lookups are in flight at a time.
const IN_FLIGHT: usize = 16;

struct Context {
    dns: Dns,
    started: usize,
    ended: usize,
    failed: usize,
    lookups: usize,
    /// Whether each lookup is for another name.
    is_new: bool,
}

struct Asker(Vec<Future<LookupResult>>);

impl Machine for Asker {
    type Context = Context;
    type Seed = Infallible;
    fn timeout(self, scope: &mut Scope<'_, Context>) -> Response<Self, Infallible> {
        self.wakeup(scope)
    }
    fn wakeup(mut self, scope: &mut Scope<'_, Context>) -> Response<Self, Infallible> {
        for future in std::mem::take(&mut self.0) {
            match future.take() {
                Outcome::Pending(future) => {
                    self.0.push(future);
                    continue;
                }
                Outcome::Value(Ok(_)) => {}
                Outcome::Value(Err(_)) | Outcome::Lost(_) => scope.failed += 1,
            }
            scope.ended += 1;
        }
        while self.0.len() < IN_FLIGHT && scope.started < scope.lookups {
            let number = if scope.is_new { scope.started } else { 0 };
            let name = format!("h{number}.example").parse().expect("a name");
            self.0.extend(scope.dns.records().ask(Question { name, kind: Kind::A }, scope).ok());
            scope.started += 1;
        }
        if scope.ended == scope.lookups {
            scope.stop_loop();
        }
        Response::ok(self)
    }
}

fn main() {
    let is_smoke = std::env::args().any(|argument| argument == "--test");
    let default = if is_smoke { 1_000 } else { 100_000 };
    let lookups = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(default);
    let server = serve();
    for (what, is_new) in [("known already", false), ("asked of a server on loopback", true)] {
        let mut creator =
            Loop::<Compose2<Resolver<Inet, Context>, Asker>>::new(&Config::new()).expect("a loop");
        let config = ResolverConfig::new(ResolvConf::default()).servers(vec![server]);
        let mut dns = None;
        let added = creator.add_machine_with(|scope| {
            let (handle, response) = Resolver::new(config, scope);
            dns = Some(handle);
            response.wrap(Compose2::A)
        });
        added.expect("a slot is free");
        creator
            .add_machine_with(|scope| {
                Response::ok(Compose2::B(Asker(Vec::new()))).deadline(scope.now())
            })
            .expect("a slot is free");
        let dns = dns.expect("made above");
        let mut instance =
            creator.instantiate(Context { dns, started: 0, ended: 0, failed: 0, lookups, is_new });
        let started = Instant::now();
        instance.run().expect("the loop is sound");
        let each = started.elapsed().as_nanos() / lookups.max(1) as u128;
        let Context { ended, failed, .. } = instance.into_context();
        println!("{what}: {ended} lookups, {failed} failed, {each} ns each, {IN_FLIGHT} in flight");
        assert_eq!((ended, failed), (lookups, 0));
    }
}

/// Answers every question with one address, for a minute.
fn serve() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = socket.local_addr().expect("bound");
    thread::spawn(move || {
        let mut message = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut message) {
            let (head, record) =
                ([0x81, 0x80, 0, 1, 0, 1], b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\x7f\0\0\x01");
            message[2..8].copy_from_slice(&head);
            message[length..length + record.len()].copy_from_slice(record);
            // What is lost is asked for again.
            let _ = socket.send_to(&message[..length + record.len()], from);
        }
    });
    address
}
