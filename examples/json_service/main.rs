//! A JSON service that asks another one: with a cache, shared requests, and limits on everything.
//!
//! ```text
//! # the upstream: any server of JSON will do
//! cargo run --release -p rotor-examples --example todo_backend 127.0.0.1:8080
//! cargo run --release -p rotor-examples --example json_service http://127.0.0.1:8080/todos [LISTEN]
//! curl -i 'http://127.0.0.1:3000/weather?city=S%C3%A3o+Paulo'
//! curl -i http://127.0.0.1:3000/notes -d '{"text": "water the plants"}'
//! ```
//!
//! * `GET /weather?city=NAME` returns the upstream's response to `?city=NAME`, which is kept in
//!   memory for ten seconds. If several clients ask for the same city while the upstream is being
//!   asked, all of them wait for that one response. If it takes longer than two seconds in all, the
//!   response is 504. If the upstream cannot be reached, or returns anything but 200 and JSON, it
//!   is 502.
//! * `POST /notes` stores a JSON value of at most 4 KiB and returns 201 with its address. `GET
//!   /notes/ID` returns it.
//!
//! Every error is JSON as well, including those that no handler sees: `{"error":"Not
//! Found","status":404}`.
//!
//! On SIGINT or SIGTERM, requests in progress are finished first, for at most ten seconds.
#![forbid(unsafe_code)]

mod city;
mod desk;
mod machine;
mod store;

use std::net::SocketAddr;
use std::process::ExitCode;

use desk::{ASKERS_MAX, Desk, LOOKUPS_MAX, Upstream};
use machine::Front;
use rotor::http::client::{self, ByAddress, Fetch, PoolConfig, PoolMachine};
use rotor::http::server::{HttpAccept, HttpSeed, ServerConfig};
use rotor::net::{IpNet, ListenOptions, Listener};
use rotor::stream::{Accept, AcceptConfig};
use rotor::{Backend, BoxError, Config, Loop, rotor_compose};
use rotor_examples::chosen_loop::on_chosen_loop;
use rotor_examples::program;
use rotor_examples::serve::serve;
use rotor_examples::url::Url;
use rotor_uring::OnAnyLoop;
use store::Notes;

rotor_compose! {
    enum Machines <N: IpNet> <Notes> {
        Accept(HttpAccept<Front, N::Listener>),
        Desk(Desk<Notes>),
        Pool(PoolMachine<Fetch<Notes>, ByAddress<N::Stream>>),
    }
}

fn main() -> ExitCode {
    program::run(json_service)
}

fn json_service() -> Result<(), BoxError> {
    let url = program::argument(1, "http://127.0.0.1:8080/todos".parse::<Url>()?)?;
    if url.is_https() {
        return Err("this example asks in clear: its URL begins with http://".into());
    }
    let address = program::argument(2, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    let upstream = Upstream {
        address: url.resolve()?,
        authority: url.authority().to_owned(),
        path: url.target().to_owned(),
    };
    on_chosen_loop(Site { address, upstream })
}

/// The service, at an address.
struct Site {
    address: SocketAddr,
    upstream: Upstream,
}

impl OnAnyLoop for Site {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let Site { address, upstream } = self;
        let mut creator = Loop::<Machines<N>, B>::with_backend(backend, &Config::new())?;
        let pool = creator.add_part(Machines::Pool, |scope| {
            // One connection for each lookup, so that none waits behind a slow one.
            let config = PoolConfig::new()
                .connections_per_origin_max(LOOKUPS_MAX)
                .connections_max(LOOKUPS_MAX);
            Ok(PoolMachine::new(config, client::ClientConfig::new(), scope))
        })?;
        // The handle is given to the handlers and not to the context, so that the desk notices when
        // the last connection has ended.
        let weather = creator
            .add_part(Machines::Desk, |scope| Ok(Desk::create_desk(pool, upstream, scope)))?;
        let address = creator.add_part(Machines::Accept, |scope| {
            let listener = N::Listener::bind(&address, &ListenOptions::new(), scope)?;
            let address = listener.local_address().unwrap_or(address);
            let config = AcceptConfig::new().connections_max(ASKERS_MAX);
            let seed = HttpSeed::<Front>::new(weather, ServerConfig::new());
            Ok((address, Accept::listen(listener, seed, config, scope)))
        })?;
        let mut instance = creator.instantiate(Notes::default());
        serve(&mut instance, &[format!("listening on http://{address}/")])
    }
}
