//! The hot paths, one at a time and a given number of times, so that their instructions can be
//! counted. This program measures nothing itself: `tests/long/instructions` runs it under
//! callgrind, once with a count and once with twice that count, so that the cost of the start
//! cancels out, and compares the result with the parent commit.
//!
//! ```text
//! cargo bench --bench instructions -- PART [COUNT]
//! cargo bench --bench instructions -- --list
//! ```
//!
//! Each part checks its result. Without a part, all of them are run a few times.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "it lists its parts")]

use std::hint::black_box;
use std::time::Duration;

use rotor::http::h1::{
    Body, DateCache, Ending, FieldStorage, HeadReader, Limits, Method, ReplyTo, RequestSemantics,
    ResponseState, Status, Version,
};
use rotor::http::server::{
    Connection, Head, HttpSeed, Next, NoUpgrade, Response as Answer, Server, ServerConfig,
};
use rotor::stream::testing::{Driver, TestLoop};
use rotor::tracing::tracing::info_span;
use rotor::tracing::{InSpan, Traced};
use rotor::{Blocking, Compose2, Config, Infallible, Loop, Machine, Notifier, Response, Scope};

/// How often each part runs if no count is given.
const COUNT: u64 = 100;

const HELLO: &[u8] = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:3000\r\n\r\n";

const BROWSER: &[u8] = b"GET /static/page/42?lang=en&theme=dark HTTP/1.1\r\n\
    Host: www.example.com\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
    Accept-Language: en-US,en;q=0.5\r\n\
    Accept-Encoding: gzip, deflate, br\r\n\
    Connection: keep-alive\r\n\
    Cookie: session=0123456789abcdef0123456789abcdef; consent=yes\r\n\
    Upgrade-Insecure-Requests: 1\r\n\
    Sec-Fetch-Dest: document\r\n\
    Sec-Fetch-Mode: navigate\r\n\
    Cache-Control: max-age=0\r\n\r\n";

const BODY: &[u8] = b"Hello, World!";

/// The length of a response to `HELLO`, in bytes.
const ANSWER_BYTES: usize = 17 + 26 + 20 + 37 + 2 + BODY.len();

/// A part: its name, and the function that does it a number of times.
type Part = (&'static str, fn(u64));

const PARTS: [Part; 15] = [
    ("parse", |count| parse(HELLO, count)),
    ("parse-browser", |count| parse(BROWSER, count)),
    ("write", write),
    ("dispatch", |count| dispatch(|woken| woken, Config::new(), 1, count)),
    ("unsampled", |count| dispatch(|woken| woken, Config::new().sample_handlers(0), 1, count)),
    ("dispatch-16", |count| dispatch(|woken| woken, Config::new(), 16, count.div_ceil(16))),
    ("composed-16", |count| dispatch(Composed::B, Config::new(), 16, count.div_ceil(16))),
    ("guarded-16", |count| dispatch(Guarded, Config::new(), 16, count.div_ceil(16))),
    ("in-span-16", |count| dispatch(in_no_span, Config::new(), 16, count.div_ceil(16))),
    ("run", |count| run(Config::new(), count)),
    ("run-watched", |count| run(Config::new().blocking(Blocking::new().patience(HOUR)), count)),
    ("request", |count| requests::<Hello>(1, count)),
    ("request-16", |count| requests::<Hello>(16, count.div_ceil(16))),
    ("traced", |count| requests::<Traced<Hello>>(1, count)),
    ("traced-16", |count| requests::<Traced<Hello>>(16, count.div_ceil(16))),
];

/// The patience of a watchdog that must not check anything meanwhile, so that its own work is not
/// in the figure.
const HOUR: Duration = Duration::from_secs(3_600);

fn main() {
    // Cargo adds `--bench`, the smoke run of all benches `--test`.
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench" && word != "--test");
    let part = words.next();
    let count = words.next().map_or(COUNT, |count| count.parse().expect("a count is a number"));
    match part.as_deref() {
        Some("--list") => PARTS.iter().for_each(|(name, _)| println!("{name}")),
        None => PARTS.iter().for_each(|(_, run)| run(count)),
        Some(part) => {
            let (_, run) = PARTS.iter().find(|(name, _)| *name == part).expect("one of --list");
            run(count);
        }
    }
}

/// Parses a head, and what the connection must know about it.
fn parse(input: &[u8], count: u64) {
    let (limits, mut reader) = (Limits::new(), HeadReader::new());
    for _ in 0..count {
        let mut storage = FieldStorage::new();
        let head = reader.read_request(black_box(input), &mut storage, &limits);
        let head = head.expect("a good head").expect("a whole head");
        let terms = RequestSemantics::from_head(black_box(&head)).expect("a good request");
        assert!(head.input_len() == input.len() && terms.body == Body::Empty && terms.keep_alive);
    }
}

/// Writes a response step by step.
fn write(count: u64) {
    let (date, mut out) = (DateCache::new(784_111_777), Vec::with_capacity(4096));
    let reply = ReplyTo { version: Version::Http11, keep_alive: true, ..ReplyTo::unreadable() };
    for _ in 0..count {
        out.clear();
        let mut response = ResponseState::new(black_box(reply));
        let mut attempt = || {
            response.status(&mut out, Status::OK)?;
            response.add_header(&mut out, "Content-Type", black_box(b"text/plain"))?;
            response.add_length(&mut out, black_box(BODY.len() as u64))?;
            response.done_headers(&mut out, Some(black_box(&date)), None)?;
            response.write_body(&mut out, BODY)?;
            response.done(&mut out)
        };
        attempt().expect("a good response");
        assert!(response.ending() == Ending::KeepAlive && black_box(&out).len() == ANSWER_BYTES);
    }
}

/// A machine that counts its wake-ups, and is about as large as a connection.
struct Woken {
    count: u64,
    _state: [u64; 30],
}

impl Machine for Woken {
    type Context = u64;
    type Seed = Infallible;

    fn wakeup(mut self, scope: &mut Scope<'_, u64>) -> Response<Self, Infallible> {
        self.count += 1;
        **scope += 1;
        let until = scope.now();
        Response::ok(self).deadline(until + std::time::Duration::from_secs(60))
    }
}

/// Runs turns of a loop in each of which this many machines are woken, with one call each.
fn dispatch<M: Machine<Context = u64> + 'static>(
    make: fn(Woken) -> M,
    config: Config,
    machines: usize,
    turns: u64,
) {
    let mut test = TestLoop::<M>::with_config(0, config.machines_max(1_000));
    let mut notifiers: Vec<Notifier> = Vec::new();
    for _ in 0..machines {
        test.add(|scope| {
            notifiers.push(scope.notifier());
            Response::ok(make(Woken { count: 0, _state: [0; 30] }))
        });
    }
    for _ in 0..turns {
        for notifier in &notifiers {
            notifier.wakeup();
        }
        test.turn();
    }
    assert_eq!(*test.context(), turns * machines as u64);
}

