//! `Relay`: a protocol to switch to.

use std::io::Write;

use rotor_core::Scope;
use rotor_stream::{Exception, Intent, Matched, Protocol, Transport};

use crate::probe::{TestContext, seconds};

/// Echoes every byte in brackets, and waits without a deadline. Some bytes have another effect: `!`
/// panics, `F` fails, `Q` ends the protocol, `E` ends only its output, `T` sets a deadline in ten
/// seconds, `W` requests a wakeup, `N` waits for the next 65,000 bytes as one piece, `B` writes a
/// megabyte, `H` does, too, and then holds its input. The word `end` at a wake-up ends its output.
pub(crate) struct Relay;

impl Protocol for Relay {
    type Context = TestContext;
    type Seed = ();

    fn create(
        _: (),
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, TestContext>,
    ) -> Intent<Self> {
        assert!(scope.words != "panic", "as asked");
        transport.output.write_all(b"hello").expect("an open output");
        Intent::of(Relay).bytes(1).keep_deadline()
    }

    fn bytes_read(
        self,
        _: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, TestContext>,
    ) -> Intent<Self> {
        if transport.input.first() == Some(&b'.') {
            // Each `.` is one message and gets no answer.
            transport.input.consume(1);
            return Intent::of(self).keep().keep_deadline();
        }
        for byte in transport.input.iter() {
            let _ended = transport.output.write_all(&[b'<', *byte, b'>']);
        }
        let last = transport.input.last().copied();
        transport.input.clear();
        let intent = Intent::of(self);
        match last {
            Some(b'!') => panic!("as asked"),
            Some(b'F') => return Intent::error(std::io::Error::other("as asked")),
            Some(b'Q') => return Intent::done(),
            Some(b'E') => transport.shutdown_write(),
            Some(b'T') => return intent.keep().deadline(scope.now() + seconds(10)),
            Some(b'W') => scope.notifier = Some(scope.notifier()),
            Some(b'N') => return intent.bytes(65_000).keep_deadline(),
            Some(b'H') => {
                transport.output.write_all(&[b'h'; 1 << 20]).expect("an open output");
                scope.notifier = Some(scope.notifier());
                return intent.hold().no_deadline();
            }
            Some(b'B') => transport.output.write_all(&[b'b'; 1 << 20]).expect("an open output"),
            _ => {}
        }
        intent.keep().keep_deadline()
    }

    fn wakeup(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, TestContext>,
    ) -> Intent<Self> {
        match scope.words.as_str() {
            "end" => transport.shutdown_write(),
            words => transport.output.write_all(words.as_bytes()).expect("an open output"),
        }
        Intent::of(self).keep().keep_deadline()
    }

    fn timeout(
        self,
        transport: &mut Transport<'_>,
        _: &mut Scope<'_, TestContext>,
    ) -> Intent<Self> {
        transport.output.write_all(b"late").expect("an open output");
        Intent::of(self).keep().no_deadline()
    }

    fn draining(
        self,
        _: rotor_core::Time,
        transport: &mut Transport<'_>,
        _: &mut Scope<'_, TestContext>,
    ) -> Intent<Self> {
        transport.output.write_all(b"bye").expect("an open output");
        Intent::done()
    }

    fn fatal(self, error: rotor_stream::Fatal, scope: &mut Scope<'_, TestContext>) {
        scope.events.push(format!("relay: {error}"));
    }

    fn exception(
        self,
        _: Exception,
        _: &mut Transport<'_>,
        _: &mut Scope<'_, TestContext>,
    ) -> Intent<Self> {
        Intent::done()
    }
}
