//! Handlers that write as there is room: they are told of it, whatever they get in between.

use std::sync::Arc;

use rotor_http::client::{ClientConfig, ConnectionSeed};
use rotor_stream::testing::Driver;

use crate::probe::{BodyPlan, Probe, TestContext};
use crate::script::{ProbeDriver, ScriptedSource};

#[test]
fn the_notice_of_room_comes_although_pieces_of_the_response_come_first() {
    let probe = Probe::post(BodyPlan::Chunked("abcdef")).progressive();
    let context = TestContext { plans: [probe].into(), ..TestContext::default() };
    let seed = ConnectionSeed::new(ScriptedSource, Arc::new(ClientConfig::new()));
    let mut driver: ProbeDriver = Driver::with(seed, context, |peer| peer.limit_room(10));
    let peer = driver.peer();
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
    // More than the stream reads in one event, at whose end it writes: the next piece comes first.
    peer.send(&[b'x'; 200_000]);
    peer.make_room(1 << 20);
    driver.settle();
    let events = &driver.context().events;
    let notices = events.iter().filter(|event| event.ends_with("flushed")).count();
    assert_eq!(notices, 1, "{events:?}");
}
