//! Two ends that write and read at the same time, between which bytes pass in random pieces. No
//! time passes, so an edge that is missed, or waited for in vain, leaves them waiting.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use rotor_core::{Scope, Time};
use rotor_stream::testing::{Peer, Scripted, TestLoop, pair};
use rotor_stream::{Exception, Fatal, Intent, Matched, Protocol, Stream, StreamConfig, Transport};

use crate::record::Record;

type Log = Vec<String>;

const LONG: Duration = Duration::from_secs(1_000_000);

/// What one end does.
#[derive(Clone)]
struct Plan {
    config: Arc<StreamConfig>,
    name: &'static str,
    /// How many bytes to send, and how many at a time.
    to_send: usize,
    chunk: usize,
    /// How many bytes must have been received before the end.
    to_receive: usize,
}

/// Sends the next bytes when the earlier ones are written; is done when all are sent, and enough is
/// received.
struct Duplex {
    plan: Plan,
    sent: usize,
    received: usize,
}

/// The byte at each position of what an end sends.
fn byte_at(position: usize) -> u8 {
    (position % 251) as u8
}

impl Duplex {
    fn send_chunk(&mut self, transport: &mut Transport<'_>) {
        let to = self.plan.to_send.min(self.sent + self.plan.chunk);
        let bytes: Vec<u8> = (self.sent..to).map(byte_at).collect();
        transport.output.write_all(&bytes).expect("open");
        self.sent = to;
    }

    fn go_on(self, scope: &mut Scope<'_, Log>) -> Intent<Duplex> {
        let (has_sent, has_received) =
            (self.sent == self.plan.to_send, self.received >= self.plan.to_receive);
        match (has_sent, has_received) {
            (true, true) => {
                scope.push(format!("{} is done", self.plan.name));
                Intent::done()
            }
            (true, false) => Intent::of(self).bytes(1).no_deadline(),
            (false, true) => Intent::of(self).flush(0).no_deadline(),
            (false, false) => Intent::of(self).bytes(1).or_flush(0).no_deadline(),
        }
    }
}

impl Protocol for Duplex {
    type Context = Log;
    type Seed = Plan;

    fn config(plan: &Plan) -> Arc<StreamConfig> {
        plan.config.clone()
    }

    fn create(
        plan: Plan,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        let mut duplex = Duplex { plan, sent: 0, received: 0 };
        duplex.send_chunk(transport);
        duplex.go_on(scope)
    }

    fn bytes_read(
        mut self,
        _: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        for byte in transport.input.iter() {
            assert_eq!(*byte, byte_at(self.received));
            self.received += 1;
        }
        transport.input.clear();
        self.go_on(scope)
    }

    fn bytes_flushed(
        mut self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        self.send_chunk(transport);
        self.go_on(scope)
    }

    fn exception(
        self,
        exception: Exception,
        _: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        scope.push(format!("{}: {exception} after {} bytes", self.plan.name, self.received));
        Intent::done()
    }

    fn fatal(self, error: Fatal, scope: &mut Scope<'_, Log>) {
        scope.push(format!("{}: {error}", self.plan.name));
    }

    fn draining(self, _: Time, _: &mut Transport<'_>, _: &mut Scope<'_, Log>) -> Intent<Self> {
        Intent::of(self).keep().keep_deadline()
    }
}

fn one_of(rng: &mut Rng, values: &[usize]) -> usize {
    *rng.choice(values).expect("there are some")
}

fn config(rng: &mut Rng) -> Arc<StreamConfig> {
    StreamConfig::new()
        .output_high_water(one_of(rng, &[1, 5, 20, 65_536]))
        .read_budget(one_of(rng, &[1, 10, 65_536]))
        .write_budget(one_of(rng, &[1, 7, 15, 65_536]))
        .calls_budget(one_of(rng, &[1, 3, 1_000]) as u32)
        .linger_timeout(LONG)
        .share()
}

/// One direction of a wire.
#[derive(Default)]
struct Direction {
    bytes: VecDeque<u8>,
    /// How much room the sender gets back for what it has sent.
    room_owed: usize,
    has_ended: bool,
}

