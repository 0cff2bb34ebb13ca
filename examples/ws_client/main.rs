//! A WebSocket client that shows the texts it gets, and sends everything back. External test suites
//! for clients run against this one.
//!
//! ```text
//! cargo run --release -p rotor-examples --example ws_client [URL [TEXT]]
//! ```
//!
//! The URL begins with http:// or https://; the default is http://127.0.0.1:3000/. TEXT is the
//! first message. The program ends when the server closes the connection, and prints how.
#![forbid(unsafe_code)]

mod machine;

use std::io::Write;
use std::process::ExitCode;

use machine::{Console, DialRequest, Dialer, EchoHandler};
use rotor::http::client::{ByAddress, ClientConfig, PoolConfig, PoolMachine};
use rotor::net::IpNet;
use rotor::tls::MaybeTls;
use rotor::websocket::{Deflate, Dial, WebSocketConfig};
use rotor::{Backend, BoxError, Config, Loop, rotor_compose};
use rotor_examples::chosen_loop::on_chosen_loop;
use rotor_examples::program;
use rotor_examples::url::Url;
use rotor_uring::OnAnyLoop;

rotor_compose! {
    enum Machines <N: IpNet> <Console> {
        Pool(PoolMachine<Dial<EchoHandler>, ByAddress<MaybeTls<N::Stream>>>),
        Dialer(Dialer),
    }
}

/// The test suites send messages of 16 MiB.
const MESSAGE_MAX: usize = 64 << 20;

/// One of their messages has 4 MiB in frames of 64 bytes.
const FRAGMENTS_MAX: u32 = 1 << 17;

fn main() -> ExitCode {
    program::run(ws_client)
}

fn ws_client() -> Result<(), BoxError> {
    let url = program::argument(1, "http://127.0.0.1:3000/".parse::<Url>()?)?;
    let greeting = std::env::args().nth(2);
    let server = url.server_at(url.resolve()?)?;
    let config = WebSocketConfig::new()
        .message_max(MESSAGE_MAX)
        .fragments_max(FRAGMENTS_MAX)
        .deflate(Deflate::new())
        .share();
    let (host, target) = (url.authority().to_owned(), url.target().to_owned());
    on_chosen_loop(WsClient(DialRequest { server, host, target, greeting, config }))
}

/// The client, with its request.
struct WsClient(DialRequest);

impl OnAnyLoop for WsClient {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let mut creator = Loop::<Machines<N>, B>::with_backend(backend, &Config::new())?;
        let pool = creator.add_part(Machines::Pool, |scope| {
            Ok(PoolMachine::new(PoolConfig::new(), ClientConfig::new(), scope))
        })?;
        let print = |text: &str| {
            // The reader of standard output may be gone.
            let _ = writeln!(std::io::stdout(), "{text}");
        };
        let mut instance = creator.instantiate(Console { pool, outcome: None, print });
        instance.add_machine_with(|scope| Dialer::new(self.0, scope).wrap(Machines::Dialer))?;
        instance.run()?;
        let line = instance.into_context().outcome.ok_or("the loop ended by itself")??;
        Ok(program::print(&[line])?)
    }
}
