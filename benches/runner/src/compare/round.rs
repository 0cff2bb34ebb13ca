//! One server in one round.

use std::net::SocketAddr;
use std::time::Duration;

use super::BoxError;
use super::catalogue::Ready;
use super::rig::Rig;
use super::scenario::{Held, Load, Scenario, Task};
use crate::histogram::Histogram;
use crate::load::Generator;
use crate::load::held::{HalfAnswers, Idle, SlowReaders};
use crate::load::wrk;
use crate::process::{Cores, CpuTimes, cpu_times, resident_bytes};
use crate::program;
use crate::server::Server;

/// A server that worked for this share of the time was the bottleneck.
const BUSY: f64 = 0.90;

/// A generator that worked for this share of the time was at its limit.
const SATURATED: f64 = 0.95;

/// Starts a server on its core, then moves to the generator's core. A child inherits the core of
/// the thread that starts it, from its first moment.
pub(super) fn start(scenario: &Scenario, server: &Ready, rig: &Rig) -> Result<Server, BoxError> {
    rig.cores.as_ref().map_or(Ok(()), Cores::enter_server)?;
    let running = server.start(scenario, rig);
    rig.cores.as_ref().map_or(Ok(()), Cores::enter_generator)?;
    running
}

/// What was measured.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) requests_per_second: f64,
    /// At the 50th, 99th and 99.9th percentile, in microseconds.
    pub(super) latency_us: [f64; 3],
    /// CPU time of the server per request.
    pub(super) cpu_us: f64,
    /// The part of it that was spent in user space.
    pub(super) user_us: f64,
    pub(super) resident_mib: f64,
    /// Shares of the time; a server with several threads may exceed one.
    pub(super) server_busy: f64,
    pub(super) generator_busy: f64,
    /// Why it does not count, if so.
    pub(super) fault: Option<&'static str>,
}

/// Starts a server and measures it.
pub(super) fn sample(
    scenario: &Scenario,
    server: &Ready,
    rig: &Rig,
    rate: Option<f64>,
) -> Result<Sample, BoxError> {
    let running = start(scenario, server, rig)?;
    let address = running.address();
    let held = HeldOpen::open(scenario.held, address)?;
    let mut load = RunningLoad::open(scenario, address, rate)?;
    load.run(rig.warm_up())?;
    let before = cpu_times(running.pid())?;
    let taken = load.run(rig.time)?;
    let used = cpu_times(running.pid())?.since(&before);
    let resident = resident_bytes(running.pid())?;
    held.finish()?;
    Ok(taken.into_sample(used, resident))
}

/// A load that is prepared for one server.
pub(super) enum RunningLoad {
    Closed(Generator),
    Open { generator: Generator, rate: f64 },
    Wrk { address: SocketAddr, threads: usize, connections: usize },
}

impl RunningLoad {
    pub(super) fn open(
        scenario: &Scenario,
        address: SocketAddr,
        rate: Option<f64>,
    ) -> Result<RunningLoad, BoxError> {
        let exchange = scenario.task.exchange(address);
        Ok(match (&scenario.load, rate) {
            (&Load::Wrk { threads, connections }, _) => {
                RunningLoad::Wrk { address, threads, connections }
            }
            (&Load::Open { connections }, Some(rate)) => RunningLoad::Open {
                generator: Generator::open(address, connections, 1, exchange)?,
                rate,
            },
            (&Load::Open { connections }, None) => {
                RunningLoad::Closed(Generator::open(address, connections, 1, exchange)?)
            }
            (&Load::Closed { connections, pipeline }, _) => {
                RunningLoad::Closed(Generator::open(address, connections, pipeline, exchange)?)
            }
        })
    }

