//! An HTTP server that keeps what is uploaded to it as files, of any size, in little memory.
//!
//! ```text
//! cargo run --release -p rotor-examples --example upload_to_disk [ADDRESS] [DIRECTORY]
//! ```
//!
//! `PUT /NAME` keeps the body as `NAME` in the directory, in the place of what had that name; the
//! answer says how many octets it has. A name appears when all of its file is there: whoever goes
//! away in the middle leaves nothing.
//!
//! It listens on 127.0.0.1:3000 and keeps files in `uploads` unless told otherwise. SIGINT or
//! SIGTERM lets the requests that are under way finish.
#![forbid(unsafe_code)]

mod machine;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use machine::Keep;
use rotor::body::{Dir, Spool, SpoolConfig};
use rotor::http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rotor::net::{ListenOptions, Listener, TcpListener};
use rotor::{BoxError, Config, Loop, Response};
use rotor_examples::program;
use rotor_examples::serve::serve;

fn main() -> ExitCode {
    program::run(upload_to_disk)
}

fn upload_to_disk() -> Result<(), BoxError> {
    let mut address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    let directory = std::env::args_os().nth(2).map_or_else(|| "uploads".into(), PathBuf::from);
    let (dir, spool) = open(&directory)?;
    let mut creator = Loop::<HttpAccept<Keep, TcpListener>>::new(&Config::new())?;
    creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener = TcpListener::bind(&address, &ListenOptions::new(), scope)?;
            address = listener.local_address().unwrap_or(address);
            let seed = HttpSeed::new(dir, ServerConfig::new().spool(spool));
            Ok(server::listen(listener, seed, scope))
        })
    })?;
    let try_this = format!("try: curl -T some-file http://{address}/name");
    serve(&mut creator.instantiate(()), &[format!("listening on http://{address}/"), try_this])
}

/// The directory, and a spool in it: where both are on one file system, a file is given its name
/// without being copied.
fn open(directory: &Path) -> Result<(Dir, Spool), BoxError> {
    let opened = std::fs::create_dir_all(directory)
        .and_then(|()| Ok((Dir::open(directory)?, SpoolConfig::new(directory).open()?)));
    opened.map_err(|error| format!("cannot keep files in {}: {error}", directory.display()).into())
}
