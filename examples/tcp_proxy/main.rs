//! Passes connections on to another address, both ways.
//!
//! ```text
//! cargo run --release -p rotor-examples --example tcp_proxy [LISTEN [UPSTREAM]]        # 127.0.0.1:7000 127.0.0.1:7001
//! listening on 127.0.0.1:7000
//! passing on to 127.0.0.1:7001
//! try: nc -l 127.0.0.1 7001, then nc 127.0.0.1 7000
//! ```
//!
//! What is typed into one `nc` appears in the other. When one side ends, the other is told, and may
//! still send. A side that does not read stops the other one from sending; nothing piles up here.
//! Ctrl-C lets connections finish for ten seconds.
#![forbid(unsafe_code)]

mod machine;

use std::net::SocketAddr;
use std::process::ExitCode;

use machine::Proxy;
use rotor::net::{ListenOptions, Listener, TcpListener, TcpStream};
use rotor::stream::{Accept, AcceptConfig};
use rotor::{BoxError, Config, Loop, Response};
use rotor_examples::program;
use rotor_examples::serve::serve;

fn main() -> ExitCode {
    program::run(proxy)
}

fn proxy() -> Result<(), BoxError> {
    let mut address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 7000)))?;
    let upstream = program::argument(2, SocketAddr::from(([127, 0, 0, 1], 7001)))?;
    let mut creator = Loop::<Accept<Proxy<TcpStream, ()>, TcpListener>>::new(&Config::new())?;
    creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener = TcpListener::bind(&address, &ListenOptions::new(), scope)?;
            address = listener.local_address().unwrap_or(address);
            Ok(Accept::listen(listener, upstream, AcceptConfig::new(), scope))
        })
    })?;
    let mut instance = creator.instantiate(());
    let try_this = format!(
        "try: nc -l {} {}, then nc {} {}",
        upstream.ip(),
        upstream.port(),
        address.ip(),
        address.port()
    );
    serve(
        &mut instance,
        &[format!("listening on {address}"), format!("passing on to {upstream}"), try_this],
    )
}
