//! The access log: one line for each request, written by a thread of its own.
//!
//! ```text
//!   loops ──line──▶ queue, bounded ──▶ writer ──▶ file, reopened on request
//!              └─ full: the line is lost, and counted
//! ```

mod format;
mod json;
mod lost_lines;
mod parts;
mod writer;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::Builder;
use std::time::Duration;

pub use self::format::LogFormat;
pub use self::lost_lines::LostLines;
#[cfg(test)]
use self::writer::LogFile;
use self::writer::{Destination, Writer};
use super::finished::Finished;

/// The default limit of the lines that wait for the writer: a second of a busy server.
const LINES_MAX: usize = 10_000;

/// The greatest limit that can be set: 32 bytes for each line are allocated at the start.
const LINES_CAPACITY: usize = 1 << 20;

/// The default limit of the bytes in the lines that wait for the writer, because peers choose how
/// long a line is.
const BYTES_MAX: usize = 16 << 20;

/// The settings of an access log.
///
/// ```no_run
/// # mod rotor { pub use rotor_core::*; pub use rotor_http as http; }
/// use rotor::http::server::{AccessLog, AccessLogConfig, LogFormat, ServerConfig};
///
/// # fn main() -> std::io::Result<()> {
/// let log = AccessLogConfig::file("/var/log/api/access.log").format(LogFormat::Combined).start()?;
/// let config = ServerConfig::new().access_log(&log);
/// // logrotate sends SIGHUP once it has renamed the file.
/// let again = log.reopener();
/// rotor::signals::on_hangup(move || again.reopen())?;
/// # Ok(())
/// # }
/// ```
///
/// A log that all threads of a [`Serve`](super::Serve) share:
///
/// ```no_run
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::Status;
/// use rotor::http::server::{
///     AccessLogConfig, Head, Reply, Response, Scope, Serve, ServerConfig,
/// };
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// fn hello(_: &Head<'_>, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
///     response.reply(Status::OK, "text/plain", b"Hello, World!")
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let log = Arc::new(AccessLogConfig::standard_output().start()?);
/// let shared = log.clone();
/// Serve::new("127.0.0.1:3000")
///     .threads(4)
///     .config(move || ServerConfig::new().access_log(&shared))
///     .run_fn(hello, || ())?;
/// // The servers have dropped it by now.
/// if !Arc::into_inner(log).is_some_and(|log| log.finish(Duration::from_secs(1))) {
///     eprintln!("the last lines of the access log are lost");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct AccessLogConfig {
    path: Option<PathBuf>,
    format: LogFormat,
    lines_max: usize,
    bytes_max: usize,
}

impl AccessLogConfig {
    /// Writes to a file: appends to it, or creates it if it does not exist.
    pub fn file(path: impl Into<PathBuf>) -> AccessLogConfig {
        AccessLogConfig { path: Some(path.into()), ..AccessLogConfig::standard_output() }
    }

    /// Writes to standard output.
    pub fn standard_output() -> AccessLogConfig {
        AccessLogConfig {
            path: None,
            format: LogFormat::Common,
            lines_max: LINES_MAX,
            bytes_max: BYTES_MAX,
        }
    }

    /// Sets the format of a line. Default: [`LogFormat::Common`].
    pub fn format(mut self, format: LogFormat) -> AccessLogConfig {
        self.format = format;
        self
    }

    /// Sets how many lines may wait for the writer. At least 1; default 10,000: a second of a busy
    /// server, some 2 MB; at most 1,048,576. Further lines are lost and [counted](AccessLog::lost),
    /// so that a slow disk does not hold up a loop.
    pub fn lines_max(mut self, lines: usize) -> AccessLogConfig {
        self.lines_max = lines.clamp(1, LINES_CAPACITY);
        self
    }

    /// Sets how many bytes the lines that wait for the writer may have together. Default 16 MiB:
    /// peers choose targets and fields, and a byte that is escaped becomes four or six. Further
    /// lines are lost and [counted](AccessLog::lost).
    pub fn bytes_max(mut self, bytes: usize) -> AccessLogConfig {
        self.bytes_max = bytes;
        self
    }

    /// Opens the file and starts the writer.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened (the message has its path), or no thread can be started.
    pub fn start(self) -> io::Result<AccessLog> {
        let destination = match &self.path {
            Some(path) => Destination::open(path.clone()).map_err(|error| {
                let what = format!("cannot open the access log {}: {error}", path.display());
                io::Error::new(error.kind(), what)
            })?,
            None => Destination::StandardOutput(io::stdout()),
        };
        self.start_with(destination)
    }

