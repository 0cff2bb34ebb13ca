//! The service of the example `rest_service`, on axum: the same requests and responses, with errors
//! as JSON too. `tests/long/first-service` tests both, and counts their lines.

mod notes;
mod refused;
mod service;

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tower_http::services::ServeDir;

fn argument(number: usize, default: &str) -> String {
    std::env::args().nth(number).unwrap_or_else(|| default.to_owned())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = argument(1, "127.0.0.1:3000");
    let notes = notes::Notes::open(argument(2, "notes.sqlite"))?;
    let routes = Router::new()
        .route("/notes", get(service::list).post(service::add))
        .route("/notes/{id}", get(service::show).delete(service::remove))
        .route("/later", get(service::later))
        .with_state(notes)
        .nest_service("/static", ServeDir::new(argument(3, ".")))
        .fallback(service::not_found)
        .method_not_allowed_fallback(service::not_allowed);
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}/", listener.local_addr()?);
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let ending = async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    axum::serve(listener, routes).with_graceful_shutdown(ending).await?;
    Ok(())
}
