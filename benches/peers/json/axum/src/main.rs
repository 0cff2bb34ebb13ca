//! On axum, with tokio's multi-threaded runtime as `#[tokio::main]` makes it: as many workers as
//! CPUs, or `THREADS=N`. The pool is the runtime's own, with `POOL` blocking threads.
#![forbid(unsafe_code)]

use std::io;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::post;
use bytes::Bytes;
use json_task::{BODY_BYTES_MAX, Settings, Way, sum};
use tokio::net::TcpSocket;
use tokio::runtime::Builder;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

fn main() -> io::Result<()> {
    let settings = Settings::from_environment()?;
    let mut builder = Builder::new_multi_thread();
    if let Some(threads) = contract::threads()? {
        builder.worker_threads(threads);
    }
    let runtime = builder.enable_io().enable_time().max_blocking_threads(settings.pool).build()?;
    runtime.block_on(serve(settings))
}

async fn serve(settings: Settings) -> io::Result<()> {
    let address = contract::address()?;
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.bind(address)?;
    let listener = socket.listen(contract::BACKLOG.into())?;
    contract::announce(listener.local_addr()?)?;
    let router = Router::new()
        .route("/", post(answer))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(settings);
    axum::serve(listener, router).await
}

async fn answer(
    State(settings): State<Settings>,
    body: Bytes,
) -> Result<impl IntoResponse, StatusCode> {
    let sum = match settings.way {
        Way::Async1 => sum(&body),
        Way::Async2 | Way::Sync => {
            spawn_blocking(move || settings.on_pool(&body)).await.unwrap_or(None)
        }
    };
    let sum = sum.ok_or(StatusCode::BAD_REQUEST)?;
    if settings.way != Way::Sync {
        sleep(settings.delay).await;
    }
    Ok(([(header::CONTENT_TYPE, "application/json")], json_task::answer(sum)))
}
