//! A server of the files in a directory, on one thread.
//!
//! ```text
//! cargo run --release -p rotor-examples --example static_files [ADDRESS] [DIRECTORY]
//! listening on http://127.0.0.1:3000/
//! try: curl -i http://127.0.0.1:3000/some-file
//! ```
//!
//! It listens on 127.0.0.1:3000 and serves the current directory unless told otherwise. Hidden
//! files and links are not served. Clients that accept Brotli, zstd or gzip get `a.css.br`,
//! `a.css.zst` or `a.css.gz` for `a.css`, if that file exists. On SIGINT or SIGTERM, requests in
//! progress are finished first.
#![forbid(unsafe_code)]

mod machine;

use std::env;
use std::net::SocketAddr;
use std::process::ExitCode;

use rotor::BoxError;
use rotor::http::files::{FilesConfig, Precompressed};
use rotor_examples::program;
use rotor_examples::serve::serve_http;

fn main() -> ExitCode {
    program::run(static_files)
}

fn static_files() -> Result<(), BoxError> {
    let address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    let directory = env::args_os().nth(2).unwrap_or_else(|| ".".into());
    let codings = [Precompressed::Brotli, Precompressed::Zstd, Precompressed::Gzip];
    let files = FilesConfig::new(directory).precompressed(codings).open()?;
    serve_http(address, machine::site(files), (), |address| {
        format!("try: curl -i http://{address}/some-file")
    })
}
