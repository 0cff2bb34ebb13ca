//! Messages from others and a protocol that writes at random, to a peer that reads at random: all
//! arrive, whole and in order, or the peer sees no orderly end.

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use rotor_core::Scope;
use rotor_stream::testing::Driver;
use rotor_stream::{
    Exception, HasOutbox, Intent, Matched, Outbox, OutboxConfig, OutboxFull, OutboxSender,
    Protocol, StreamConfig, Transport, WithOutbox,
};

/// What the protocol has done, and what it is to do.
struct Plan {
    rng: Rng,
    config: OutboxConfig,
    output_high_water: usize,
    sender: Option<OutboxSender>,
    /// The bytes that the protocol has written itself, which are all different from messages.
    written: usize,
    /// The flush that it waits for.
    flush: Option<usize>,
    end: Option<&'static str>,
    must_end: bool,
    wrong: Vec<String>,
}

type Shared = Rc<RefCell<Plan>>;

/// Writes, waits for a flush, and ends, at random.
struct Writer {
    outbox: Outbox,
    plan: Shared,
}

/// The bytes of the protocol count up below this; those of messages are above.
const OWN_BYTES: usize = 100;

/// A message is its first byte, this many times.
fn message(number: usize) -> Vec<u8> {
    let first = u8::try_from(OWN_BYTES + number % 150).expect("below 256");
    vec![first; 1 + number * 7 % 12]
}

impl Writer {
    fn act(self, transport: &mut Transport<'_>) -> Intent<Writer> {
        let plan = self.plan.clone();
        let plan = &mut *plan.borrow_mut();
        if plan.rng.bool() {
            let count = plan.rng.usize(1..30);
            let bytes: Vec<u8> =
                (0..count).map(|offset| ((plan.written + offset) % OWN_BYTES) as u8).collect();
            plan.written += count;
            transport.output.write_all(&bytes).expect("open");
        }
        let fate = if plan.must_end { plan.rng.u8(0..2) } else { plan.rng.u8(0..60) };
        match fate {
            0 => {
                plan.end = Some("done");
                return Intent::done();
            }
            1 => {
                plan.end = Some("error");
                return Intent::error("as planned");
            }
            _ => {}
        }
        plan.flush = plan.rng.bool().then(|| plan.rng.usize(0..25));
        let wait = Intent::of(self).bytes(1);
        match plan.flush {
            Some(left) => wait.or_flush(left).no_deadline(),
            None => wait.no_deadline(),
        }
    }
}

impl Protocol for Writer {
    type Context = ();
    type Seed = Shared;

    fn config(plan: &Shared) -> Arc<StreamConfig> {
        StreamConfig::new().output_high_water(plan.borrow().output_high_water).share()
    }

    fn create(
        plan: Shared,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, ()>,
    ) -> Intent<Self> {
        let config = plan.borrow().config.clone();
        let outbox = Outbox::new(config, scope);
        plan.borrow_mut().sender = Some(outbox.sender());
        Writer { outbox, plan }.act(transport)
    }

    fn bytes_read(
        self,
        _: Matched,
        transport: &mut Transport<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Intent<Self> {
        transport.input.clear();
        self.act(transport)
    }

    fn bytes_flushed(self, transport: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
        let left = transport.output.len();
        let flush = self.plan.borrow().flush;
        if flush.is_none_or(|most| left > most) {
            self.plan.borrow_mut().wrong.push(format!("{flush:?}: flushed to {left}"));
        }
        // Not for the same flush again without having written anything.
        self.plan.borrow_mut().flush = None;
        Intent::of(self).bytes(1).no_deadline()
    }

    fn wakeup(self, transport: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
        let acts = self.plan.borrow_mut().rng.u8(0..3) == 0 || self.plan.borrow().must_end;
        if acts { self.act(transport) } else { Intent::of(self).keep().keep_deadline() }
    }

    fn exception(self, _: Exception, _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
        self.plan.borrow_mut().end = Some("done");
        Intent::done()
    }
}

impl HasOutbox for Writer {
    fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }
}

