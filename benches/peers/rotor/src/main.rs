//! rotor: one loop, or with `THREADS=N` a group of loops, each with a listener of its own.
//!
//! It is set up as the examples are; all limits, deadlines and counters are the defaults. The body
//! of 64 KiB is a block that all responses share. The file is opened once, as nginx does with its
//! cache of open files; the kernel sends it.
#![forbid(unsafe_code)]

mod site;

use std::error::Error;
use std::net::TcpListener as StdListener;

use rotor::http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rotor::net::{ListenOptions, TcpListener, TcpListeners};
use rotor::threads::LoopGroup;
use rotor::{BoxError, Config, Loop, LoopInstance, Response};

use site::{Pages, Site};

fn main() -> Result<(), Box<dyn Error>> {
    let options = ListenOptions::new().backlog(contract::BACKLOG.into());
    let threads = contract::threads()?.unwrap_or(1);
    let listeners = TcpListeners::bind(contract::address()?, &options, threads)?;
    let address = listeners.local_address();
    let pages = Pages::make()?;
    let group =
        LoopGroup::start(listeners, move |listener, _| server_loop(listener, pages.clone()))?;
    contract::announce(address)?;
    for ended in group.join() {
        ended?;
    }
    Ok(())
}

fn server_loop(
    listener: StdListener,
    pages: Pages,
) -> Result<LoopInstance<HttpAccept<Site, TcpListener>>, BoxError> {
    let mut creator = Loop::new(&Config::new())?;
    creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener = TcpListener::from_std(listener, scope)?;
            Ok(server::listen(listener, HttpSeed::new(pages, ServerConfig::new()), scope))
        })
    })?;
    Ok(creator.instantiate(()))
}
