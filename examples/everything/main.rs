//! A whole application in one loop: an HTTP server, an HTTP client with a pool of connections, a
//! DNS resolver, a UDP socket that counts what programs report, and a timer.
//!
//! ```text
//! cargo run --release -p rotor-examples --example everything [SECONDS [ADDRESS:PORT [STATSD_ADDRESS:PORT]]]
//! listening on http://127.0.0.1:3000/
//! counting what comes to 127.0.0.1:8125 (UDP), reporting every 10 s
//! try: curl 'http://127.0.0.1:3000/fetch?url=http://example.com/'
//! try: echo 'page.hits:1|c' | nc -u -w1 127.0.0.1 8125; curl http://127.0.0.1:3000/stats
//! 10 s: 2 requests, 1 fetched, 0 failed; 1 samples, 0 refused; page.hits 0.1/s
//! ```
//!
//! `/fetch` passes on the page that the URL names: its host is looked up, the addresses are tried
//! in turn, and connections are kept. If a page cannot be fetched within 10 s, the response is 502
//! or 504, with the reason. It fetches for anybody who can reach it, from every server that this
//! machine can reach, so let it listen only on an address of your own.
//!
//! A datagram contains lines in the format of statsd: `NAME:1|c` counts, `NAME:1|c|@0.1` counts ten
//! times, `NAME:20|g` sets a gauge and `NAME:+1|g` changes it. `/stats` shows all counters, as
//! JSON.
//!
//! On Ctrl-C, requests in progress are finished first, for at most ten seconds.
#![forbid(unsafe_code)]

mod front;
mod machine;
mod stats;
mod statsd;
mod ticker;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use machine::{App, Plan};
use rotor::dns::ResolverConfig;
use rotor::net::IpNet;
use rotor::{Backend, BoxError, Config, Loop};
use rotor_examples::chosen_loop::on_chosen_loop;
use rotor_examples::program;
use rotor_examples::serve::serve;
use rotor_uring::OnAnyLoop;

fn main() -> ExitCode {
    program::run(everything)
}

fn everything() -> Result<(), BoxError> {
    let seconds: u64 = program::argument(1, 10)?;
    let http = program::argument(2, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    // If only the HTTP address is given, the system chooses the other port.
    let statsd_port = if std::env::args_os().nth(2).is_none() { 8125 } else { 0 };
    let statsd = program::argument(3, SocketAddr::new(http.ip(), statsd_port))?;
    on_chosen_loop(Plan {
        http,
        statsd,
        every: Duration::from_secs(seconds.max(1)),
        resolver: ResolverConfig::system(),
        // If this cannot be printed, nothing else can be done.
        report: |line| drop(program::print(&[line.to_owned()])),
    })
}

impl OnAnyLoop for Plan {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let every = self.every.as_secs();
        let creator = Loop::<App<N>, B>::with_backend(backend, &Config::new())?;
        let (mut instance, bound) = machine::set_up(creator, self)?;
        let (http, statsd) = (bound.http, bound.statsd);
        let lines = [
            format!("listening on http://{http}/"),
            format!("counting what comes to {statsd} (UDP), reporting every {every} s"),
            format!("try: curl 'http://{http}/fetch?url=http://example.com/'"),
            format!(
                "try: echo 'page.hits:1|c' | nc -u -w1 {} {}; curl http://{http}/stats",
                statsd.ip(),
                statsd.port()
            ),
        ];
        serve(&mut instance, &lines)?;
        let own = instance.context().stats.own;
        let total =
            format!("{} requests, {} fetched, {} failed", own.requests, own.fetched, own.failed);
        program::print(&[format!("{total}; {} samples, {} refused", own.samples, own.refused)])?;
        Ok(())
    }
}
