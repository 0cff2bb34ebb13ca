//! ntex on its own runtime and poll driver, with its plain HTTP service, without the web framework
//! on top. It has `THREADS` workers, one by default.
//!
//! Sending a file needs another crate, which reads it piece by piece, so `/file` is left out.
#![forbid(unsafe_code)]

use std::io;
use std::sync::LazyLock;

use ntex::SharedCfg;
use ntex::http::header::{CONTENT_TYPE, HeaderValue};
use ntex::http::{HttpService, HttpServiceConfig, KeepAlive, Method, Request, Response};
use ntex::util::Bytes;

static BODY_64K: LazyLock<Bytes> = LazyLock::new(|| contract::body_64k().into());

#[ntex::main]
async fn main() -> io::Result<()> {
    let listener =
        ntex::server::create_tcp_listener(contract::address()?, contract::BACKLOG.into())?;
    contract::announce(listener.local_addr()?)?;
    ntex::server::build()
        .workers(contract::threads()?.unwrap_or(1))
        // Its signal handler waits for open connections, but a peer must end when it is told to.
        .disable_signals()
        .listen("peer", listener, async |_| HttpService::new(answer))?
        // Idle connections are kept, as by all other peers.
        .config(
            "peer",
            SharedCfg::new("PEER").add(HttpServiceConfig::new().set_keepalive(KeepAlive::Os)),
        )
        .run()
        .await
}

async fn answer(mut request: Request) -> io::Result<Response> {
    let body = match (request.method(), request.path()) {
        (&Method::GET, "/") => Bytes::from_static(contract::HELLO.as_bytes()),
        (&Method::GET, "/64k") => BODY_64K.clone(),
        (&Method::POST, "/") => {
            let mut body = request.take_payload();
            while let Some(chunk) = body.recv().await {
                chunk.map_err(io::Error::other)?;
            }
            Bytes::from_static(contract::HELLO.as_bytes())
        }
        _ => return Ok(Response::NotFound().finish()),
    };
    Ok(Response::Ok().header(CONTENT_TYPE, HeaderValue::from_static("text/plain")).body(body))
}
