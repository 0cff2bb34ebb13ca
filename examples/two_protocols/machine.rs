//! Two protocols as one machine type.
//!
//! The echo server is the one of the `tcp_echo_server` example, unchanged: it knows neither this
//! program nor the other protocol. Each asks the context for a trait of its own, and the context of
//! the program has both.

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

/// What the machines of both protocols share.
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
