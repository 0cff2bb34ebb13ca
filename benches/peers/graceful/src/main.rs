//! hyper 1 on tokio, which ends on SIGTERM as hyper-util's graceful shutdown does: it accepts no
//! more, and each connection ends behind the response that is under way. Its listener shares its
//! port (`SO_REUSEPORT`), so that the next process can be started beside it.
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

/// How long connections have; that of our own example.
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
        // Fails where the peer has gone already, which concerns nobody else.
        if socket.set_nodelay(true).is_err() {
            continue;
        }
        let connection =
            http1::Builder::new().serve_connection(TokioIo::new(socket), service_fn(answer));
        let connection = graceful.watch(connection);
        // An error ends this connection only.
        tokio::spawn(async move { connection.await.ok() });
    }
    drop(listener);
    // Those that are left then are dropped.
    tokio::time::timeout(DRAIN, graceful.shutdown()).await.ok();
    Ok(())
}

async fn answer(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(Bytes::from_static(contract::HELLO.as_bytes()))))
}
