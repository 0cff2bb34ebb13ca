//! Sessions over UDP, as in a game, and an HTTP page that shows them, in one loop.
//!
//! ```text
//! cargo run --release -p rotor-examples --example udp_sessions [UDP_ADDRESS:PORT [HTTP_ADDRESS:PORT]]
//! listening on 127.0.0.1:7000
//! listening on http://127.0.0.1:3000/
//! try: nc -u 127.0.0.1 7000, and say: HELLO to everybody here
//! ```
//!
//! The response is `WELCOME` and a number. Send `ACK` and that number within 15 seconds; then
//! `STATE`, with a number and the positions of all players, arrives each second, four times each if
//! it is not acknowledged. `MOVE 3 -4` moves you. `BYE` ends the session, and so do 15 seconds of
//! silence. `curl http://127.0.0.1:3000/` shows the players. Ctrl-C drains the loop: each peer gets
//! `CLOSING`, until it acknowledges that or has got it four times.
#![forbid(unsafe_code)]

mod machine;
mod status;

use std::net::SocketAddr;
use std::process::ExitCode;

use machine::UdpSessions;
use machine::world::World;
use rotor::http::server::{HttpAccept, HttpSeed, ServerConfig};
use rotor::net::{DatagramSocket, IpNet, ListenOptions, Listener};
use rotor::stream::{Accept, AcceptConfig};
use rotor::{Backend, BoxError, Config, Loop, rotor_compose};
use rotor_examples::chosen_loop::on_chosen_loop;
use rotor_examples::program;
use rotor_examples::serve::serve;
use rotor_uring::OnAnyLoop;
use status::StatusPage;

/// The maximum number of sessions; further peers get `FULL`.
const SESSIONS_MAX: usize = 1_000;
/// The maximum number of connections to the status page; further ones wait in the system's queue.
const CONNECTIONS_MAX: usize = 32;

rotor_compose! {
    enum App <N: IpNet> <World<N::Datagram>> {
        Sessions(UdpSessions<N::Datagram>),
        Status(HttpAccept<StatusPage<N::Datagram>, N::Listener>),
    }
}

fn main() -> ExitCode {
    program::run(sessions)
}

fn sessions() -> Result<(), BoxError> {
    let udp = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 7000)))?;
    // If only one address is given, the system chooses the other port.
    let http_port = if std::env::args_os().nth(1).is_none() { 3000 } else { 0 };
    let http = program::argument(2, SocketAddr::new(udp.ip(), http_port))?;
    on_chosen_loop(Ports { udp, http })
}

/// The addresses at which it listens.
struct Ports {
    udp: SocketAddr,
    http: SocketAddr,
}

impl OnAnyLoop for Ports {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let Ports { mut udp, http } = self;
        // The endpoint, the listener, and everything that they may spawn.
        let config = Config::new().machines_max(2 + SESSIONS_MAX + CONNECTIONS_MAX);
        let mut creator = Loop::<App<N>, B>::with_backend(backend, &config)?;
        let world = creator
            .add_part(App::Sessions, |scope| Ok(UdpSessions::open(&udp, SESSIONS_MAX, scope)?))?;
        if let Some(socket) = &world.socket {
            udp = socket.local_address()?;
        }
        let http = creator.add_part(App::Status, |scope| {
            let listener = N::Listener::bind(&http, &ListenOptions::new(), scope)?;
            let seed = HttpSeed::new((), ServerConfig::new());
            let accept = AcceptConfig::new().connections_max(CONNECTIONS_MAX);
            Ok((
                listener.local_address().unwrap_or(http),
                Accept::listen(listener, seed, accept, scope),
            ))
        })?;
        let try_this =
            format!("try: nc -u {} {}, and say: HELLO to everybody here", udp.ip(), udp.port());
        let lines =
            [format!("listening on {udp}"), format!("listening on http://{http}/"), try_this];
        serve(&mut creator.instantiate(world), &lines)
    }
}
