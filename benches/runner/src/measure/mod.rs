//! The measurements, a module each. Each answers with the lines to print.

mod cpu;
mod instructions;
mod syscalls;

use std::env;
use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{self, Command, ExitStatus};
use std::time::Duration;

use quick_error::quick_error;

use crate::arguments::{Arguments, Measurement, ServerCommand};
use crate::load::Generator;
use crate::server::{Server, ServerError};

/// How long a server may take to start or to end; one under a tool takes seconds.
const PATIENCE: Duration = Duration::from_secs(60);

quick_error! {
    /// Why there is no result.
    #[derive(Debug)]
    pub enum MeasureError {
        /// A server could not be started, gave wrong answers, or could not be ended.
        Server(label: String, error: Box<dyn Error + Send + Sync>) {
            display("{}", label)
            source(&**error)
        }
        /// The machine does not offer what was asked for.
        System(error: io::Error) {
            display("this system does not allow the measurement")
            from()
            source(error)
        }
        /// A tool's report is not what we know.
        Report(tool: &'static str, why: String) {
            display("the report of {} is not understood: {}", tool, why)
        }
    }
}

impl MeasureError {
    fn server(
        server: &ServerCommand,
        error: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> MeasureError {
        MeasureError::Server(server.label(), error.into())
    }
}

/// Runs the measurement that was asked for.
///
/// # Errors
/// When a server misbehaves or the system lacks what is needed. A missing tool is no error: the
/// text says so.
pub fn run(arguments: &Arguments) -> Result<String, MeasureError> {
    match arguments.measurement {
        Measurement::Syscalls => syscalls::run(arguments),
        Measurement::Instructions => instructions::run(arguments),
        Measurement::Cpu => cpu::run(arguments),
    }
}

/// Runs a server once under a tool, from its start to its end, with so many requests.
///
/// Two runs, one of twice as many requests, cancel what the start, the connections and the end
/// cost: the difference over the requests is what a request costs.
fn run_once(
    arguments: &Arguments,
    command: Command,
    requests: u64,
    end: fn(Server, Duration) -> Result<ExitStatus, ServerError>,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let server = Server::start(command, PATIENCE)?;
    let mut generator =
        Generator::connect(server.address(), arguments.connections, arguments.pipeline)?;
    generator.run(requests)?;
    // With which status it ends is not ours to judge: a server without a handler dies of the
    // signal. The connections stay open until then, since how many of them it would still see
    // closing is chance.
    end(server, PATIENCE)?;
    drop(generator);
    Ok(())
}

/// A file that a tool writes its report to, in the temporary directory, under a name that no other
/// run uses. It is removed with the value, so also after a failed run.
struct Report(PathBuf);

impl Report {
    fn new(tool: &str) -> Report {
        Report(env::temp_dir().join(format!("rotor-bench-{tool}-{}", process::id())))
    }

    fn path(&self) -> &Path {
        &self.0
    }

    fn read(&self) -> io::Result<String> {
        fs::read_to_string(&self.0)
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        // There may be none, when the tool did not get as far.
        let _ = fs::remove_file(&self.0);
    }
}
