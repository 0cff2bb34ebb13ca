//! An HTTP server that keeps what is uploaded to it as files, of any size, in little memory.
//!
//! ```text
//! cargo run --release -p rotor-examples --example upload_to_disk [ADDRESS] [DIRECTORY]
//! listening on http://127.0.0.1:3000/
//! try: curl -T some-file http://127.0.0.1:3000/name
//! ```
//!
//! `PUT /NAME` keeps the body as `NAME` in the directory: 201 if the name is new, 200 if it takes the
//! place of what had it, unless `If-None-Match: *` asks for a new one only (412). The answer says how
//! many octets it has. A name appears when all of its file is there: whoever goes away in the middle
//! leaves nothing. A part of a file (`Content-Range`) is refused; so is the name of a directory (409),
//! and what a full disk has no space for (507).
//!
//! It listens on 127.0.0.1:3000 and keeps files in `uploads` unless told otherwise. SIGINT or
//! SIGTERM lets the requests that are under way finish.
#![forbid(unsafe_code)]

mod machine;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use machine::Keep;
use rotor::BoxError;
use rotor::body::{Dir, Spool, SpoolConfig};
use rotor::http::server::{HttpSeed, ServerConfig};
use rotor_examples::program;
use rotor_examples::serve::serve_http;

fn main() -> ExitCode {
    program::run(upload_to_disk)
}

fn upload_to_disk() -> Result<(), BoxError> {
    let address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    let directory = std::env::args_os().nth(2).map_or_else(|| "uploads".into(), PathBuf::from);
    let (dir, spool) = open(&directory)?;
    let seed = HttpSeed::<Keep>::new(dir, ServerConfig::new().spool(spool));
    serve_http(address, seed, (), |address| format!("try: curl -T some-file http://{address}/name"))
}

/// The directory, and a spool in it: where both are on one file system, a file is given its name
/// without being copied.
fn open(directory: &Path) -> Result<(Dir, Spool), BoxError> {
    let opened = std::fs::create_dir_all(directory)
        .and_then(|()| Ok((Dir::open(directory)?, SpoolConfig::new(directory).open()?)));
    opened.map_err(|error| format!("cannot keep files in {}: {error}", directory.display()).into())
}
