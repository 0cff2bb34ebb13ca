//! Each field of a configuration at its extremes: each lookup has an outcome, and it is the answer
//! if the field restricts nothing.

use super::*;

type Set = fn(ResolverConfig) -> ResolverConfig;

const FIELDS: [(&str, Set); 12] = [
    ("lookup_timeout of zero", |config| config.lookup_timeout(Duration::ZERO)),
    ("lookup_timeout of a moment", |config| config.lookup_timeout(Duration::from_nanos(1))),
    ("lookup_timeout without end", |config| config.lookup_timeout(Duration::MAX)),
    ("no lookups", |config| config.lookups_max(0)),
    ("one lookup", |config| config.lookups_max(1)),
    ("all lookups", |config| config.lookups_max(usize::MAX)),
    ("no queries", |config| config.queries_max(0)),
    ("one query", |config| config.queries_max(1)),
    ("all queries", |config| config.queries_max(usize::MAX)),
    ("no cache", |config| config.cache_bytes_max(0)),
    ("a cache of a byte", |config| config.cache_bytes_max(1)),
    ("a cache without bounds", |config| config.cache_bytes_max(usize::MAX)),
];

fn confs() -> Vec<(String, ResolvConf)> {
    let mut all = Vec::new();
    let conf = ResolvConf::default;
    for number in [0, 1, usize::MAX] {
        let mut changed = conf();
        changed.ndots = number;
        changed.search = vec!["example".parse().expect("a name"); 3];
        all.push((format!("ndots {number}"), changed));
        let mut changed = conf();
        changed.attempts = number;
        all.push((format!("attempts {number}"), changed));
    }
    for time in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
        let mut changed = conf();
        (changed.timeout, changed.attempts) = (time, usize::MAX);
        all.push((format!("timeout {time:?}"), changed));
    }
    all
}

#[test]
fn with_any_field_at_its_extremes_lookups_are_answered_or_time_out() {
    for (name, set) in FIELDS {
        let mut stage = Stage::new(vec![serve(right_answer)], ResolvConf::default(), set);
        for text in ["one.example", "two.example", "one.example"] {
            match stage.look_up(text) {
                Ok(_) => {}
                Err(LookupError::Timeout) => {
                    assert!(name.starts_with("lookup_timeout of"), "{name}")
                }
                Err(error) => panic!("{name}: {error:?}"),
            }
        }
        assert!(
            stage.host("one.example").is_ok() || name.starts_with("lookup_timeout of"),
            "{name}"
        );
    }
}

#[test]
fn with_any_option_at_its_extremes_lookups_are_answered_or_fail() {
    for (name, conf) in confs() {
        let mut stage = Stage::new(vec![serve(right_answer)], conf.clone(), |config| config);
        let found = stage.look_up("one.example");
        assert!(found.is_ok() || name == "timeout 0ns", "{name}: {found:?}");
        assert!(stage.host("two.example").is_ok() || name == "timeout 0ns", "{name}");
        // Two servers that never answer.
        let mut stage = Stage::new(vec![silent(), silent()], conf, |config| {
            config.lookup_timeout(Duration::MAX)
        });
        let reply = stage.start_lookup("one.example");
        stage.run_for(SECOND * 1_000);
        assert!(outcome(reply).is_err(), "{name}");
        let asked = stage.names_asked(0).len();
        assert!((0..=5).contains(&asked), "{name}: {asked}");
    }
}

#[test]
fn without_servers_a_lookup_fails_at_once() {
    let mut stage = Stage::new(Vec::new(), ResolvConf::default(), |config| config);
    let found = stage.look_up("one.example");
    assert!(found.is_err(), "{found:?}");
}
