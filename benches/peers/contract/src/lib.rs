//! What the servers here have in common, so that each of them is only its framework.
//!
//! **A server takes its listen address as first argument, prints `listening on
//! http://ADDRESS:PORT/` when it listens, and answers as the table says.** What a framework does
//! not make simple it may leave out.
//!
//! | request | answer |
//! |--|--|
//! | `GET /` | [`HELLO`] as `text/plain` |
//! | `POST /` | the same, after the request's body has been read |
//! | `GET /64k` | [`body_64k`], from memory |
//! | `GET /1m` | [`body_1m`], from memory |
//! | `GET /file` | the file that the environment names as `FILE` |
//!
//! The environment also says how many `THREADS` serve.
#![forbid(unsafe_code)]

use std::env;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The body of the hello answer.
pub const HELLO: &str = "Hello, World!";

/// Connections that may wait to be accepted: as many as Linux allows by default. Each framework is
/// told the same, since their own defaults lie between 128 and 4096, and it is not the backlog that
/// is compared.
pub const BACKLOG: u16 = 4096;

/// Where to listen: the first argument, by default a port that is easy to type.
///
/// # Errors
/// When the argument is no address.
pub fn address() -> io::Result<SocketAddr> {
    let argument = env::args().nth(1);
    let address = argument.as_deref().unwrap_or("127.0.0.1:3000");
    address
        .parse()
        .map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, format!("{address}: {e}")))
}

/// Prints where the server listens, at once: whoever started it on port 0 waits for the line.
///
/// # Errors
/// When standard output is closed.
pub fn announce(address: SocketAddr) -> io::Result<()> {
    let mut stdout = io::stdout();
    writeln!(stdout, "listening on http://{address}/")?;
    stdout.flush()
}

/// How many threads serve, if the environment says so.
///
/// # Errors
/// When it says something that is no number.
pub fn threads() -> io::Result<Option<usize>> {
    let Ok(threads) = env::var("THREADS") else { return Ok(None) };
    let threads = threads.parse().map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("THREADS={threads} is not a number"))
    })?;
    Ok(Some(threads))
}

/// The file that `/file` answers with, if the environment names one.
pub fn file() -> Option<PathBuf> {
    env::var_os("FILE").map(PathBuf::from)
}

/// The body of the `/64k` answer.
pub fn body_64k() -> String {
    letters(64 * 1024)
}

/// The body of the `/1m` answer.
pub fn body_1m() -> String {
    letters(1024 * 1024)
}

/// The alphabet over and over. Two pieces in the wrong order show, which they would not if all
/// bytes were the same.
pub fn letters(bytes: usize) -> String {
    ('a'..='z').cycle().take(bytes).collect()
}
