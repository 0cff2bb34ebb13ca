//! Messages that others send to a connection's peer: in order, whole, bounded, and interleaved with
//! the protocol's own output.

mod busy_peer;
mod converting;
mod done_in_create;
mod lost_messages;
mod own_input;
mod random;

use std::cell::Cell;
use std::io::Write;
use std::rc::Rc;
use std::time::Duration;

use rotor_core::{Description, Machine, Notifier, Scope};
use rotor_stream::testing::Driver;
use rotor_stream::{
    Block, Exception, HasOutbox, Intent, Matched, Outbox, OutboxConfig, OutboxError, OutboxFull,
    OutboxSender, Protocol, Transport, WithOutbox,
};

/// The sender for the test's only connection, its notifier, and the number of its wake-ups.
#[derive(Default)]
struct Shared {
    sender: Option<OutboxSender>,
    notifier: Option<Notifier>,
    woken: u32,
    /// Whether lines are handled by in-place calls.
    in_place: bool,
    /// Whether the last message was accepted; `None` if none is sent.
    last_word: Option<Rc<Cell<Option<bool>>>>,
}

/// Echoes each line. `list` is answered with a thousand bytes in pieces, `quit` with the end, `fail`
/// with an error; `hush` is the last line that it answers. A line that is a number makes it wait
/// until no more than that many output bytes are left, and then report that.
struct Lines {
    /// Dropped before the outbox.
    _last_word: Option<SendOnDrop>,
    outbox: Outbox,
    left: usize,
    awaited: Option<usize>,
}

/// Sends a message when the protocol ends, as others may at that time, and records whether it was
/// accepted.
struct SendOnDrop {
    sender: OutboxSender,
    was_taken: Rc<Cell<Option<bool>>>,
}

impl Drop for SendOnDrop {
    fn drop(&mut self) {
        self.was_taken.set(Some(self.sender.send("last\n").is_ok()));
    }
}

impl Lines {
    fn next_line<T>(this: T) -> Intent<T> {
        Intent::of(this).delimiter(b"\n", 80).no_deadline()
    }

    fn list(&mut self, transport: &mut Transport<'_>) -> Intent<()> {
        if self.left == 0 {
            return Lines::next_line(());
        }
        self.left -= 1;
        transport.output.write_all(&[b'.'; 100]).expect("an open output");
        Intent::of(()).flush(50).no_deadline()
    }

    fn handle_line(&mut self, line: Matched, transport: &mut Transport<'_>) -> Intent<()> {
        let text = transport.input[..line.len()].to_vec();
        line.consume(transport.input);
        match text.as_slice() {
            b"list\n" => {
                self.left = 10;
                self.list(transport)
            }
            b"quit\n" => {
                transport.output.write_all(b"bye\n").expect("an open output");
                Intent::done()
            }
            b"fail\n" => Intent::error("not today"),
            b"0\n" | b"1\n" | b"4\n" | b"5\n" | b"50\n" => {
                let left = std::str::from_utf8(&text).expect("ASCII").trim().parse();
                self.awaited = left.ok();
                transport.output.write_all(&[b'.'; 60]).expect("an open output");
                let left = self.awaited.expect("a number");
                Intent::of(()).flush(left).no_deadline()
            }
            b"hush\n" => {
                transport.shutdown_write();
                Intent::of(()).keep().keep_deadline()
            }
            _ => {
                transport.output.write_all(&text).expect("an open output");
                Intent::of(()).keep().keep_deadline()
            }
        }
    }
}

impl Protocol for Lines {
    type Context = Shared;
    type Seed = OutboxConfig;

    fn create(
        config: OutboxConfig,
        _: &mut Transport<'_>,
        scope: &mut Scope<'_, Shared>,
    ) -> Intent<Self> {
        let outbox = Outbox::new(config, scope);
        scope.sender = Some(outbox.sender());
        scope.notifier = Some(scope.notifier());
        let last_word = |was_taken: &Rc<Cell<Option<bool>>>| SendOnDrop {
            sender: outbox.sender(),
            was_taken: was_taken.clone(),
        };
        let _last_word = scope.last_word.as_ref().map(last_word);
        Lines::next_line(Lines { _last_word, outbox, left: 0, awaited: None })
    }

