//! On hyper 1 and tokio: on the current thread, or with `THREADS=N` on the multi-threaded runtime.
//! The pool is the runtime's own, with `POOL` blocking threads.
#![forbid(unsafe_code)]

use std::convert::Infallible;
use std::io;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use json_task::{BODY_BYTES_MAX, Settings, Way, sum};
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

fn main() -> io::Result<()> {
    let settings = Settings::from_environment()?;
    runtime(settings.pool)?.block_on(serve(settings))
}

fn runtime(pool: usize) -> io::Result<Runtime> {
    let mut builder = match contract::threads()? {
        None => Builder::new_current_thread(),
        Some(threads) => {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(threads);
            builder
        }
    };
    builder.enable_io().enable_time().max_blocking_threads(pool).build()
}

async fn serve(settings: Settings) -> io::Result<()> {
    let listener = listen()?;
    contract::announce(listener.local_addr()?)?;
    loop {
        let (socket, _) = listener.accept().await?;
        // This fails if the peer is gone already, which affects only this connection.
        if socket.set_nodelay(true).is_err() {
            continue;
        }
        let service = service_fn(move |request| answer(settings, request));
        let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
        // An error ends only this connection.
        tokio::spawn(async move { connection.await.ok() });
    }
}

fn listen() -> io::Result<TcpListener> {
    let address = contract::address()?;
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.bind(address)?;
    socket.listen(contract::BACKLOG.into())
}

async fn answer(
    settings: Settings,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if (request.method(), request.uri().path()) != (&Method::POST, "/") {
        return Ok(status(StatusCode::NOT_FOUND));
    }
    let Ok(body) = Limited::new(request.into_body(), BODY_BYTES_MAX).collect().await else {
        return Ok(status(StatusCode::PAYLOAD_TOO_LARGE));
    };
    let body = body.to_bytes();
    let sum = match settings.way {
        Way::Async1 => sum(&body),
        Way::Async2 | Way::Sync => {
            spawn_blocking(move || settings.on_pool(&body)).await.unwrap_or(None)
        }
    };
    let Some(sum) = sum else { return Ok(status(StatusCode::BAD_REQUEST)) };
    if settings.way != Way::Sync {
        sleep(settings.delay).await;
    }
    let mut response = Response::new(Full::from(json_task::answer(sum)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

fn status(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
