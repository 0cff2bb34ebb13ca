//! On rotor: one loop, or with `THREADS=N` a group of loops that share the pool.
//!
//! A body is collected as a whole, because it is read fastest in this way. For a job it is copied,
//! while it is still in the CPU's caches.
#![forbid(unsafe_code)]

mod sums;

use std::error::Error;

use json_task::{BODY_BYTES_MAX, Settings};
use rotor::http::server::Serve;
use rotor::net::ListenOptions;
use rotor::{Config, OffloadPool};
use rotor_service::Router;

/// How many jobs may wait: more than the number of connections in any run.
const JOBS_MAX: usize = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let settings = Settings::from_environment()?;
    let config = Config::new().offload_pool(OffloadPool::new(settings.pool, JOBS_MAX));
    let serve = Serve::new(contract::address()?)
        .threads(contract::threads()?.unwrap_or(1))
        .listen_options(ListenOptions::new().backlog(contract::BACKLOG.into()))
        .loop_config(config);
    let router = Router::new().body_bytes_max(BODY_BYTES_MAX).post("/", sums::answer)?;
    Ok(router.run(serve, move || settings)?)
}