    fn bytes_read(
        mut self,
        line: Matched,
        transport: &mut Transport<'_>,
        _: &mut Scope<'_, Shared>,
    ) -> Intent<Self> {
        self.handle_line(line, transport).map(|()| self)
    }

    fn bytes_read_in_place(
        &mut self,
        line: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Shared>,
    ) -> Option<Intent<()>> {
        scope.in_place.then(|| self.handle_line(line, transport))
    }

    fn bytes_flushed(
        mut self,
        transport: &mut Transport<'_>,
        _: &mut Scope<'_, Shared>,
    ) -> Intent<Self> {
        if let Some(left) = self.awaited.take() {
            assert!(transport.output.len() <= left, "{} of {left}", transport.output.len());
            transport.output.write_all(b"!").expect("an open output");
            return Lines::next_line(self);
        }
        assert!(transport.output.len() <= 50, "called with {} bytes", transport.output.len());
        self.list(transport).map(|()| self)
    }

    fn wakeup(self, _: &mut Transport<'_>, scope: &mut Scope<'_, Shared>) -> Intent<Self> {
        scope.woken += 1;
        Intent::of(self).keep().keep_deadline()
    }

    fn exception(
        self,
        _: Exception,
        _: &mut Transport<'_>,
        _: &mut Scope<'_, Shared>,
    ) -> Intent<Self> {
        Intent::done()
    }

    fn describe(&self, to: &mut Description) {
        to.set_state("chatting");
    }
}

impl HasOutbox for Lines {
    fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }
}

type Test = Driver<WithOutbox<Lines>>;

fn driver(config: &OutboxConfig) -> (Test, OutboxSender) {
    driver_with_calls(config, false)
}

fn driver_with_calls(config: &OutboxConfig, in_place: bool) -> (Test, OutboxSender) {
    let driver = Test::new(config.clone(), Shared { in_place, ..Shared::default() });
    let sender = driver.context().sender.clone().expect("it was made in `create`");
    (driver, sender)
}

fn small() -> OutboxConfig {
    OutboxConfig::new().messages_max(4).bytes_max(100).output_max(10)
}

/// A message of five bytes.
fn message(number: usize) -> Block {
    Block::from(format!("{number:04}\n").into_bytes())
}

fn numbers(bytes: &[u8]) -> Vec<usize> {
    let text = std::str::from_utf8(bytes).expect("ASCII");
    text.lines().map(|line| line.parse().expect("a number")).collect()
}

#[test]
fn messages_arrive_whole_and_in_order_however_little_the_peer_takes() {
    for write_max in [1, 3, 7, usize::MAX] {
        let (mut driver, sender) = driver(&OutboxConfig::new().output_max(12));
        driver.limit_writes(write_max);
        for number in 0..50 {
            sender.send(message(number)).expect("there is room");
        }
        driver.settle();
        assert_eq!(numbers(&driver.take_received()), (0..50).collect::<Vec<_>>());
        assert_eq!(driver.context().woken, 1, "wake-ups coalesce");
        assert_eq!((sender.len(), sender.bytes()), (0, 0));
    }
}

#[test]
fn answers_come_between_messages_and_a_slow_reader_is_still_answered() {
    for in_place in [false, true] {
        let (mut driver, sender) = driver_with_calls(&small(), in_place);
        driver.limit_room(0);
        for number in 0..4 {
            sender.send(message(number)).expect("there is room");
        }
        driver.settle();
        assert_eq!(sender.len(), 2, "as much as the output may have is there");
        driver.send(b"hello\n");
        driver.make_room(usize::MAX);
        assert_eq!(driver.take_received(), b"0000\n0001\nhello\n0002\n0003\n");
    }
}

#[test]
fn a_refused_sender_gets_its_message_back_and_is_woken_on_room() {
    let config = small();
    let (mut driver, sender) = driver(&config);
    driver.limit_room(0);
    for number in 0..4 {
        sender.send(message(number)).expect("there is room");
    }
    let (mut other, _) = self::driver(&small());
    let notifier = other.context().notifier.clone().expect("it was made in `create`");
    let refused = sender.send(message(4));
    assert!(matches!(&refused, Err(OutboxError::Full(block)) if block[..] == *b"0004\n"));
    assert!(matches!(sender.send(vec![0; 101]), Err(OutboxError::TooLong(_))));
    assert!(sender.wake_when_room(&notifier) && sender.wake_when_room(&notifier));
    other.settle();
    assert_eq!(other.context().woken, 0);
    driver.make_room(usize::MAX);
    other.settle();
    assert_eq!(other.context().woken, 1);
    assert!(!sender.wake_when_room(&notifier), "there is room by now");
    assert_eq!((config.counters().sent(), config.counters().refused()), (4, 2));
}

