//! Many machines with nothing but deadlines.
//!
//! ```text
//! # without arguments: 100000 machines, 10 rings each
//! cargo run --release -p rotor-examples --example timers [MACHINES [RINGS]]
//! 100000 machines rang 1000000 times: 0 early, at most 2.1 ms late
//! ```
//!
//! Each machine rings at random intervals of up to 200 ms, so this takes a second or two. The loop
//! ends by itself when its last machine has ended.
#![forbid(unsafe_code)]

mod machine;

use std::process::ExitCode;
use std::time::Duration;

use machine::{Record, Timer};
use rotor::net::IpNet;
use rotor::{Backend, BoxError, Config, Loop};
use rotor_examples::chosen_loop::on_chosen_loop;
use rotor_examples::program;
use rotor_uring::OnAnyLoop;

const INTERVAL_MAX: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    program::run(ring)
}

fn ring() -> Result<(), BoxError> {
    on_chosen_loop(Timers {
        machines: program::argument(1, 100_000)?,
        rings: program::argument(2, 10)?,
    })
}

/// How many machines there are, and how often each rings.
struct Timers {
    machines: u32,
    rings: u32,
}

impl OnAnyLoop for Timers {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let Timers { machines, rings } = self;
        let config = Config::new().machines_max(machines as usize);
        let mut creator = Loop::with_backend(backend, &config)?;
        for _ in 0..machines {
            creator.add_machine_with(|scope| Timer::start(rings, INTERVAL_MAX, scope))?;
        }
        let mut instance = creator.instantiate(Record::default());
        instance.run()?;
        let Record { rings, early, latest } = instance.context();
        program::print(&[format!(
            "{machines} machines rang {rings} times: {early} early, at most {:.1} ms late",
            latest.as_secs_f64() * 1000.0
        )])?;
        Ok(())
    }
}
