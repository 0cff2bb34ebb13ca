//! What is counted of lookups, questions and tries.

use std::cell::Cell;
use std::time::Duration;

use rotor_core::{Description, Machine};
use rotor_dns::{ResolvConf, Resolver, ResolverConfig};
use rotor_stream::HasResolver;

use crate::machine::Served;
use crate::wire::{AAAA, asked, reply, truncated};
use crate::{SECOND, Stage, none, right, serve, silent};

/// Counters and their names.
type Counted<'a> = &'a [(&'a str, u64)];

impl Stage {
    /// All counters that are not zero.
    fn counted(&self) -> Vec<(&'static str, u64)> {
        self.dns.counters().iter().filter(|(_, count)| *count > 0).collect()
    }
}

fn of_options(server: Served, options: &str) -> Stage {
    Stage::new(vec![server], ResolvConf::parse(options), |config| config)
}

#[test]
fn each_lookup_ends_as_one_thing_and_each_question_is_known_shared_or_asked() {
    let mut stage = Stage::of(|query| {
        if asked(query).0.starts_with("nowhere") { none(query, 3, 60, 60) } else { right(query) }
    });
    assert_eq!(stage.counted(), []);
    // At one time: one question.
    let both = [stage.begin("www.example"), stage.begin("www.example")];
    stage.pass(SECOND);
    drop(both);
    assert_eq!(stage.counted(), [("found", 2), ("shared", 1), ("asked", 1), ("tries", 1)]);
    let _known = stage.look_up("www.example");
    let _none = stage.look_up("nowhere.example");
    let _known = stage.look_up("nowhere.example");
    let counted =
        [("found", 3), ("not_found", 2), ("cached", 2), ("shared", 1), ("asked", 2), ("tries", 2)];
    assert_eq!(stage.counted(), counted);
}

#[test]
fn a_host_is_a_lookup_of_two_questions() {
    let mut stage =
        Stage::of(
            |query| {
                if asked(query).1 == AAAA { none(query, 0, 60, 60) } else { right(query) }
            },
        );
    assert!(stage.host("www.example").is_ok());
    assert_eq!(stage.counted(), [("found", 1), ("asked", 2), ("tries", 2)]);
    assert!(stage.host("www.example").is_ok());
    assert_eq!(stage.counted(), [("found", 2), ("cached", 2), ("asked", 2), ("tries", 2)]);
    // Of these nobody is asked.
    for host in ["192.0.2.1", "localhost", "invalid", "a..b", "a:80"] {
        let _result = stage.host(host);
    }
    let counted = [
        ("found", 4),
        ("not_found", 1),
        ("invalid_names", 2),
        ("cached", 2),
        ("asked", 2),
        ("tries", 2),
    ];
    assert_eq!(stage.counted(), counted);
}

#[test]
fn lookups_that_fail_are_told_from_those_that_take_too_long_and_those_that_are_given_up() {
    let mut stage = of_options(serve(|query| reply(query, 2, &[], &[])), "options attempts:2");
    assert!(stage.look_up("a.example").is_err());
    assert_eq!(stage.counted(), [("failed", 1), ("asked", 1), ("tries", 2), ("server_faults", 2)]);
    let mut stage = of_options(silent(), "options attempts:2 timeout:1");
    let (first, second) = (stage.begin("a.example"), stage.begin("a.example"));
    stage.pass(SECOND / 2);
    drop(second);
    stage.pass(3 * SECOND);
    drop(first);
    let counted = [
        ("timed_out", 1),
        ("given_up", 1),
        ("shared", 1),
        ("asked", 1),
        ("tries", 2),
        ("silent", 2),
    ];
    assert_eq!(stage.counted(), counted);
    // Before there is an answer, and no time for one.
    let short = |config: ResolverConfig| config.lookup_timeout(SECOND);
    let mut stage = Stage::new(vec![silent()], ResolvConf::default(), short);
    let host = stage.dns.addresses().ask_from_thread("a.example".into()).expect("there is room");
    stage.pass(2 * SECOND);
    drop(host);
    assert_eq!(stage.counted(), [("timed_out", 1), ("asked", 2), ("tries", 2)]);
}

#[test]
fn where_there_is_no_server_each_lookup_fails() {
    let mut stage = Stage::new(vec![], ResolvConf::default(), |config| config);
    assert!(stage.look_up("a.example").is_err());
    assert_eq!(stage.counted(), [("failed", 1), ("asked", 1)]);
}

#[test]
fn what_a_try_took_is_counted() {
    let table: [(Served, &str, Counted<'_>); 3] = [
        (serve(right), "options use-vc", &[("tries_over_tcp", 1)]),
        (
            Served::new(|query, is_tcp, _| {
                vec![if is_tcp { right(query) } else { truncated(query) }]
            }),
            "",
            &[("tries_over_tcp", 1)],
        ),
        (
            serve(|query| if query[11] == 1 { reply(query, 1, &[], &[]) } else { right(query) }),
            "options edns0",
            &[("tries_without_edns", 1)],
        ),
    ];
    for (server, options, more) in table {
        let mut stage = of_options(server, options);
        assert!(stage.look_up("www.example").is_ok(), "{options}");
        stage.pass(Duration::from_secs(60));
        let counted = [&[("found", 1), ("asked", 1), ("tries", 1)][..], more].concat();
        assert_eq!(stage.counted(), counted, "{options}");
    }
}

#[test]
fn datagrams_that_answer_nothing_are_counted() {
    let asked = Cell::new(0);
    let server = Served::new(move |query, _, _| {
        let mut message = right(query);
        if asked.replace(1) == 0 {
            message[0] ^= 1;
            return vec![message; 3];
        }
        vec![message]
    });
    let mut stage = of_options(server, "options attempts:2 timeout:1");
    let reply = stage.begin("www.example");
    stage.pass(2 * SECOND);
    drop(reply);
    let counted = [("found", 1), ("asked", 1), ("tries", 2), ("silent", 1), ("strays", 3)];
    assert_eq!(stage.counted(), counted);
}

#[test]
fn machines_say_what_they_do() {
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
    let reply = stage.begin("www.example");
    stage.pass(SECOND / 2);
    let asking = vec![("asking over TCP", true, false), ("looking up", false, false)];
    assert_eq!(described(&mut stage), Some(asking));
    stage.pass(SECOND);
    drop(reply);
    // It remembers the failure.
    assert_eq!(described(&mut stage), Some(vec![("idle", false, true)]));
}
