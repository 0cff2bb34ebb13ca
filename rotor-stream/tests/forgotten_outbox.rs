//! The log message about an outbox from which nobody sends. Runs in its own process, since a
//! process has one log.

use std::sync::Mutex;

use log::{Level, LevelFilter, Log, Metadata, Record};
use rotor_core::Scope;
use rotor_stream::testing::Driver;
use rotor_stream::{
    HasOutbox, Intent, Matched, Outbox, OutboxConfig, OutboxError, OutboxSender, Protocol,
    Transport, WithOutbox,
};

static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Warnings;

impl Log for Warnings {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        if record.level() <= Level::Warn {
            WARNINGS.lock().expect("no test panics here").push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

/// Listens, and ends on the first byte.
struct Listener(Outbox);

impl Protocol for Listener {
    type Context = Option<OutboxSender>;
    type Seed = ();

    fn create(
        (): (),
        _: &mut Transport<'_>,
        scope: &mut Scope<'_, Option<OutboxSender>>,
    ) -> Intent<Self> {
        let outbox = Outbox::new(OutboxConfig::new(), scope);
        **scope = Some(outbox.sender());
        Intent::of(Listener(outbox)).bytes(1).no_deadline()
    }

    fn bytes_read(
        self,
        _: Matched,
        _: &mut Transport<'_>,
        _: &mut Scope<'_, Option<OutboxSender>>,
    ) -> Intent<Self> {
        Intent::done()
    }
}

impl HasOutbox for Listener {
    fn outbox(&mut self) -> &mut Outbox {
        &mut self.0
    }
}

/// Sends this many messages to a connection whose peer reads nothing, ends that connection, and
/// returns the log messages.
fn warnings<P>(messages: usize) -> Vec<String>
where
    P: Protocol<Seed = (), Context = Option<OutboxSender>> + 'static,
{
    let mut driver = Driver::<P>::new((), None);
    driver.limit_room(0);
    let sender = driver.context().clone().expect("it was made in `create`");
    for _ in 0..messages {
        sender.send(vec![b'x'; 40_000]).expect("there is room");
        driver.settle();
    }
    driver.reset();
    assert!(!driver.is_alive() && matches!(sender.send("x"), Err(OutboxError::Closed(_))));
    std::mem::take(&mut *WARNINGS.lock().expect("no test panics here"))
}

#[test]
fn unsent_messages_of_an_unserved_outbox_are_logged() {
    log::set_logger(&Warnings).expect("the first logger");
    log::set_max_level(LevelFilter::Trace);
    let forgotten = warnings::<Listener>(2);
    assert_eq!(forgotten.len(), 1, "{forgotten:?}");
    assert!(forgotten[0].contains("run its protocol in a `WithOutbox`"), "{forgotten:?}");
    assert_eq!(warnings::<Listener>(0), [""; 0], "nothing was lost");
    assert_eq!(warnings::<WithOutbox<Listener>>(3), [""; 0], "its peer was slow");
}
