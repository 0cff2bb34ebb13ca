//! A client connection of HTTP/2 with several requests under way. Any bytes after the server's
//! settings have the same outcomes, however they are cut; each request has one outcome; pending
//! data stays bounded, and silence ends the connection.

use std::sync::Arc;
use std::time::Duration;

use rotor_core::{Future, Outcome, Scope, Time};
use rotor_http::Limits;
use rotor_http::client::{
    ClientConfig, ClientResult, Connection, ConnectionSeed, Fetch, Http2Config, Job, Offer,
    RequestSource,
};
use rotor_http::h2::frame::{FrameHeader, PREFACE};
use rotor_stream::Fatal;
use rotor_stream::testing::Driver;

use super::input::Input;

/// More than twice the sum of all configured times.
const IDLE_TIME: Duration = Duration::from_secs(1_000);

/// A server's settings, and the acknowledgement of ours.
const SETTINGS: [u8; 18] = [0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0];

/// The number of requests.
const REQUESTS: usize = 5;

#[derive(Default)]
struct TestContext {
    begun: usize,
    wanted: usize,
    outcomes: Vec<Future<ClientResult<Fetch<TestContext>>>>,
    returned: usize,
}

/// A source of requests with and without bodies.
struct RequestSequence;

impl RequestSource<Fetch<TestContext>> for RequestSequence {
    fn next(&mut self, _: bool, scope: &mut Scope<'_, TestContext>) -> Offer<Fetch<TestContext>> {
        if scope.begun == scope.wanted {
            return Offer::Idle;
        }
        scope.begun += 1;
        let fetch = match scope.begun % 3 {
            0 => Fetch::post("/post", vec![b'x'; 70_000]),
            1 => Fetch::get("/get"),
            _ => Fetch::new("HEAD", "/head"),
        };
        let (port, future) = scope.create_future();
        scope.outcomes.push(future);
        Offer::Job(Job::new(fetch.host("h"), Time::NEVER, port))
    }

    fn return_job(&mut self, job: Job<Fetch<TestContext>>, scope: &mut Scope<'_, TestContext>) {
        assert!(job.is_repeated());
        scope.returned += 1;
    }

    fn not_connected(self, _: Fatal, _: &mut Scope<'_, TestContext>) {}
}

pub(super) fn run(data: &[u8]) {
    let mut choices = Input::new(data);
    let piece = choices.pick(&[1, 2, 9, 10, 100]);
    let begins = choices.flag();
    let bytes = data.get(2..).unwrap_or_default();
    let whole = run_requests(begins, bytes, bytes.len().max(1));
    assert_eq!(run_requests(begins, bytes, piece), whole, "in pieces of {piece}");
}

/// The outcomes of the requests.
fn run_requests(begins: bool, bytes: &[u8], piece: usize) -> (Vec<String>, usize) {
    // All requests start before anything else arrives. A response to a request that has not started
    // is for an unknown stream in the same read, but not in the next one.
    let wanted = if begins { REQUESTS } else { 1 };
    let http2 = Http2Config::new().prior_knowledge(true);
    let limits = Limits::new().buffered_body_bytes_max(1000);
    let config = Arc::new(ClientConfig::new().limits(limits).http2(http2));
    let mut driver: Driver<Connection<Fetch<TestContext>, RequestSequence>> = Driver::new(
        ConnectionSeed::new(RequestSequence, config),
        TestContext { wanted, ..TestContext::default() },
    );
    driver.settle();
    if begins {
        driver.send(&SETTINGS);
    }
    for piece in bytes.chunks(piece) {
        driver.send(piece);
    }
    driver.advance(IDLE_TIME);
    driver.end();
    driver.advance(IDLE_TIME);
    assert_eq!(driver.failures(), [""; 0]);
    assert!(!driver.is_alive(), "silence ends it");
    let received = driver.take_received();
    let mut rest = received.strip_prefix(PREFACE).expect("the preface");
    while let Some(header) = FrameHeader::read(rest) {
        assert!(header.len <= 16 << 10 && rest.len() >= 9 + header.len, "{header:?}");
        rest = &rest[9 + header.len..];
    }
    assert!(rest.is_empty(), "frames are whole");
    let seen = driver.context_mut();
    let outcomes =
        std::mem::take(&mut seen.outcomes).into_iter().map(|future| match future.take() {
            Outcome::Value(Ok(fetched)) => {
                let body = fetched.body.escape_ascii();
                format!("{} {:?} {body}", fetched.status, fetched.fields)
            }
            Outcome::Value(Err(error)) => format!("{error:?}"),
            Outcome::Lost(_) => "given back".to_owned(),
            Outcome::Pending(_) => panic!("a request without an outcome"),
        });
    let outcomes: Vec<String> = outcomes.collect();
    let lost = outcomes.iter().filter(|outcome| *outcome == "given back").count();
    assert_eq!(lost, seen.returned, "each has one outcome, or is made again");
    (outcomes, seen.begun)
}
