//! The log line of a page that cannot be written. A separate test program, since a process has one
//! log.

use std::fmt;
use std::sync::{Arc, Mutex};

use log::{Level, LevelFilter, Log, Metadata, Record};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;
use rotor_http::server::{Connection, HttpSeed, ServerConfig};
use rotor_metrics::{Metrics, prometheus_client};
use rotor_stream::testing::Driver;

static ERRORS: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Errors;

impl Log for Errors {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() == Level::Error
    }
    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            ERRORS.lock().expect("no test panics with it").push(record.args().to_string());
        }
    }
    fn flush(&self) {}
}

#[derive(Debug)]
struct Failing;

impl Collector for Failing {
    fn encode(&self, _: DescriptorEncoder<'_>) -> fmt::Result {
        Err(fmt::Error)
    }
}

#[test]
fn a_failing_collector_is_logged_as_an_error() {
    log::set_logger(&Errors).expect("there is no other");
    log::set_max_level(LevelFilter::Error);
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Failing));
    let seed = HttpSeed::new(Arc::new(registry), ServerConfig::new());
    let mut driver = Driver::<Connection<Metrics>>::new(seed, ());
    driver.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let page = driver.take_received();
    assert!(page.starts_with(b"HTTP/1.1 500 "), "{}", page.escape_ascii());
    let errors = ERRORS.lock().expect("no test panics with it");
    assert!(errors.iter().any(|line| line.contains("a collector")), "{errors:?}");
}
