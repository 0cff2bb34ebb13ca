//! hyper 1 on tokio, with hyper-util's graceful shutdown on SIGTERM: it accepts no more
//! connections, and each connection ends after the current response. The listener shares its port
//! (`SO_REUSEPORT`), so that the next process can be started at the same time. Used by
//! `tests/long/restarts --beside`.
#![forbid(unsafe_code)]

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpSocket;
use tokio::signal::unix::{SignalKind, signal};

/// How long connections may take to end; the same as in rotor's example.
const DRAIN: Duration = Duration::from_secs(10);

#[tokio::main(worker_threads = 2)]
async fn main() -> io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseport(true)?;
    socket.bind(contract::address()?)?;
    let listener = socket.listen(contract::BACKLOG.into())?;
    let mut terminated = signal(SignalKind::terminate())?;
    contract::announce(listener.local_addr()?)?;
    let graceful = GracefulShutdown::new();
    loop {
        let socket = tokio::select! {
            accepted = listener.accept() => accepted?.0,
            _ = terminated.recv() => break,
        };
        // This fails if the peer is gone already, which affects only this connection.
        if socket.set_nodelay(true).is_err() {
            continue;
        }
        let connection =
            http1::Builder::new().serve_connection(TokioIo::new(socket), service_fn(answer));
        let connection = graceful.watch(connection);
        // An error ends only this connection.
        tokio::spawn(async move { connection.await.ok() });
    }
    drop(listener);
    // Connections that are left after this are dropped.
    tokio::time::timeout(DRAIN, graceful.shutdown()).await.ok();
    Ok(())
}

async fn answer(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(Bytes::from_static(contract::HELLO.as_bytes()))))
}
