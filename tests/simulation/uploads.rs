//! Many large bodies are collected in memory at the same time: how much of them one turn reads,
//! which is how long a small request has to wait, and how much of them is held.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

use rotor::http::server::{
    self, Head, HttpAccept, HttpSeed, Next, NoUpgrade, RecvMode, Server, ServerConfig,
};
use rotor::http::{Limits, Status};
use rotor::net::{ListenOptions, Listener};
use rotor::stream::Accept;
use rotor::{BoxError, Response, Scope};
use rotor_sim::net::{SimTcpListener, SimTcpStream};
use rotor_sim::{Check, Fault, Network, Script, Sim, Watched, WorkBounds};

use crate::stage::{self, Clients, PORT};

const UPLOADS: u64 = 16;
const BODY: usize = 500_000;

/// By how much the last read of a budget may exceed it: a large read of four blocks.
const ROOM: u64 = 64 << 10;

/// Responds with the length of the body.
struct Count;

impl Server for Count {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        (): (),
        _: &Head<'_>,
        _: &mut server::Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        Next::recv(Count, RecvMode::Buffered(BODY)).keep_deadline()
    }

    fn request_received(
        self,
        body: &[u8],
        response: &mut server::Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        let text = format!("{} octets.", body.len());
        response.reply(Status::OK, "text/plain", text.as_bytes()).into()
    }
}

/// Requests whose bodies have the length `len`.
fn script(requests: u32, len: usize) -> Script {
    let refusals = [&b"HTTP/1.1 408"[..], b"HTTP/1.1 503"];
    let mut script =
        refusals.iter().fold(stage::persistent_script(), |script, at| script.may_refuse(at));
    for _ in 0..requests {
        let mut request =
            format!("POST / HTTP/1.1\r\nHost: server\r\nContent-Length: {len}\r\n\r\n")
                .into_bytes();
        request.resize(request.len() + len, b'x');
        script = script.send(&request).expect(b"HTTP/1.1 200 OK\r\n").receive_until(b"\r\n\r\n");
        script = script.expect(format!("{len} octets.").as_bytes());
    }
    script.shutdown().expect_end()
}

/// The maxima of a scenario: bytes read in a turn, and body bytes held at any time.
#[derive(Debug)]
struct Most {
    read: u64,
    held: usize,
}

fn scenario(sim: &mut Sim, budget: usize) -> Result<Most, BoxError> {
    let config = move || {
        let limits = Limits::new().body_rate_min(0).response_rate_min(0);
        ServerConfig::new().limits(limits).collect_budget(budget)
    };
    let bodies = config().bodies_held();
    let of_server = bodies.clone();
    let server = sim.host("server", move |boot| {
        let mut creator = boot.new_loop()?;
        let address = SocketAddr::new(boot.address(), PORT);
        let seed = HttpSeed::<Count>::new((), config().bodies_with(of_server.clone()));
        creator.add_machine_with(|scope| {
            Watched::<HttpAccept<Count, SimTcpListener>>::make(scope, |scope| {
                match SimTcpListener::bind(&address, &ListenOptions::new(), scope) {
                    Ok(listener) => Accept::listen(listener, seed, stage::patient(), scope),
                    Err(error) => Response::error(error),
                }
            })
        })?;
        Ok(creator.instantiate(()))
    })?;
    let of_a_call = budget.max(64 << 10) as u64 + ROOM;
    let bounds = WorkBounds::new().read_per_call(of_a_call);
    // Includes the small requests, which are read once per turn.
    sim.bound_work(server, bounds.read_per_turn(UPLOADS * of_a_call + ROOM));
    let held = Rc::new(Cell::new(0));
    let seen = held.clone();
    sim.always("what bodies hold is seen", move |_| {
        seen.set(seen.get().max(bodies.bytes()));
        Ok(())
    });
    let mut clients = Clients::<SimTcpStream>::of(sim, server)?;
    for _ in 0..UPLOADS {
        clients.add(sim, script(2, BODY));
    }
    clients.add(sim, script(50, 10));
    stage::play(sim, server, &clients)?;
    Ok(Most { read: sim.most_of_turns(server).read, held: held.get() })
}

#[test]
fn a_turn_reads_collected_bodies_within_their_budget() {
    Check::new().seeds(stage::SEEDS.min(20)).run(|sim| {
        let budget = [1, 100_000, 512 << 10][sim.seed() as usize % 3];
        // A narrower window would make the upload take hours.
        let window = (64 << 10) << (sim.seed() % 5);
        sim.set_network(Network::new().window(window).draining(0.5));
        scenario(sim, budget).map(drop)
    });
}

/// The cost and the benefit of a larger budget: all bodies have arrived when the server first
/// polls.
#[test]
fn a_larger_budget_makes_longer_turns_and_less_is_held() {
    let run = |budget: usize| {
        let most = Cell::new(None);
        Check::new().seeds(1).calm().run(|sim| {
            sim.set_network(Network::new().window(1 << 20).draining(1.0));
            sim.set_faults(sim.faults().set(Fault::Gather, 1.0));
            most.set(Some(scenario(sim, budget)?));
            Ok(())
        });
        most.take().expect("it ran")
    };
    let (small, large) = (run(64 << 10), run(512 << 10));
    assert!(large.read > 4 * small.read, "{small:?} {large:?}");
    assert!(large.held < small.held / 4, "{small:?} {large:?}");
}
