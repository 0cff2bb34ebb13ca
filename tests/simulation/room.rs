//! A server with few slots, and silent clients that connect again and again. Clients with requests
//! are served nevertheless, even though no deadline of the connections passes meanwhile.

use std::net::SocketAddr;
use std::time::Duration;

use rotor::http::Limits;
use rotor::http::server::{HttpAccept, HttpSeed, ServerConfig};
use rotor::net::ListenOptions;
use rotor::stream::{Accept, AcceptConfig};
use rotor::{BoxError, Loop};
use rotor_sim::net::{SimTcpListener, SimTcpStream};
use rotor_sim::{Check, Host, Script, Sim, Watched};

use crate::examples::hello::hello as answer;
use crate::hello::{self, Hello};
use crate::stage::{self, Clients, PORT};

/// Slots for connections.
const SLOTS: usize = 4;
const SILENT: u32 = 2 * SLOTS as u32;
const HONEST: u32 = 4;
/// Longer than any run: no client is admitted because another has waited too long.
const FOR_EVER: Duration = Duration::from_secs(1_000_000);

type Server = HttpAccept<Hello, SimTcpListener>;

fn serve(sim: &mut Sim) -> Result<Host<Watched<Server>>, BoxError> {
    let host = sim.host("server", |boot| {
        let config = boot.config().machines_max(SLOTS + 1);
        let mut creator = Loop::<Watched<Server>, _>::with_backend(boot.backend(), &config)?;
        let address = SocketAddr::new(boot.address(), PORT);
        creator.add_machine_with(|scope| {
            Watched::make(scope, |scope| {
                let config = ServerConfig::new().limits(Limits::new().idle_timeout(FOR_EVER));
                let seed = HttpSeed::<Hello>::new(answer, config);
                Accept::bind(&address, &ListenOptions::new(), seed, AcceptConfig::new(), scope)
            })
        })?;
        Ok(creator.instantiate(()))
    })?;
    Ok(host)
}

/// Connects and waits for input that never comes, over and over.
fn silent() -> Script {
    Script::new().attempts(u32::MAX).patience(FOR_EVER).expect(b"a word").pause(FOR_EVER)
}

/// Requests with short pauses between them.
fn honest(number: u32) -> Script {
    let pause = Duration::from_millis(u64::from(number * 631) % 1_000);
    hello::ask(stage::persistent_script(), pause)
}

/// Returns how many attempts the honest clients took.
fn scenario(sim: &mut Sim) -> Result<u32, BoxError> {
    let server = serve(sim)?;
    let mut others = Clients::<SimTcpStream>::of(sim, server)?;
    for _ in 0..SILENT {
        others.add(sim, silent());
    }
    sim.run_for(Duration::from_secs(5))?;
    let mut clients = Clients::<SimTcpStream>::of(sim, server)?;
    let transcripts: Vec<_> = (0..HONEST).map(|number| clients.add(sim, honest(number))).collect();
    sim.run_for(stage::FAULTY)?;
    stage::heal(sim, server)?;
    clients.assert_all_complete(sim)?;
    let attempts = transcripts.iter().map(|transcript| transcript.read().attempts).sum();
    stage::drain(sim, server)?;
    Ok(attempts)
}

#[test]
fn honest_clients_are_served_however_many_silent_ones_connect() {
    stage::check(|sim| scenario(sim).map(drop));
}

#[test]
fn an_active_client_keeps_its_connection_and_runs_are_equal() {
    Check::new().seeds(3).calm().twice().run(|sim| {
        let attempts = scenario(sim)?;
        if attempts == HONEST { Ok(()) } else { Err(format!("{attempts} attempts").into()) }
    });
}
