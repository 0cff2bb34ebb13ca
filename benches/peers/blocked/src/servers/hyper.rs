//! hyper 1 on tokio's multi-threaded runtime.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::runtime::Builder;

use crate::BoxError;

pub(super) fn serve(is_declared: bool) -> Result<(), BoxError> {
    let runtime = Builder::new_multi_thread().worker_threads(super::THREADS).enable_io().build()?;
    runtime.block_on(accept(is_declared))
}

async fn accept(is_declared: bool) -> Result<(), BoxError> {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    contract::announce(listener.local_addr()?)?;
    loop {
        let (socket, _) = listener.accept().await?;
        // This fails if the peer is gone already, which affects only this connection.
        if socket.set_nodelay(true).is_err() {
            continue;
        }
        let answer = service_fn(move |_| async move {
            let text = match is_declared {
                true if super::is_slow() => {
                    tokio::task::block_in_place(super::block);
                    super::SLOW
                }
                true => super::FAST,
                false => super::answer(),
            };
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(text.as_bytes()))))
        });
        // An error ends only this connection.
        let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), answer);
        tokio::spawn(async move { connection.await.ok() });
    }
}
