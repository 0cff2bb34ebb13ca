//! The same axum router on hyper (`axum::serve`, tokio's current-thread runtime) or, with
//! `ON=rotor`, on one loop of rotor. All settings are the defaults; `tests/long/axum` compares the
//! two.
#![forbid(unsafe_code)]

use std::env;

use axum::extract::Path;
use axum::routing::{get, post};
use axum::{Json, Router};
use rotor::http::server::{HttpAccept, HttpSeed, ServerConfig, listen};
use rotor::net::{ListenOptions, Listener, TcpListener};
use rotor::{BoxError, Config, Loop, Response};
use rotor_async::Tokio;
use rotor_tower::{Tower, TowerServer};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Pair {
    name: String,
    number: u64,
}

fn routes() -> Router {
    Router::new()
        .route("/", get(|| async { contract::HELLO }))
        .route(
            "/pair/{name}",
            get(|Path(name): Path<String>| async { Json(Pair { name, number: 7 }) }),
        )
        .route("/pair", post(|Json(pair): Json<Pair>| async { Json(pair) }))
}

fn main() -> Result<(), BoxError> {
    match env::var("ON").as_deref() {
        Ok("rotor") => on_rotor(),
        _ => on_hyper(),
    }
}

fn on_hyper() -> Result<(), BoxError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(contract::address()?).await?;
        contract::announce(listener.local_addr()?)?;
        Ok(axum::serve(listener, routes()).await?)
    })
}

fn on_rotor() -> Result<(), BoxError> {
    type Server = HttpAccept<TowerServer<Router, axum::body::Body>, TcpListener>;
    let mut creator = Loop::<Server>::new(&Config::new())?;
    // As `axum::serve` does by itself: the router is prepared once instead of for each request.
    let tower = Tower::new(routes().with_state(())).tokio(Tokio::new()?);
    let mut bound = None;
    creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener = TcpListener::bind(&contract::address()?, &ListenOptions::new(), scope)?;
            bound = listener.local_address();
            Ok(listen(listener, HttpSeed::new(tower, ServerConfig::new()), scope))
        })
    })?;
    contract::announce(bound.ok_or("nothing is bound")?)?;
    creator.instantiate(()).run()?;
    Ok(())
}
