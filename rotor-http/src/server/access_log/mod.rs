//! The access log: a line for each request, written by a thread of its own.
//!
//! ```text
//!   loops ──line──▶ queue, bounded ──▶ writer ──▶ file, opened again when that is asked for
//!              └─ full: the line is lost, and counted
//! ```

mod format;
mod json;
mod lost_lines;
mod parts;
mod writer;

use std::fmt;
use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Weak};
use std::thread::Builder;
use std::time::Duration;

pub use self::format::LogFormat;
pub use self::lost_lines::LostLines;
use self::writer::{Destination, Writer};
use super::finished::Finished;

/// How many lines may wait for the writer, by default: a second of a busy server.
const LINES_MAX: usize = 10_000;

/// How many lines may wait at most: their places, of 32 octets, are there from the beginning.
const LINES_CAPACITY: usize = 1 << 20;

/// How many octets the lines that wait for the writer may have, by default: peers choose how long a
/// line is.
const BYTES_MAX: usize = 16 << 20;

/// How an access log is written.
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
#[derive(Clone, Debug)]
#[must_use]
pub struct AccessLogConfig {
    path: Option<PathBuf>,
    format: LogFormat,
    lines_max: usize,
    bytes_max: usize,
}

impl AccessLogConfig {
    /// Writes into a file, after what is there; the file is created if there is none.
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

    /// Sets how many lines may wait for the writer. Default 10,000: a second of a busy server, some
    /// 2 MB; at most 1,048,576. Further lines are lost and [counted](AccessLog::lost), so a slow
    /// disk holds up no loop.
    pub fn lines_max(mut self, lines: usize) -> AccessLogConfig {
        self.lines_max = lines.clamp(1, LINES_CAPACITY);
        self
    }

    /// Sets how many octets the lines that wait for the writer may have. Default 16 MiB: peers
    /// choose targets and fields, and an octet that is escaped becomes four or six. Lines beyond
    /// that are lost and [counted](AccessLog::lost).
    pub fn bytes_max(mut self, bytes: usize) -> AccessLogConfig {
        self.bytes_max = bytes;
        self
    }

    /// Opens the file and starts the writer.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened, or no thread can be started.
    pub fn start(self) -> io::Result<AccessLog> {
        let destination = match &self.path {
            Some(path) => Destination::open(path.clone())?,
            None => Destination::StandardOutput(BufWriter::new(io::stdout())),
        };
        self.start_with(destination)
    }

    fn start_with(self, destination: Destination) -> io::Result<AccessLog> {
        let (lines, receiver) = sync_channel(self.lines_max);
        let (ends, ended) = channel();
        let (lost, is_stale) = (LostLines::default(), Arc::new(AtomicBool::new(false)));
        let room = Room { waiting: Arc::default(), most: self.bytes_max };
        let waiting = room.waiting.clone();
        let writer = Writer::new(destination, lost.clone(), is_stale.clone(), waiting);
        Builder::new().name("access log".into()).spawn(move || {
            writer.run(&receiver);
            // The thread drops this however it ends, so that `finish` hears of it.
            drop(ends);
        })?;
        let lines = Arc::new(lines);
        Ok(AccessLog { lines, room, lost, format: self.format, is_stale, ended })
    }
}

/// An access log whose writer runs. [`ServerConfig::access_log`](super::ServerConfig::access_log)
/// makes the connections of a server write to it; several servers may share one.
pub struct AccessLog {
    /// Its own; a server has a sender of its own too, a reopener none.
    lines: Arc<SyncSender<String>>,
    room: Room,
    lost: LostLines,
    format: LogFormat,
    is_stale: Arc<AtomicBool>,
    /// Says by its end that the writer has ended.
    ended: Receiver<()>,
}

impl AccessLog {
    /// What a server calls for each finished request.
    pub(super) fn hook(&self) -> impl Fn(&Finished<'_>) + Send + Sync + 'static {
        let lines = SyncSender::clone(&self.lines);
        let (room, lost, format) = (self.room.clone(), self.lost.clone(), self.format);
        move |finished| {
            let line = format.line(finished);
            let len = line.len();
            if !room.take(len) {
                lost.add();
            } else if lines.try_send(line).is_err() {
                room.give_back(len);
                lost.add();
            }
        }
    }

    pub(super) fn format(&self) -> LogFormat {
        self.format
    }

    /// Returns the counter of lines that were lost, which can be read at any time.
    pub fn lost(&self) -> LostLines {
        self.lost.clone()
    }

    /// Returns a handle that makes the log open its file again.
    pub fn reopener(&self) -> LogReopener {
        LogReopener { lines: Arc::downgrade(&self.lines), is_stale: self.is_stale.clone() }
    }

    /// Waits until everything is written, but no longer than `most`. The servers that write to it
    /// must be dropped before. Returns whether everything was written. Reopeners may be left, for
    /// example in the handler of a signal: they do nothing any more.
    #[must_use = "lines may be left"]
    pub fn finish(self, most: Duration) -> bool {
        drop(self.lines);
        self.ended.recv_timeout(most) != Err(RecvTimeoutError::Timeout)
    }
}

/// Makes an access log open its file again, under the same path, after something such as logrotate
/// has renamed the file.
#[derive(Clone)]
pub struct LogReopener {
    /// So that one that is kept for ever does not keep the writer waiting for ever.
    lines: Weak<SyncSender<String>>,
    is_stale: Arc<AtomicBool>,
}

impl LogReopener {
    /// Has the file opened again before the next line is written. If it cannot be opened, that is
    /// logged, and the old file stays in use. Without a file this does nothing.
    pub fn reopen(&self) {
        self.is_stale.store(true, Relaxed);
        // An empty line wakes the writer. If there is no room for it, the writer is awake.
        if let Some(lines) = self.lines.upgrade() {
            let _awake = lines.try_send(String::new());
        }
    }
}

/// The room for octets of lines that wait.
#[derive(Clone)]
struct Room {
    waiting: Arc<AtomicUsize>,
    most: usize,
}

impl Room {
    /// Takes room for a line; returns whether there was any.
    fn take(&self, len: usize) -> bool {
        let before = self.waiting.fetch_add(len, Relaxed);
        let has_room = before.checked_add(len).is_some_and(|all| all <= self.most);
        if !has_room {
            self.give_back(len);
        }
        has_room
    }

    fn give_back(&self, len: usize) {
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
