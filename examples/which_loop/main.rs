//! The hello server on whichever loop the environment names: mio's, or io_uring where the system
//! lets it.
//!
//! ```text
//! ROTOR_BACKEND=uring cargo run --release -p rotor-examples --example which_loop [ADDRESS:PORT]
//! listening on http://127.0.0.1:3000/ by io_uring
//! curl http://127.0.0.1:3000/
//! ```
//!
//! Without the variable, or with `mio`, it is mio's. Where io_uring is refused, a line on the
//! standard error says why, and it is mio's as well.
#![forbid(unsafe_code)]

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use rotor::http::Status;
use rotor::http::server::{
    self, Head, HttpAccept, HttpSeed, Reply, Response, Scope, ServerConfig, ServerFn,
};
use rotor::net::IpNet;
use rotor::{Backend, BoxError, Config, Loop, signals};
use rotor_examples::program;
use rotor_uring::{Choice, OnAnyLoop, UringConfig, choose};

type Hello = ServerFn<fn(&Head<'_>, &mut Response<'_>, &mut Scope<'_, ()>) -> Reply, ()>;

fn hello(head: &Head<'_>, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
    match head.path() {
        "/" => response.reply(Status::OK, "text/plain", b"Hello, World!"),
        _ => response.reply(Status::NOT_FOUND, "text/plain", b"404 Not Found\n"),
    }
}

/// The server, at an address.
struct Server(SocketAddr);

impl OnAnyLoop for Server {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let mut creator =
            Loop::<HttpAccept<Hello, N::Listener>, B>::with_backend(backend, &Config::new())?;
        let mut name = String::new();
        creator.add_machine_with(|scope| {
            name = scope.backend().name().into();
            server::bind(&self.0, HttpSeed::<Hello>::new(hello, ServerConfig::new()), scope)
        })?;
        let mut instance = creator.instantiate(());
        let address = instance.machines().iter().find_map(|(_, machine)| machine.local_address());
        let address = address.ok_or("a listener has an address")?;
        signals::drain_on_termination(instance.handle(), Duration::from_secs(10))?;
        program::print(&[format!("listening on http://{address}/ by {name}")])?;
        instance.run()?;
        Ok(())
    }
}

fn main() -> ExitCode {
    program::run(|| {
        let address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
        choose(Choice::from_env()?, &UringConfig::new(), Server(address))?
    })
}
