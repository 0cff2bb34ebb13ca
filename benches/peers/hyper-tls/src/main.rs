//! hyper 1 on tokio-rustls with ring, on the current thread: `Hello, World!` and a body of 1 MiB
//! over TLS, as `https_server` answers `GET /`.
//!
//! `CHAIN` and `KEY` name the files in PEM. Tickets as rustls' examples have them: its own
//! ticketer.
#![forbid(unsafe_code)]

use std::convert::Infallible;
use std::env;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
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
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.ticketer = ring::Ticketer::new().map_err(io::Error::other)?;
    Ok(config)
}

async fn serve() -> io::Result<()> {
    let acceptor = TlsAcceptor::from(Arc::new(config()?));
    let listener = TcpListener::bind(contract::address()?).await?;
    println!("listening on https://{}/", listener.local_addr()?);
    let http = http1::Builder::new();
    let large = Bytes::from(contract::body_1m());
    loop {
        let (socket, _) = listener.accept().await?;
        let (acceptor, http, large) = (acceptor.clone(), http.clone(), large.clone());
        tokio::task::spawn(async move {
            // Errors end this connection only.
            socket.set_nodelay(true).ok()?;
            let socket = acceptor.accept(socket).await.ok()?;
            let answer = service_fn(|request| answer(request, large.clone()));
            http.serve_connection(TokioIo::new(socket), answer).await.ok()
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    large: Bytes,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = match request.uri().path() {
        "/1m" => large,
        _ => Bytes::from_static(b"Hello, World!"),
    };
    let mut response = Response::new(Full::new(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(response)
}
