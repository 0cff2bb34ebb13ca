//! The example `reverse_proxy` between clients and a server of ours.

#[path = "../../../examples/reverse_proxy/back.rs"]
mod back;
#[path = "../../../examples/reverse_proxy/fields.rs"]
mod fields;
#[path = "../../../examples/reverse_proxy/handshake.rs"]
mod handshake;
#[path = "../../../examples/reverse_proxy/machine.rs"]
mod machine;
#[path = "../../../examples/reverse_proxy/message.rs"]
mod message;
#[path = "../../../examples/reverse_proxy/replay.rs"]
mod replay;
#[path = "../../../examples/reverse_proxy/tunnel.rs"]
mod tunnel;
#[path = "../../../examples/reverse_proxy/upstream.rs"]
mod upstream;
#[path = "../../../examples/reverse_proxy/warnings.rs"]
mod warnings;

mod faults;
mod limits;
mod pauses;
mod upstreams;

use std::net::SocketAddr;

use rotor::http::client::{ByAddress, ClientConfig, Pool, PoolConfig, PoolMachine};
use rotor::http::server::{HttpAccept, HttpSeed};
use rotor::net::{ListenOptions, Listener};
use rotor::stream::{Accept, AcceptConfig};
use rotor::{BoxError, Loop, Response, rotor_compose};
use rotor_sim::net::{SimTcpListener, SimTcpStream};
use rotor_sim::{Host, Sim, TranscriptHandle};

use self::back::Back;
use self::machine::Front;
use self::upstream::Upstream;
use self::warnings::Warnings;
use crate::http_pool;
use crate::stage::PORT;
use crate::websocket;

struct Gateway {
    pool: Pool<Back<Gateway>>,
    warnings: Warnings,
}

impl Upstream for Gateway {
    type Origin = SocketAddr;

    fn authority(&self) -> &str {
        "upstream"
    }

    fn pool(&self) -> &Pool<Back<Gateway>> {
        &self.pool
    }

    fn warnings(&mut self) -> &mut Warnings {
        &mut self.warnings
    }
}

rotor_compose! {
    enum Machines <Gateway> {
        Accept(HttpAccept<Front<Gateway>, SimTcpListener>),
        Pool(PoolMachine<Back<Gateway>, ByAddress<SimTcpStream>>),
    }
}

fn passing_on(
    sim: &mut Sim,
    upstream: SocketAddr,
    clients: AcceptConfig,
    config: PoolConfig,
) -> Result<Host<Machines>, BoxError> {
    passing_on_by(sim, upstream, clients, config, false)
}

/// The same, with HTTP/2 or HTTP/1.1 to the upstream.
fn passing_on_by(
    sim: &mut Sim,
    upstream: SocketAddr,
    clients: AcceptConfig,
    config: PoolConfig,
    http2: bool,
) -> Result<Host<Machines>, BoxError> {
    let http2 = back::upstream_http2(websocket::http2_config(http2));
    let limits = back::upstream_limits(http_pool::limits());
    let client = ClientConfig::new().limits(limits).http2(http2);
    Ok(sim.host("proxy", move |boot| {
        let mut creator: Loop<Machines, _> = boot.new_loop()?;
        let pool = creator.add_part(Machines::Pool, |scope| {
            Ok(PoolMachine::new(config.clone(), client.clone(), scope))
        })?;
        let address = SocketAddr::new(boot.address(), PORT);
        let seed = HttpSeed::<Front<Gateway>>::new(upstream, websocket::server_config());
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let listener = SimTcpListener::bind(&address, &ListenOptions::new(), scope)?;
                Ok(Accept::listen(listener, seed, clients.clone(), scope).wrap(Machines::Accept))
            })
        })?;
        Ok(creator.instantiate(Gateway { pool, warnings: Warnings::new() }))
    })?)
}

/// One request is at the upstream, and one waits.
fn one_at_a_time() -> PoolConfig {
    PoolConfig::new().connections_per_origin_max(1).waiting_per_origin_max(1)
}

/// The sorted status codes of the responses that have arrived completely.
fn answered(transcripts: &[TranscriptHandle]) -> Vec<String> {
    let ended = transcripts.iter().filter(|transcript| transcript.has_ended());
    let code = |transcript: &TranscriptHandle| {
        String::from_utf8_lossy(&transcript.read().received).chars().skip(9).take(3).collect()
    };
    let mut codes: Vec<String> = ended.map(code).collect();
    codes.sort();
    codes
}
