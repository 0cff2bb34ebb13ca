//! The log line of an answer that cannot be written. A separate test program, since a process has
//! one log.
#![cfg(feature = "http")]

use std::sync::Mutex;

use log::{Level, LevelFilter, Log, Metadata, Record};
use rotor_async::http::{Answer, AsyncServer, Request};
use rotor_http::Status;
use rotor_http::server::{Connection, HttpSeed, ServerConfig};
use rotor_stream::testing::Driver;

static LINES: Mutex<Vec<(Level, String)>> = Mutex::new(Vec::new());

struct Lines;

impl Log for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &Record<'_>) {
        let line = (record.level(), record.args().to_string());
        LINES.lock().expect("no test panics with it").push(line);
    }
    fn flush(&self) {}
}

async fn wrong(_: Request) -> Answer {
    Answer::text(Status::OK, "x").field("X-A", "a\r\nX-B: b")
}

#[test]
fn the_reason_why_an_answer_is_not_written_is_logged_as_an_error() {
    log::set_logger(&Lines).expect("there is no other");
    log::set_max_level(LevelFilter::Trace);
    fn serving<H: rotor_async::http::Handler<()>>(
        handler: H,
    ) -> Driver<Connection<AsyncServer<H, ()>>> {
        Driver::new(HttpSeed::new(handler, ServerConfig::new()), ())
    }
    let mut driver = serving(wrong);
    driver.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    let answer = driver.take_received();
    assert!(answer.starts_with(b"HTTP/1.1 500 "), "{}", answer.escape_ascii());
    let mut lines = LINES.lock().expect("no test panics with it").clone();
    lines.retain(|(level, _)| *level == Level::Error);
    assert!(lines.iter().any(|(_, line)| line.contains("control byte")), "{lines:?}");
}
