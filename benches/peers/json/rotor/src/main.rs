//! On rotor: one loop, or with `THREADS=N` a group of loops that share the pool.
//!
//! A body is collected whole, which is when it is read fastest; for a job it is copied, while it is
//! still in the processor's caches.
#![forbid(unsafe_code)]

mod service;

use std::error::Error;
use std::net::TcpListener as StdListener;

use json_task::Settings;
use rotor::http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rotor::net::{ListenOptions, TcpListener, TcpListeners};
use rotor::threads::LoopGroup;
use rotor::{BoxError, Config, Loop, LoopInstance, OffloadPool, Response};

use service::Service;

/// Jobs that may wait: more than there are connections in any run.
const JOBS_MAX: usize = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let settings = Settings::from_environment()?;
    let config = Config::new().offload_pool(OffloadPool::new(settings.pool, JOBS_MAX));
    let options = ListenOptions::new().backlog(contract::BACKLOG.into());
    let threads = contract::threads()?.unwrap_or(1);
    let listeners = TcpListeners::bind(contract::address()?, &options, threads)?;
    let address = listeners.local_address();
    let group =
        LoopGroup::start(listeners, move |listener, _| server_loop(&config, listener, settings))?;
    contract::announce(address)?;
    for ended in group.join() {
        ended?;
    }
    Ok(())
}

fn server_loop(
    config: &Config,
    listener: StdListener,
    settings: Settings,
) -> Result<LoopInstance<HttpAccept<Service, TcpListener>>, BoxError> {
    let mut creator = Loop::new(config)?;
    creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener = TcpListener::from_std(listener, scope)?;
            Ok(server::listen(listener, HttpSeed::new((), ServerConfig::new()), scope))
        })
    })?;
    Ok(creator.instantiate(settings))
}
