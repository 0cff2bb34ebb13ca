//! A chat for browsers: rooms, names, and a page that reconnects when the connection is lost.
//!
//! ```text
//! cargo run --release -p rotor-examples --example ws_chat [ADDRESS]
//! listening on http://127.0.0.1:3000/
//! try: open it in two windows
//! ```
//!
//! Open the page in two windows. A client that enters a room gets the last 50 messages. A client
//! that does not read is closed with 1013, and reconnects.
//!
//! It listens on 127.0.0.1:3000 unless told otherwise. On SIGINT or SIGTERM, connections are closed
//! with 1001.
#![forbid(unsafe_code)]

mod machine;
mod rooms;

use std::net::SocketAddr;
use std::process::ExitCode;

use machine::{HasRooms, MESSAGE_MAX, Site};
use rooms::Rooms;
use rotor::http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rotor::net::{IpNet, ListenOptions, Listener};
use rotor::websocket::WebSocketConfig;
use rotor::{Backend, BoxError, Config, Loop, Response};
use rotor_examples::chosen_loop::on_chosen_loop;
use rotor_examples::program;
use rotor_examples::serve::serve;
use rotor_uring::OnAnyLoop;

/// The context: what all machines of the loop share.
#[derive(Default)]
struct Shared {
    rooms: Rooms,
}

impl HasRooms for Shared {
    fn rooms(&mut self) -> &mut Rooms {
        &mut self.rooms
    }
}

fn main() -> ExitCode {
    program::run(ws_chat)
}

fn ws_chat() -> Result<(), BoxError> {
    on_chosen_loop(Server(program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?))
}

/// The server, at an address.
struct Server(SocketAddr);

impl OnAnyLoop for Server {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let Server(mut address) = self;
        let config = WebSocketConfig::new().message_max(MESSAGE_MAX).share();
        let mut creator = Loop::<HttpAccept<Site<Shared>, N::Listener>, B>::with_backend(
            backend,
            &Config::new(),
        )?;
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let listener = N::Listener::bind(&address, &ListenOptions::new(), scope)?;
                address = listener.local_address().unwrap_or(address);
                Ok(server::listen(listener, HttpSeed::new(config, ServerConfig::new()), scope))
            })
        })?;
        let mut instance = creator.instantiate(Shared::default());
        let try_this = "try: open it in two windows".to_string();
        serve(&mut instance, &[format!("listening on http://{address}/"), try_this])?;
        let rooms = instance.context().rooms.len();
        program::print(&[format!("{rooms} rooms were there at the end")])?;
        Ok(())
    }
}
