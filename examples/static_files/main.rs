//! A server of the files in a directory, on one thread.
//!
//! ```text
//! cargo run --release --example static_files [ADDRESS] [DIRECTORY]
//! ```
//!
//! It listens on 127.0.0.1:3000 and serves the current directory unless told otherwise; it prints the address and a line
//! to try. Hidden files and links are not served. SIGINT or SIGTERM lets the requests that are under way finish.

mod machine;

use std::env;
use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use rotor::http::files::FilesConfig;
use rotor::net::{ListenOptions, Listener, TcpListener};
use rotor::{Config, Loop, Response, signals};

use machine::{FileServer, serve};

fn main() -> Result<(), Box<dyn Error>> {
    let address: SocketAddr = env::args().nth(1).as_deref().unwrap_or("127.0.0.1:3000").parse()?;
    let directory = env::args_os().nth(2).unwrap_or_else(|| ".".into());
    let files = FilesConfig::new(&directory)
        .open()
        .map_err(|error| format!("cannot serve {}: {error}", directory.display()))?;
    let mut creator = Loop::<FileServer<TcpListener>>::new(&Config::new())?;
    creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener = TcpListener::bind(&address, &ListenOptions::new(), scope)?;
            announce(listener.local_address().unwrap_or(address))?;
            Ok(serve(listener, files, scope))
        })
    })?;
    signals::drain_on_termination(creator.handle(), Duration::from_secs(10))?;
    creator.instantiate(()).run()?;
    Ok(())
}

fn announce(address: SocketAddr) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "listening on http://{address}/")?;
    writeln!(out, "try: curl -i http://{address}/")?;
    out.flush()
}
