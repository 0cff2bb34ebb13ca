//! A JSON service that asks another one: caching, sharing of requests under way, bounds on
//! everything.
//!
//! ```text
//! # the upstream: any server of JSON will do
//! cargo run --release -p rotor-examples --example todo_backend 127.0.0.1:8080
//! cargo run --release -p rotor-examples --example json_service http://127.0.0.1:8080/todos [LISTEN]
//! curl -i 'http://127.0.0.1:3000/weather?city=S%C3%A3o+Paulo'
//! curl -i http://127.0.0.1:3000/notes -d '{"text": "water the plants"}'
//! ```
//!
//! * `GET /weather?city=NAME` answers with what the upstream says of `?city=NAME`, for ten seconds
//!   from memory. Clients that ask the same while the upstream is being asked wait for the one
//!   answer. It has two seconds for all of it: then 504. An upstream that cannot be reached, or
//!   says anything but 200 and JSON, is 502.
//! * `POST /notes` keeps a JSON value of at most 4 KiB and answers 201 with its address, `GET
//!   /notes/ID` shows it.
//!
//! Every error is JSON as well, those that no handler sees included: `{"error":"Not
//! Found","status":404}`.
//!
//! SIGINT or SIGTERM lets the requests that are under way finish, for ten seconds.
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
            // A connection for each lookup: none waits behind a slow one.
            let config = PoolConfig::new()
                .connections_per_origin_max(LOOKUPS_MAX)
                .connections_max(LOOKUPS_MAX);
            Ok(PoolMachine::new(config, client::ClientConfig::new(), scope))
        })?;
        // How to ask is given to the handlers and not to the context, so that the desk hears when
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
