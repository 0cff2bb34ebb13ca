//! The examples that end by themselves.

use crate::support::{output_of, run_example};

#[test]
fn timers_fire_the_configured_number_of_times_and_never_early() {
    let output = output_of("timers", &["2000", "3"]);
    assert!(output.starts_with("2000 machines rang 6000 times: 0 early, at most "), "{output}");
}

#[test]
fn threads_reach_their_machines_and_no_message_is_lost() {
    for (threads, each) in [(1, 1), (8, 5_000)] {
        let output = output_of("notify_threads", &[&threads.to_string(), &each.to_string()]);
        let total = threads * each;
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!(lines.len(), 3, "{output}");
        assert!(lines[0].starts_with(&format!("counted {total} in ")), "{output}");
        assert_eq!(lines[1], format!("received {total} messages"));
        assert_eq!(lines[2], format!("results add up to {total}, and 1 was lost"));
    }
}

#[test]
fn resolve_finds_localhost_and_refuses_an_invalid_name() {
    let found = output_of("resolve", &["localhost"]);
    assert!(found.lines().any(|line| line == "127.0.0.1"), "{found}");
    assert_eq!(output_of("resolve", &["2001:DB8::1"]), "2001:db8::1\n");
    for arguments in [["two..dots", "a"], ["localhost", "hinfo"]] {
        let output = run_example("resolve", &arguments);
        assert!(!output.status.success() && output.stdout.is_empty(), "{arguments:?}");
    }
}