    pub(super) fn run(&mut self, time: Duration) -> Result<RunResult, BoxError> {
        match self {
            RunningLoad::Closed(generator) => {
                let run = generator.run_for(time)?;
                Ok(RunResult {
                    requests: run.requests,
                    wall: run.wall,
                    latency: percentiles(&run.latency),
                    generator_busy: run.generator.as_secs_f64() / run.wall.as_secs_f64(),
                    fault: Fault::IfGeneratorLeads,
                })
            }
            RunningLoad::Open { generator, rate } => {
                let run = generator.run_at_rate(*rate, time)?;
                // The last response arrives a little after the last request was due.
                let keeps_up = run.wall < time + time / 50 + Duration::from_millis(20);
                let is_late = run.lateness.percentile(99.0) > run.latency.percentile(99.0) / 2;
                Ok(RunResult {
                    requests: run.requests,
                    wall: run.wall,
                    latency: percentiles(&run.latency),
                    generator_busy: run.generator.as_secs_f64() / run.wall.as_secs_f64(),
                    fault: match (keeps_up, is_late) {
                        (_, true) => {
                            Fault::Certain("the load generator was late with its requests")
                        }
                        (false, false) => Fault::Certain("it did not keep up with the rate"),
                        (true, false) => Fault::None,
                    },
                })
            }
            RunningLoad::Wrk { address, threads, connections } => {
                let program = program::find("wrk").ok_or("there is no wrk")?;
                let run = wrk::run(&program, *address, *threads, *connections, time)?;
                Ok(RunResult {
                    requests: run.requests,
                    wall: run.wall,
                    latency: run.latency,
                    generator_busy: run.busy(*threads),
                    fault: Fault::IfGeneratorLeads,
                })
            }
        }
    }
}

/// The time and CPU time of a run of any load.
pub(super) struct RunResult {
    pub(super) requests: u64,
    wall: Duration,
    latency: [Duration; 3],
    generator_busy: f64,
    fault: Fault,
}

enum Fault {
    None,
    Certain(&'static str),
    /// If the server should be the bottleneck.
    IfGeneratorLeads,
}

impl RunResult {
    fn into_sample(self, used: CpuTimes, resident: u64) -> Sample {
        let (requests, wall) = (self.requests as f64, self.wall.as_secs_f64());
        let server_busy = used.total().as_secs_f64() / wall;
        let generator_leads = self.generator_busy >= SATURATED && server_busy < BUSY;
        Sample {
            requests_per_second: requests / wall,
            latency_us: self.latency.map(|latency| latency.as_secs_f64() * 1e6),
            cpu_us: used.total().as_secs_f64() * 1e6 / requests,
            user_us: used.user.as_secs_f64() * 1e6 / requests,
            resident_mib: resident as f64 / (1024.0 * 1024.0),
            server_busy,
            generator_busy: self.generator_busy,
            fault: match self.fault {
                Fault::Certain(why) => Some(why),
                Fault::IfGeneratorLeads if generator_leads => {
                    Some("the load generator was the bottleneck")
                }
                Fault::IfGeneratorLeads | Fault::None => None,
            },
        }
    }
}

impl Sample {
    /// Returns whether neither the server nor the generator was busy, so that other work on the
    /// computer, or sleep, has affected the measurement.
    pub(super) fn neither_was_busy(&self) -> bool {
        self.server_busy < BUSY && self.generator_busy < BUSY
    }
}

fn percentiles(latency: &Histogram) -> [Duration; 3] {
    [50.0, 99.0, 99.9].map(|percent| latency.percentile(percent))
}

/// The connections that are held open in addition to the load.
pub(super) enum HeldOpen {
    Nothing,
    Idle(Idle),
    HalfAnswers(HalfAnswers),
    SlowReaders(SlowReaders),
}

impl HeldOpen {
    pub(super) fn open(held: Held, address: SocketAddr) -> Result<HeldOpen, BoxError> {
        let large = Task::Body64K.exchange(address);
        Ok(match held {
            Held::Nothing => HeldOpen::Nothing,
            Held::Idle(count) => HeldOpen::Idle(Idle::open(address, count)?),
            Held::HalfAnswers(count) => {
                HeldOpen::HalfAnswers(HalfAnswers::open(address, count, &large)?)
            }
            Held::SlowReaders(count) => {
                HeldOpen::SlowReaders(SlowReaders::start(address, count, &large)?)
            }
        })
    }

    /// Closes them, after checking that the server has kept its side.
    pub(super) fn finish(self) -> Result<(), BoxError> {
        match self {
            HeldOpen::Nothing => Ok(()),
            HeldOpen::Idle(idle) => Ok(idle.finish()?),
            HeldOpen::HalfAnswers(held) => Ok(held.finish()?),
            HeldOpen::SlowReaders(readers) => Ok(readers.finish().map(drop)?),
        }
    }
}
