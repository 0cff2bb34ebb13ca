//! A peer to whom messages are sent without a pause is still heard.

use std::io::Write;
use std::sync::Arc;

use rotor_core::Scope;
use rotor_stream::testing::Driver;
use rotor_stream::{
    HasOutbox, Intent, Matched, Outbox, OutboxConfig, OutboxSender, Protocol, StreamConfig,
    Transport, WithOutbox,
};

/// Answers each "?" with a "!".
struct Answers(Outbox);

/// The marks of the stream and of its outbox.
#[derive(Clone, Copy)]
struct Marks {
    output_high_water: usize,
    output_max: usize,
}

impl Protocol for Answers {
    type Context = Option<OutboxSender>;
    type Seed = Marks;

    fn config(marks: &Marks) -> Arc<StreamConfig> {
        StreamConfig::new().output_high_water(marks.output_high_water).share()
    }

    fn create(
        marks: Marks,
        _: &mut Transport<'_>,
        scope: &mut Scope<'_, Option<OutboxSender>>,
    ) -> Intent<Self> {
        let outbox = Outbox::new(OutboxConfig::new().output_max(marks.output_max), scope);
        **scope = Some(outbox.sender());
        Intent::of(Answers(outbox)).delimiter(b"?", 10).no_deadline()
    }

    fn bytes_read(
        self,
        question: Matched,
        transport: &mut Transport<'_>,
        _: &mut Scope<'_, Option<OutboxSender>>,
    ) -> Intent<Self> {
        question.consume(transport.input);
        transport.output.write_all(b"!").expect("the output is open");
        Intent::of(self).keep().keep_deadline()
    }
}

impl HasOutbox for Answers {
    fn outbox(&mut self) -> &mut Outbox {
        &mut self.0
    }
}

/// Returns how many bytes a peer reads until its question is answered, if as many messages as there
/// is room for wait for it all the time.
fn bytes_until_answered(marks: Marks, message_len: usize) -> Option<usize> {
    let mut driver = Driver::<WithOutbox<Answers>>::new(marks, None);
    let sender = driver.context().clone().expect("it was created");
    let fill = || while sender.send(vec![b'x'; message_len]).is_ok() {};
    driver.limit_room(0);
    fill();
    driver.settle();
    driver.send(b"?");
    let mut read = 0;
    for _ in 0..1_000 {
        fill();
        driver.make_room(50);
        let received = driver.take_received();
        if received.contains(&b'!') {
            return Some(read);
        }
        read += received.len();
    }
    None
}

#[test]
fn a_peer_with_messages_always_waiting_is_heard_whatever_the_marks_are() {
    for (output_high_water, output_max) in
        [(4_000, 2_000), (400, 2_000), (4_000, 9_000), (3, 2_000), (0, 2), (usize::MAX, 2_000)]
    {
        for message_len in [1, 100, 3_000] {
            let marks = Marks { output_high_water, output_max };
            let read = bytes_until_answered(marks, message_len);
            assert!(
                read.is_some_and(|read| read < 10_000),
                "{read:?} bytes with a mark of {output_high_water}, up to {output_max} in the \
                 output, messages of {message_len}"
            );
        }
    }
}
