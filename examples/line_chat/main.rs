//! A chat: what one client writes, all others get.
//!
//! ```text
//! cargo run --release -p rotor-examples --example line_chat [ADDRESS:PORT]
//! listening on 127.0.0.1:7002
//! try, in two terminals: nc 127.0.0.1 7002
//! ```
//!
//! Type a line into one `nc` and it appears in the other. A client that does not read is dropped
//! when too much waits for it, and a client that takes longer than half a minute for a line is
//! dropped, too. A client may say 500 lines a second; further ones wait, so that it alone cannot
//! get the others dropped. Control characters are removed from the lines. Ctrl-C drains the loop.
#![forbid(unsafe_code)]

mod machine;

use std::net::SocketAddr;
use std::process::ExitCode;

use machine::{Client, HasRoom, Room};
use rotor::net::{IpNet, ListenOptions, Listener, Net};
use rotor::stream::{Accept, AcceptConfig, Stream, WithOutbox};
use rotor::{Backend, BoxError, Config, Loop, Response};
use rotor_examples::chosen_loop::on_chosen_loop;
use rotor_examples::program;
use rotor_examples::serve::serve;
use rotor_uring::OnAnyLoop;

/// The context: what all machines of the loop share.
#[derive(Default)]
struct Chat {
    room: Room,
}

impl HasRoom for Chat {
    fn room(&mut self) -> &mut Room {
        &mut self.room
    }
}

type Machine<N> =
    Accept<Stream<WithOutbox<Client<Chat>>, <N as Net>::Stream>, <N as Net>::Listener>;

fn main() -> ExitCode {
    program::run(chat)
}

fn chat() -> Result<(), BoxError> {
    on_chosen_loop(Server(program::argument(1, SocketAddr::from(([127, 0, 0, 1], 7002)))?))
}

/// The server, at an address.
struct Server(SocketAddr);

impl OnAnyLoop for Server {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let Server(mut address) = self;
        let mut creator = Loop::<Machine<N>, B>::with_backend(backend, &Config::new())?;
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let listener = N::Listener::bind(&address, &ListenOptions::new(), scope)?;
                address = listener.local_address().unwrap_or(address);
                Ok(Accept::listen(listener, (), AcceptConfig::new(), scope))
            })
        })?;
        let mut instance = creator.instantiate(Chat::default());
        let try_this = format!("try, in two terminals: nc {} {}", address.ip(), address.port());
        serve(&mut instance, &[format!("listening on {address}"), try_this])?;
        program::print(&[format!("at the end: {}", instance.context().room)])?;
        Ok(())
    }
}
