//! An HTTP server with a page that shows what its loop does, and with `GET /metrics`.
//!
//! ```text
//! cargo run --release -p rotor-examples --example inspected [ADDRESS [ASLEEP]]
//! listening on http://127.0.0.1:3000/
//! look at http://127.0.0.1:46017/
//! curl http://127.0.0.1:3000/metrics
//! ```
//!
//! `/` answers, `/wait` never does, and `/metrics` has the metrics for Prometheus. The page, whose
//! address it prints, shows the loop, its machines and the last failures, and can end connections.
//!
//! `ASLEEP` is the number of additional machines that do nothing, to see what a page with very many
//! machines costs. Default: none.
//!
//! It listens on 127.0.0.1:3000 unless told otherwise. On SIGINT or SIGTERM, requests in progress
//! are finished first.
#![forbid(unsafe_code)]

mod app;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use rotor::http::server::{HttpAccept, HttpSeed, ServerConfig};
use rotor::net::{IpNet, ListenOptions, Listener, Net};
use rotor::stream::{Accept, AcceptConfig};
use rotor::{Backend, BoxError, Compose2, Config, Loop, Response};
use rotor_examples::chosen_loop::on_chosen_loop;
use rotor_examples::program;
use rotor_examples::serve::serve;
use rotor_inspect::{Failures, Inspector};
use rotor_metrics::RotorCollector;
use rotor_metrics::prometheus_client::registry::Registry;
use rotor_uring::OnAnyLoop;

use app::{Asleep, Site};

type App<N> = Compose2<HttpAccept<Site, <N as Net>::Listener>, Asleep>;

fn main() -> ExitCode {
    program::run(inspected)
}

fn inspected() -> Result<(), BoxError> {
    let address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    let asleep = program::argument(2, 0_usize)?;
    on_chosen_loop(Inspected { address, asleep })
}

/// The site, at an address, and the page that shows its loop.
struct Inspected {
    address: SocketAddr,
    /// The number of additional machines that do nothing.
    asleep: usize,
}

impl OnAnyLoop for Inspected {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let Inspected { address, asleep } = self;
        let failures = Failures::new();
        // Slots for as many machines as a large server has, so that the page can be seen with them.
        let config =
            Config::new().machines_max(200_000).keep_ages(true).observer(failures.observer());
        let mut creator = Loop::<App<N>, B>::with_backend(backend, &config)?;
        let config = ServerConfig::new();
        let counters = config.counters();
        let mut registry = Registry::default();
        RotorCollector::new()
            .event_loop("main", creator.stats())
            .server("site", counters.clone())
            .register(&mut registry);
        let seed = HttpSeed::new(Arc::new(registry), config);
        let address = creator.add_part(Compose2::A, |scope| {
            let listener = N::Listener::bind(&address, &ListenOptions::new(), scope)?;
            let address = listener.local_address().unwrap_or(address);
            let config = AcceptConfig::new().connections_max(150_000);
            Ok((address, Accept::listen(listener, seed, config, scope)))
        })?;
        for _ in 0..asleep {
            creator.add_machine_with(|_| Response::ok(Compose2::B(Asleep)))?;
        }
        let mut instance = creator.instantiate(());
        let inspecting = Inspector::new()
            .watch("main", &instance)
            .server("site", counters)
            .failures(&failures)
            .allow_changes(true)
            .start(([127, 0, 0, 1], 0).into())?;
        let page = inspecting.address().ok_or("a socket has an address")?;
        let lines = [format!("listening on http://{address}/"), format!("look at http://{page}/")];
        serve(&mut instance, &lines)?;
        inspecting.stop();
        Ok(())
    }
}
