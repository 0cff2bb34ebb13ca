//! The hello-world server on several threads, each with a loop and a listener of its own.
//!
//! ```text
//! THREADS=2 cargo run --release --example threaded_hello_world [ADDRESS:PORT]     # 127.0.0.1:3000 if there is none
//! listening on http://127.0.0.1:3000/ with 2 threads
//! try: wrk -t2 -c400 -d10 http://127.0.0.1:3000/
//! ```
//!
//! There are as many threads as processors unless `THREADS` says otherwise. Ctrl-C lets the requests that are under way
//! finish.
#![forbid(unsafe_code)]

#[path = "../hello_world_server/machine.rs"]
mod machine;
#[path = "../serving/program.rs"]
mod program;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use machine::Hello;
use rotor::http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rotor::net::{ListenOptions, TcpListener, TcpListeners};
use rotor::threads::LoopGroup;
use rotor::{BoxError, Config, Loop, LoopInstance, Response, signals};

/// How long the machines may take to finish after SIGINT or SIGTERM.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);

type HelloLoop = LoopInstance<HttpAccept<Hello, TcpListener>>;

fn main() -> ExitCode {
    program::run(hello)
}

fn hello() -> Result<(), BoxError> {
    let address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    let listeners = TcpListeners::bind(address, &ListenOptions::new(), threads()?)?;
    let address = listeners.local_address();
    let group = LoopGroup::start(listeners, |listener, _| hello_loop(listener))?;
    signals::drain_on_termination(group.handle(), DRAIN_TIME_MAX)?;
    program::print(&[
        format!("listening on http://{address}/ with {} threads", group.len()),
        format!("try: wrk -t2 -c400 -d10 http://{address}/"),
    ])?;
    for ended in group.join() {
        ended?;
    }
    Ok(())
}

/// What `THREADS` says, else how many processors there are.
fn threads() -> Result<usize, BoxError> {
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
            Ok(server::listen(listener, HttpSeed::new((), ServerConfig::new()), scope))
        })
    })?;
    Ok(creator.instantiate(()))
}
