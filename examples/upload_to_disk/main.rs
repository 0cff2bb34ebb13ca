//! An HTTP server that stores uploads of any size as files, with little memory.
//!
//! ```text
//! cargo run --release -p rotor-examples --example upload_to_disk [ADDRESS] [DIRECTORY]
//! listening on http://127.0.0.1:3000/
//! try: curl -T some-file http://127.0.0.1:3000/name
//! ```
//!
//! `PUT /NAME` stores the body as `NAME` in the directory. The response is 201 if the name is new,
//! and 200 if the body replaces an existing file, unless `If-None-Match: *` allows only a new one
//! (412). The response says how many bytes it has. A name appears only when its file is complete:
//! if the client goes away earlier, nothing is left. A part of a file (`Content-Range`) is refused;
//! so are the name of a directory (409), and a body for which the disk has no space (507).
//!
//! It listens on 127.0.0.1:3000 and keeps files in `uploads` unless told otherwise. On SIGINT or
//! SIGTERM, requests in progress are finished first.
#![forbid(unsafe_code)]

mod machine;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use machine::Upload;
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
    let seed = HttpSeed::<Upload>::new(dir, ServerConfig::new().spool(spool));
    serve_http(address, seed, (), |address| format!("try: curl -T some-file http://{address}/name"))
}

/// Opens the directory, and a spool in it: if both are on one file system, a file gets its name
/// without being copied.
fn open(directory: &Path) -> Result<(Dir, Spool), BoxError> {
    std::fs::create_dir_all(directory)
        .map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
    Ok((Dir::open(directory)?, SpoolConfig::new(directory).open()?))
}
