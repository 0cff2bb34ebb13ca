//! The log lines of a server about requests that no handler sees, and of a client whose server ends
//! the connection. A separate test program, since a process has one log.

use std::sync::{Arc, Mutex};

use log::{Level, LevelFilter, Log, Metadata, Record};
use rotor_core::{Future, Time};
use rotor_http::Status;
use rotor_http::client::{
    self, ClientConfig, ClientResult, ConnectionSeed, Fetch, Http2Config, Job, Offer, RequestSource,
};
use rotor_http::h2::ErrorCode;
use rotor_http::h2::frame_writer;
use rotor_http::server::{
    Connection, Head, HttpSeed, Next, NoUpgrade, Response, Scope, Server, ServerConfig,
};
use rotor_stream::Fatal;
use rotor_stream::testing::Driver;

static LINES: Mutex<Vec<(Level, String)>> = Mutex::new(Vec::new());

struct Lines;

impl Log for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &Record<'_>) {
        LINES
            .lock()
            .expect("no test panics with it")
            .push((record.level(), record.args().to_string()));
    }
    fn flush(&self) {}
}

/// Answers no request.
struct IgnoringServer;

impl Server for IgnoringServer {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        (): (),
        _: &Head<'_>,
        _: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        Next::go_on(IgnoringServer).keep_deadline()
    }
}

/// Wants bodies in files, and has no spool for them.
#[cfg(feature = "body")]
struct StoringServer;

#[cfg(feature = "body")]
impl Server for StoringServer {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        (): (),
        _: &Head<'_>,
        _: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        let mode = rotor_http::server::RecvMode::Stored { ram_max: 4, max: 9 };
        Next::recv(StoringServer, mode).keep_deadline()
    }
}

/// The lines since the last call.
fn take_lines() -> Vec<(Level, String)> {
    std::mem::take(&mut *LINES.lock().expect("no test panics with it"))
}

/// The lines since the last call that contain these words.
fn logged(words: &str) -> Vec<String> {
    let lines = take_lines().into_iter().map(|(_, line)| line);
    lines.filter(|line| line.contains(words)).collect()
}

/// Replies with a content type that is no field value.
struct WrongServer;

impl Server for WrongServer {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        (): (),
        _: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        response.reply(Status::OK, "text/plain\r\nX: y", b"").into()
    }
}

/// Has one request, whose outcome does not matter.
#[derive(Default)]
struct OneRequest {
    future: Option<Future<ClientResult<Fetch<()>>>>,
}

impl RequestSource<Fetch<()>> for OneRequest {
    fn next(&mut self, _: bool, scope: &mut Scope<'_, ()>) -> Offer<Fetch<()>> {
        if self.future.is_some() {
            return Offer::Idle;
        }
        let (port, future) = scope.create_future();
        self.future = Some(future);
        Offer::Job(Job::new(Fetch::get("/").host("h"), Time::NEVER, port))
    }

    fn return_job(&mut self, _: Job<Fetch<()>>, _: &mut Scope<'_, ()>) {}

    fn not_connected(self, _: Fatal, _: &mut Scope<'_, ()>) {}
}

/// The log lines of a client of HTTP/2 whose server sends GOAWAY with this code.
fn logged_after_goaway(code: ErrorCode) -> Vec<(Level, String)> {
    let http2 = Http2Config::new().prior_knowledge(true);
    let config = Arc::new(ClientConfig::new().http2(http2));
    let seed = ConnectionSeed::new(OneRequest::default(), config);
    let mut driver = Driver::<client::Connection<Fetch<()>, OneRequest>>::new(seed, ());
    driver.settle();
    take_lines();
    let mut frames = Vec::new();
    frame_writer::settings(&[], &mut frames);
    frames.extend_from_slice(&frame_writer::go_away(1, code));
    driver.send(&frames);
    let lines = take_lines().into_iter();
    lines.filter(|(_, line)| line.contains(&format!("{code:?}"))).collect()
}

#[test]
fn the_log_says_why_a_request_is_refused_and_a_connection_lost() {
    log::set_logger(&Lines).expect("the first logger");
    log::set_max_level(LevelFilter::Debug);
    let new =
        || Driver::<Connection<IgnoringServer>>::new(HttpSeed::new((), ServerConfig::new()), ());

    new().send(b"GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n");
    assert_eq!(
        logged("refuses"),
        ["machine 0v0 refuses a request: the head is malformed or too large: a field line \
          begins with whitespace"]
    );

    new().send(b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nContent-Length: 1\r\n\r\n1");
    assert_eq!(logged("refuses"), ["machine 0v0 refuses a request: CONNECT has a body"]);

    let mut driver = new();
    driver.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    driver.reset();
    let lost = logged("lost");
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert!(
        lost[0].starts_with("machine 0v0 lost its connection: the connection broke: "),
        "{lost:?}"
    );

    // An error is for the operator, who has chosen the server, but only once in a while.
    for (code, expected) in [
        (ErrorCode::NoError, Level::Debug),
        (ErrorCode::EnhanceYourCalm, Level::Warn),
        (ErrorCode::EnhanceYourCalm, Level::Debug),
    ] {
        let lines = logged_after_goaway(code);
        assert!(matches!(lines[..], [(level, _)] if level == expected), "{lines:?}");
    }

    let seed = HttpSeed::new((), ServerConfig::new());
    Driver::<Connection<WrongServer>>::new(seed, ()).send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    let errors: Vec<_> =
        take_lines().into_iter().filter(|(level, _)| *level == Level::Error).collect();
    assert!(errors.iter().any(|(_, line)| line.contains("control byte")), "the reason: {errors:?}");

    #[cfg(feature = "body")]
    for (body, lines) in [
        ("Content-Length: 4\r\n\r\nwell", 0),
        // Beyond what the handler takes: that is the peer's fault.
        ("Content-Length: 10\r\n\r\n0123456789", 0),
        ("Content-Length: 5\r\n\r\nhello", 1),
    ] {
        let seed = HttpSeed::new((), ServerConfig::new());
        let mut driver = Driver::<Connection<StoringServer>>::new(seed, ());
        driver.send(format!("PUT / HTTP/1.1\r\nHost: x\r\n{body}").as_bytes());
        let logged = logged("no spool is configured");
        assert_eq!(logged.len(), lines, "{body}: {logged:?}");
    }
}
