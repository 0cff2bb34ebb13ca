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
//! `/fetch` passes the page on that the URL names: the host is found by name, its addresses are
//! tried in turn, connections are kept. What cannot be fetched within 10 s is 502 or 504, with the
//! reason. It fetches for whoever asks, from wherever this machine can reach: keep it on an address
//! of your own.
//!
//! A datagram holds lines as statsd takes them: `NAME:1|c` counts, `NAME:1|c|@0.1` counts ten
//! times, `NAME:20|g` sets a gauge and `NAME:+1|g` moves it. `/stats` has all that is counted, as
//! JSON.
//!
//! Ctrl-C lets requests finish, for ten seconds at most.
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
    // Where one address is given the other port is the system's choice.
    let statsd_port = if std::env::args_os().nth(2).is_none() { 8125 } else { 0 };
    let statsd = program::argument(3, SocketAddr::new(http.ip(), statsd_port))?;
    on_chosen_loop(Plan {
        http,
        statsd,
        every: Duration::from_secs(seconds.max(1)),
        resolver: ResolverConfig::system(),
        // Where it cannot be printed there is nobody to tell.
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
