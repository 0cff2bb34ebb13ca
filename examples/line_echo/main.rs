//! Sends each line back.
//!
//! ```text
//! cargo run --release -p rotor-examples --example line_echo [ADDRESS:PORT]
//! listening on 127.0.0.1:7003
//! try: nc 127.0.0.1 7003
//! ```
//!
//! A line may take a minute from its first byte to its end, and a connection may be silent for ten
//! minutes. Ctrl-C drains the loop, and the program prints how many connections there were.
#![forbid(unsafe_code)]

mod machine;

use std::net::SocketAddr;
use std::process::ExitCode;

use machine::LineEcho;
use rotor::net::{IpNet, ListenOptions, Listener, Net};
use rotor::stream::{Accept, AcceptConfig, Stream};
use rotor::{Backend, BoxError, Config, Loop, Response};
use rotor_examples::chosen_loop::on_chosen_loop;
use rotor_examples::program;
use rotor_examples::serve::serve;
use rotor_uring::OnAnyLoop;

type Machine<N> = Accept<Stream<LineEcho<()>, <N as Net>::Stream>, <N as Net>::Listener>;

fn main() -> ExitCode {
    program::run(echo)
}

fn echo() -> Result<(), BoxError> {
    on_chosen_loop(Echo(program::argument(1, SocketAddr::from(([127, 0, 0, 1], 7003)))?))
}

/// The server, at an address.
struct Echo(SocketAddr);

impl OnAnyLoop for Echo {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let Echo(mut address) = self;
        let mut creator = Loop::<Machine<N>, B>::with_backend(backend, &Config::new())?;
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let listener = N::Listener::bind(&address, &ListenOptions::new(), scope)?;
                address = listener.local_address().unwrap_or(address);
                Ok(Accept::listen(listener, (), AcceptConfig::new(), scope))
            })
        })?;
        let mut instance = creator.instantiate(());
        let try_this = format!("try: nc {} {}", address.ip(), address.port());
        serve(&mut instance, &[format!("listening on {address}"), try_this])?;
        let stats = instance.stats().read();
        program::print(&[format!(
            "{} connections, {} failed, {} machines are left",
            stats.spawned.saturating_sub(1), // The listener is a machine, too.
            stats.failed,
            stats.alive
        )])?;
        Ok(())
    }
}