impl Direction {
    /// Carries some of the bytes. Returns whether there are or were any.
    fn carry(&mut self, from: &Peer, to: &Peer, is_limited: bool, rng: &mut Rng) -> bool {
        let bytes = from.take_received();
        self.room_owed += if is_limited { bytes.len() } else { 0 };
        self.bytes.extend(bytes);
        let is_busy = !self.bytes.is_empty() || self.room_owed > 0;
        if self.room_owed > 0 && rng.bool() {
            let room = rng.usize(1..=self.room_owed);
            self.room_owed -= room;
            from.make_room(room);
        }
        if !self.bytes.is_empty() && rng.bool() {
            let count = rng.usize(1..=self.bytes.len());
            to.send(&self.bytes.drain(..count).collect::<Vec<_>>());
        }
        if !is_busy && from.is_ended() && from.received_len() == 0 && !self.has_ended {
            self.has_ended = true;
            to.end();
            return true;
        }
        is_busy
    }
}

/// Makes two ends talk until nothing moves any more.
fn run_duplex<const D: bool>(seed: u64) {
    let rng = &mut Rng::with_seed(seed);
    let mut test = TestLoop::<Stream<Duplex, Record<Scripted<D>>>>::new(Log::new());
    if rng.bool() {
        test.world().narrow_edges();
    }
    let (server_socket, server) = pair(test.world());
    let (client_socket, client) = pair(test.world());
    let is_limited = rng.bool();
    for peer in [&server, &client] {
        if is_limited {
            peer.limit_room(rng.usize(1..30));
        }
        if rng.bool() {
            peer.limit_writes(rng.usize(1..13));
        }
    }
    let keys = [0, 1].map(|_| rng.bool().then(|| rng.usize(0..4)));
    let totals = [rng.usize(0..300), rng.usize(0..300)];
    // A server that is done does not answer changes of key any more.
    let is_early = keys[1].is_none() && rng.bool();
    let enough = if is_early { rng.usize(0..=totals[1]) } else { totals[1] };
    let mut plan = |name, to_send, to_receive| {
        let chunk = rng.usize(1..60);
        Plan { config: config(rng), name, to_send, chunk, to_receive }
    };
    let plans = [plan("server", totals[0], enough), plan("client", totals[1], totals[0])];
    let mut wrap = |record: Record<Scripted<D>>, key_after: Option<usize>| {
        let record = record.with_read_max(one_of(rng, &[1, 7, 64]));
        key_after.into_iter().fold(record, Record::change_key_after)
    };
    let records = [
        wrap(Record::server(server_socket), keys[0]),
        wrap(Record::client(client_socket, b"duplex"), keys[1]),
    ];
    for (record, plan) in records.into_iter().zip(plans) {
        test.add(|scope| Stream::connected(record, plan, scope));
    }
    let (mut to_client, mut to_server) = (Direction::default(), Direction::default());
    let mut turns_to_drain = rng.bool().then(|| rng.usize(0..60));
    let mut quiet = 0;
    while quiet < 20 {
        match &mut turns_to_drain {
            Some(0) => test.instance().handle().drain(LONG),
            Some(turns) => *turns -= 1,
            None => {}
        }
        if turns_to_drain == Some(0) {
            turns_to_drain = None;
        }
        if rng.u8(0..10) == 0 {
            (if rng.bool() { &server } else { &client }).report_spuriously();
        }
        let is_busy = to_client.carry(&server, &client, is_limited, rng)
            | to_server.carry(&client, &server, is_limited, rng);
        if rng.bool() {
            test.settle();
        } else {
            test.turn();
        }
        quiet = if is_busy { 0 } else { quiet + 1 };
    }
    test.settle();
    let failures = test.failures();
    test.context_mut().sort();
    let outcome = (&test.context()[..], &failures[..]);
    let expected = ["client is done".to_string(), "server is done".to_string()];
    assert_eq!(outcome, (&expected[..], &[][..]), "seed {seed}, keys {keys:?}, totals {totals:?}");
    assert_eq!(test.machines(), 0, "seed {seed}, keys {keys:?}, totals {totals:?}");
}

#[test]
fn two_ends_that_write_and_read_at_once_get_everything_in_random_pieces() {
    for seed in 0..400 {
        run_duplex::<false>(seed);
        run_duplex::<true>(seed);
    }
}
