//! The command line of `compare` and `memory`.

use std::path::PathBuf;

use quick_error::quick_error;

use super::catalogue::{self, Entry, SERVERS, root};
use super::scenario::{self, SCENARIOS, Scenario};

/// The text that is printed in addition to the usage of the other measurements.
pub const USAGE: &str = "\
rotor-bench compare [OPTIONS]
rotor-bench memory [OPTIONS]

  compare  builds and starts servers, checks their answers and compares them, taking turns
  memory   process memory of an idle connection, by regression over numbers of them

Options:
  --scenario NAME  compare: one of those below, or all; may be given several times (hello-64)
  --server NAME    one of those below, or all; may be given several times (all)
  --rounds N       rounds over all servers (9; memory: 3)
  --seconds S      compare: how long each server is measured in each round (2)
  --threads N      threads of the servers that have a choice (1)
  --pin            servers on one core, the load generator on another
  --rate N         compare, open loop: requests per second (half of what the first server reaches)
  --strict         fail where a server does not take part or answers wrongly, after the report
  --out DIR        where the report and the plot go (doc/benchmarks); - for nowhere
";

quick_error! {
    /// What is wrong with a command line.
    #[derive(Debug, PartialEq, Eq)]
    pub enum OptionsError {
        /// There is no option with this name.
        Option(name: String) {
            display("no such option: '{}'", name)
        }
        /// There is no scenario with this name.
        Scenario(name: String) {
            display("no such scenario: '{}'", name)
        }
        /// There is no server with this name.
        Server(name: String) {
            display("no such server: '{}'", name)
        }
        /// The option needs a number above zero.
        Number(name: String) {
            display("{} needs a number above zero", name)
        }
    }
}

/// A whole command line.
#[derive(Debug, PartialEq)]
pub struct Options {
    pub(super) scenarios: Vec<&'static Scenario>,
    pub(super) servers: Vec<&'static Entry>,
    pub(super) rounds: usize,
    pub(super) seconds: f64,
    pub(super) threads: usize,
    pub(super) pin: bool,
    pub(super) rate: Option<f64>,
    pub(super) strict: bool,
    /// The directory for reports; `None` for no reports.
    pub(super) out: Option<PathBuf>,
}

impl Options {
    /// Parses the arguments that follow `compare`.
    ///
    /// # Errors
    ///
    /// The arguments are invalid. Nothing has been started.
    pub fn parse_compare(words: impl IntoIterator<Item = String>) -> Result<Options, OptionsError> {
        Options::parse(words, 9)
    }

    /// Parses the arguments that follow `memory`.
    ///
    /// # Errors
    ///
    /// The arguments are invalid. Nothing has been started.
    pub fn parse_memory(words: impl IntoIterator<Item = String>) -> Result<Options, OptionsError> {
        Options::parse(words, 3)
    }

    fn parse(
        words: impl IntoIterator<Item = String>,
        rounds: usize,
    ) -> Result<Options, OptionsError> {
        let mut options = Options {
            scenarios: Vec::new(),
            servers: Vec::new(),
            rounds,
            seconds: 2.0,
            threads: 1,
            pin: false,
            rate: None,
            strict: false,
            out: Some(root().join("doc/benchmarks")),
        };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().unwrap_or_default();
            match word.as_str() {
                "--scenario" => options.add_scenario(value())?,
                "--server" => options.add_server(value())?,
                "--rounds" => options.rounds = positive(&word, &value())?.ceil() as usize,
                "--seconds" => options.seconds = positive(&word, &value())?,
                "--threads" => options.threads = positive(&word, &value())?.ceil() as usize,
                "--pin" => options.pin = true,
                "--strict" => options.strict = true,
                "--rate" => options.rate = Some(positive(&word, &value())?),
                "--out" => {
                    options.out =
                        Some(value()).filter(|directory| directory != "-").map(PathBuf::from)
                }
                _ => return Err(OptionsError::Option(word)),
            }
        }
        if options.scenarios.is_empty() {
            options.scenarios.push(&SCENARIOS[0]);
        }
        if options.servers.is_empty() {
            options.servers.extend(SERVERS);
        }
        Ok(options)
    }

    fn add_scenario(&mut self, name: String) -> Result<(), OptionsError> {
        if name == "all" {
            self.scenarios.extend(SCENARIOS);
            return Ok(());
        }
        self.scenarios.push(scenario::find(&name).ok_or(OptionsError::Scenario(name))?);
        Ok(())
    }

    fn add_server(&mut self, name: String) -> Result<(), OptionsError> {
        if name == "all" {
            self.servers.extend(SERVERS);
            return Ok(());
        }
        self.servers.push(catalogue::find(&name).ok_or(OptionsError::Server(name))?);
        Ok(())
    }

    /// Returns a suffix that distinguishes the reports of different set-ups.
    pub(super) fn suffix(&self) -> String {
        let pin = if self.pin { "-pinned" } else { "" };
        match self.threads {
            1 => pin.to_owned(),
            threads => format!("{pin}-{threads}-threads"),
        }
    }
}

/// Returns the names of all scenarios and servers, for the help.
pub fn names() -> String {
    let mut text = "Scenarios:\n".to_owned();
    for Scenario { name, what, .. } in SCENARIOS {
        text.push_str(&format!("  {name:<15}  {what}\n"));
    }
    let servers: Vec<&str> = SERVERS.iter().map(|entry| entry.name).collect();
    text + &format!("\nServers:\n  {}\n", servers.join(", "))
}

fn positive(option: &str, value: &str) -> Result<f64, OptionsError> {
    let number = value.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| OptionsError::Number(option.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{Options, OptionsError, SCENARIOS, SERVERS};

    fn parse(line: &str) -> Result<Options, OptionsError> {
        Options::parse_compare(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn the_default_options_run_hello_over_all_servers() {
        let options = parse("").expect("right");
        assert_eq!(options.scenarios, [&SCENARIOS[0]]);
        assert_eq!(options.servers.len(), SERVERS.len());
        assert_eq!((options.rounds, options.seconds, options.pin), (9, 2.0, false));
        assert_eq!(options.suffix(), "");
    }

    #[test]
    fn every_option_is_read() {
        let line = "--scenario pipelined-16 --scenario hello-64 --server nginx --rounds 3 --seconds 0.5 --threads 2 \
            --pin --strict --rate 1000 --out -";
        let options = parse(line).expect("right");
        assert_eq!(
            options.scenarios.iter().map(|s| s.name).collect::<Vec<_>>(),
            ["pipelined-16", "hello-64"]
        );
        assert_eq!(options.servers.iter().map(|s| s.name).collect::<Vec<_>>(), ["nginx"]);
        assert_eq!((options.rounds, options.seconds, options.threads), (3, 0.5, 2));
        assert_eq!((options.pin, options.strict), (true, true));
        assert_eq!((options.rate, &options.out), (Some(1000.0), &None));
        assert_eq!(options.suffix(), "-pinned-2-threads");
    }

    #[test]
    fn invalid_arguments_are_refused() {
        for line in [
            "nginx",
            "--fast",
            "--scenario fly",
            "--server a",
            "--rounds",
            "--rounds 0",
            "--seconds -1",
            "--rate NaN",
        ] {
            assert!(parse(line).is_err(), "{line:?}");
        }
    }
}