    fn start_with(self, destination: Destination) -> io::Result<AccessLog> {
        let (lines, receiver) = sync_channel(self.lines_max);
        let (end_sender, end_receiver) = channel();
        let (lost, is_stale) = (LostLines::default(), Arc::new(AtomicBool::new(false)));
        let budget = ByteBudget { waiting: Arc::default(), bytes_max: self.bytes_max };
        let waiting = budget.waiting.clone();
        let writer = Writer::new(destination, lost.clone(), is_stale.clone(), waiting);
        Builder::new().name("access log".into()).spawn(move || {
            // Dropped however the thread ends, so that `finish` returns.
            let end_sender = end_sender;
            let is_all_written = writer.run(&receiver);
            // Fails if nobody waits.
            let _ = end_sender.send(is_all_written);
        })?;
        let (lines, end_receiver) = (Arc::new(lines), Mutex::new(end_receiver));
        Ok(AccessLog { lines, budget, lost, format: self.format, is_stale, end_receiver })
    }
}

/// A running access log. With [`ServerConfig::access_log`](super::ServerConfig::access_log) the
/// connections of a server write to it; several servers may share one.
pub struct AccessLog {
    /// The log's own sender. Each server has another one, a reopener none.
    lines: Arc<SyncSender<String>>,
    budget: ByteBudget,
    lost: LostLines,
    format: LogFormat,
    is_stale: Arc<AtomicBool>,
    /// Gets whether everything was written, once the writer has ended. Locked only so that threads
    /// can share the log.
    end_receiver: Mutex<Receiver<bool>>,
}

impl AccessLog {
    /// Returns the function that a server calls for each finished request.
    pub(super) fn hook(&self) -> impl Fn(&Finished<'_>) + Send + Sync + 'static {
        let lines = SyncSender::clone(&self.lines);
        let (budget, lost, format) = (self.budget.clone(), self.lost.clone(), self.format);
        move |finished| {
            let line = format.line(finished);
            let len = line.len();
            if !budget.reserve(len) {
                lost.add();
            } else if lines.try_send(line).is_err() {
                budget.release(len);
                lost.add();
            }
        }
    }

    pub(super) fn format(&self) -> LogFormat {
        self.format
    }

    /// Returns the counter of lost lines, which can be read at any time.
    pub fn lost(&self) -> LostLines {
        self.lost.clone()
    }

    /// Returns a handle that makes the log reopen its file.
    pub fn reopener(&self) -> LogReopener {
        LogReopener { lines: Arc::downgrade(&self.lines), is_stale: self.is_stale.clone() }
    }

    /// Waits until everything is written, but at most for `most`. Returns whether everything that
    /// still waited was written: lines that cannot be written, for example because the disk is
    /// full, are lost and [counted](AccessLog::lost). Drop the servers that write to the log first.
    /// Reopeners may still exist, for example in a signal handler: they have no effect afterwards.
    #[must_use = "lines may be left"]
    pub fn finish(self, most: Duration) -> bool {
        drop(self.lines);
        let end_receiver = self.end_receiver.into_inner().unwrap_or_else(PoisonError::into_inner);
        end_receiver.recv_timeout(most) == Ok(true)
    }
}

/// Makes an access log reopen its file, under the same path, after a program such as logrotate has
/// renamed it.
#[derive(Clone)]
pub struct LogReopener {
    /// Weak, so that a reopener that is never dropped does not keep the writer waiting forever.
    lines: Weak<SyncSender<String>>,
    is_stale: Arc<AtomicBool>,
}

impl LogReopener {
    /// Makes the writer reopen the file before it writes the next line. If that fails, an error is
    /// logged and the old file stays in use. If the log does not write to a file, this does
    /// nothing.
    pub fn reopen(&self) {
        self.is_stale.store(true, Relaxed);
        // An empty line wakes the writer. If there is no room for it, the writer is awake already.
        if let Some(lines) = self.lines.upgrade() {
            let _awake = lines.try_send(String::new());
        }
    }
}

/// Limits the bytes of the lines that wait.
#[derive(Clone)]
struct ByteBudget {
    waiting: Arc<AtomicUsize>,
    bytes_max: usize,
}

impl ByteBudget {
    /// Takes room for a line, and returns whether there was enough.
    fn reserve(&self, len: usize) -> bool {
        let before = self.waiting.fetch_add(len, Relaxed);
        let has_room = before.checked_add(len).is_some_and(|all| all <= self.bytes_max);
        if !has_room {
            self.release(len);
        }
        has_room
    }

    fn release(&self, len: usize) {
        self.waiting.fetch_sub(len, Relaxed);
    }
}

impl fmt::Debug for LogReopener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogReopener")
    }
}

impl fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccessLog({:?}, {:?})", self.format, self.lost)
    }
}

#[cfg(test)]
mod tests;
