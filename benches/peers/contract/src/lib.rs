//! Code that the servers here share, so that each of them contains only its framework.
//!
//! **A server takes its listen address as first argument, prints `listening on
//! http://ADDRESS:PORT/` when it listens, and answers as in the table.** It may leave out what its
//! framework does not make simple.
//!
//! | request | answer |
//! |--|--|
//! | `GET /` | [`HELLO`] as `text/plain` |
//! | `POST /` | the same, after the request's body has been read |
//! | `GET /64k` | [`body_64k`], from memory |
//! | `GET /1m` | [`body_1m`], from memory |
//! | `GET /file` | the file that the environment names as `FILE` |
//!
//! The environment variable `THREADS` is the number of threads that serve.
#![forbid(unsafe_code)]

use std::env;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The body of the hello response.
pub const HELLO: &str = "Hello, World!";

/// How many connections may wait to be accepted, which is Linux's default limit. Frameworks' own
/// defaults are between 128 and 4096. A server to which more connections are opened at once than its
/// default uses this number, since the backlog is not what is compared.
pub const BACKLOG: u16 = 4096;

/// Returns the listen address: the first argument, or by default a port that is easy to type.
///
/// # Errors
///
/// The argument is not an address.
pub fn address() -> io::Result<SocketAddr> {
    let argument = env::args().nth(1);
    let address = argument.as_deref().unwrap_or("127.0.0.1:3000");
    address
        .parse()
        .map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, format!("{address}: {e}")))
}

/// Prints the address of the server and flushes it: a caller that started it on port 0 waits for
/// this line.
///
/// # Errors
///
/// Standard output is closed.
pub fn announce(address: SocketAddr) -> io::Result<()> {
    let mut stdout = io::stdout();
    writeln!(stdout, "listening on http://{address}/")?;
    stdout.flush()
}

/// Returns how many threads should serve, if the environment says so.
///
/// # Errors
///
/// The variable is not a number.
pub fn threads() -> io::Result<Option<usize>> {
    let Ok(threads) = env::var("THREADS") else { return Ok(None) };
    let threads = threads.parse().map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("THREADS={threads} is not a number"))
    })?;
    Ok(Some(threads))
}

/// Returns the file for `/file`, if the environment names one.
pub fn file() -> Option<PathBuf> {
    env::var_os("FILE").map(PathBuf::from)
}

/// Returns the body of the `/64k` response.
pub fn body_64k() -> String {
    letters(64 * 1024)
}

/// Returns the body of the `/1m` response.
pub fn body_1m() -> String {
    letters(1024 * 1024)
}

/// Returns the alphabet, repeated. Pieces in the wrong order are detected, which would not be so if
/// all bytes were the same.
pub fn letters(bytes: usize) -> String {
    ('a'..='z').cycle().take(bytes).collect()
}
