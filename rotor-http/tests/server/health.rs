//! The answers to health probes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use rotor_core::{Config, Drain, Infallible, Loop, LoopInstance, Machine, Pulses};
use rotor_http::health::{Health, HealthServer};
use rotor_http::server::{Connection, HttpSeed, ServerConfig};
use rotor_stream::testing::Driver;

use crate::probe::{get, request, seconds};

type ProbeDriver = Driver<Connection<HealthServer<()>>>;

struct Idle;

impl Machine for Idle {
    type Context = ();
    type Seed = Infallible;
}

/// A loop other than the one that answers.
fn other_loop() -> LoopInstance<Idle> {
    Loop::new(&Config::new()).expect("there are descriptors").instantiate(())
}

fn health_driver(health: &Health) -> ProbeDriver {
    Driver::new(HttpSeed::new(health.clone(), ServerConfig::new()), ())
}

/// The status and the body of the answer.
fn probe_path(driver: &mut ProbeDriver, path: &str) -> (String, String) {
    driver.send(&get(path));
    let answer = String::from_utf8(driver.take_received()).expect("it is text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a whole head");
    let status = head.split(' ').nth(1).expect("a status");
    (status.into(), body.trim_end().into())
}

const OK: &str = "{\"status\":\"ok\"}";

fn unavailable(reasons: &[&str]) -> (String, String) {
    let reasons: Vec<String> = reasons.iter().map(|reason| format!("\"{reason}\"")).collect();
    let list = reasons.join(",");
    ("503".into(), format!("{{\"status\":\"unavailable\",\"reasons\":[{list}]}}"))
}

#[test]
fn a_process_is_ready_from_set_ready_until_its_drain_is_announced() {
    let pulses = Pulses::new();
    let health = Health::new(pulses.clone());
    let mut driver = health_driver(&health);
    pulses.watch(driver.test().instance());
    assert_eq!(probe_path(&mut driver, "/livez"), ("200".into(), OK.into()));
    assert_eq!(probe_path(&mut driver, "/readyz"), unavailable(&["it has not started yet"]));
    health.set_ready(true);
    assert_eq!(probe_path(&mut driver, "/readyz"), ("200".into(), OK.into()));
    driver.drain_with(Drain::new(seconds(10)).announce(seconds(5)));
    assert_eq!(probe_path(&mut driver, "/readyz"), unavailable(&["it is about to end"]));
    let mut driver = health_driver(&health);
    assert_eq!(
        probe_path(&mut driver, "/livez"),
        ("200".into(), OK.into()),
        "it need not be killed"
    );
}

#[test]
fn a_probe_on_another_loop_sees_the_announcement_at_once() {
    let pulses = Pulses::new();
    let health = Health::new(pulses.clone());
    let mut instance = other_loop();
    pulses.watch(&mut instance);
    health.set_ready(true);
    let mut driver = health_driver(&health);
    assert_eq!(probe_path(&mut driver, "/readyz").0, "200");
    instance.handle().drain_with(Drain::new(seconds(10)).announce(seconds(5)));
    assert_eq!(probe_path(&mut driver, "/readyz"), unavailable(&["it is about to end"]));
}

#[test]
fn a_loop_without_a_turn_for_five_seconds_is_reported() {
    let pulses = Pulses::new();
    let health = Health::new(pulses.clone());
    let mut driver = health_driver(&health);
    // This loop is never run. Its clock began with the process, that of the answering loop at zero.
    let mut held_up = other_loop();
    pulses.watch(driver.test().instance());
    pulses.watch(&mut held_up);
    health.set_ready(true);
    driver.advance(seconds(4));
    assert_eq!(probe_path(&mut driver, "/livez").0, "200");
    for _ in 0..10 {
        driver.advance(seconds(60));
        probe_path(&mut driver, "/livez");
    }
    let (status, body) = probe_path(&mut driver, "/livez");
    assert_eq!(status, "503");
    assert!(body.contains("\"loop 1 has made no turn for "), "{body}");
    assert_eq!(probe_path(&mut driver, "/readyz"), (status, body));
    drop(held_up);
    assert_eq!(probe_path(&mut driver, "/livez"), unavailable(&["loop 1 has ended"]));
}

#[test]
fn custom_checks_are_run_for_readiness_only() {
    let pulses = Pulses::new();
    let is_there = Arc::new(AtomicBool::new(true));
    let asked = is_there.clone();
    let health = Health::new(pulses.clone()).check("cache", move || {
        if asked.load(Relaxed) { Ok(()) } else { Err("it is \"cold\"".into()) }
    });
    health.set_ready(true);
    let mut driver = health_driver(&health);
    pulses.watch(driver.test().instance());
    assert_eq!(probe_path(&mut driver, "/readyz").0, "200");
    is_there.store(false, Relaxed);
    assert_eq!(probe_path(&mut driver, "/readyz"), unavailable(&["cache: it is \\\"cold\\\""]));
    assert_eq!(probe_path(&mut driver, "/livez").0, "200");
}

#[test]
fn other_methods_and_other_paths_are_refused() {
    let mut driver = health_driver(&Health::new(Pulses::new()));
    assert_eq!(probe_path(&mut driver, "/").0, "404");
    driver.send(&request("POST /livez", "", ""));
    let answer = String::from_utf8(driver.take_received()).expect("it is text");
    assert!(answer.starts_with("HTTP/1.1 405 ") && answer.contains("Allow: GET, HEAD"), "{answer}");
    driver.send(&request("HEAD /livez", "", ""));
    let answer = String::from_utf8(driver.take_received()).expect("it is text");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\n"), "{answer}");
    assert!(answer.contains("Cache-Control: no-store"), "{answer}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a client that is no machine")]
fn a_health_port_answers_while_no_other_loop_runs() {
    let pulses = Pulses::new();
    let mut instance = other_loop();
    pulses.watch(&mut instance);
    let health = Health::new(pulses);
    let port = health.serve_at(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
    let ask = |path: &str| {
        let mut client = TcpStream::connect(port.local_address()).expect("it listens");
        client
            .write_all(&request(&format!("GET {path}"), "Connection: close\r\n", ""))
            .expect("sent");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("a whole answer");
        answer
    };
    assert!(ask("/readyz").starts_with("HTTP/1.1 503 "));
    health.set_ready(true);
    assert!(ask("/readyz").starts_with("HTTP/1.1 200 "));
    instance.handle().drain(seconds(10));
    let answer = ask("/readyz");
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("about to end"), "{answer}");
    assert!(health.serve_at(port.local_address()).is_err(), "it is in use");
    let address = port.local_address();
    drop(port);
    assert!(TcpStream::connect(address).is_err(), "it is closed");
}
