//! The counters of lookups, questions and tries.

use std::cell::Cell;
use std::time::Duration;

use rotor_core::{Description, Machine};
use rotor_dns::{ResolvConf, Resolver, ResolverConfig};

use crate::machine::Served;
use crate::wire::{AAAA, asked, reply, truncated};
use crate::{SECOND, Stage, negative_answer, right_answer, serve, silent};

/// Names and values of counters.
type Counts<'a> = &'a [(&'a str, u64)];

impl Stage {
    /// All counters that are not zero.
    pub(crate) fn nonzero_counters(&self) -> Vec<(&'static str, u64)> {
        self.dns.counters().iter().filter(|(_, count)| *count > 0).collect()
    }
}

fn of_options(server: Served, options: &str) -> Stage {
    Stage::new(vec![server], ResolvConf::parse(options), |config| config)
}

#[test]
fn each_lookup_has_one_outcome_and_each_question_one_source() {
    let mut stage = Stage::of(|query| {
        if asked(query).0.starts_with("nowhere") {
            negative_answer(query, 3, 60, 60)
        } else {
            right_answer(query)
        }
    });
    assert_eq!(stage.nonzero_counters(), []);
    // Concurrent lookups share one question.
    let both = [stage.start_lookup("www.example"), stage.start_lookup("www.example")];
    stage.run_for(SECOND);
    drop(both);
    assert_eq!(stage.nonzero_counters(), [("found", 2), ("shared", 1), ("asked", 1), ("tries", 1)]);
    let _known = stage.look_up("www.example");
    let _none = stage.look_up("nowhere.example");
    let _known = stage.look_up("nowhere.example");
    let expected =
        [("found", 3), ("not_found", 2), ("cached", 2), ("shared", 1), ("asked", 2), ("tries", 2)];
    assert_eq!(stage.nonzero_counters(), expected);
}

#[test]
fn a_host_lookup_counts_two_questions() {
    let mut stage = Stage::of(|query| {
        if asked(query).1 == AAAA { negative_answer(query, 0, 60, 60) } else { right_answer(query) }
    });
    assert!(stage.host("www.example").is_ok());
    assert_eq!(stage.nonzero_counters(), [("found", 1), ("asked", 2), ("tries", 2)]);
    assert!(stage.host("www.example").is_ok());
    assert_eq!(stage.nonzero_counters(), [("found", 2), ("cached", 2), ("asked", 2), ("tries", 2)]);
    // No server is asked for these.
    for host in ["192.0.2.1", "localhost", "invalid", "a..b", "a:80"] {
        let _result = stage.host(host);
    }
    let expected = [
        ("found", 4),
        ("not_found", 1),
        ("invalid_names", 2),
        ("cached", 2),
        ("asked", 2),
        ("tries", 2),
    ];
    assert_eq!(stage.nonzero_counters(), expected);
}

#[test]
fn failed_timed_out_and_cancelled_lookups_are_counted_separately() {
    let mut stage = of_options(serve(|query| reply(query, 2, &[], &[])), "options attempts:2");
    assert!(stage.look_up("a.example").is_err());
    assert_eq!(
        stage.nonzero_counters(),
        [("failed", 1), ("asked", 1), ("tries", 2), ("server_faults", 2)]
    );
    let mut stage = of_options(silent(), "options attempts:2 timeout:1");
    let (first, second) = (stage.start_lookup("a.example"), stage.start_lookup("a.example"));
    stage.run_for(SECOND / 2);
    drop(second);
    stage.run_for(3 * SECOND);
    drop(first);
    let expected = [
        ("timed_out", 1),
        ("given_up", 1),
        ("shared", 1),
        ("asked", 1),
        ("tries", 2),
        ("silent", 2),
    ];
    assert_eq!(stage.nonzero_counters(), expected);
    // The lookup ends before its tries do, so no server counts as silent.
    let short = |config: ResolverConfig| config.lookup_timeout(SECOND);
    let mut stage = Stage::new(vec![silent()], ResolvConf::default(), short);
    let host = stage.dns.addresses().ask_from_thread("a.example".into()).expect("there is room");
    stage.run_for(2 * SECOND);
    drop(host);
    assert_eq!(stage.nonzero_counters(), [("timed_out", 1), ("asked", 2), ("tries", 2)]);
}

#[test]
fn each_lookup_fails_without_a_server() {
    let mut stage = Stage::new(vec![], ResolvConf::default(), |config| config);
    assert!(stage.look_up("a.example").is_err());
    assert_eq!(stage.nonzero_counters(), [("failed", 1), ("asked", 1)]);
}

#[test]
fn tries_over_tcp_and_without_edns_are_counted() {
    let table: [(Served, &str, Counts<'_>); 3] = [
        (serve(right_answer), "options use-vc", &[("tries_over_tcp", 1)]),
        (
            Served::new(|query, is_tcp, _| {
                vec![if is_tcp { right_answer(query) } else { truncated(query) }]
            }),
            "",
            &[("tries_over_tcp", 1)],
        ),
        (
            serve(
                |query| {
                    if query[11] == 1 { reply(query, 1, &[], &[]) } else { right_answer(query) }
                },
            ),
            "options edns0",
            &[("tries_without_edns", 1)],
        ),
    ];
    for (server, options, more) in table {
        let mut stage = of_options(server, options);
        assert!(stage.look_up("www.example").is_ok(), "{options}");
        stage.run_for(Duration::from_secs(60));
        let expected = [&[("found", 1), ("asked", 1), ("tries", 1)][..], more].concat();
        assert_eq!(stage.nonzero_counters(), expected, "{options}");
    }
}

#[test]
fn stray_datagrams_are_counted() {
    let asked = Cell::new(0);
    let server = Served::new(move |query, _, _| {
        let mut message = right_answer(query);
        if asked.replace(1) == 0 {
            message[0] ^= 1;
            return vec![message; 3];
        }
        vec![message]
    });
    let mut stage = of_options(server, "options attempts:2 timeout:1");
    let reply = stage.start_lookup("www.example");
    stage.run_for(2 * SECOND);
    drop(reply);
    let expected = [("found", 1), ("asked", 1), ("tries", 2), ("silent", 1), ("strays", 3)];
    assert_eq!(stage.nonzero_counters(), expected);
}

#[test]
fn machines_describe_their_state() {
    let mut stage = of_options(silent(), "options timeout:1 attempts:1 use-vc");
    let described = |stage: &mut Stage| {
        stage.sim.with(stage.resolver, |instance| {
            let of = |machine: &Resolver<_, _>| {
                let mut description = Description::new();
                machine.describe(&mut description);
                (description.state(), description.peer().is_some(), description.held() > 0)
            };
            let mut described: Vec<_> =
                instance.machines().iter().map(|(_, one)| of(one)).collect();
            described.sort();
            described
        })
    };
    assert_eq!(described(&mut stage), Some(vec![("idle", false, false)]));
    let reply = stage.start_lookup("www.example");
    stage.run_for(SECOND / 2);
    let asking = vec![("asking over TCP", true, false), ("looking up", false, false)];
    assert_eq!(described(&mut stage), Some(asking));
    stage.run_for(SECOND);
    drop(reply);
    // It remembers the failure.
    assert_eq!(described(&mut stage), Some(vec![("idle", false, true)]));
}
