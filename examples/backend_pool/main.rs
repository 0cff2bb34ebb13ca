//! A pool of connections for a protocol of one's own: HTTP requests become questions to a server,
//! over a few connections that stay open.
//!
//! ```text
//! cargo run --release -p rotor-examples --example backend_pool [ADDRESS:PORT [SERVER [CONNECTIONS]]]
//! listening on http://127.0.0.1:3000/
//! asking 127.0.0.1:40321 over 4 connections
//! try: curl http://127.0.0.1:3000/ -d hello
//! ```
//!
//! `curl` prints `HELLO`. Without SERVER, the program asks a server that it has itself, in the same
//! loop. Each connection asks one question at a time; when all are busy, up to 1,000 questions wait.
//! A connection that ends is made again. If that happens while a question is under way, another
//! connection asks it once more; after that, the response is 502. It is 504 if the server takes
//! longer than two seconds for an answer, and 503 after five seconds in all, or if too many
//! questions wait.
//!
//! To see connections end and come back, let a second program ask the server of the first, and end
//! the first with Ctrl-C: `backend_pool 127.0.0.1:3001 127.0.0.1:40321`. On Ctrl-C, requests in
//! progress are finished first, for at most ten seconds. A connection that is down then is not made
//! again: if none is up, questions that wait get their 503 after five seconds.
#![forbid(unsafe_code)]

mod backend;
mod front;
mod machine;

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use backend::Backend as Upstream;
use front::Front;
use machine::{Connection, HasPool, Pool};
use rotor::http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rotor::net::{IpNet, ListenOptions, Listener};
use rotor::stream::{Accept, AcceptConfig, Persistent, PersistentConfig, PersistentSeed, Stream};
use rotor::{Backend, BoxError, Config, Loop, rotor_compose};
use rotor_examples::chosen_loop::on_chosen_loop;
use rotor_examples::program;
use rotor_examples::serve::serve;
use rotor_uring::OnAnyLoop;

/// The context.
#[derive(Default)]
struct Site {
    pool: Pool,
}

impl HasPool for Site {
    fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }
}

rotor_compose! {
    enum Machines <N: IpNet> <Site> {
        Front(HttpAccept<Front<Site>, N::Listener>),
        Connection(Persistent<Connection<Site>, N::Stream>),
        Upstream(Accept<Stream<Upstream<Site>, N::Stream>, N::Listener>),
    }
}

fn main() -> ExitCode {
    program::run(backend_pool)
}

fn backend_pool() -> Result<(), BoxError> {
    let address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    let server = match std::env::args_os().nth(2) {
        Some(_) => Some(program::argument(2, SocketAddr::from(([127, 0, 0, 1], 7000)))?),
        None => None,
    };
    let connections = program::argument(3, 4usize)?.clamp(1, 1_000);
    on_chosen_loop(Program { address, server, connections })
}

/// Where to listen, and whom to ask. Without a server, the program is one itself.
struct Program {
    address: SocketAddr,
    server: Option<SocketAddr>,
    connections: usize,
}

impl OnAnyLoop for Program {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let Program { address, server, connections } = self;
        let mut creator = Loop::<Machines<N>, B>::with_backend(backend, &Config::new())?;
        let server = match server {
            Some(server) => server,
            None => creator.add_part(Machines::Upstream, |scope| {
                let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
                let listener = N::Listener::bind(&any_port, &ListenOptions::new(), scope)?;
                let address = listener.local_address().unwrap_or(any_port);
                Ok((address, Accept::listen(listener, (), AcceptConfig::new(), scope)))
            })?,
        };
        // A server may close a connection that it finds idle: that is no reason to wait long.
        let config = PersistentConfig::new()
            .backoff_max(Duration::from_secs(5))
            .stable_after(Duration::from_secs(1));
        for _ in 0..connections {
            let seed = PersistentSeed::new(server, ()).config(config.clone());
            creator.add_machine_with(|scope| {
                Persistent::new(seed, scope).wrap(Machines::Connection)
            })?;
        }
        let address = creator.add_part(Machines::Front, |scope| {
            let listener = N::Listener::bind(&address, &ListenOptions::new(), scope)?;
            let address = listener.local_address().unwrap_or(address);
            let seed = HttpSeed::new((), ServerConfig::new());
            Ok((address, server::listen(listener, seed, scope)))
        })?;
        let lines = [
            format!("listening on http://{address}/"),
            format!("asking {server} over {connections} connections"),
            format!("try: curl http://{address}/ -d hello"),
        ];
        serve(&mut creator.instantiate(Site::default()), &lines)
    }
}
