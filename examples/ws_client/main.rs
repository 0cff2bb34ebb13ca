//! A WebSocket client that shows the texts it gets, and sends everything back. External test suites
//! for clients run against this one.
//!
//! ```text
//! cargo run --release -p rotor-examples --example ws_client [URL [TEXT]]
//! ```
//!
//! The URL begins with ws:// or wss://, or as a page's with http:// or https://; the default is
//! ws://127.0.0.1:3000/. TEXT is the first message. The program ends when the server closes the
//! connection, and prints how.
#![forbid(unsafe_code)]

mod machine;

use std::fmt;
use std::io::Write;
use std::process::ExitCode;
use std::str::FromStr;

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
    let WebSocketUrl(url) = program::argument(1, "ws://127.0.0.1:3000/".parse()?)?;
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

/// The URL of a WebSocket. The handshake is a request of HTTP (RFC 6455 §3), so `ws://` stands for
/// `http://`, and `wss://` for `https://`.
struct WebSocketUrl(Url);

impl FromStr for WebSocketUrl {
    type Err = BoxError;

    fn from_str(text: &str) -> Result<WebSocketUrl, BoxError> {
        let is_websocket = text.starts_with("ws://") || text.starts_with("wss://");
        let http = if is_websocket { text.replacen("ws", "http", 1) } else { text.to_owned() };
        Ok(WebSocketUrl(http.parse()?))
    }
}

impl fmt::Display for WebSocketUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_string().replacen("http", "ws", 1))
    }
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
