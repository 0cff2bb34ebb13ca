//! Runs a scenario under many seeds, and reports how to reproduce a failure.

use std::env;
use std::fmt::Write as _;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rotor_core::BoxError;

use crate::failure::Failure;
use crate::faults::{Fault, Faults};
use crate::network::Network;
use crate::sim::Sim;
use crate::strikes::Strikes;

/// Runs a scenario under 20 seeds, or as many as the environment says (see [`Check`]), each with
/// the faults and the network of its swarm.
///
/// ```
/// use std::time::Duration;
///
/// rotor_sim::check(|sim| {
///     // Add hosts, run, assert.
///     sim.run_for(Duration::from_secs(1))?;
///     Ok(())
/// });
/// ```
///
/// # Panics
///
/// At the first seed under which the scenario fails or panics. The message has the property, the
/// seed, the step, the end of the trace, and the command that reproduces the failure.
#[track_caller]
pub fn check(scenario: impl Fn(&mut Sim) -> Result<(), BoxError>) {
    Check::new().run(scenario);
}

/// The number of seeds from which on a run reports its progress.
const LONG_RUN_SEEDS: u64 = 500;

/// How a scenario is run under many seeds.
///
/// At its end a run with faults prints how often each fault [struck](Strikes), and how often while
/// clients were busy. A run of at least 500 seeds, if that is more than the test itself asks for,
/// reports its progress after each tenth of them.
///
/// | environment | |
/// |--|--|
/// | `ROTOR_SIM_SEEDS` | the number of seeds; default 20, or what the test says |
/// | `ROTOR_SIM_FIRST` | the first seed; default 0, or what the test says |
/// | `ROTOR_SIM_SEED` | only this seed, with the whole trace if it fails |
/// | `ROTOR_SIM_UNTIL` | stop before the step after this one, and show the trace |
///
/// Write each as digits only: `10000`, not `10_000`. Anything else causes a panic.
///
/// A nightly run that always starts at 0 repeats what the runs before it have found to be good; let
/// it start where the last one has ended, or at the date, `ROTOR_SIM_FIRST=20261231000000`.
#[derive(Clone, Debug)]
#[must_use]
pub struct Check {
    seeds: u64,
    first: u64,
    runs_twice: bool,
    swarm: bool,
    must_strike: Vec<Fault>,
}

impl Check {
    /// Creates a `Check` with the defaults.
    pub fn new() -> Check {
        Check { seeds: 20, first: 0, runs_twice: false, swarm: true, must_strike: Vec::new() }
    }

    /// Sets the number of seeds, unless the environment does. Default 20.
    pub fn seeds(mut self, seeds: u64) -> Check {
        self.seeds = seeds;
        self
    }

    /// Sets the first seed, unless the environment does. Default 0. The seed after the greatest is 0.
    pub fn first(mut self, seed: u64) -> Check {
        self.first = seed;
        self
    }

    /// Runs each seed twice, and fails if the two runs differ. Use it for scenarios whose code
    /// might depend on something that the seed does not determine.
    pub fn twice(mut self) -> Check {
        self.runs_twice = true;
        self
    }

    /// Starts each run without faults and on the default network; the scenario may set others.
    pub fn calm(mut self) -> Check {
        self.swarm = false;
        self
    }

    /// Fails the run if one of these faults, under all its seeds together, has never struck while a
    /// client was busy: then the scenario does not test what it seems to. A run of fewer seeds than
    /// the test asks for does not check this.
    pub fn must_strike(mut self, faults: impl IntoIterator<Item = Fault>) -> Check {
        self.must_strike.extend(faults);
        self
    }

    /// Runs the scenario, and returns the number of seeds under which it ran.
    ///
    /// # Panics
    ///
    /// As for [`check`]; also if a fault that [had to strike](Check::must_strike) did not, and if
    /// one of the environment variables is not a number.
    #[track_caller]
    pub fn run(&self, scenario: impl Fn(&mut Sim) -> Result<(), BoxError>) -> u64 {
        let mut strikes = Strikes::none();
        if let Some(seed) = number("ROTOR_SIM_SEED") {
            self.run_seed(seed, true, &scenario, &mut strikes)
                .unwrap_or_else(|report| panic!("{report}"));
            return 1;
        }
        let (first, seeds) = self.range();
        for done in 0..seeds {
            self.show_progress(done, seeds);
            self.run_seed(first.wrapping_add(done), false, &scenario, &mut strikes)
                .unwrap_or_else(|report| panic!("{report}"));
        }
        if self.swarm {
            let thread = std::thread::current();
            let test = thread.name().unwrap_or_default();
            eprint!(
                "{test}: {seeds} seeds; faults that struck while clients were busy, of all:\n{strikes}"
            );
        }
        if seeds >= self.seeds {
            let idle = self.must_strike.iter().filter(|fault| strikes.of_busy(**fault) == 0);
            let idle = idle.fold(String::new(), |mut idle, fault| {
                let _ = write!(idle, " {fault:?}");
                idle
            });
            assert!(
                idle.is_empty(),
                "in {seeds} seeds no busy client was struck by:{idle}\n\
                 these are too few seeds (ROTOR_SIM_SEEDS), or the scenario does not reach it\n\
                 {strikes}"
            );
        }
        seeds
    }

    /// Reports the progress of a run that is longer than the test's own, by tenths. It writes to
    /// the terminal directly, because the test harness keeps printed output until the end, which
    /// may be hours away.
    fn show_progress(&self, done: u64, seeds: u64) {
        let tenth = seeds.div_ceil(10).max(1);
        if seeds > self.seeds && seeds >= LONG_RUN_SEEDS && done > 0 && done.is_multiple_of(tenth) {
            let thread = std::thread::current();
            let test = thread.name().unwrap_or_default();
            // If stderr cannot be written, progress is not needed either.
            let _ = writeln!(std::io::stderr(), "{test}: {done} of {seeds} seeds");
        }
    }

