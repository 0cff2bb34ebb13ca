//! Sends each datagram back to where it came from.
//!
//! ```text
//! cargo run --release -p rotor-examples --example udp_echo_server [ADDRESS:PORT]
//! listening on 127.0.0.1:7000
//! try: nc -u 127.0.0.1 7000
//! ```
//!
//! Type a line into `nc` and it comes back. Ctrl-C ends the program.
#![forbid(unsafe_code)]

mod machine;

use std::net::SocketAddr;
use std::process::ExitCode;

use machine::UdpEcho;
use rotor::net::{DatagramSocket, UdpSocket};
use rotor::{BoxError, Config, Loop, Response};
use rotor_examples::program;
use rotor_examples::serve::serve;

fn main() -> ExitCode {
    program::run(echo)
}

fn echo() -> Result<(), BoxError> {
    let mut address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 7000)))?;
    let mut creator = Loop::new(&Config::new())?;
    creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let socket = UdpSocket::bind(&address, scope)?;
            address = socket.local_address()?;
            Ok(Response::ok(UdpEcho::new(socket, scope)?))
        })
    })?;
    let try_this = format!("try: nc -u {} {}", address.ip(), address.port());
    serve(&mut creator.instantiate(()), &[format!("listening on {address}"), try_this])
}
