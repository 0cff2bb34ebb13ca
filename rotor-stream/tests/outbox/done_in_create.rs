//! A protocol that ends in its `create`.

use std::io::Write;

use rotor_core::Scope;
use rotor_stream::testing::Driver;
use rotor_stream::{
    HasOutbox, Intent, Matched, Outbox, OutboxError, Protocol, Transport, WithOutbox,
};

use super::{Shared, small};

/// Sends itself messages, and ends before it has begun.
struct DoneInCreate;

/// How it ends.
#[derive(Clone, Copy)]
enum End {
    Done,
    Fails,
    Resets,
    Panics,
}

impl Protocol for DoneInCreate {
    type Context = Shared;
    type Seed = End;

    fn create(
        end: End,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Shared>,
    ) -> Intent<Self> {
        let outbox = Outbox::new(small(), scope);
        let sender = outbox.sender();
        sender.send("first ").expect("there is room");
        transport.output.write_all(b"hello ").expect("an open output");
        sender.send("last\n").expect("there is room");
        scope.sender = Some(sender);
        match end {
            End::Done => Intent::done(),
            End::Fails => Intent::error("it is not to be"),
            End::Resets => Intent::reset(),
            End::Panics => panic!("on purpose"),
        }
    }

    fn bytes_read(
        self,
        _: Matched,
        _: &mut Transport<'_>,
        _: &mut Scope<'_, Shared>,
    ) -> Intent<Self> {
        Intent::done()
    }
}

impl HasOutbox for DoneInCreate {
    fn outbox(&mut self) -> &mut Outbox {
        unreachable!("it ends before anybody asks")
    }
}

#[test]
fn messages_of_a_protocol_that_ends_in_create_are_sent_only_if_it_is_done() {
    for (end, expected) in [
        (End::Done, &b"hello first last\n"[..]),
        (End::Fails, b""),
        (End::Resets, b""),
        (End::Panics, b""),
    ] {
        let mut driver = Driver::<WithOutbox<DoneInCreate>>::new(end, Shared::default());
        assert_eq!(driver.take_received(), expected);
        assert!(driver.is_ended() || driver.is_dropped());
        driver.settle();
        let sender = driver.context().sender.clone().expect("it was made in `create`");
        assert!(matches!(sender.send("more"), Err(OutboxError::Closed(_))));
        assert_eq!((sender.len(), sender.bytes()), (0, 0));
    }
}
