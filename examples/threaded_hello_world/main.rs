//! The hello-world server on several threads, each with a loop and a listener of its own.
//!
//! ```text
//! THREADS=2 cargo run --release --example threaded_hello_world [ADDRESS:PORT]
//! listening on http://127.0.0.1:3000/ with 2 threads
//! curl http://127.0.0.1:3000/
//! ```
//!
//! With `HAND_OVER=PATH`, a second process that is started with the same path takes over the
//! listeners of the first one, which then finishes its requests and ends: a restart that no client
//! notices.
//!
//! With `ANNOUNCE=SECONDS`, it goes on for that long after it was asked to end, and says in each
//! response that the connection closes. This is for a balancer that learns late about it.
//!
//! With `HEALTH=ADDRESS:PORT`, it answers probes there, `/livez` and `/readyz`, on a thread of
//! their own. With `HAND_OVER`, that port is handed over as well.
//!
//! There are as many threads as CPUs, unless `THREADS` says otherwise. Then try `wrk -t2 -c400 -d10
//! http://127.0.0.1:3000/`. On Ctrl-C, requests in progress are finished first.
#![forbid(unsafe_code)]

#[path = "../hello_world_server/hello.rs"]
mod hello;

use std::thread::available_parallelism;
use std::time::Duration;

use rotor::http::health::Health;
use rotor::http::server::Serve;
use rotor::{BoxError, Drain, Pulses};

/// How long requests in progress may take at the end.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);

fn main() -> Result<(), BoxError> {
    let address = std::env::args().nth(1);
    let mut server = Serve::new(address.as_deref().unwrap_or("127.0.0.1:3000")).threads(threads()?);
    if let Some(path) = std::env::var_os("HAND_OVER") {
        server = server.hand_over(path);
    }
    if let Some(announce) = announce()? {
        server = server.drain(Drain::new(DRAIN_TIME_MAX).announce(announce));
    }
    if let Ok(address) = std::env::var("HEALTH") {
        let address = address.parse().map_err(|_| "HEALTH is to be like 127.0.0.1:8081")?;
        server = server.health_at(Health::new(Pulses::new()), address);
    }
    Ok(server.run_fn(hello::hello, || ())?)
}

/// Returns the value of `ANNOUNCE`, in seconds.
fn announce() -> Result<Option<Duration>, BoxError> {
    let Ok(seconds) = std::env::var("ANNOUNCE") else { return Ok(None) };
    let time = seconds.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let wrong = || format!("ANNOUNCE is to be a number of seconds, not {seconds:?}");
    Ok(Some(time.ok_or_else(wrong)?))
}

/// Returns the value of `THREADS`, or else the number of CPUs.
fn threads() -> Result<usize, BoxError> {
    match std::env::var("THREADS") {
        Ok(number) => match number.parse() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(format!("THREADS is to be a number from 1 on, not {number:?}").into()),
        },
        Err(_) => Ok(available_parallelism()?.get()),
    }
}
