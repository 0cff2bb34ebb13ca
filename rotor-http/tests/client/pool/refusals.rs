//! HTTP/2 servers that refuse requests without processing them: which are made again, and how often.

use rotor_core::Config;
use rotor_http::client::{ClientConfig, PoolConfig};

use super::Test;
use crate::http2::server::{go_away, http2, page, settings};
use crate::probe::{BodyPlan, Probe};

fn pool() -> Test {
    let config = PoolConfig::new().connections_per_origin_max(1);
    Test::of(config, ClientConfig::new().http2(http2()), Config::new().machines_max(100))
}

const NAMES: [&str; 20] = [
    "/00", "/01", "/02", "/03", "/04", "/05", "/06", "/07", "/08", "/09", "/10", "/11", "/12",
    "/13", "/14", "/15", "/16", "/17", "/18", "/19",
];

/// The server accepts the requests that wait, sends GOAWAY for those after stream `last`, and ends
/// the connection.
fn go_away_after(test: &mut Test, peer: usize, last: u32, code: u32, response: &[u8]) {
    test.peers[peer].send(&settings(&[]));
    test.settle();
    test.peers[peer].send(&[&go_away(last, code), response].concat());
    test.settle();
    test.end(peer);
}

/// Many servers limit the requests of a connection (`keepalive_requests` of nginx).
#[test]
fn requests_at_a_server_that_serves_one_per_connection_are_all_answered() {
    let mut test = pool();
    for name in NAMES {
        // POST, because the server says that it has not processed it.
        let probe = Probe { target: name, ..Probe::post(BodyPlan::Whole("x")) };
        test.ask(1, name, probe);
    }
    for (peer, name) in NAMES.iter().enumerate() {
        go_away_after(&mut test, peer, 1, 0, &page(1, "a"));
        assert_eq!(test.outcomes(), [format!("{name}: 200 a")]);
    }
}

/// Otherwise it would go on until the deadlines of its requests.
#[test]
fn requests_at_a_server_that_processes_none_fail_after_a_few_connections() {
    let mut test = pool();
    for name in ["/1", "/2"] {
        test.get(1, name);
    }
    for peer in 0..11 {
        assert_eq!(test.outcomes(), [""; 0], "{peer}");
        go_away_after(&mut test, peer, 0, 0, b"");
    }
    assert_eq!(test.outcomes(), ["/1: Peer: Refused", "/2: Peer: Refused"]);
    assert_eq!(test.peers.len(), 11);
}

/// ENHANCE_YOUR_CALM: such a server does not ask for more connections.
#[test]
fn requests_at_a_server_that_goes_away_with_an_error_fail_after_a_few_connections() {
    let mut test = pool();
    for name in NAMES {
        test.get(1, name);
    }
    for (peer, name) in NAMES[..10].iter().enumerate() {
        go_away_after(&mut test, peer, 1, 11, &page(1, "a"));
        assert_eq!(test.outcomes(), [format!("{name}: 200 a")]);
    }
    go_away_after(&mut test, 10, 1, 11, &page(1, "a"));
    let outcomes = test.outcomes();
    assert_eq!(outcomes.len(), 10);
    assert_eq!(outcomes.iter().filter(|outcome| outcome.ends_with(": Peer: Refused")).count(), 9);
    assert_eq!(test.peers.len(), 11);
}
