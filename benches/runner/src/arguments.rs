//! The command line. It is parsed by hand: three subcommands that share five options need no crate.

use std::process::Command;
use std::str::FromStr;

use quick_error::quick_error;

/// The text that is printed for help and after invalid arguments.
pub const USAGE: &str = "\
rotor-bench MEASUREMENT [OPTIONS] SERVER...

Measurements:
  syscalls       system calls per request, counted by strace
  instructions   user instructions per request, counted by valgrind's callgrind
  cpu            CPU time of the server per request, servers taking turns

Options (defaults: syscalls and instructions / cpu):
  --connections N  connections held open (64, instructions 16)
  --pipeline N     requests under way on each connection (1)
  --requests N     requests of one run (20000 / 200000)
  --rounds N       cpu: rounds over all servers (3)
  --pin            cpu: server and load generator on a core each

Each SERVER is one command, words separated by spaces, NAME=value words in front for its environment. It gets its
listen address as last argument and prints a line with http://ADDRESS:PORT/. Ratios are to the first.
";

quick_error! {
    /// What is wrong with a command line.
    #[derive(Debug, PartialEq, Eq)]
    pub enum ArgumentError {
        /// There is no measurement with this name.
        Measurement(name: String) {
            display("no such measurement: '{}'", name)
        }
        /// There is no option with this name.
        Option(name: String) {
            display("no such option: '{}'", name)
        }
        /// The option needs a number of at least one.
        Number(name: String) {
            display("{} needs a number of at least one", name)
        }
        /// There is nothing to measure.
        NoServer {
            display("no server to measure")
        }
        /// A server without a program.
        NoProgram(text: String) {
            display("no program in '{}'", text)
        }
    }
}

/// What to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measurement {
    /// System calls per request.
    Syscalls,
    /// User instructions per request.
    Instructions,
    /// CPU time of the server per request.
    Cpu,
}

/// A whole command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments {
    /// What to measure.
    pub measurement: Measurement,
    /// Connections held open.
    pub connections: usize,
    /// The number of simultaneous requests on each connection.
    pub pipeline: usize,
    /// The number of requests in one run.
    pub requests: u64,
    /// The number of rounds over all servers.
    pub rounds: usize,
    /// Whether server and load generator are pinned to a core each.
    pub pin: bool,
    /// The servers to measure; at least one.
    pub servers: Vec<ServerCommand>,
}

impl Arguments {
    /// Parses the arguments that follow the program's name.
    ///
    /// # Errors
    ///
    /// The arguments are invalid. Nothing has been started.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Arguments, ArgumentError> {
        let mut words = words.into_iter();
        let mut arguments = Arguments::for_measurement(&words.next().unwrap_or_default())?;
        while let Some(word) = words.next() {
            match word.as_str() {
                "--connections" => arguments.connections = number(&word, words.next())?,
                "--pipeline" => arguments.pipeline = number(&word, words.next())?,
                "--requests" => arguments.requests = number(&word, words.next())?,
                "--rounds" => arguments.rounds = number(&word, words.next())?,
                "--pin" => arguments.pin = true,
                option if option.starts_with('-') => return Err(ArgumentError::Option(word)),
                server => arguments.servers.push(ServerCommand::parse(server)?),
            }
        }
        if arguments.servers.is_empty() {
            return Err(ArgumentError::NoServer);
        }
        Ok(arguments)
    }

    /// Returns the defaults: few requests if a tool makes each of them slow, many if the clock's
    /// resolution of 10 ms must not matter.
    fn for_measurement(name: &str) -> Result<Arguments, ArgumentError> {
        let (measurement, connections, requests) = match name {
            "syscalls" => (Measurement::Syscalls, 64, 20_000),
            "instructions" => (Measurement::Instructions, 16, 20_000),
            "cpu" => (Measurement::Cpu, 64, 200_000),
            _ => return Err(ArgumentError::Measurement(name.to_owned())),
        };
        let (pipeline, rounds, pin, servers) = (1, 3, false, Vec::new());
        Ok(Arguments { measurement, connections, pipeline, requests, rounds, pin, servers })
    }
}

fn number<T: FromStr + Default + PartialEq>(
    option: &str,
    value: Option<String>,
) -> Result<T, ArgumentError> {
    value
        .and_then(|text| text.parse().ok())
        .filter(|number| *number != T::default())
        .ok_or_else(|| ArgumentError::Number(option.to_owned()))
}

/// How to start a server, once or several times, by itself or under a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerCommand {
    environment: Vec<(String, String)>,
    words: Vec<String>,
}

impl ServerCommand {
    fn parse(text: &str) -> Result<ServerCommand, ArgumentError> {
        let mut words = text.split_whitespace().map(str::to_owned).peekable();
        let mut environment = Vec::new();
        while let Some((name, value)) = words.peek().and_then(|word| word.split_once('=')) {
            environment.push((name.to_owned(), value.to_owned()));
            words.next();
        }
        let words: Vec<String> = words.collect();
        if words.is_empty() {
            return Err(ArgumentError::NoProgram(text.to_owned()));
        }
        Ok(ServerCommand { environment, words })
    }

    /// Returns the command as given.
    pub fn command(&self) -> Command {
        self.under(Command::new(&self.words[0]), 1)
    }

    /// Returns the command as the last arguments of a tool that runs it.
    pub fn command_under(&self, tool: Command) -> Command {
        self.under(tool, 0)
    }

    fn under(&self, mut command: Command, first: usize) -> Command {
        command.args(&self.words[first..]);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Returns a short name for tables: the environment, the file name of the program, its
    /// arguments.
    pub fn label(&self) -> String {
        let file = self.words[0].rsplit('/').next().unwrap_or(&self.words[0]);
        let environment = self.environment.iter().map(|(name, value)| format!("{name}={value}"));
        let words = [file.to_owned()].into_iter().chain(self.words[1..].iter().cloned());
        environment.chain(words).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::{ArgumentError, Arguments, Measurement};

    fn parse(line: &[&str]) -> Result<Arguments, ArgumentError> {
        Arguments::parse(line.iter().map(|word| (*word).to_owned()))
    }

    #[test]
    fn options_and_servers_may_be_mixed() {
        let arguments =
            parse(&["cpu", "--pin", "THREADS=2 a/b c", "--pipeline", "16", "d"]).expect("right");
        assert_eq!(arguments.measurement, Measurement::Cpu);
        assert!(arguments.pin);
        assert_eq!(arguments.pipeline, 16);
        assert_eq!(arguments.connections, 64);
        let labels: Vec<String> =
            arguments.servers.iter().map(super::ServerCommand::label).collect();
        assert_eq!(labels, ["THREADS=2 b c", "d"]);
        let command = arguments.servers[0].command();
        assert_eq!(command.get_program(), "a/b");
        assert_eq!(command.get_args().collect::<Vec<_>>(), ["c"]);
        assert_eq!(command.get_envs().count(), 1);
    }

    #[test]
    fn invalid_arguments_are_refused() {
        for line in [
            &[][..],
            &["fly", "a"],
            &["cpu"],
            &["cpu", "--fast", "a"],
            &["cpu", "a", "--rounds"],
            &["cpu", "a", "--rounds", "0"],
            &["cpu", "a", "--rounds", "many"],
            &["cpu", "A=b"],
            &["cpu", ""],
        ] {
            assert!(parse(line).is_err(), "{line:?}");
        }
    }
}
