//! An echo server and a hello server in one loop, with one context in which both count.
//!
//! ```text
//! cargo run --release -p rotor-examples --example two_protocols [HELLO_ADDRESS:PORT [ECHO_ADDRESS:PORT]]
//! listening on http://127.0.0.1:3000/
//! listening on 127.0.0.1:7000
//! try: curl http://127.0.0.1:3000/; nc 127.0.0.1 7000
//! ```
//!
//! `curl` prints `Hello, World!`, and a line typed into `nc` comes back. Ctrl-C drains the loop,
//! and the program prints what each protocol has done.
#![forbid(unsafe_code)]

mod machine;

use std::net::SocketAddr;
use std::process::ExitCode;

use machine::echo::EchoServer;
use machine::hello::HelloServer;
use machine::{Totals, TwoProtocols};
use rotor::net::{IpNet, ListenOptions, Listener};
use rotor::{Backend, BoxError, Config, EarlyScope, Loop, Response};
use rotor_examples::chosen_loop::on_chosen_loop;
use rotor_examples::program;
use rotor_examples::serve::serve;
use rotor_uring::OnAnyLoop;

fn main() -> ExitCode {
    program::run(hello_and_echo)
}

fn hello_and_echo() -> Result<(), BoxError> {
    let hello = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    // If only one address is given, the system chooses the other port.
    let echo_port = if std::env::args_os().nth(1).is_none() { 7000 } else { 0 };
    let echo = program::argument(2, SocketAddr::new(hello.ip(), echo_port))?;
    on_chosen_loop(Both { hello, echo })
}

/// The two servers, at their addresses.
struct Both {
    hello: SocketAddr,
    echo: SocketAddr,
}

impl OnAnyLoop for Both {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let Both { mut hello, mut echo } = self;
        let mut creator = Loop::with_backend(backend, &Config::new())?;
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let listener = listen::<N>(&mut hello, scope)?;
                Ok(Response::ok(TwoProtocols::Hello(HelloServer::listen(listener, scope)?)))
            })
        })?;
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let listener = listen::<N>(&mut echo, scope)?;
                Ok(Response::ok(TwoProtocols::Echo(EchoServer::listen(listener, scope)?)))
            })
        })?;
        let mut instance = creator.instantiate(Totals::default());
        let try_this = format!("try: curl http://{hello}/; nc {} {}", echo.ip(), echo.port());
        let lines =
            [format!("listening on http://{hello}/"), format!("listening on {echo}"), try_this];
        serve(&mut instance, &lines)?;
        let Totals { bytes, greetings } = instance.context();
        program::print(&[format!("{greetings} greetings, {bytes} bytes sent back")])?;
        Ok(())
    }
}

/// Opens the address and replaces it by the actual one.
fn listen<N: IpNet>(
    address: &mut SocketAddr,
    scope: &EarlyScope<'_>,
) -> Result<N::Listener, BoxError> {
    let listener = N::Listener::bind(address, &ListenOptions::new(), scope)?;
    *address = listener.local_address().unwrap_or(*address);
    Ok(listener)
}
