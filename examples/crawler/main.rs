//! Follows the links of a site and shows every page that it finds.
//!
//! ```text
//! cargo run --release -p rotor-examples --example crawler http://127.0.0.1:8080/ [AT_ONCE]
//! 200     612  /
//! 200    4096  /manual.html
//! 404     153  /gone.html
//! 3 pages, 1 not found or broken, 4 at once over at most 4 connections
//! ```
//!
//! At most AT_ONCE pages (default 4, at most 512) are fetched at the same time, over as many
//! connections. At most 10,000 pages of up to 1 MiB are visited. Links and redirects to other sites
//! are not followed. Use it for sites of your own. An `https://` site must have a certificate for
//! its name, from an issuer that the system trusts, or that is in the file named by the environment
//! variable `SSL_CERT_FILE`.
#![forbid(unsafe_code)]

mod machine;

use std::net::SocketAddr;
use std::process::ExitCode;

use machine::{Bounds, Crawler, Site};
use rotor::http::client::{ByAddress, ClientError, Fetch, Fetched, Pool, PoolConfig, PoolMachine};
use rotor::net::IpNet;
use rotor::tls::{MaybeTls, MaybeTlsTarget};
use rotor::{Backend, BoxError, Config, Loop, rotor_compose, with_causes};
use rotor_examples::chosen_loop::on_chosen_loop;
use rotor_examples::program;
use rotor_examples::url::Url;
use rotor_uring::OnAnyLoop;

/// The context: the pool, and the results.
struct Console {
    pool: Pool<Fetch<Console>, MaybeTlsTarget<SocketAddr>>,
    pages: usize,
    bad: usize,
}

impl Site for Console {
    type Origin = MaybeTlsTarget<SocketAddr>;

    fn pool(&self) -> &Pool<Fetch<Console>, MaybeTlsTarget<SocketAddr>> {
        &self.pool
    }

    fn visited(&mut self, target: &str, outcome: Result<&Fetched, &ClientError>) {
        self.pages += 1;
        let line = match outcome {
            Ok(page) => format!("{} {:>7}  {target}", page.status.code(), page.body.len()),
            Err(error) => format!("--- {:>7}  {target}: {}", "-", with_causes(error)),
        };
        self.bad += usize::from(outcome.map_or(true, |page| page.status.code() >= 400));
        // If this cannot be printed, nothing else can be done.
        let _ = program::print(&[line]);
    }
}

rotor_compose! {
    enum Machines <N: IpNet> <Console> {
        Pool(PoolMachine<Fetch<Console>, ByAddress<MaybeTls<N::Stream>>>),
        Crawler(Crawler<Console>),
    }
}

/// How many pages may be fetched at the same time: as many as a pool has connections
/// (`PoolConfig::connections_max`). Far more would not even find room in its queue.
const AT_ONCE_MAX: usize = 512;

fn main() -> ExitCode {
    program::run(crawl)
}

fn crawl() -> Result<(), BoxError> {
    let url = program::argument(1, Url::local())?;
    let at_once = program::argument(2, 4usize)?.clamp(1, AT_ONCE_MAX);
    let server = url.http2_server_at(url.resolve()?)?;
    on_chosen_loop(Crawl { url, server, at_once })
}

/// The site that is crawled, and with which limits.
struct Crawl {
    url: Url,
    server: MaybeTlsTarget<SocketAddr>,
    at_once: usize,
}

impl OnAnyLoop for Crawl {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let Crawl { url, server, at_once } = self;
        let client = url.client_config();
        let mut creator = Loop::<Machines<N>, B>::with_backend(backend, &Config::new())?;
        let pool = creator.add_part(Machines::Pool, |scope| {
            let config = PoolConfig::new().connections_per_origin_max(at_once);
            Ok(PoolMachine::new(config, client, scope))
        })?;
        creator.add_machine_with(|scope| {
            let bounds = Bounds { at_once, pages: 10_000, page_bytes: 1 << 20 };
            Crawler::begin(server, url.as_http().clone(), bounds, scope).wrap(Machines::Crawler)
        })?;
        let mut instance = creator.instantiate(Console { pool, pages: 0, bad: 0 });
        instance.run()?;
        let Console { pages, bad, .. } = instance.into_context();
        let found = format!("{pages} pages, {bad} not found or broken, {at_once} at once");
        program::print(&[format!("{found} over at most {at_once} connections")])?;
        Ok(())
    }
}
