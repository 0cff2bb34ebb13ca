//! The measurements, one module each. Each returns the lines to print.

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

/// How long a server may take to start or to end. Under a tool it takes seconds.
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
        /// The computer does not support what was requested.
        System(error: io::Error) {
            display("this system does not allow the measurement")
            from()
            source(error)
        }
        /// A tool's report has an unknown format.
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

/// Runs the requested measurement.
///
/// # Errors
///
/// A server misbehaves, or the system lacks something necessary. A missing tool is not an error,
/// but reported in the text.
pub fn run(arguments: &Arguments) -> Result<String, MeasureError> {
    match arguments.measurement {
        Measurement::Syscalls => syscalls::run(arguments),
        Measurement::Instructions => instructions::run(arguments),
        Measurement::Cpu => cpu::run(arguments),
    }
}

/// Runs a server once under a tool, from its start to its end, with this many requests.
///
/// With two runs, one of them with twice as many requests, the cost of the start, the connections
/// and the end cancels out: the difference divided by the number of requests is the cost of a
/// request.
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
    // The exit status does not matter: a server without a handler is killed by the signal. The
    // connections stay open until then, since otherwise the number of closed connections that it
    // would notice would be random.
    end(server, PATIENCE)?;
    drop(generator);
    Ok(())
}

/// A file in the temporary directory to which a tool writes its report, under a unique name. It is
/// removed when the value is dropped, even after a failed run.
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
        // The file may not exist if the tool failed early.
        let _ = fs::remove_file(&self.0);
    }
}
