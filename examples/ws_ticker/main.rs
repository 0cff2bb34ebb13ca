//! One price after the other, for as many subscribers as there are descriptors.
//!
//! ```text
//! cargo run --release -p rotor-examples --example ws_ticker [MILLISECONDS [ADDRESS]]
//! listening on http://127.0.0.1:3000/
//! try: python3 -m websockets ws://127.0.0.1:3000/prices
//! ```
//!
//! A price each second, unless told otherwise. Each is framed once and shared by all outputs; a
//! subscriber that reads slowly hears the newest only.
//!
//! It listens on 127.0.0.1:3000 unless told otherwise. SIGINT or SIGTERM closes the connections
//! with 1001.
#![forbid(unsafe_code)]

mod machine;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use machine::{Exchange, Machines, Ticker};
use rotor::http::server::{self, HttpSeed, ServerConfig};
use rotor::net::{ListenOptions, Listener, TcpListener};
use rotor::websocket::{Origins, WebSocketConfig};
use rotor::{BoxError, Config, Loop, Response};
use rotor_examples::program;
use rotor_examples::serve::serve;

fn main() -> ExitCode {
    program::run(ws_ticker)
}

fn ws_ticker() -> Result<(), BoxError> {
    let every = Duration::from_millis(program::argument(1, 1_000_u64)?.max(1));
    let mut address = program::argument(2, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    // Prices are everybody's.
    let config = WebSocketConfig::new().origins(Origins::Any).share();
    let mut creator = Loop::<Machines>::new(&Config::new())?;
    creator.add_machine_with(|scope| {
        let listening = Response::attempt(|| {
            let listener = TcpListener::bind(&address, &ListenOptions::new(), scope)?;
            address = listener.local_address().unwrap_or(address);
            Ok(server::listen(listener, HttpSeed::new(config, ServerConfig::new()), scope))
        });
        listening.wrap(Machines::Site)
    })?;
    creator.add_machine_with(|scope| Ticker::start(every, scope).wrap(Machines::Ticker))?;
    let try_this = format!("try: python3 -m websockets ws://{address}/prices");
    let mut instance = creator.instantiate(Exchange::new());
    serve(&mut instance, &[format!("listening on http://{address}/"), try_this])?;
    let listeners = instance.context().listeners();
    program::print(&[format!("{listeners} listened at the end")])?;
    Ok(())
}
