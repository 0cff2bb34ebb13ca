//! Two protocols as one machine type.
//!
//! The echo server is that of the `tcp_echo_server` example, unchanged: it depends neither on this
//! program nor on the other protocol. Each protocol requires a trait of the context, and the
//! program's context implements both.

#[path = "../tcp_echo_server/machine.rs"]
pub(crate) mod echo;
#[path = "hello.rs"]
pub(crate) mod hello;

use rotor::net::Listener;
use rotor::rotor_compose;

use self::echo::{CountsEchoes, EchoServer};
use self::hello::{CountsGreetings, HelloServer};

rotor_compose! {
    /// A machine of either protocol.
    pub(crate) enum TwoProtocols <C, L> where [C: CountsEchoes + CountsGreetings, L: Listener] {
        Echo(EchoServer<C, L>),
        Hello(HelloServer<C, L>),
    }
}

/// The context, which the machines of both protocols share.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) bytes: u64,
    pub(crate) greetings: u64,
}

impl CountsEchoes for Totals {
    fn received(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }
}

impl CountsGreetings for Totals {
    fn greeted(&mut self) {
        self.greetings += 1;
    }
}
