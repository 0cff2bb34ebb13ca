//! Handlers that use stored bodies wrongly, and handlers behind a route.

use std::fs;
use std::sync::Arc;

use rotor_body::Body;
use rotor_http::server::{
    Connection, Head, HttpSeed, Next, NoUpgrade, RecvMode, Response, Route, Routed, Scope, Server,
    ServerConfig,
};
use rotor_http::{MessageError, Status};
use rotor_stream::testing::Driver;

use super::{Mirror, Sc, TestContext, head, with_length};
use crate::place::{SlowDisk, SpoolDirectory, pattern_bytes};

/// Requests a stored body and has no method that receives it.
struct IgnoresStoredBody;

impl Server for IgnoresStoredBody {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        (): (),
        _: &Head<'_>,
        _: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        Next::recv(IgnoresStoredBody, RecvMode::Stored { ram_max: 100, max: 100 }).keep_deadline()
    }
}

#[test]
fn a_handler_that_ignores_its_stored_body_is_answered_with_500() {
    let seed = HttpSeed::new((), ServerConfig::new());
    let mut driver = Driver::<Connection<IgnoresStoredBody>>::new(seed, ());
    driver.send(&with_length(b"x"));
    assert!(driver.take_received().starts_with(b"HTTP/1.1 500 "));
}

/// Writes longer pieces of a file than the output can queue, in chunks.
struct WritesHugeFile;

impl WritesHugeFile {
    fn answer(response: &mut Response<'_>) -> Result<(), MessageError> {
        let file = Arc::new(fs::File::open("/dev/null").expect("it is there"));
        response.status(Status::OK)?;
        response.add_chunked()?;
        response.done_headers()?;
        response.write_body("hello")?;
        for length in [u64::MAX, 1 << 63, (1 << 63) - 1, (1 << 63) - 100] {
            let body = Body::from_file(file.clone(), 0..length);
            let refused = response.write_stored(&body).expect_err("it cannot wait");
            assert!(matches!(refused, MessageError::BodyTooLong(_)), "{refused:?}");
            let count = usize::try_from(length).expect("as many bits");
            let refused = response.write_file(file.clone(), 0, count).expect_err("nor can this");
            assert!(matches!(refused, MessageError::BodyTooLong(_)), "{refused:?}");
        }
        response.done()
    }
}

impl Server for WritesHugeFile {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        (): (),
        _: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        WritesHugeFile::answer(response).expect("only what is too long is refused");
        Next::finished()
    }
}

#[test]
fn an_oversized_file_write_is_refused_as_a_whole() {
    let seed = HttpSeed::new((), ServerConfig::new());
    let mut driver = Driver::<Connection<WritesHugeFile>>::new(seed, ());
    driver.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    let received = driver.take_received();
    let text = String::from_utf8_lossy(&received);
    assert!(text.ends_with("\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), "{text}");
}

/// Routes every request to the second server.
struct ToSecond;

/// A handler that is never called.
struct NeverCalled;

impl Server for NeverCalled {
    type Context = TestContext;
    type Seed = ();
    type Upgrade = NoUpgrade<TestContext>;

    fn headers_received((): (), _: &Head<'_>, _: &mut Response<'_>, _: Sc<'_, '_>) -> Next<Self> {
        Next::fail(Status::NOT_FOUND)
    }
}

impl Route for ToSecond {
    type First = NeverCalled;
    type Second = Mirror;

    fn is_first(_: &Head<'_>) -> bool {
        false
    }
}

#[test]
fn a_routed_handler_gets_its_stored_body() {
    let seed = HttpSeed::new(((), ()), ServerConfig::new());
    let mut driver = Driver::<Connection<Routed<ToSecond>>>::new(seed, TestContext::default());
    driver.send(&with_length(b"hello"));
    assert!(driver.take_received().ends_with(b"\r\n\r\nhello"));
}

/// Begins its response before it has the body, and fails when it has it.
struct FailsAfterBody;

impl Server for FailsAfterBody {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        (): (),
        _: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        response.status(Status::OK).and_then(|()| response.add_chunked()).expect("fields");
        response.done_headers().and_then(|()| response.write_body("begun")).expect("a piece");
        let mode = RecvMode::Stored { ram_max: 5_000, max: 200_000 };
        Next::recv(FailsAfterBody, mode).keep_deadline()
    }

    fn request_stored(self, _: Body, _: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
        Next::fail(Status::BAD_GATEWAY)
    }
}

#[test]
fn an_error_page_never_follows_the_sent_part_of_a_response() {
    let place = SpoolDirectory::new();
    let mut disk = SlowDisk::new();
    let spool = place.config().pool(disk.pool.clone()).open().expect("it can be written");
    let seed = HttpSeed::new((), ServerConfig::new().spool(spool));
    let mut driver = Driver::<Connection<FailsAfterBody>>::new(seed, ());
    driver.limit_room(20);
    // The file is open when a part of the response has been sent. It is too late for a 100.
    driver.send(&head("Content-Length: 10000\r\nExpect: 100-continue"));
    let mut work = |driver: &mut Driver<Connection<FailsAfterBody>>| {
        for _ in 0..10 {
            disk.release();
            disk.hold();
            driver.settle();
        }
    };
    work(&mut driver);
    assert_eq!(driver.received_len(), 20);
    driver.send(&pattern_bytes(10_000));
    work(&mut driver);
    driver.make_room(usize::MAX / 2);
    let received = driver.take_received();
    assert!(received.ends_with(b"begun\r\n"), "{}", String::from_utf8_lossy(&received));
    assert!(driver.is_ended());
}
