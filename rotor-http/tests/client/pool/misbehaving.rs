//! The transcripts of misbehaving servers, in a pool: none affects the next request.

use rotor_core::Config;
use rotor_http::client::{PoolConfig, RecvMode};

use super::Test;
use crate::probe::{Probe, seconds};
use crate::transcripts::{ConnectionAfter, NextAction, limits, rows};

#[test]
fn misbehaviour_of_a_server_never_affects_the_next_request() {
    for row in rows() {
        let config = PoolConfig::new().connections_per_origin_max(1);
        let mut test = Test::with(config, limits(), Config::new().machines_max(100));
        let probe =
            Probe { method: row.method, mode: RecvMode::Buffered(10_000), ..Probe::get("/1") };
        test.ask(1, "/1", probe);
        // It waits for the only connection, or for the next one.
        test.get(1, "/2");
        assert_eq!(test.targets(0), ["/1"], "{}", row.name);
        test.peers[0].send(&row.sends);
        match row.then {
            NextAction::Nothing | NextAction::WaitsForEver => {}
            NextAction::Ends => test.peers[0].end(),
            NextAction::Resets => test.peers[0].reset(),
        }
        test.settle();
        let mut outcomes = test.outcomes();
        for _ in 0..seconds(100).as_secs() {
            if outcomes.is_empty() {
                test.advance(seconds(1));
                outcomes = test.outcomes();
            }
        }
        assert_eq!(outcomes, [format!("/1: {}", row.expected)], "{}", row.name);
        let next = usize::from(row.left == ConnectionAfter::Closed);
        assert_eq!((test.targets(next), test.peers.len()), (vec!["/2".to_owned()], next + 1));
        test.answer(next);
        assert_eq!(test.outcomes(), ["/2: 200 hi"], "{}", row.name);
    }
}