/// A machine that wakes itself this many times.
struct Waking(u64);

impl Machine for Waking {
    type Context = ();
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        if self.0 == 0 {
            return Response::done();
        }
        scope.wake_self();
        Response::ok(Waking(self.0 - 1))
    }
}

/// Runs a loop for this many turns with one call each. Only a loop in `run` is watched.
fn run(config: Config, turns: u64) {
    let mut creator = Loop::<Waking>::new(&config.machines_max(1)).expect("a descriptor is left");
    let made = creator.add_machine_with(|scope| {
        scope.wake_self();
        Response::ok(Waking(turns))
    });
    made.expect("there is room");
    let mut instance = creator.instantiate(());
    instance.run().expect("it runs");
    assert_eq!(instance.stats().read().wakeups, turns + 1);
}

/// A machine that is one of two types: the cost of a call with a layer around machines.
type Composed = Compose2<Guarded, Woken>;

/// A machine that guards its own call: the cost of a `catch_unwind` around each call.
struct Guarded(Woken);

impl Machine for Guarded {
    type Context = u64;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, u64>) -> Response<Self, Infallible> {
        match scope.guard(|scope| self.0.wakeup(scope)) {
            Ok(response) => response.map(Guarded, |seed| seed),
            Err(_) => Response::done(),
        }
    }
}

/// Makes a machine in a span that no subscriber wants.
fn in_no_span(woken: Woken) -> InSpan<Woken> {
    InSpan::new(woken, info_span!("nobody wants it"))
}

struct Hello;

impl Server for Hello {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        response: &mut Answer<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        let is_hello = head.method() == Method::Get && head.path() == "/";
        let status = if is_hello { Status::OK } else { Status::NOT_FOUND };
        response.send(status, "text/plain", BODY).expect("a good response");
        Next::finished()
    }
}

/// Runs whole requests, this many at a time, through loop, stream and connection on a scripted
/// socket. The cost of the script is in the figure, and is the same on both sides of a comparison.
fn requests<S>(depth: usize, batches: u64)
where
    S: Server<Context = (), Seed = (), Upgrade = NoUpgrade<()>> + 'static,
{
    let mut driver = Driver::<Connection<S>, true>::new(HttpSeed::new((), ServerConfig::new()), ());
    let batch = HELLO.repeat(depth);
    for _ in 0..batches {
        driver.send(&batch);
        assert_eq!(driver.take_received().len(), depth * ANSWER_BYTES);
    }
    assert!(driver.is_alive());
}
