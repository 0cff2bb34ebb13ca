//! What the `main` of every example does: read arguments, print, and end with an exit code.

use std::env;
use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;
use std::str::FromStr;

use rotor::{BoxError, with_causes};

/// Runs the program. An error is printed with its causes, and leads to a failure exit code.
pub fn run(program: impl FnOnce() -> Result<(), BoxError>) -> ExitCode {
    static LOGGER: StderrLogger = StderrLogger;
    if log::set_logger(&LOGGER).is_ok() {
        log::set_max_level(log::LevelFilter::Warn);
    }
    let Err(error) = program() else { return ExitCode::SUCCESS };
    // If this cannot be printed, nothing else can be done.
    let _ = writeln!(io::stderr(), "error: {}", with_causes(&*error));
    ExitCode::FAILURE
}

/// Returns the argument with this number, counted from 1, or the default if there is none.
pub fn argument<T>(number: usize, default: T) -> Result<T, BoxError>
where
    T: FromStr<Err: Display> + Display,
{
    let Some(argument) = env::args_os().nth(number) else { return Ok(default) };
    let argument = argument.to_string_lossy();
    argument.parse().map_err(|error| {
        let program = env::current_exe().unwrap_or_default();
        let name = program.file_stem().unwrap_or_default().display();
        format!(
            "argument {argument:?} should be like {default} ({error}); \
             examples/{name}/main.rs says which arguments there are"
        )
        .into()
    })
}

/// Returns the value of the environment variable `THREADS`, or else one.
pub fn threads() -> Result<usize, BoxError> {
    let Ok(number) = env::var("THREADS") else { return Ok(1) };
    number.parse().map_err(|_| format!("THREADS is to be a number, not {number:?}").into())
}

/// Prints lines and flushes them, whatever standard output is connected to.
pub fn print(lines: &[String]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    for line in lines {
        writeln!(stdout, "{line}")?;
    }
    stdout.flush()
}

/// Prints the log messages of the loop and the machines. A program of yours has its own logger.
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
