//! An access log in the common log format, written by a thread of its own, so that a full pipe or a
//! slow disk never holds up the loop.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use rotor::http::server::Finished;
use time::OffsetDateTime;

/// Lines that wait for the writer at most; more are lost, and counted.
const LINES_MAX: usize = 10_000;

/// How long the program waits for what reads its log, at the end. Who reads at all has what is left
/// in far less.
const FINISH_TIME_MAX: Duration = Duration::from_secs(1);

pub(crate) struct AccessLog {
    lines: SyncSender<String>,
    lost: Arc<AtomicU64>,
    /// Says by its end that the writer has ended.
    ended: Receiver<()>,
}

impl AccessLog {
    /// Starts the writer.
    pub(crate) fn start() -> io::Result<AccessLog> {
        let (lines, receiver) = sync_channel(LINES_MAX);
        let (ends, ended) = channel();
        Builder::new().name("access log".into()).spawn(move || write_all(&receiver, ends))?;
        Ok(AccessLog { lines, lost: Arc::default(), ended })
    }

    /// What the connections call for each finished request.
    pub(crate) fn hook(&self) -> impl Fn(&Finished<'_>) + Send + Sync + 'static {
        let (lines, lost) = (self.lines.clone(), self.lost.clone());
        move |finished| {
            if lines.try_send(line(finished)).is_err() {
                lost.fetch_add(1, Relaxed);
            }
        }
    }

    /// How many lines were lost, to be read at any time.
    pub(crate) fn lost(&self) -> Arc<AtomicU64> {
        self.lost.clone()
    }

    /// Waits until all is written; the connections must be gone. A log that nobody reads does not
    /// keep the program from ending.
    pub(crate) fn finish(self) {
        drop(self.lines);
        if self.ended.recv_timeout(FINISH_TIME_MAX) == Err(RecvTimeoutError::Timeout) {
            log::warn!("nobody reads the access log: its last lines are lost");
        }
    }
}

/// Writes the lines until there will be no more, or nobody takes them. `_ends` goes when it ends,
/// however it does.
fn write_all(lines: &Receiver<String>, _ends: Sender<()>) {
    let mut out = io::BufWriter::new(io::stdout());
    while let Ok(line) = lines.recv() {
        let mut next = Some(line);
        while let Some(line) = next {
            if out.write_all(line.as_bytes()).is_err() {
                return;
            }
            next = lines.try_recv().ok();
        }
        if out.flush().is_err() {
            return;
        }
    }
}

/// `peer - - [time] "request line" status octets`; the octets are those of the whole answer, head
/// included.
fn line(finished: &Finished<'_>) -> String {
    let mut line = match finished.peer {
        Some(peer) => format!("{} - - ", peer.ip()),
        None => "- - - ".to_owned(),
    };
    add_time(&mut line, finished.unix_seconds);
    line.push_str(" \"");
    match finished.version {
        Some(version) => {
            add_escaped(&mut line, finished.method);
            line.push(' ');
            add_escaped(&mut line, finished.target);
            let _ = write!(line, " {version}");
        }
        // It could not be read.
        None => line.push('-'),
    }
    match finished.status {
        Some(status) => drop(writeln!(line, "\" {} {}", status.code(), finished.bytes)),
        None => line.push_str("\" - 0\n"),
    }
    line
}

/// `[10/Oct/2000:13:55:36 +0000]`
fn add_time(line: &mut String, unix_seconds: i64) {
    let time =
        OffsetDateTime::from_unix_timestamp(unix_seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let month = &time.month().to_string()[..3];
    let (hour, minute, second) = time.to_hms();
    let _ = write!(
        line,
        "[{:02}/{month}/{:04}:{hour:02}:{minute:02}:{second:02} +0000]",
        time.day(),
        time.year()
    );
}

/// Attackers choose what stands here: a quote would end the field early, a line end the line, an
/// escape sequence talks to the terminal of whoever reads it.
fn add_escaped(line: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => line.extend(['\\', byte as char]),
            b' '..=b'~' => line.push(byte as char),
            _ => drop(write!(line, "\\x{byte:02x}")),
        }
    }
}
