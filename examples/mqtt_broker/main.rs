//! An MQTT broker: what a client publishes, all its subscribers get.
//!
//! ```text
//! cargo run --release -p rotor-examples --example mqtt_broker [ADDRESS:PORT [TLS_ADDRESS:PORT]]
//! listening on 127.0.0.1:1883
//! try: mosquitto_sub -h 127.0.0.1 -p 1883 -v -t '#'
//! try: mosquitto_pub -h 127.0.0.1 -p 1883 -t rooms/kitchen -m 21.5
//! ```
//!
//! It speaks MQTT 3.1.1 (OASIS, 2014): QoS 0, 1 and 2, wildcards, retained messages, wills,
//! keep-alive, and sessions that outlive their connections, though not the broker. Clients of other
//! versions are told so. Names and passwords are ignored, so everybody who can reach it may use it.
//!
//! If the environment names a certificate, it listens for MQTT over TLS as well:
//!
//! ```text
//! TLS_CERTIFICATE=broker.crt TLS_KEY=broker.key mqtt_broker
//! listening on 127.0.0.1:1883
//! listening with TLS on 127.0.0.1:8883
//! ```
//!
//! A packet has at most 256 KiB. There are at most 10,000 clients, connected or away, each with 100
//! filters of 1 KiB and 1,000 waiting messages; all waiting messages together have at most 256 MiB.
//! `limits.rs` has all limits. A client that is too slow loses messages, and the others do not wait
//! for it. A client that was away too long is told that its session is gone. The environment
//! variable `REFUSED_FILTERS` lists filters, separated by spaces, to which clients cannot
//! subscribe.
//!
//! Ctrl-C closes all connections, and the program prints how many there were.
#![forbid(unsafe_code)]

mod answer;
mod broker;
mod limits;
mod machine;
mod packet;
mod reader;
mod retained;
mod session;
mod topic;
mod tree;

use std::convert::identity;
use std::env;
use std::net::SocketAddr;
use std::process::ExitCode;

use broker::{Broker, HasBroker};
use limits::Limits;
use machine::{Client, stream_config};
use rotor::net::{IpNet, ListenOptions, Listener};
use rotor::stream::{Accept, AcceptConfig, Stream, WithOutbox};
use rotor::tls::{TlsListener, TlsServer};
use rotor::{Backend, BoxError, Config, EarlyScope, Loop, Response, rotor_compose};
use rotor_examples::chosen_loop::on_chosen_loop;
use rotor_examples::identity::tls_server;
use rotor_examples::program;
use rotor_examples::serve::serve;
use rotor_uring::OnAnyLoop;

/// The maximum number of connections of each port. Further ones wait until another one ends.
const CONNECTIONS_MAX: usize = 10_000;

rotor_compose! {
    /// The machines of the loop: two ports with their connections, without and with TLS.
    enum App <N: IpNet> <Shared> {
        Clear(Server<N::Listener>),
        Tls(Server<TlsListener<N::Listener>>),
    }
}

/// The same protocol, on any kind of socket.
type Server<L> = Accept<Stream<WithOutbox<Client<Shared>>, <L as Listener>::Socket>, L>;

/// The context: what all machines of the loop share.
struct Shared {
    broker: Broker,
}

impl HasBroker for Shared {
    fn broker(&mut self) -> &mut Broker {
        &mut self.broker
    }
}

fn main() -> ExitCode {
    program::run(mqtt)
}

fn mqtt() -> Result<(), BoxError> {
    let clear = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 1883)))?;
    // If only one address is given, the system chooses the other port.
    let port = if env::args_os().nth(1).is_none() { 8883 } else { 0 };
    let encrypted = program::argument(2, SocketAddr::from(([127, 0, 0, 1], port)))?;
    on_chosen_loop(Ports { clear, encrypted, tls: tls_server(&[b"mqtt"])? })
}

/// The addresses of the broker, and its certificate.
struct Ports {
    clear: SocketAddr,
    encrypted: SocketAddr,
    tls: Option<TlsServer>,
}

impl OnAnyLoop for Ports {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let Ports { clear, encrypted, tls } = self;
        let mut creator = Loop::<App<N>, B>::with_backend(backend, &Config::new())?;
        let address =
            creator.add_part(App::Clear, |scope| listen::<N, _>(clear, identity, scope))?;
        let mut lines = vec![format!("listening on {address}")];
        if let Some(tls) = tls {
            let address = creator.add_part(App::Tls, |scope| {
                listen::<N, _>(encrypted, |listener| tls.over(listener), scope)
            })?;
            lines.push(format!("listening with TLS on {address}"));
        }
        let (ip, port) = (address.ip(), address.port());
        lines.push(format!("try: mosquitto_sub -h {ip} -p {port} -v -t '#'"));
        lines.push(format!("try: mosquitto_pub -h {ip} -p {port} -t rooms/kitchen -m 21.5"));
        let mut instance = creator.instantiate(Shared { broker: Broker::new(limits()) });
        serve(&mut instance, &lines)?;
        let broker = &instance.context().broker;
        let (sessions, away, retained) = broker.len();
        program::print(&[
            format!("at the end: {}", broker.counts),
            format!("{} clients, {away} clients away, {retained} retained", sessions - away),
        ])?;
        Ok(())
    }
}

fn limits() -> Limits {
    let refused = env::var("REFUSED_FILTERS").unwrap_or_default();
    Limits { refused: refused.split_whitespace().map(str::to_owned).collect(), ..Limits::default() }
}

/// Opens a port, and returns its address. `over` wraps the listener, for example with TLS.
fn listen<N: IpNet, L: Listener>(
    address: SocketAddr,
    over: impl FnOnce(N::Listener) -> L,
    scope: &mut EarlyScope<'_>,
) -> Result<(SocketAddr, Response<Server<L>>), BoxError> {
    let listener = N::Listener::bind(&address, &ListenOptions::new(), scope)?;
    let bound = listener.local_address().unwrap_or(address);
    let config = AcceptConfig::new().connections_max(CONNECTIONS_MAX);
    Ok((bound, Accept::listen(over(listener), stream_config(), config, scope)))
}
