//! Handlers that are programs of random steps. A request with its program has one outcome, which
//! is the same alone, pipelined, and on a stream beside others, however its input arrives and its
//! output is taken. Afterwards nothing is held or under way.

mod on_http1;
mod on_http2;
mod program;
mod requests;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rotor_http::Limits;
use rotor_http::server::{Connection, Counters, HttpSeed, ServerConfig};
use rotor_stream::BytesHeld;
use rotor_stream::testing::Driver;

use self::program::{Program, Shared};
use self::requests::Request;
use crate::http2::client::http2;
use crate::probe::seconds;

const MILLISECOND: Duration = Duration::from_millis(1);

type ProgramDriver = Driver<Connection<Program>>;

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn with_seed(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 8) as usize % end
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    /// A step of a test, or none.
    fn step_or_never(&mut self, one_in: usize) -> usize {
        if self.one_in(one_in) { self.below(100) } else { usize::MAX }
    }
}

/// What is known of a server besides its output.
struct Observed {
    counters: Arc<Counters>,
    held: [Arc<BytesHeld>; 2],
    alive: Arc<()>,
    /// Status and bytes of each request in the log.
    lines: Arc<Mutex<Vec<(u16, u64)>>>,
}

/// A connection of a server whose limits are random, except for its times, which are long.
fn connect(random: &mut Random) -> (ProgramDriver, Observed) {
    let limits = Limits::new()
        .output_high_water(random.one_of(&[1, 1_000, 20_000, 64 << 10]))
        .handler_timeout(seconds(1_000))
        .body_grace(seconds(1_000))
        .response_grace(seconds(1_000))
        .head_timeout(seconds(1_000))
        .shutdown_timeout(seconds(1_000));
    let http2 = http2()
        .collected_bytes_max(random.one_of(&[1, 10_000, 4 << 20]))
        .unsent_bytes_max(random.one_of(&[1, 10_000, 1 << 20]))
        .stream_window(random.one_of(&[70_000, 300_000]))
        .small_data(1_000_000, 1_000_000)
        .control_frames(1_000_000, 1_000_000)
        .settings_timeout(seconds(1_000));
    let lines = Arc::new(Mutex::new(Vec::new()));
    let mut config = ServerConfig::new().limits(limits).http2(http2);
    if random.one_in(2) {
        let lines = lines.clone();
        config = config.log(move |finished| {
            let status = finished.status.map_or(0, |status| status.code());
            lines.lock().expect("no panic").push((status, finished.bytes));
        });
    }
    let (counters, held) = (config.counters(), [config.held(), config.bodies_held()]);
    let shared = Shared::default();
    let alive = shared.alive.clone();
    (Driver::new(HttpSeed::new((), config), shared), Observed { counters, held, alive, lines })
}

impl Observed {
    /// Checks that nothing is left of a connection that is gone.
    fn check_end(&self, what: &str) {
        let open = (self.counters.requests_open(), self.counters.connections_open());
        assert_eq!(open, (0, 0), "{what}");
        assert_eq!(self.held.each_ref().map(|held| held.bytes()), [0, 0], "{what}");
        assert_eq!(Arc::strong_count(&self.alive), 1, "{what}: a handler is left");
    }

    fn log(&self) -> Vec<(u16, u64)> {
        self.lines.lock().expect("no panic").clone()
    }
}

/// Lets one of the things happen that the handlers and the connection wait for.
fn happen(driver: &mut ProgramDriver, random: &mut Random) {
    match random.below(8) {
        0 | 1 => driver.advance(MILLISECOND),
        2 => driver.wakeup(),
        3 => driver.limit_room(0),
        4 => driver.make_room(random.one_of(&[1, 1_000, 1 << 30])),
        5 => {
            let ports = &mut driver.context_mut().ports;
            if !ports.is_empty() {
                let at = random.below(ports.len());
                let _nobody_waits = ports.swap_remove(at).set(());
            }
            driver.settle();
        }
        _ => driver.settle(),
    }
}

/// Lets all of them happen.
fn happen_all(driver: &mut ProgramDriver) {
    driver.make_room(1 << 30);
    for port in std::mem::take(&mut driver.context_mut().ports) {
        let _nobody_waits = port.set(());
    }
    driver.advance(MILLISECOND);
}

/// A response as the peer sees it.
struct Seen<'a> {
    status: u16,
    body: &'a [u8],
    fields: &'a [(String, String)],
    is_whole: bool,
}

/// Checks a response to this request.
fn check(request: &Request, seen: &Seen<'_>, what: &str) {
    let outcome = request.outcome();
    let what = format!("{what}\n{request:?}");
    if !seen.is_whole || (outcome.may_be_cut && seen.status < 300) {
        assert!(outcome.may_be_cut, "{what}: cut");
        return;
    }
    assert_eq!(seen.status, outcome.status, "{what}");
    let lengths = (seen.body.len(), outcome.body.len());
    assert!(seen.body == outcome.body, "{what}: {} bytes and not {}", lengths.0, lengths.1);
    let count =
        |name: &str| seen.fields.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name)).count();
    assert_eq!(count("X-Trailer"), usize::from(outcome.has_trailers), "{what}");
    assert_eq!(count("X-Always"), request.steps.matches('a').count(), "{what}");
    assert_eq!(count("Retry-After"), usize::from(seen.status == 503), "{what}");
    assert_eq!(count("Date"), 1, "{what}");
}

const SEEDS: u64 = 250;

#[test]
fn a_program_has_its_outcome_on_http1_whatever_comes_before_and_after() {
    (0..SEEDS).for_each(on_http1::run);
}

#[test]
fn a_program_has_its_outcome_on_a_stream_whatever_the_others_do() {
    (0..SEEDS).for_each(on_http2::run);
}
