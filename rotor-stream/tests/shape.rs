//! Sizes, and which types may be sent between threads.

use rotor_core::net::{TcpListener, TcpStream, UnixStream};
use rotor_core::{Scope, Time};
use rotor_stream::{
    Accept, Buf, Intent, Link, Matched, Output, Persistent, Protocol, Stream, StreamConfig,
    Transport,
};

/// A protocol with a size of a hundred bytes.
struct Hundred([u8; 100]);

impl Protocol for Hundred {
    type Context = ();
    type Seed = ();
    fn create(_: (), _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
        Intent::of(Hundred([0; 100])).bytes(1).deadline(Time::NEVER)
    }
    fn bytes_read(self, _: Matched, _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
        Intent::error(format!("{} bytes", self.0.len()))
    }
}

#[test]
fn a_stream_is_small_enough_to_be_moved_cheaply() {
    let stream = size_of::<Stream<Hundred, TcpStream>>();
    assert!(stream <= 208 + 104, "{stream} bytes, of which the protocol is a hundred");
    assert!(size_of::<Accept<Stream<Hundred, TcpStream>, TcpListener>>() <= stream + 16);
    assert!(size_of::<Persistent<Hundred, UnixStream>>() <= stream + 16);
    assert!(size_of::<Intent<Hundred>>() <= 104 + 88);
    assert_eq!(size_of::<Matched>(), 16);
}

#[test]
fn machines_are_send_when_their_parts_are() {
    fn assert_send<T: Send>() {}
    assert_send::<Stream<Hundred, TcpStream>>();
    assert_send::<Persistent<Hundred, TcpStream>>();
    assert_send::<Accept<Stream<Hundred, TcpStream>, TcpListener>>();
    assert_send::<(Buf, Output, Link, StreamConfig)>();
}
