//! The errors of a hand-over, and what helps.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The error of a failed hand-over. The process that has the listeners goes on serving, unless the
/// text says otherwise.
///
/// `Display` prints the reason, including the system's error. `Debug` prints the same, because that
/// is how an error returned from `main` is printed.
pub struct HandOverError {
    path: PathBuf,
    kind: HandOverErrorKind,
}

/// What went wrong in a hand-over.
#[derive(Debug)]
#[non_exhaustive]
pub enum HandOverErrorKind {
    /// The caller's mistake: the path does not fit into a socket's address (unix(7)). Use a shorter
    /// one.
    PathTooLong {
        /// The length of the path.
        bytes: usize,
        /// The maximum length.
        max: usize,
    },
    /// Something other than a socket is at the path. It was not changed.
    NotASocket,
    /// The process at the other end belongs to another user. Nothing was sent to it, and nothing
    /// that it sent was used.
    OtherUser {
        /// The user of that process.
        theirs: u32,
        /// The user of this one.
        ours: u32,
    },
    /// Another process is getting the listeners at this moment, or is opening them because no
    /// process runs: two were started at the same time.
    Busy,
    /// This process took too long to be ready, and the other one has given it up. The other one
    /// serves, and waits for another successor.
    Late,
    /// The other process has not answered for this long.
    Silent(Duration),
    /// The other process ended before the hand-over was complete.
    Gone,
    /// The other process sent something that this library does not understand.
    Nonsense(&'static str),
    /// The predecessor is gone and this process serves, but it could not take the path, so no
    /// successor will find it. If it ended, no process would serve.
    NoPath(io::Error),
    /// The system refuses: for example there is no permission, or no descriptor or thread is left.
    Refused {
        /// The operation that failed.
        what: &'static str,
        /// The system's error.
        cause: io::Error,
    },
}

impl HandOverError {
    pub(super) fn new(path: &Path, kind: HandOverErrorKind) -> HandOverError {
        HandOverError { path: path.to_owned(), kind }
    }

    /// Returns what went wrong.
    pub fn kind(&self) -> &HandOverErrorKind {
        &self.kind
    }
}

impl HandOverErrorKind {
    /// Maps a system error to its meaning while talking to another process.
    pub(super) fn peer_error(what: &'static str, time: Duration) -> impl Fn(io::Error) -> Self {
        move |cause| match cause.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => HandOverErrorKind::Silent(time),
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset => HandOverErrorKind::Gone,
            _ => HandOverErrorKind::Refused { what, cause },
        }
    }

    pub(super) fn refused(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |cause| HandOverErrorKind::Refused { what, cause }
    }
}

impl fmt::Display for HandOverErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandOverErrorKind::PathTooLong { bytes, max } => {
                write!(f, "the path has {bytes} bytes and may have {max}: choose a shorter one")
            }
            HandOverErrorKind::NotASocket => {
                f.write_str("something else than a socket is there: remove it, or choose another")
            }
            HandOverErrorKind::OtherUser { theirs, ours } => write!(
                f,
                "the process there belongs to user {theirs} and this one to user {ours}: \
                 choose a directory that only one of them can write to"
            ),
            HandOverErrorKind::Busy => {
                f.write_str("another process is starting with these listeners: start one at a time")
            }
            HandOverErrorKind::Late => f.write_str(
                "this process was not ready in time, and the one before it goes on: \
                 end it, make it ready sooner, or have the other wait longer (`ready_within`)",
            ),
            HandOverErrorKind::Silent(time) => write!(
                f,
                "the process there has said nothing for {time:?}: see what it does, or end it"
            ),
            HandOverErrorKind::Gone => {
                f.write_str("the process there has gone meanwhile: start this one again")
            }
            HandOverErrorKind::Nonsense(what) => {
                write!(f, "the process there is not of this program, or of another version: {what}")
            }
            HandOverErrorKind::NoPath(cause) => write!(
                f,
                "this process serves and no other one does, but none will find it, since it \
                 cannot take the path: {cause}: see to the path, then end this one and start it anew"
            ),
            HandOverErrorKind::Refused { what, cause } => write!(f, "cannot {what}: {cause}"),
        }
    }
}

impl fmt::Display for HandOverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no hand-over at {}: {}", self.path.display(), self.kind)
    }
}

impl fmt::Debug for HandOverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for HandOverError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            // The text contains the cause already; it must not be printed twice.
            HandOverErrorKind::Refused { cause, .. } | HandOverErrorKind::NoPath(cause) => {
                cause.source()
            }
            _ => None,
        }
    }
}
