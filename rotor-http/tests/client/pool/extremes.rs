//! Each field of a pool's configuration at its extremes: each request has an outcome, and with a
//! field that restricts nothing none fails.

use std::time::Duration;

use rotor_core::Config;
use rotor_http::Limits;
use rotor_http::client::{ClientConfig, PoolConfig};

use super::{OK, Test};
use crate::probe::{BodyPlan, Probe};

type Set = fn(PoolConfig, usize) -> PoolConfig;

const SIZES: [(&str, Set); 7] = [
    ("connections_per_origin_max", PoolConfig::connections_per_origin_max),
    ("connections_max", PoolConfig::connections_max),
    ("waiting_per_origin_max", PoolConfig::waiting_per_origin_max),
    ("waiting_max", PoolConfig::waiting_max),
    ("waiting_bytes_max", PoolConfig::waiting_bytes_max),
    ("asks_max", PoolConfig::asks_max),
    ("asks_per_event", PoolConfig::asks_per_event),
];

/// Each field with each of its extremes, and whether that restricts nothing; then all of them
/// together.
fn extremes() -> Vec<(String, PoolConfig, bool)> {
    let mut all = Vec::new();
    let [mut least, mut greatest] = [PoolConfig::new(), PoolConfig::new()];
    for (name, set) in SIZES {
        for size in [0, 1, usize::MAX] {
            let config = set(PoolConfig::new(), size);
            all.push((format!("{name}({size})"), config, size == usize::MAX));
        }
        (least, greatest) = (set(least, 0), set(greatest, usize::MAX));
    }
    for time in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
        let config = PoolConfig::new().request_timeout(time);
        all.push((format!("request_timeout({time:?})"), config, time == Duration::MAX));
    }
    all.push(("the least of all".to_owned(), least, false));
    all.push(("the greatest of all".to_owned(), greatest.request_timeout(Duration::MAX), true));
    all
}

/// Requests to two servers, several at a time, then one after the other. Returns the outcomes.
fn exchange(pool: PoolConfig, limits: Limits) -> Vec<String> {
    let client = ClientConfig::new().limits(limits);
    let mut test = Test::of(pool, client, Config::new().machines_max(100));
    let mut outcomes = Vec::new();
    for round in [6, 1, 1, 1] {
        for at in 0..round {
            let probe = match at % 2 {
                0 => Probe::get("/get"),
                _ => Probe { target: "/post", ..Probe::post(BodyPlan::Whole("body")) },
            };
            if test.try_ask(1 + at % 2, "it", probe).is_err() {
                outcomes.push("it: refused".to_owned());
            }
        }
        for _ in 0..20 {
            for peer in 0..test.peers.len() {
                for _ in test.targets(peer) {
                    test.peers[peer].send(OK);
                }
            }
            test.settle();
            outcomes.extend(test.outcomes());
        }
    }
    outcomes
}

#[test]
fn with_any_field_at_its_extremes_each_request_has_an_outcome() {
    for (name, config, is_greatest) in extremes() {
        for unused in [Duration::ZERO, Duration::from_secs(30), Duration::MAX] {
            let limits = Limits::new().unused_timeout(unused);
            let outcomes = exchange(config.clone(), limits);
            let case = format!("{name}, unused for {unused:?}: {outcomes:?}");
            assert_eq!(outcomes.len(), 9, "{case}");
            let served = outcomes.iter().filter(|outcome| *outcome == "it: 200 hi").count();
            assert!(served == 9 || !is_greatest, "{case}");
            let full = outcomes.iter().filter(|outcome| *outcome == "it: Here: Full").count();
            assert_eq!(served + full, 9, "{case}");
        }
    }
}
