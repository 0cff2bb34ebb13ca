//! The hello-world server on several threads, each with a loop and a listener of its own.
//!
//! ```text
//! THREADS=4 cargo run --release --example threaded_hello_world [ADDRESS]
//! ```
//!
//! It listens on 127.0.0.1:3000 unless told otherwise, on as many threads as there are processors unless `THREADS` says
//! otherwise. SIGINT or SIGTERM lets the requests that are under way finish.

#[path = "../hello_world_server/machine.rs"]
mod machine;

use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use rotor::http::server::{self, HttpAccept, HttpSeed, Settings};
use rotor::net::{ListenOptions, TcpListener, TcpListeners};
use rotor::threads::LoopGroup;
use rotor::{BoxError, Config, Loop, LoopInstance, Response, signals};

use machine::Hello;

type HelloLoop = LoopInstance<HttpAccept<Hello, TcpListener>>;

fn main() -> Result<(), Box<dyn Error>> {
    let address: SocketAddr = std::env::args().nth(1).as_deref().unwrap_or("127.0.0.1:3000").parse()?;
    let listeners = TcpListeners::bind(address, threads()?, &ListenOptions::new())?;
    let address = listeners.local_address();
    let group = LoopGroup::start(listeners, |listener, _| hello_loop(listener))?;
    signals::drain_on_termination(group.handle(), Duration::from_secs(10))?;
    announce(address, group.len())?;
    for ended in group.join() {
        ended?;
    }
    Ok(())
}

/// What `THREADS` says, else how many processors there are.
fn threads() -> Result<usize, Box<dyn Error>> {
    match std::env::var("THREADS") {
        Ok(number) => match number.parse() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(format!("THREADS is to be a number from 1 on, not {number:?}").into()),
        },
        Err(_) => Ok(std::thread::available_parallelism()?.get()),
    }
}

/// One loop with its own context and listener, made by the thread that runs it.
fn hello_loop(listener: std::net::TcpListener) -> Result<HelloLoop, BoxError> {
    let mut creator = Loop::new(&Config::new())?;
    creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener = TcpListener::from_std(listener, scope)?;
            Ok(server::listen(listener, HttpSeed::new((), Settings::new()), scope))
        })
    })?;
    Ok(creator.instantiate(()))
}

fn announce(address: SocketAddr, threads: usize) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "listening on http://{address}/ with {threads} threads")?;
    writeln!(out, "try: wrk -t2 -c400 -d10 http://{address}/")?;
    out.flush()
}
