//! rotor on io_uring: the server `rotor` next to this one, with the other backend and its sockets.
//! Everything else is the same, including the file of its handler.
//!
//! Without io_uring it does not serve, because figures of another loop would then be reported under
//! its name.
#![forbid(unsafe_code)]

#[path = "../../rotor/src/site.rs"]
mod site;

use std::error::Error;
use std::net::TcpListener as StdListener;

use rotor::http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rotor::net::{ListenOptions, TcpListeners};
use rotor::threads::LoopGroup;
use rotor::{BoxError, Config, Loop, LoopInstance, Response};
use rotor_uring::{Uring, UringConfig, UringTcpListener};

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
) -> Result<LoopInstance<HttpAccept<Site, UringTcpListener>, Uring>, BoxError> {
    let mut creator = Loop::with_backend(Uring::open(&UringConfig::new())?, &Config::new())?;
    creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener = UringTcpListener::from_std(listener, scope)?;
            Ok(server::listen(listener, HttpSeed::new(pages, ServerConfig::new()), scope))
        })
    })?;
    Ok(creator.instantiate(()))
}
