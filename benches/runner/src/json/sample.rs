//! One service in one round.

use std::time::Duration;

use super::BoxError;
use super::contender::Contender;
use super::payload::Payload;
use crate::load::{Exchange, Generator};
use crate::process::{peak_resident_bytes, threads, threads_cpu_time};
use crate::server::Server;

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) total_s: f64,
    pub(super) requests_per_second: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    /// CPU time of the server, with all its threads.
    pub(super) cpu_us: f64,
    pub(super) peak_mib: f64,
    /// At the end of the run.
    pub(super) threads: f64,
    /// A share of the time.
    pub(super) generator_busy: f64,
}

/// Starts a service, sends one request on each connection, and then measures this many requests.
pub(super) fn sample(
    contender: &Contender,
    payload: &Payload,
    delay_ms: u64,
    connections: usize,
    requests: u64,
) -> Result<Sample, BoxError> {
    let server = Server::start(contender.command(delay_ms), PATIENCE)?;
    let (address, pid) = (server.address(), server.pid());
    let exchange =
        Exchange::post(address, payload.bytes.clone()).answered_with(payload.answer.clone());
    let mut generator = Generator::open(address, connections, 1, exchange)?;
    // After this, pools have their threads, and buffers their size.
    generator.run(connections as u64)?;
    let before = threads_cpu_time(pid)?;
    let run = generator.run(requests)?;
    let used = threads_cpu_time(pid)?.saturating_sub(before);
    let wall = run.wall.as_secs_f64();
    Ok(Sample {
        total_s: wall,
        requests_per_second: run.requests as f64 / wall,
        p50_ms: run.latency.percentile(50.0).as_secs_f64() * 1e3,
        p99_ms: run.latency.percentile(99.0).as_secs_f64() * 1e3,
        cpu_us: used.as_secs_f64() * 1e6 / run.requests as f64,
        peak_mib: peak_resident_bytes(pid)? as f64 / (1024.0 * 1024.0),
        threads: threads(pid)? as f64,
        generator_busy: run.generator.as_secs_f64() / wall,
    })
}
