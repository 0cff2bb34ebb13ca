//! What the `main` of every example does: it reads arguments, prints, and ends with an exit code
//! that says how it went.

use std::env;
use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;
use std::str::FromStr;

use rotor::{BoxError, with_causes};

/// Runs the program. An error is printed with its causes, and the exit code says that there was
/// one.
pub fn run(program: impl FnOnce() -> Result<(), BoxError>) -> ExitCode {
    static LOGGER: StderrLogger = StderrLogger;
    if log::set_logger(&LOGGER).is_ok() {
        log::set_max_level(log::LevelFilter::Warn);
    }
    let Err(error) = program() else { return ExitCode::SUCCESS };
    // Where this cannot be printed there is nobody to tell.
    let _ = writeln!(io::stderr(), "error: {}", with_causes(&*error));
    ExitCode::FAILURE
}

/// The argument of that number, from 1, or the default where there is none.
pub fn argument<T: FromStr + Display>(number: usize, default: T) -> Result<T, BoxError> {
    let Some(argument) = env::args_os().nth(number) else { return Ok(default) };
    let argument = argument.to_string_lossy();
    argument.parse().map_err(|_| format!("argument {argument:?} should be like {default}").into())
}

/// Prints lines at once, whatever reads them.
pub fn print(lines: &[String]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    for line in lines {
        writeln!(stdout, "{line}")?;
    }
    stdout.flush()
}

/// Shows what the loop and the machines have to say. A program of yours has a logger of its own.
struct StderrLogger;

impl log::Log for StderrLogger {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let _ =
            writeln!(io::stderr(), "{}: {}", record.level().as_str().to_lowercase(), record.args());
    }

    fn flush(&self) {}
}
