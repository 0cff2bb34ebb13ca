//! hyper 1 on tokio-rustls with ring, on the current thread: `Hello, World!` and bodies of 1 KiB,
//! 64 KiB and 1 MiB over TLS, in HTTP/1.1 or HTTP/2, as negotiated. `/wait` is never answered.
//!
//! `CHAIN` and `KEY` name the PEM files. Session tickets are those of rustls' examples: its own
//! ticketer. `PLAIN` is an address at which the same is served without TLS, to clients that begin
//! with HTTP/2.
#![forbid(unsafe_code)]

use std::convert::Infallible;
use std::env;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

fn main() -> io::Result<()> {
    Builder::new_current_thread().enable_io().build()?.block_on(serve())
}

fn config() -> io::Result<ServerConfig> {
    let path = |name| env::var(name).map_err(|_| io::Error::other(format!("{name} is not set")));
    let chain = CertificateDer::pem_file_iter(path("CHAIN")?).map_err(io::Error::other)?;
    let chain = chain.collect::<Result<_, _>>().map_err(io::Error::other)?;
    let key = PrivateKeyDer::from_pem_file(path("KEY")?).map_err(io::Error::other)?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let mut config =
        builder.with_no_client_auth().with_single_cert(chain, key).map_err(io::Error::other)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.ticketer = ring::Ticketer::new().map_err(io::Error::other)?;
    Ok(config)
}

/// The bodies, shared by all responses.
struct Bodies {
    small: Bytes,
    middle: Bytes,
    large: Bytes,
}

async fn serve() -> io::Result<()> {
    let bodies = Arc::new(Bodies {
        small: contract::letters(1024).into(),
        middle: contract::body_64k().into(),
        large: contract::body_1m().into(),
    });
    if let Ok(plain) = env::var("PLAIN") {
        tokio::task::spawn(serve_plain(TcpListener::bind(plain).await?, bodies.clone()));
    }
    let acceptor = TlsAcceptor::from(Arc::new(config()?));
    let listener = TcpListener::bind(contract::address()?).await?;
    println!("listening on https://{}/", listener.local_addr()?);
    let http = http1::Builder::new();
    let streams = http2::Builder::new(TokioExecutor::new());
    loop {
        let (socket, _) = listener.accept().await?;
        let (acceptor, bodies) = (acceptor.clone(), bodies.clone());
        let (http, streams) = (http.clone(), streams.clone());
        tokio::task::spawn(async move {
            // An error ends only this connection.
            socket.set_nodelay(true).ok()?;
            let socket = acceptor.accept(socket).await.ok()?;
            let is_http2 = socket.get_ref().1.alpn_protocol() == Some(b"h2");
            let answer = service_fn(|request| answer(request, bodies.clone()));
            let socket = TokioIo::new(socket);
            match is_http2 {
                true => streams.serve_connection(socket, answer).await.ok(),
                false => http.serve_connection(socket, answer).await.ok(),
            }
        });
    }
}

/// Serves clients that begin with HTTP/2.
async fn serve_plain(listener: TcpListener, bodies: Arc<Bodies>) -> io::Result<()> {
    let streams = http2::Builder::new(TokioExecutor::new());
    loop {
        let (socket, _) = listener.accept().await?;
        let (streams, bodies) = (streams.clone(), bodies.clone());
        tokio::task::spawn(async move {
            socket.set_nodelay(true).ok()?;
            let answer = service_fn(|request| answer(request, bodies.clone()));
            streams.serve_connection(TokioIo::new(socket), answer).await.ok()
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    bodies: Arc<Bodies>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = match request.uri().path() {
        "/1k" => bodies.small.clone(),
        "/64k" => bodies.middle.clone(),
        "/1m" => bodies.large.clone(),
        "/wait" => std::future::pending().await,
        _ => Bytes::from_static(b"Hello, World!"),
    };
    let mut response = Response::new(Full::new(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(response)
}