    /// Returns the first seed under which the scenario fails, and the report of the failure; `None`
    /// if no seed fails. Use it to find out how many seeds a bug takes.
    ///
    /// # Panics
    ///
    /// If one of the environment variables is not a number.
    #[track_caller]
    pub fn find(
        &self,
        scenario: impl Fn(&mut Sim) -> Result<(), BoxError>,
    ) -> Option<(u64, String)> {
        let (first, seeds) = self.range();
        (0..seeds).find_map(|done| {
            let seed = first.wrapping_add(done);
            Some((seed, self.run_seed(seed, false, &scenario, &mut Strikes::none()).err()?))
        })
    }

    /// Returns the first seed and the number of seeds.
    #[track_caller]
    fn range(&self) -> (u64, u64) {
        let first = number("ROTOR_SIM_FIRST").unwrap_or(self.first);
        (first, number("ROTOR_SIM_SEEDS").unwrap_or(self.seeds))
    }

    fn run_seed(
        &self,
        seed: u64,
        is_replay: bool,
        scenario: &impl Fn(&mut Sim) -> Result<(), BoxError>,
        strikes: &mut Strikes,
    ) -> Result<(), String> {
        let first = self.run_once(seed, is_replay, scenario, strikes)?;
        if self.runs_twice {
            // The strikes were counted in the first run.
            let second = self.run_once(seed, is_replay, scenario, &mut Strikes::none())?;
            if first != second {
                let message = format!("two runs differ: {first:016x} and {second:016x}");
                return Err(report(&message, seed, None));
            }
        }
        Ok(())
    }

    fn run_once(
        &self,
        seed: u64,
        is_replay: bool,
        scenario: &impl Fn(&mut Sim) -> Result<(), BoxError>,
        strikes: &mut Strikes,
    ) -> Result<u64, String> {
        let mut sim = Sim::new(seed);
        if self.swarm {
            sim.set_network(Network::swarm(seed));
            sim.set_faults(Faults::swarm(seed));
        }
        let faults = sim.faults();
        if is_replay {
            sim.keep_trace();
        }
        if let Some(step) = number("ROTOR_SIM_UNTIL") {
            sim.until(step);
        }
        // A panic of the scenario is reported like any other failure, with its seed.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            scenario(&mut sim)?;
            sim.check()?;
            Ok::<(), BoxError>(())
        }));
        strikes.add_all(&sim.strikes());
        let (message, step) = match outcome {
            Ok(Ok(())) => return Ok(sim.hash()),
            Ok(Err(error)) => match error.downcast::<Failure>() {
                Ok(failure) => (failure.to_string(), failure.step()),
                Err(error) => {
                    (sim.failure("the scenario", error.to_string()).to_string(), sim.step())
                }
            },
            Err(payload) => {
                let text = payload.downcast_ref::<&str>().map(|text| (*text).to_string());
                let text =
                    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
                (sim.failure("the scenario", format!("panicked: {text}")).to_string(), sim.step())
            }
        };
        let faults = if self.swarm { format!("\nfaults: {faults:?}") } else { String::new() };
        Err(report(&format!("{message}{faults}"), seed, Some(step)))
    }
}

impl Default for Check {
    fn default() -> Check {
        Check::new()
    }
}

/// Reads a number from the environment. A value that is not a number ends the run, which would
/// otherwise differ from the one that was asked for.
#[track_caller]
fn number(variable: &str) -> Option<u64> {
    let text = env::var_os(variable)?;
    Some(parse(variable, &text.to_string_lossy()))
}

#[track_caller]
fn parse(variable: &str, text: &str) -> u64 {
    let Ok(number) = text.trim().parse() else {
        panic!("{variable}={text:?} is not a number: write digits alone, as in {variable}=10000");
    };
    number
}

fn report(message: &str, seed: u64, step: Option<u64>) -> String {
    let package =
        env::var("CARGO_PKG_NAME").map_or(String::new(), |package| format!(" -p {package}"));
    let thread = std::thread::current();
    // "main" is the thread of a program or a doc test; it does not name a test.
    let test = thread.name().filter(|name| *name != "main").unwrap_or("");
    let until = step.map_or(String::new(), |step| {
        format!("\nand to stop before it: ROTOR_SIM_UNTIL={} with the same", step.saturating_sub(1))
    });
    format!(
        "{message}\n\nto see it again: ROTOR_SIM_SEED={seed} cargo test{package} {test} -- --nocapture{until}\n"
    )
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::parse;

    #[test]
    fn numbers_from_the_environment_are_parsed() {
        assert_eq!(parse("ROTOR_SIM_SEEDS", "10000"), 10_000);
        assert_eq!(parse("ROTOR_SIM_SEED", " 0\n"), 0);
        assert_eq!(parse("ROTOR_SIM_UNTIL", &u64::MAX.to_string()), u64::MAX);
    }

    /// Otherwise a run with the default number of seeds would be mistaken for the long run that was
    /// requested.
    #[test]
    fn a_value_that_is_not_a_number_is_refused_with_an_example() {
        for text in ["10_000", "10,000", "1e4", "-1", "many", "", "18446744073709551616"] {
            let payload = catch_unwind(|| parse("ROTOR_SIM_SEEDS", text)).expect_err(text);
            let said = payload.downcast_ref::<String>().map(String::as_str).unwrap_or_default();
            let start = format!("ROTOR_SIM_SEEDS={text:?} is not a number");
            assert!(said.starts_with(&start) && said.ends_with("ROTOR_SIM_SEEDS=10000"), "{said}");
        }
    }
}
