//! Sends back what it receives, on one thread, for as many peers as there are descriptors.
//!
//! ```text
//! cargo run --release -p rotor-examples --example tcp_echo_server [ADDRESS:PORT]
//! listening on 127.0.0.1:7000
//! try: nc 127.0.0.1 7000
//! ```
//!
//! Type a line into `nc` and it comes back. Ctrl-C drains the loop: no more connections are
//! accepted, what has arrived is sent back, and the program prints how much it was.
#![forbid(unsafe_code)]

mod machine;

use std::net::SocketAddr;
use std::process::ExitCode;

use machine::{CountsEchoes, EchoServer};
use rotor::net::{IpNet, ListenOptions, Listener};
use rotor::{Backend, BoxError, Config, Loop, Response};
use rotor_examples::chosen_loop::on_chosen_loop;
use rotor_examples::program;
use rotor_examples::serve::serve;
use rotor_uring::OnAnyLoop;

/// The context: what all machines of the loop share.
struct Total {
    bytes: u64,
}

impl CountsEchoes for Total {
    fn received(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }
}

fn main() -> ExitCode {
    program::run(echo)
}

fn echo() -> Result<(), BoxError> {
    on_chosen_loop(Echo(program::argument(1, SocketAddr::from(([127, 0, 0, 1], 7000)))?))
}

/// The server, at an address.
struct Echo(SocketAddr);

impl OnAnyLoop for Echo {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let Echo(mut address) = self;
        let mut creator = Loop::with_backend(backend, &Config::new())?;
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let listener = N::Listener::bind(&address, &ListenOptions::new(), scope)?;
                address = listener.local_address().unwrap_or(address);
                Ok(Response::ok(EchoServer::listen(listener, scope)?))
            })
        })?;
        let mut instance = creator.instantiate(Total { bytes: 0 });
        let try_this = format!("try: nc {} {}", address.ip(), address.port());
        serve(&mut instance, &[format!("listening on {address}"), try_this])?;
        program::print(&[format!("{} bytes were sent back", instance.context().bytes)])?;
        Ok(())
    }
}