#[test]
fn a_sender_refused_for_a_long_message_is_woken_once_it_fits() {
    let config = small();
    let (mut driver, sender) = driver(&config);
    driver.limit_room(0);
    sender.send(vec![b'.'; 20]).expect("there is room");
    driver.settle();
    sender.send(vec![b'.'; 45]).expect("there is room");
    let (mut other, _) = self::driver(&small());
    let notifier = other.context().notifier.clone().expect("it was made in `create`");
    assert!(matches!(sender.send(vec![b'.'; 60]), Err(OutboxError::Full(_))));
    assert!(sender.wake_when_room(&notifier), "half is free, but that is too little");
    driver.make_room(usize::MAX);
    other.settle();
    assert_eq!(other.context().woken, 1);
    sender.send(vec![b'.'; 60]).expect("there is room");
    driver.settle();
    assert!(!sender.wake_when_room(&notifier), "nobody was refused since");
}

#[test]
fn the_newest_messages_stay_when_the_oldest_are_dropped() {
    let config = small().when_full(OutboxFull::DropOldest);
    let (mut driver, sender) = driver(&config);
    driver.limit_room(0);
    sender.send(message(0)).expect("there is room");
    driver.settle();
    for number in 1..20 {
        sender.send(message(number)).expect("room is made");
        driver.settle();
    }
    driver.make_room(usize::MAX);
    assert_eq!(numbers(&driver.take_received()), [0, 1, 16, 17, 18, 19]);
    assert_eq!(config.counters().dropped(), 14);
}

#[test]
fn messages_queued_when_the_protocol_is_done_are_still_sent() {
    for in_place in [false, true] {
        let (mut driver, sender) = driver_with_calls(&small(), in_place);
        driver.limit_room(3);
        for number in 0..4 {
            sender.send(message(number)).expect("there is room");
        }
        driver.settle();
        driver.send(b"quit\n");
        assert!(!sender.is_open());
        driver.make_room(usize::MAX);
        assert_eq!(driver.take_received(), b"0000\n0001\nbye\n0002\n0003\n");
        assert!(driver.is_ended());
    }
}

#[test]
fn sending_after_the_write_side_has_ended_is_refused() {
    let config = small();
    let (mut driver, sender) = driver(&config);
    driver.limit_room(0);
    for number in 0..4 {
        sender.send(message(number)).expect("there is room");
    }
    driver.settle();
    let (mut other, _) = self::driver(&small());
    let notifier = other.context().notifier.clone().expect("it was made in `create`");
    sender.send(message(4)).expect("there is room");
    sender.send(message(5)).expect("there is room");
    assert!(sender.wake_when_room(&notifier));
    driver.send(b"hush\n");
    other.settle();
    assert!(driver.is_alive() && !sender.is_open());
    assert_eq!((other.context().woken, sender.len()), (1, 0));
    assert!(matches!(sender.send("more"), Err(OutboxError::Closed(_))));
    driver.make_room(usize::MAX);
    assert_eq!(driver.take_received(), b"0000\n0001\n");
}

#[test]
fn piecewise_output_of_the_protocol_continues_beside_messages() {
    for in_place in [false, true] {
        let (mut driver, sender) =
            driver_with_calls(&small().messages_max(100).bytes_max(10_000), in_place);
        driver.limit_writes(7);
        for number in 0..20 {
            sender.send(message(number)).expect("there is room");
        }
        driver.send(b"list\n");
        let received = driver.take_received();
        let dots = received.iter().filter(|byte| **byte == b'.').count();
        let rest: Vec<u8> = received.into_iter().filter(|byte| *byte != b'.').collect();
        assert_eq!((dots, numbers(&rest)), (1_000, (0..20).collect()));
        driver.send(b"still here\n");
        assert_eq!(driver.take_received(), b"still here\n");
        assert!(driver.failures().is_empty());
    }
}

