//! An intent that keeps what its protocol waits for, and adds to that.

use std::io::Write;

use rotor_core::{Notifier, Scope};
use rotor_stream::testing::Driver;
use rotor_stream::{
    Expectation, HasOutbox, Intent, Matched, Outbox, OutboxConfig, OutboxSender, Protocol,
    Transport, WithOutbox,
};

/// Answers each line with "ok", and writes "woken" and "flushed" when it is. When it is woken, it
/// adds an expectation.
struct Lines {
    outbox: Outbox,
    added: Expectation,
}

struct Context {
    notifier: Notifier,
    sender: OutboxSender,
}

fn write(text: &str, transport: &mut Transport<'_>) {
    transport.output.write_all(text.as_bytes()).expect("the output is open");
}

impl Protocol for Lines {
    type Context = Option<Context>;
    type Seed = Expectation;

    fn create(
        added: Expectation,
        _: &mut Transport<'_>,
        scope: &mut Scope<'_, Option<Context>>,
    ) -> Intent<Self> {
        let outbox = Outbox::new(OutboxConfig::new().output_max(2), scope);
        let context = Context { notifier: scope.notifier(), sender: outbox.sender() };
        **scope = Some(context);
        Intent::of(Lines { outbox, added }).delimiter(b"\n", 80).no_deadline()
    }

    fn bytes_read(
        self,
        line: Matched,
        transport: &mut Transport<'_>,
        _: &mut Scope<'_, Option<Context>>,
    ) -> Intent<Self> {
        line.consume(transport.input);
        write("ok\n", transport);
        Intent::of(self).keep().keep_deadline()
    }

    fn wakeup(
        self,
        transport: &mut Transport<'_>,
        _: &mut Scope<'_, Option<Context>>,
    ) -> Intent<Self> {
        write("woken\n", transport);
        let added = self.added;
        Intent::of(self).keep().or(added).keep_deadline()
    }

    fn bytes_flushed(
        self,
        transport: &mut Transport<'_>,
        _: &mut Scope<'_, Option<Context>>,
    ) -> Intent<Self> {
        write("flushed\n", transport);
        Intent::of(self).delimiter(b"\n", 80).keep_deadline()
    }
}

impl HasOutbox for Lines {
    fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }
}

/// Returns the answers of a protocol that is woken, and adds this expectation, while its peer does
/// not read.
fn answers<P>(added: Expectation, messages: &[&'static str]) -> String
where
    P: Protocol<Context = Option<Context>, Seed = Expectation> + 'static,
{
    let mut driver = Driver::<P>::new(added, None);
    driver.limit_room(0);
    let context = driver.context().as_ref().expect("it was created");
    for message in messages {
        context.sender.send(*message).expect("there is room");
    }
    context.notifier.wakeup();
    driver.settle();
    driver.send(b"a line\n");
    driver.make_room(100);
    assert!(driver.failures().is_empty());
    String::from_utf8(driver.take_received()).expect("it is text")
}

#[test]
fn a_flush_that_is_added_leaves_the_kept_input_wanted() {
    let expected = "woken\nok\nflushed\n";
    assert_eq!(answers::<Lines>(Expectation::Flush(0), &[]), expected);
    assert_eq!(answers::<WithOutbox<Lines>>(Expectation::Flush(0), &[]), expected);
}

#[test]
fn a_flush_for_messages_is_none_of_those_that_their_protocol_keeps() {
    let received = answers::<WithOutbox<Lines>>(Expectation::Sleep, &["one\n", "two\n"]);
    assert_eq!(received, "woken\nok\none\ntwo\n");
    let received = answers::<WithOutbox<Lines>>(Expectation::Hold, &["one\n", "two\n"]);
    assert_eq!(received, "woken\none\ntwo\n");
}
