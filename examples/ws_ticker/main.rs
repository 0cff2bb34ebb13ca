//! A stream of prices, for as many subscribers as there are descriptors.
//!
//! ```text
//! cargo run --release -p rotor-examples --example ws_ticker [MILLISECONDS [ADDRESS]]
//! listening on http://127.0.0.1:3000/
//! try: python3 -m websockets ws://127.0.0.1:3000/prices
//! ```
//!
//! There is a price each second, unless told otherwise. Each is framed once and shared by all
//! outputs; a subscriber that reads slowly gets only the newest one.
//!
//! It listens on 127.0.0.1:3000 unless told otherwise. On SIGINT or SIGTERM, connections are closed
//! with 1001.
#![forbid(unsafe_code)]

mod machine;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use machine::{Exchange, Machines, Ticker};
use rotor::http::server::{self, HttpSeed, ServerConfig};
use rotor::net::{IpNet, ListenOptions, Listener};
use rotor::websocket::{Origins, WebSocketConfig};
use rotor::{Backend, BoxError, Config, Loop};
use rotor_examples::chosen_loop::on_chosen_loop;
use rotor_examples::program;
use rotor_examples::serve::serve;
use rotor_uring::OnAnyLoop;

fn main() -> ExitCode {
    program::run(ws_ticker)
}

fn ws_ticker() -> Result<(), BoxError> {
    let every = Duration::from_millis(program::argument(1, 1_000_u64)?.max(1));
    let address = program::argument(2, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    on_chosen_loop(Server { every, address })
}

/// The server, at an address.
struct Server {
    /// The interval between prices.
    every: Duration,
    address: SocketAddr,
}

impl OnAnyLoop for Server {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let Server { every, address } = self;
        // The prices are public.
        let config = WebSocketConfig::new().origins(Origins::Any).share();
        let mut creator = Loop::<Machines<N>, B>::with_backend(backend, &Config::new())?;
        let address = creator.add_part(Machines::Site, |scope| {
            let listener = N::Listener::bind(&address, &ListenOptions::new(), scope)?;
            let address = listener.local_address().unwrap_or(address);
            Ok((
                address,
                server::listen(listener, HttpSeed::new(config, ServerConfig::new()), scope),
            ))
        })?;
        creator.add_machine_with(|scope| Ticker::start(every, scope).wrap(Machines::Ticker))?;
        let try_this = format!("try: python3 -m websockets ws://{address}/prices");
        let mut instance = creator.instantiate(Exchange::new());
        serve(&mut instance, &[format!("listening on http://{address}/"), try_this])?;
        let listeners = instance.context().listeners();
        program::print(&[format!("{listeners} listened at the end")])?;
        Ok(())
    }
}
