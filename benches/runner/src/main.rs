//! `rotor-bench`: see the library's documentation, or run it without arguments.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a command-line tool reports there")]

use std::env;
use std::error::Error;
use std::process::ExitCode;

use rotor_bench::arguments::{Arguments, USAGE};
use rotor_bench::measure;

fn main() -> ExitCode {
    if matches!(env::args().nth(1).as_deref(), None | Some("help" | "--help" | "-h")) {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let arguments = match Arguments::parse(env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(e) => {
            eprintln!("rotor-bench: {e}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match measure::run(&arguments) {
        Ok(report) => {
            print!("{report}");
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("rotor-bench: {}", with_causes(&e));
            ExitCode::FAILURE
        }
    }
}

/// An error and what caused it, on one line.
fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
