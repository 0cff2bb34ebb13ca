//! rotor with TLS, on one loop: `Hello, World!` and bodies of 1 KiB, 64 KiB and 1 MiB, in HTTP/1.1
//! or HTTP/2, as negotiated. It is set up as `https_server` is, with all limits at their defaults.
//! `/wait` is never answered.
//!
//! `CHAIN` and `KEY` name the PEM files. `PLAIN` is an address at which the same loop serves the
//! same without TLS, also to clients that begin with HTTP/2. There it is measured how other
//! connections are affected by handshakes. `OFFLOAD=never` computes RSA signatures in the loop.
#![forbid(unsafe_code)]

use std::env;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use rotor::http::server::{
    self, Head, Http2Config, HttpAccept, HttpSeed, Next, NoUpgrade, Response as HttpResponse,
    Server, ServerConfig,
};
use rotor::http::{MessageError, Method, Status};
use rotor::net::{ListenOptions, Listener, TcpListener};
use rotor::stream::Block;
use rotor::tls::{Identity, Offload, TlsListener, TlsServer, TlsServerConfig};
use rotor::{Config, Loop, Response, Scope, rotor_compose};

rotor_compose! {
    enum Ports <()> {
        Https(HttpAccept<Site, TlsListener<TcpListener>>),
        Http(HttpAccept<Site, TcpListener>),
    }
}

/// The bodies, shared by all responses.
struct Bodies {
    small: Block,
    middle: Block,
    large: Block,
}

struct Site;

impl Server for Site {
    type Context = ();
    type Seed = Arc<Bodies>;
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        bodies: Arc<Bodies>,
        head: &Head<'_>,
        response: &mut HttpResponse<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        // An error would be a misuse of the writer; the connection then answers with 500 by itself.
        let _written = match (head.method(), head.path()) {
            (Method::Get, "/") => {
                response.send(Status::OK, "text/plain", contract::HELLO.as_bytes())
            }
            (Method::Get, "/1k") => shared(&bodies.small, response),
            (Method::Get, "/64k") => shared(&bodies.middle, response),
            (Method::Get, "/1m") => shared(&bodies.large, response),
            (Method::Get, "/wait") => return Next::go_on(Site).no_deadline(),
            _ => response.send(Status::NOT_FOUND, "text/plain", b"404 Not Found\n"),
        };
        Next::finished()
    }
}

fn shared(body: &Block, response: &mut HttpResponse<'_>) -> Result<(), MessageError> {
    response.status(Status::OK)?;
    response.add_header("Content-Type", "text/plain")?;
    response.add_length(body.len() as u64)?;
    response.done_headers()?;
    response.write_block(body.clone())?;
    response.done()
}

fn main() -> Result<(), Box<dyn Error>> {
    let identity = Identity::from_pem_files(env::var("CHAIN")?, env::var("KEY")?)?;
    let offload = match env::var("OFFLOAD").as_deref() {
        Ok("never") => Offload::Never,
        _ => Offload::SlowKeys,
    };
    let config = TlsServerConfig::new(identity).alpn(&[b"h2", b"http/1.1"]).offload(offload);
    let tls = TlsServer::new(config)?;
    let bodies = Arc::new(Bodies {
        small: contract::letters(1024).into_bytes().into(),
        middle: contract::body_64k().into_bytes().into(),
        large: contract::body_1m().into_bytes().into(),
    });
    let options = ListenOptions::new().backlog(contract::BACKLOG.into());
    let mut address = contract::address()?;
    let mut creator = Loop::<Ports>::new(&Config::new())?;
    let http2 = Http2Config::new().prior_knowledge(true);
    let seed = || HttpSeed::new(bodies.clone(), ServerConfig::new().http2(http2.clone()));
    creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener = TlsListener::bind(&tls.at(address), &options, scope)?;
            address = listener.local_address().unwrap_or(address);
            Ok(server::listen(listener, seed(), scope).wrap(Ports::Https))
        })
    })?;
    if let Ok(plain) = env::var("PLAIN") {
        let plain: SocketAddr = plain.parse()?;
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let listener = TcpListener::bind(&plain, &options, scope)?;
                Ok(server::listen(listener, seed(), scope).wrap(Ports::Http))
            })
        })?;
    }
    contract::announce(address)?;
    creator.instantiate(()).run()?;
    Ok(())
}