/// However many others send, even just as the protocol is called, and however few bytes it waits
/// for: it waits for at most one output of theirs, and they wait for what it wrote.
#[test]
fn senders_do_not_starve_a_protocol_that_waits_for_its_output() {
    for (left, write_max, bytes_between, in_place) in ["0\n", "1\n", "4\n", "5\n", "50\n"]
        .into_iter()
        .flat_map(|left| [1, 7, usize::MAX].map(|write_max| (left, write_max)))
        .flat_map(|(left, write_max)| [0, 5].map(|between| (left, write_max, between)))
        .flat_map(|(left, max, between)| [false, true].map(|place| (left, max, between, place)))
    {
        let (mut driver, sender) = driver_with_calls(&small(), in_place);
        driver.limit_writes(write_max);
        driver.limit_room(0);
        let (mut received, mut number) = (Vec::new(), 0);
        // Twice: what was held back for the first is not held back forever.
        for _ in 0..2 {
            driver.send(left.as_bytes());
            let until = received.len() + 120;
            while !received.ends_with(b"!") {
                assert!(received.len() < until, "{left:?}: {received:?}");
                // Either as many messages as may be pending, or only what the output has room for.
                let received_count = 120 - (until - received.len());
                let sends = bytes_between == 0
                    || received_count > 50 && received_count % bytes_between == 0;
                while sends && sender.send(message(number)).is_ok() {
                    number += 1;
                    if bytes_between > 0 {
                        break;
                    }
                }
                driver.make_room(1);
                received.extend(driver.take_received());
            }
            for _ in 0..30 {
                driver.make_room(1);
            }
            received.extend(driver.take_received());
        }
        driver.make_room(usize::MAX);
        received.extend(driver.take_received());
        let rest: Vec<u8> = received.into_iter().filter(|byte| !b".!".contains(byte)).collect();
        assert_eq!(numbers(&rest), (0..number).collect::<Vec<_>>(), "{left:?}");
    }
}

#[test]
fn a_peer_that_reads_nothing_is_dropped_at_the_flush_timeout() {
    let (mut driver, sender) = driver(&small());
    driver.limit_room(0);
    for number in 0..4 {
        sender.send(message(number)).expect("there is room");
    }
    driver.settle();
    driver.advance(Duration::from_secs(10_000));
    assert!(!driver.is_alive() && !sender.is_open());
}

#[test]
fn the_description_is_the_protocols_plus_the_queued_bytes() {
    let (mut driver, sender) = driver(&small().bytes_max(20_000));
    driver.limit_room(0);
    for _ in 0..3 {
        sender.send(vec![b'x'; 5_000]).expect("there is room");
        driver.settle();
    }
    assert_eq!(sender.bytes(), 10_000, "one is in the output");
    let mut description = Description::new();
    let machines = driver.test().instance().machines();
    machines.get(sender.token()).expect("it is alive").describe(&mut description);
    assert_eq!(description.state(), "chatting");
    assert!((15_000..20_000).contains(&description.held()), "{}", description.held());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "tests play the outside world: its threads")]
fn senders_can_be_used_from_other_threads() {
    fn is_send_and_sync<T: Send + Sync>(_: &T) {}
    let (mut driver, sender) = driver(&OutboxConfig::new());
    is_send_and_sync(&sender);
    let other = sender.clone();
    std::thread::spawn(move || other.send("from afar").map_err(|error| error.to_string()))
        .join()
        .expect("it does not panic")
        .expect("there is room");
    driver.settle();
    assert_eq!(driver.take_received(), b"from afar");
}

#[test]
fn messages_accepted_while_the_protocol_ends_are_sent() {
    for in_place in [false, true] {
        let was_taken = Rc::new(Cell::new(None));
        let last_word = Some(was_taken.clone());
        let mut driver = Test::new(small(), Shared { in_place, last_word, ..Shared::default() });
        driver.send(b"quit\n");
        let expected = match was_taken.get().expect("it has ended") {
            true => "bye\nlast\n",
            false => "bye\n",
        };
        assert_eq!(driver.take_received(), expected.as_bytes(), "in place: {in_place}");
    }
}
