//! The examples `ws_echo` and `ws_client` on a loop that delivers input byte by byte.
//! `tests/long/autobahn` runs the Autobahn suite against them.
//!
//! ```text
//! cargo run --release -p rotor-tests --example ws_byte_by_byte server [ADDRESS]
//! cargo run --release -p rotor-tests --example ws_byte_by_byte client [URL]
//! ```
#![forbid(unsafe_code)]

mod backend;
#[path = "../../examples/ws_client/machine.rs"]
mod client;
#[path = "../../examples/ws_echo/machine.rs"]
mod echo;
mod socket;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use rotor::http::client::{ByAddress, ClientConfig, PoolConfig, PoolMachine};
use rotor::http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rotor::net::{ListenOptions, Listener, TcpListener, TcpStream};
use rotor::tls::MaybeTls;
use rotor::websocket::{Deflate, Dial, Origins, WebSocketConfig};
use rotor::{BoxError, Config, Loop, Machine, Mio, OffloadPool, Response, rotor_compose};
use rotor_examples::url::Url;
use rotor_examples::{program, serve};

use self::backend::ByteByByte;
use self::client::{Console, DialRequest, Dialer, EchoHandler};
use self::echo::Site;
use self::socket::{OneByOne, OneByOneListener};

/// The suite uses few connections.
const EVENTS_MAX: usize = 64;

type OnTcp = ByAddress<MaybeTls<OneByOne<TcpStream>>>;

rotor_compose! {
    enum Client <Console> {
        Pool(PoolMachine<Dial<EchoHandler>, OnTcp>),
        Dialer(Dialer),
    }
}

fn main() -> ExitCode {
    program::run(|| match &*program::argument(1, String::from("server"))? {
        "server" => serve_echo(),
        "client" => ask(),
        other => Err(format!("{other} is neither server nor client").into()),
    })
}

/// The limits fit the longest messages of the suite, and its largest number of fragments.
fn config() -> Arc<WebSocketConfig> {
    let config = WebSocketConfig::new().message_max(64 << 20).fragments_max(1 << 17);
    config.deflate(Deflate::new()).origins(Origins::Any).share()
}

fn on_bytes<M: Machine>() -> Result<Loop<M, ByteByByte<Mio>>, BoxError> {
    let mio = Mio::new(EVENTS_MAX)?.offload_pool(OffloadPool::default());
    let config = Config::new().events_max(EVENTS_MAX);
    Ok(Loop::with_backend(ByteByByte::around(mio), &config)?)
}

fn serve_echo() -> Result<(), BoxError> {
    let mut address = program::argument(2, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    let mut creator = on_bytes::<HttpAccept<Site<()>, OneByOneListener<TcpListener>>>()?;
    creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener = OneByOneListener::bind(&address, &ListenOptions::new(), scope)?;
            address = listener.local_address().unwrap_or(address);
            Ok(server::listen(listener, HttpSeed::new(config(), ServerConfig::new()), scope))
        })
    })?;
    serve::serve(&mut creator.instantiate(()), &[format!("listening on http://{address}/")])
}

fn ask() -> Result<(), BoxError> {
    let url = program::argument(2, "http://127.0.0.1:3000/".parse::<Url>()?)?;
    let server = url.server_at(url.resolve()?)?;
    let mut creator = on_bytes::<Client>()?;
    let pool = creator.add_part(Client::Pool, |scope| {
        Ok(PoolMachine::new(PoolConfig::new(), ClientConfig::new(), scope))
    })?;
    let print = |text: &str| {
        let _nobody_reads = program::print(&[text.to_string()]);
    };
    let mut instance = creator.instantiate(Console { pool, outcome: None, print });
    let (host, target) = (url.authority().to_owned(), url.target().to_owned());
    let request = DialRequest { server, host, target, greeting: None, config: config() };
    instance.add_machine_with(|scope| Dialer::new(request, scope).wrap(Client::Dialer))?;
    instance.run()?;
    let line = instance.into_context().outcome.ok_or("the loop ended by itself")??;
    Ok(program::print(&[line])?)
}
