//! The bare loop: the least that a server on mio can do for a hello-world request, and so the
//! yardstick for what a library adds to it.
//!
//! One thread, edge-triggered. It looks for the blank line that ends a request and answers with
//! bytes made beforehand; it parses nothing, keeps no time and has no deadlines. All requests found
//! in one read are answered with one write. What it does not leave out is what makes it a *correct*
//! loop on a socket: requests that come in pieces, answers that do not fit into the socket, bytes
//! that arrive together with the end of the stream.
//!
//! ```text
//! bare-loop [ADDRESS]        default 127.0.0.1:3000
//! ```
//!
//! Since it reads no request, it is told beforehand what it will be asked: with `BODY_BYTES=N` in
//! the environment the body is so many letters instead of `Hello, World!`, with `CLOSE=1` the
//! connection ends after the answer.
#![forbid(unsafe_code)]

mod answer;
mod connection;
mod requests;

use std::error::Error;
use std::io;

use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Registry, Token};
use slab::Slab;

use answer::Answer;
use connection::{Connection, Fate, Scratch};

const LISTENER: Token = Token(usize::MAX);

/// Events taken from the kernel in one turn; enough for every connection of the usual scenarios.
const EVENTS_MAX: usize = 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let address = contract::address()?;
    let answer = Answer::from_env()?;
    let mut listener = TcpListener::bind(address)?;
    let mut poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    contract::announce(listener.local_addr()?)?;

    let mut events = Events::with_capacity(EVENTS_MAX);
    let mut connections = Slab::new();
    let mut scratch = Scratch::new(answer);
    loop {
        match poll.poll(&mut events, None) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        }
        for event in &events {
            if event.token() == LISTENER {
                accept(&listener, poll.registry(), &mut connections)?;
                continue;
            }
            let Token(index) = event.token();
            // A connection closed earlier in this turn may still have an event behind it.
            let Some(connection) = connections.get_mut(index) else { continue };
            if connection.ready(event, &mut scratch) == Fate::Close {
                connections.remove(index);
            }
        }
    }
}

/// Accepts until there is nothing left, as an edge demands.
fn accept(
    listener: &TcpListener,
    registry: &Registry,
    connections: &mut Slab<Connection>,
) -> io::Result<()> {
    loop {
        let mut socket = match listener.accept() {
            Ok((socket, _)) => socket,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(e) => return Err(e),
        };
        // Fails where the peer has gone already, which concerns nobody else.
        if socket.set_nodelay(true).is_err() {
            continue;
        }
        let entry = connections.vacant_entry();
        // Both interests for the whole life: on an edge-triggered poll an unused one costs nothing,
        // a change of interest is a system call.
        registry.register(
            &mut socket,
            Token(entry.key()),
            Interest::READABLE | Interest::WRITABLE,
        )?;
        entry.insert(Connection::new(socket));
    }
}
