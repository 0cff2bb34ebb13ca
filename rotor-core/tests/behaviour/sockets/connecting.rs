//! A connection attempt, and what the socket reports about its progress.

use std::io;
use std::net::SocketAddr;

use rotor_core::EarlyScope;
use rotor_core::net::{ListenOptions, Listener, StreamSocket};
use rustix::net::{AddressFamily, SocketType};

use super::with_scope;
use super::wrapped::Wrapper;
use crate::loops::{Adopt, ListenerOn, OnKernel, OnLoop, StreamOn, local, on_kernel_loops};

/// Connects to an address where nobody listens, and returns the error.
fn refused<L: OnKernel, S: StreamSocket<Target = SocketAddr>>(scope: &EarlyScope<'_>) -> io::Error {
    let (_port, nobody) = L::closed();
    let mut socket = S::connect(&nobody, scope).expect("it only begins to connect");
    // Loopback refuses before `connect` returns, or shortly after.
    loop {
        match socket.has_connected() {
            Ok(is_connected) => assert!(!is_connected, "nobody listens"),
            Err(failure) => return failure,
        }
    }
}

/// Checks several times on an attempt that hangs because the listener's backlog is full.
fn assert_hangs<L: OnKernel, S: StreamSocket<Target = SocketAddr>>(scope: &EarlyScope<'_>) {
    let listener = ListenerOn::<L>::bind(&local(), &ListenOptions::new().backlog(0), scope)
        .expect("a port is free");
    let address = listener.local_address().expect("it is bound");
    let mut attempts: Vec<S> = Vec::new();
    // While there is room, loopback connects before `connect` returns.
    while attempts.last_mut().is_none_or(|last| last.has_connected().expect("it has not failed")) {
        assert!(attempts.len() < 100, "a queue of none has no end");
        attempts.push(S::connect(&address, scope).expect("it only begins to connect"));
    }
    let last = attempts.last_mut().expect("there was one");
    assert!((0..3).all(|_| !last.has_connected().expect("asking changes nothing")));
}

on_kernel_loops!(
    a_wrapper_reports_the_state_of_a_connection_attempt,
    "a machine of the others gets no answer before the turn ends; see `every_loop`"
);
fn a_wrapper_reports_the_state_of_a_connection_attempt<L: OnKernel>() {
    with_scope::<L, _>(|scope| {
        assert_eq!(refused::<L, StreamOn<L>>(scope).kind(), io::ErrorKind::ConnectionRefused);
        let of_wrapper = refused::<L, Wrapper<StreamOn<L>>>(scope);
        assert_eq!(
            of_wrapper.kind(),
            io::ErrorKind::ConnectionRefused,
            "though it asks for no error"
        );
        assert_hangs::<L, StreamOn<L>>(scope);
        assert_hangs::<L, Wrapper<StreamOn<L>>>(scope);
    });
}

on_kernel_loops!(
    a_socket_connected_to_itself_counts_as_refused,
    "the others choose no ports that others listen at"
);
fn a_socket_connected_to_itself_counts_as_refused<L: OnKernel>() {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None);
    let socket = socket.expect("descriptors are left");
    rustix::net::bind(&socket, &local()).expect("a port is free");
    // As if the system had chosen the destination port as the local port, which happens sooner or
    // later.
    let own = rustix::net::getsockname(&socket).expect("it is bound");
    rustix::net::connect(&socket, &own).expect("it meets itself");
    let own = SocketAddr::try_from(own).expect("it is of IP");
    with_scope::<L, _>(|scope| {
        let mut socket = StreamOn::<L>::adopt(socket.into(), scope).expect("it is one");
        assert!(socket.is_connected());
        let failure = socket.has_connected().expect_err("nobody listens");
        assert_eq!(failure.kind(), io::ErrorKind::ConnectionRefused);
        drop(socket);
        // After an orderly close, the port would be in TIME-WAIT.
        let listener = ListenerOn::<L>::bind(&own, &ListenOptions::new(), scope);
        listener.expect("the port is whoever's that listens there");
    });
}
