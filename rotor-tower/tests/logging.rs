//! At which levels failed responses are logged. A separate test program, since a process has one
//! log.

use std::sync::Mutex;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::StreamBody;
use log::{Level, LevelFilter, Log, Metadata, Record};
use rotor_core::BoxError;
use rotor_http::server::{Connection, HttpSeed, NoUpgrade, ServerConfig};
use rotor_stream::testing::Driver;
use rotor_tower::{Body, Tower, TowerServer};

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

type AnyBody = std::pin::Pin<Box<dyn http_body::Body<Data = Bytes, Error = BoxError>>>;

/// Answers with what the path of the request says.
async fn respond_as_asked(
    request: http::Request<Body>,
) -> Result<http::Response<AnyBody>, BoxError> {
    let frames: Vec<Result<Frame<Bytes>, BoxError>> = match request.uri().path() {
        "/broken" => vec![Ok(Frame::data(Bytes::from("one"))), Err("it is lost".into())],
        _ => vec![Ok(Frame::data(Bytes::from("four")))],
    };
    let mut answer = http::Response::new(Box::pin(StreamBody::new(futures_util::stream::iter(
        frames,
    ))) as AnyBody);
    match request.uri().path() {
        "/busy" => return Err("too much to do".into()),
        "/interim" => *answer.status_mut() = http::StatusCode::EARLY_HINTS,
        "/short" => drop(answer.headers_mut().insert("content-length", 5.into())),
        "/long" => drop(answer.headers_mut().insert("content-length", 3.into())),
        _ => {}
    }
    Ok(answer)
}

#[test]
fn only_a_response_that_cannot_be_sent_is_logged_as_an_error() {
    log::set_logger(&Lines).expect("there is no other");
    log::set_max_level(LevelFilter::Trace);
    for (path, level, words) in [
        ("/interim", Level::Error, "103"),
        ("/short", Level::Error, "1 bytes are missing"),
        ("/long", Level::Error, "only 3 bytes are left"),
        // A client can cause any number of these.
        ("/busy", Level::Debug, "too much to do"),
        ("/broken", Level::Debug, "it is lost"),
    ] {
        type Serving<S> = Driver<Connection<TowerServer<S, AnyBody, (), NoUpgrade<()>>>>;
        fn serving<S>(service: S) -> Serving<S>
        where
            S: tower_service::Service<
                    http::Request<Body>,
                    Response = http::Response<AnyBody>,
                    Error = BoxError,
                > + Clone
                + 'static,
        {
            Driver::new(HttpSeed::new(Tower::new(service), ServerConfig::new()), ())
        }
        LINES.lock().expect("no test panics with it").clear();
        let mut driver = serving(tower::service_fn(respond_as_asked));
        driver.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
        let lines = LINES.lock().expect("no test panics with it").clone();
        let reason = lines.iter().find(|(_, line)| line.contains(words));
        assert_eq!(reason.map(|(level, _)| *level), Some(level), "{path}: {lines:?}");
        let is_error = lines.iter().any(|(level, _)| *level == Level::Error);
        assert_eq!(is_error, level == Level::Error, "{path}: {lines:?}");
    }
}
