//! `rotor-bench`: see the library's documentation, or run it without arguments.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a command-line tool reports there")]

use std::env;
use std::error::Error;
use std::process::ExitCode;

use rotor_bench::arguments::{Arguments, USAGE};
use rotor_bench::compare::{self, Options, Outcome};
use rotor_bench::{json, measure};

fn main() -> ExitCode {
    let words = || env::args().skip(2);
    if words().any(|word| matches!(word.as_str(), "--help" | "-h")) {
        return help();
    }
    match env::args().nth(1).as_deref() {
        None | Some("help" | "--help" | "-h") => help(),
        Some("compare") => match Options::parse_compare(words()) {
            Ok(options) => show(compare::run(&options)),
            Err(e) => refuse(&e, &format!("{}\n{}", compare::USAGE, compare::names())),
        },
        Some("memory") => match Options::parse_memory(words()) {
            Ok(options) => show(compare::run_memory(&options)),
            Err(e) => refuse(&e, &format!("{}\n{}", compare::USAGE, compare::names())),
        },
        Some("json") => match json::Options::parse(words()) {
            Ok(options) => show(json::run(&options)),
            Err(e) => refuse(&e, json::USAGE),
        },
        Some(_) => match Arguments::parse(env::args().skip(1)) {
            Ok(arguments) => show(
                measure::run(&arguments)
                    .map(|text| Outcome { text, is_as_asked: true })
                    .map_err(Into::into),
            ),
            Err(e) => refuse(&e, USAGE),
        },
    }
}

fn help() -> ExitCode {
    print!("{USAGE}\n{}\n{}\n{}", compare::USAGE, compare::names(), json::USAGE);
    ExitCode::SUCCESS
}

fn refuse(error: &dyn Error, usage: &str) -> ExitCode {
    eprintln!("rotor-bench: {error}\n\n{usage}");
    ExitCode::from(2)
}

fn show(outcome: Result<Outcome, Box<dyn Error + Send + Sync>>) -> ExitCode {
    match outcome {
        Ok(Outcome { text, is_as_asked }) => {
            print!("{text}");
            if is_as_asked { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(e) => {
            eprintln!("rotor-bench: {}", with_causes(&*e));
            ExitCode::FAILURE
        }
    }
}

/// Returns an error and its causes on one line.
fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
