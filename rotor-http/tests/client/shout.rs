//! `Shout`: a protocol to switch to.

use std::sync::Arc;

use rotor_core::Description;
use rotor_stream::{Intent, Matched, Protocol, StreamConfig, Transport};

use crate::probe::{Sc, TestContext, seconds};

/// A protocol to switch to: echoes each byte in upper case.
#[derive(Debug)]
pub(crate) struct Shout;

impl Protocol for Shout {
    type Context = TestContext;
    /// Whether it uses the standard limits.
    type Seed = bool;

    /// An input limit below the number of bytes that it waits for after a question mark.
    fn config(is_standard: &bool) -> Arc<StreamConfig> {
        if *is_standard {
            return StreamConfig::standard();
        }
        StreamConfig::new().input_max(100).share()
    }

    fn create(_: bool, _: &mut Transport<'_>, scope: Sc<'_, '_>) -> Intent<Self> {
        scope.events.push("shouts".into());
        Intent::of(Shout).bytes(1).no_deadline()
    }

    fn bytes_read(
        self,
        _: Matched,
        transport: &mut Transport<'_>,
        scope: Sc<'_, '_>,
    ) -> Intent<Self> {
        let loud = transport.input.to_ascii_uppercase();
        transport.input.consume(loud.len());
        std::io::Write::write_all(transport.output, &loud).expect("the output is open");
        if loud.starts_with(b"=") {
            scope.events.push(format!("heard {}", String::from_utf8_lossy(&loud)));
        }
        match loud.last() {
            // Holds its input for a while.
            Some(b'~') => return Intent::of(self).hold().deadline(scope.now() + seconds(3)),
            Some(b'!') => panic!("told to"),
            Some(b'.') => return Intent::done(),
            _ => {}
        }
        let waits_for = if loud.ends_with(b"?") { 101 } else { 1 };
        Intent::of(self).bytes(waits_for).no_deadline()
    }

    /// It has held its input.
    fn timeout(self, _: &mut Transport<'_>, _: Sc<'_, '_>) -> Intent<Self> {
        Intent::of(self).bytes(1).no_deadline()
    }

    fn exception(
        self,
        exception: rotor_stream::Exception,
        _: &mut Transport<'_>,
        scope: Sc<'_, '_>,
    ) -> Intent<Self> {
        scope.events.push(match exception {
            rotor_stream::Exception::Limit(bytes) => format!("not within {bytes}"),
            _ => "shouted".into(),
        });
        Intent::done()
    }

    fn draining(
        self,
        _: rotor_core::Time,
        transport: &mut Transport<'_>,
        _: Sc<'_, '_>,
    ) -> Intent<Self> {
        std::io::Write::write_all(transport.output, b"BYE").expect("the output is open");
        Intent::done()
    }

    fn idle(&self, _: &[u8]) -> Option<rotor_core::Time> {
        Some(rotor_core::Time::ZERO)
    }

    fn make_room(&mut self, transport: &mut Transport<'_>, _: Sc<'_, '_>) {
        std::io::Write::write_all(transport.output, b"ROOM").expect("the output is open");
    }

    fn fatal(self, error: rotor_stream::Fatal, scope: Sc<'_, '_>) {
        scope.events.push(format!("shout: {error}"));
    }

    fn describe(&self, to: &mut Description) {
        to.set_state("shouting");
    }
}