fn run(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let when_full = [OutboxFull::Refuse, OutboxFull::DropOldest, OutboxFull::End];
    let when_full = when_full[rng.usize(0..3)];
    let config = OutboxConfig::new()
        .messages_max(rng.usize(1..6))
        .bytes_max(rng.usize(12..40))
        .output_max(rng.usize(2..40))
        .when_full(when_full);
    let plan = Rc::new(RefCell::new(Plan {
        rng: rng.fork(),
        config: config.clone(),
        output_high_water: if rng.bool() { 64 * 1024 } else { rng.usize(0..60) },
        sender: None,
        written: 0,
        flush: None,
        end: None,
        must_end: false,
        wrong: Vec::new(),
    }));
    let is_limited = rng.bool();
    let mut driver = Driver::<WithOutbox<Writer>>::with(plan.clone(), (), |peer| {
        if is_limited {
            peer.limit_room(rng.usize(0..40));
        }
        if rng.bool() {
            peer.limit_writes(rng.usize(1..9));
        }
    });
    let sender = plan.borrow().sender.clone().expect("it was created");
    let (mut accepted, mut number, mut received) = (Vec::new(), 0, Vec::new());
    for _ in 0..rng.usize(1..60) {
        match rng.u8(0..8) {
            0..3 => {
                for _ in 0..rng.usize(1..4) {
                    if sender.send(message(number)).is_ok() {
                        accepted.push(number);
                    }
                    number += 1;
                }
                if rng.bool() {
                    driver.settle();
                }
            }
            3 => driver.send(b"x"),
            4 if is_limited => driver.make_room(rng.usize(1..50)),
            5 => driver.wakeup(),
            6 if rng.u8(0..20) == 0 => driver.drain(Duration::from_secs(1_000_000)),
            _ => driver.settle(),
        }
        received.extend(driver.take_received());
    }
    driver.settle();
    if !is_limited && sender.is_open() && !sender.is_empty() {
        plan.borrow_mut().wrong.push(format!("{} messages wait", sender.len()));
    }
    if is_limited {
        driver.make_room(1_000_000);
    }
    if sender.is_open() && (!sender.is_empty() || plan.borrow().flush.is_some()) {
        let flush = plan.borrow().flush;
        plan.borrow_mut().wrong.push(format!("{} messages wait, {flush:?}", sender.len()));
    }
    plan.borrow_mut().must_end = true;
    driver.wakeup();
    driver.end();
    received.extend(driver.take_received());
    let counters = config.counters();
    let dropped = usize::try_from(counters.dropped()).expect("few");
    let plan = plan.borrow();
    let mut wrong = plan.wrong.clone();
    if driver.is_alive() {
        wrong.push("it is still alive".into());
    }
    let (own, messages) = split(&received, &accepted);
    let is_complete = own == plan.written && messages + dropped == accepted.len();
    let resets = driver.operations().resets;
    if !is_complete && resets == 0 {
        wrong.push(format!(
            "{own} of {} bytes, {messages} of {} messages, {dropped} dropped, then an end",
            plan.written,
            accepted.len()
        ));
    }
    let is_planned = |failure: &String| {
        failure.contains("as planned")
            || when_full == OutboxFull::End && failure.contains("does not read")
    };
    if !driver.failures().iter().all(is_planned) {
        wrong.push(format!("{:?}", driver.failures()));
    }
    assert!(wrong.is_empty(), "seed {seed}, {:?}: {wrong:?}", plan.end);
}

/// Returns how many of the protocol's bytes and how many whole messages arrived, in order.
fn split(received: &[u8], accepted: &[usize]) -> (usize, usize) {
    let (mut own, mut messages, mut left) = (0, 0, accepted.iter());
    let mut rest = received;
    while let Some(first) = rest.first() {
        if usize::from(*first) < OWN_BYTES {
            assert_eq!(usize::from(*first), own % OWN_BYTES, "in order");
            (own, rest) = (own + 1, &rest[1..]);
            continue;
        }
        let next = left.find(|number| message(**number)[0] == *first).expect("it was accepted");
        let message = message(*next);
        // The last one may be cut off.
        let part = &message[..message.len().min(rest.len())];
        assert!(rest.starts_with(part), "it is whole");
        messages += usize::from(part.len() == message.len());
        rest = &rest[part.len()..];
    }
    (own, messages)
}

#[test]
fn random_messages_and_output_arrive_whole_and_in_order() {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let first = number("SEED").unwrap_or(0);
    (first..first + number("SEEDS").unwrap_or(400)).for_each(run);
}
