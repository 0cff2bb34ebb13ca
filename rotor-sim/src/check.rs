//! Running a scenario under many seeds, and saying how to see a failure again.

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

/// Runs a scenario under the usual number of seeds, each with the faults and the network of its
/// swarm.
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
/// At the first seed under which the scenario fails or panics: with the property, the seed, the
/// step, the end of the trace, and the command that does it again.
#[track_caller]
pub fn check(scenario: impl Fn(&mut Sim) -> Result<(), BoxError>) {
    Check::new().run(scenario);
}

/// From how many seeds on a run says how far it is.
const LONG: u64 = 500;

/// How a scenario is run under many seeds. At the end of a run it prints how often each fault
/// [struck](Strikes), and how often while clients were busy. One that is asked for at least 500
/// seeds, and for more than the test says, tells how far it is after each tenth of them.
///
/// | environment | |
/// |--|--|
/// | `ROTOR_SIM_SEEDS` | how many seeds; default 20, or what the test says |
/// | `ROTOR_SIM_SEED` | only this one, with its whole trace if it fails |
/// | `ROTOR_SIM_UNTIL` | stop before the step after this one, and show the trace |
///
/// Each is written in digits alone: `10000`, not `10_000`. Anything else is refused by a panic.
#[derive(Clone, Debug)]
#[must_use]
pub struct Check {
    seeds: u64,
    first: u64,
    is_twice: bool,
    swarm: bool,
    must_strike: Vec<Fault>,
}

impl Check {
    /// The defaults.
    pub fn new() -> Check {
        Check { seeds: 20, first: 0, is_twice: false, swarm: true, must_strike: Vec::new() }
    }

    /// How many seeds, when the environment does not say. Default 20.
    pub fn seeds(mut self, seeds: u64) -> Check {
        self.seeds = seeds;
        self
    }

    /// The first seed. Default 0.
    pub fn first(mut self, seed: u64) -> Check {
        self.first = seed;
        self
    }

    /// Runs each seed twice, and fails if the two runs were not the same: for scenarios that might
    /// look at something that no seed decides.
    pub fn twice(mut self) -> Check {
        self.is_twice = true;
        self
    }

    /// Without faults, on the default network, until the scenario says otherwise.
    pub fn calm(mut self) -> Check {
        self.swarm = false;
        self
    }

    /// Has the run fail if one of these faults, under all its seeds together, has struck no busy
    /// client: then the scenario does not test what it seems to. Of a run of fewer seeds than the
    /// test says nothing of the kind is asked.
    pub fn must_strike(mut self, faults: impl IntoIterator<Item = Fault>) -> Check {
        self.must_strike.extend(faults);
        self
    }

    /// Runs the scenario; answers how many seeds it was run under.
    ///
    /// # Panics
    ///
    /// As for [`check`], when a fault did not strike that [had to](Check::must_strike), and when
    /// the environment has something else than a number.
    #[track_caller]
    pub fn run(&self, scenario: impl Fn(&mut Sim) -> Result<(), BoxError>) -> u64 {
        let mut strikes = Strikes::none();
        if let Some(seed) = number("ROTOR_SIM_SEED") {
            self.run_seed(seed, true, &scenario, &mut strikes)
                .unwrap_or_else(|report| panic!("{report}"));
            return 1;
        }
        let seeds = number("ROTOR_SIM_SEEDS").unwrap_or(self.seeds);
        for seed in self.first..self.first + seeds {
            self.show_progress(seed - self.first, seeds);
            self.run_seed(seed, false, &scenario, &mut strikes)
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

    /// Of a run that is longer than the test's own: how far it is, by tenths. To the terminal
    /// itself, since the test harness keeps what is printed to the end, which may be hours away.
    fn show_progress(&self, done: u64, seeds: u64) {
        let tenth = seeds.div_ceil(10).max(1);
        if seeds > self.seeds && seeds >= LONG && done > 0 && done.is_multiple_of(tenth) {
            let thread = std::thread::current();
            let test = thread.name().unwrap_or_default();
            // Where nobody can be told, nobody need be.
            let _ = writeln!(std::io::stderr(), "{test}: {done} of {seeds} seeds");
        }
    }

    /// The first seed under which the scenario fails, and its failure; `None` if there is none. For
    /// those who want to know how many seeds it takes to find a bug.
    ///
    /// # Panics
    ///
    /// When the environment has something else than a number.
    #[track_caller]
    pub fn find(
        &self,
        scenario: impl Fn(&mut Sim) -> Result<(), BoxError>,
    ) -> Option<(u64, String)> {
        let seeds = number("ROTOR_SIM_SEEDS").unwrap_or(self.seeds);
        (self.first..self.first + seeds).find_map(|seed| {
            Some((seed, self.run_seed(seed, false, &scenario, &mut Strikes::none()).err()?))
        })
    }

    fn run_seed(
        &self,
        seed: u64,
        is_replay: bool,
        scenario: &impl Fn(&mut Sim) -> Result<(), BoxError>,
        strikes: &mut Strikes,
    ) -> Result<(), String> {
        let first = self.run_once(seed, is_replay, scenario, strikes)?;
        if self.is_twice {
            // Its strikes are those of the first run, which are counted.
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
        // An assertion of the scenario is a failure like others: the report says under which seed.
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

/// What the environment says; a value that is no number stops the run, which would otherwise be
/// another one than was asked for.
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
    // "main" is a program or a doc test, and names no test.
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
    fn a_number_is_taken_from_the_environment() {
        assert_eq!(parse("ROTOR_SIM_SEEDS", "10000"), 10_000);
        assert_eq!(parse("ROTOR_SIM_SEED", " 0\n"), 0);
        assert_eq!(parse("ROTOR_SIM_UNTIL", &u64::MAX.to_string()), u64::MAX);
    }

    /// A run under the default number of seeds would pass for the long one that was asked for.
    #[test]
    fn what_is_no_number_is_refused_and_what_to_write_is_said() {
        for text in ["10_000", "10,000", "1e4", "-1", "many", "", "18446744073709551616"] {
            let payload = catch_unwind(|| parse("ROTOR_SIM_SEEDS", text)).expect_err(text);
            let said = payload.downcast_ref::<String>().map(String::as_str).unwrap_or_default();
            let start = format!("ROTOR_SIM_SEEDS={text:?} is not a number");
            assert!(said.starts_with(&start) && said.ends_with("ROTOR_SIM_SEEDS=10000"), "{said}");
        }
    }
}
