//! Sends each datagram back to its sender.
//!
//! ```text
//! cargo run --release -p rotor-examples --example udp_echo_server [ADDRESS:PORT]
//! listening on 127.0.0.1:7000
//! try: nc -u 127.0.0.1 7000
//! ```
//!
//! Type a line into `nc` and it comes back. Ctrl-C ends the program.
//!
//! It answers whatever address a datagram claims to come from. On the internet, a forged address can
//! make two such servers answer each other without end; `udp_sessions` shows how to avoid that.
#![forbid(unsafe_code)]

mod machine;

use std::net::SocketAddr;
use std::process::ExitCode;

use machine::UdpEcho;
use rotor::net::{DatagramSocket, IpNet};
use rotor::{Backend, BoxError, Config, Loop, Response};
use rotor_examples::chosen_loop::on_chosen_loop;
use rotor_examples::program;
use rotor_examples::serve::serve;
use rotor_uring::OnAnyLoop;

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
                let socket = N::Datagram::bind(&address, scope)?;
                address = socket.local_address()?;
                Ok(Response::ok(UdpEcho::new(socket, scope)?))
            })
        })?;
        let try_this = format!("try: nc -u {} {}", address.ip(), address.port());
        serve(&mut creator.instantiate(()), &[format!("listening on {address}"), try_this])
    }
}
