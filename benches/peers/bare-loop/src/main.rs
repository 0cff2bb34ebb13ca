//! The bare loop: the minimum that a server on mio can do for a hello-world request, and therefore
//! the yardstick for what a library adds to it.
//!
//! It is single-threaded and edge-triggered. It searches for the blank line that ends a request and
//! answers with prepared bytes. It parses nothing, and has no clock and no deadlines. All requests
//! found in one read are answered with one write. It does handle everything that a *correct* loop
//! needs: requests that arrive in pieces, responses that do not fit into the socket, bytes that
//! arrive together with the end of the stream.
//!
//! ```text
//! bare-loop [ADDRESS]        default 127.0.0.1:3000
//! ```
//!
//! Since it does not parse requests, its response is configured by the environment: with
//! `BODY_BYTES=N` the body has that many letters instead of `Hello, World!`, and with `CLOSE=1` the
//! connection ends after the response.
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

/// The maximum number of events from the kernel in one turn; enough for every connection of the
/// usual scenarios.
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
            // A connection that was closed earlier in this turn may still have an event.
            let Some(connection) = connections.get_mut(index) else { continue };
            if connection.ready(event, &mut scratch) == Fate::Close {
                connections.remove(index);
            }
        }
    }
}

/// Accepts until there is nothing left, as edge-triggering demands.
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
        // This fails if the peer is gone already, which affects only this connection.
        if socket.set_nodelay(true).is_err() {
            continue;
        }
        let entry = connections.vacant_entry();
        // Both interests for the whole life of the socket: with edge-triggering, an unused one
        // costs nothing, but changing the interest is a system call.
        registry.register(
            &mut socket,
            Token(entry.key()),
            Interest::READABLE | Interest::WRITABLE,
        )?;
        entry.insert(Connection::new(socket));
    }
}
