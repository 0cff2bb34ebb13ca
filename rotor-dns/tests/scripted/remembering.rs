//! What is remembered, and for how long.

use std::cell::Cell;
use std::rc::Rc;

use rotor_dns::{Data, LookupError, ResolvConf};
use rotor_sim::Network;

use crate::machine::Served;
use crate::wire::{self, address, asked, found, name, record, reply};
use crate::{SECOND, Stage, lasting, none, outcome, right, serve, silent};

#[test]
fn what_is_known_is_not_asked_until_its_time_is_over() {
    let mut stage = Stage::of(right);
    for _ in 0..50 {
        assert!(stage.look_up("www.example").is_ok());
    }
    assert_eq!(stage.seen(0).len(), 1);
    stage.pass(11 * SECOND);
    assert!(stage.look_up("WWW.example.").is_ok());
    assert_eq!(stage.seen(0), ["www.example"]);
}

#[test]
fn what_is_good_for_no_time_is_asked_each_time() {
    let mut stage = Stage::of(|query| lasting(query, 0));
    for _ in 0..3 {
        assert!(stage.look_up("www.example").is_ok());
    }
    assert_eq!(stage.seen(0).len(), 3);
}

#[test]
fn there_is_none_holds_for_the_less_of_both_times_of_its_authority() {
    for (code, ttl, minimum) in [(3, 3600, 10), (3, 10, 3600), (0, 3600, 10), (0, 10, 3600)] {
        let mut stage = Stage::of(move |query| none(query, code, ttl, minimum));
        // Each look takes a second: the last one begins in the tenth.
        for _ in 0..10 {
            let reply = stage.look_up("www.example");
            let is_no_name = matches!(reply, Err(LookupError::NoSuchName(_)));
            assert!(is_no_name == (code == 3) && reply.is_err(), "{code}: {reply:?}");
        }
        assert_eq!(stage.seen(0).len(), 1, "code {code}, {ttl} s and {minimum} s");
        stage.pass(SECOND);
        assert!(stage.look_up("www.example").is_err());
        assert_eq!(stage.seen(0).len(), 1, "code {code}, {ttl} s and {minimum} s");
    }
    let mut stage = Stage::of(|query| reply(query, 3, &[], &[]));
    for _ in 0..3 {
        assert!(matches!(stage.look_up("www.example"), Err(LookupError::NoSuchName(_))));
    }
    assert_eq!(stage.seen(0).len(), 3, "without an authority it is not remembered");
}

#[test]
fn what_expires_first_makes_room() {
    let ttl = |query: &[u8]| if asked(query).0 == "short.example" { 20 } else { 600 };
    let server = serve(move |query| lasting(query, ttl(query)));
    let mut stage =
        Stage::new(vec![server], ResolvConf::default(), |config| config.cache_bytes_max(1_400));
    for text in ["one.example", "short.example", "two.example"] {
        assert!(stage.look_up(text).is_ok());
    }
    stage.seen(0);
    for text in ["one.example", "two.example", "short.example"] {
        assert!(stage.look_up(text).is_ok());
    }
    assert_eq!(stage.seen(0), ["short.example"]);
}

#[test]
fn what_is_found_by_asking_on_holds_for_the_least_time_of_its_chain() {
    let short = |query: &[u8]| {
        let target = name("end.example");
        match asked(query).0.as_str() {
            "end.example" => lasting(query, 60),
            "none.example" => found(
                query,
                &[record(&name("none.example"), wire::CNAME, 10, &name("nobody.example"))],
            ),
            "nobody.example" => none(query, 3, 60, 60),
            host => found(query, &[record(&name(host), wire::CNAME, 10, &target)]),
        }
    };
    for (text, expected) in [("www.example", true), ("none.example", false)] {
        let mut stage = Stage::of(short);
        let reply = stage.look_up(text);
        assert_eq!(reply.is_ok(), expected, "{reply:?}");
        assert!(reply.as_ref().map_or(true, |answer| answer.ttl == 10 * SECOND), "{reply:?}");
        assert_eq!(stage.seen(0).len(), 2);
        stage.pass(8 * SECOND);
        stage.look_up(text).ok();
        assert!(stage.seen(0).is_empty(), "{text}: known for ten seconds");
        stage.pass(SECOND);
        assert_eq!(stage.look_up(text).is_ok(), expected);
        assert_eq!(stage.seen(0).len(), 2, "{text}: and no longer");
    }
}

#[test]
fn an_alias_bounds_the_time_of_all_that_is_found_behind_it() {
    let link = |from: &str, ttl, to: &str| record(&name(from), wire::CNAME, ttl, &name(to));
    let mut stage = Stage::of(move |query| match asked(query).0.as_str() {
        "www.example" => found(query, &[link("www.example", 10, "a.example")]),
        "a.example" => found(query, &[link("a.example", 30, "b.example")]),
        _ => lasting(query, 60),
    });
    let answer = stage.look_up("www.example").expect("there is one");
    assert_eq!((answer.ttl, stage.seen(0).len()), (10 * SECOND, 3));
}

#[test]
fn there_is_none_behind_an_alias_holds_no_longer_than_the_alias() {
    for code in [0, 3] {
        let mut stage = Stage::of(move |query| {
            let target = record(&name("www.example"), wire::CNAME, 10, &name("nobody.example"));
            reply(query, code, &[target], &[wire::authority(3600)])
        });
        assert!(stage.look_up("www.example").is_err());
        stage.pass(8 * SECOND);
        assert!(stage.look_up("www.example").is_err());
        assert_eq!(stage.seen(0).len(), 1, "code {code}: known for ten seconds");
        stage.pass(SECOND);
        assert!(stage.look_up("www.example").is_err());
        assert_eq!(stage.seen(0).len(), 1, "code {code}: and no longer");
    }
}

#[test]
fn a_failure_holds_for_a_second_and_longer_each_time_that_it_comes_again() {
    let conf = ResolvConf::parse("options attempts:1");
    let failing = || serve(|query| reply(query, 2, &[], &[]));
    let mut stage = Stage::new(vec![failing(), failing()], conf, |config| config);
    for seconds in [1, 2, 4, 8, 8] {
        // Each look takes a second, and the servers need a part of the first one.
        for _ in 0..=seconds {
            let reply = stage.look_up("www.example");
            assert!(matches!(reply, Err(LookupError::Server(..))), "{reply:?}");
        }
        assert_eq!((stage.seen(0).len(), stage.seen(1).len()), (1, 1), "{seconds} s");
    }
}

#[test]
fn a_server_that_is_mended_is_asked_when_the_failure_is_over() {
    let is_mended = Rc::new(Cell::new(false));
    let mended = is_mended.clone();
    let server =
        serve(move |query| if mended.get() { right(query) } else { reply(query, 5, &[], &[]) });
    let mut stage = Stage::new(vec![server], ResolvConf::default(), |config| config);
    assert!(stage.look_up("www.example").is_err());
    is_mended.set(true);
    assert!(stage.look_up("www.example").is_err(), "it is known for a second");
    assert!(stage.look_up("other.example").is_ok());
    assert!(stage.look_up("www.example").is_ok());
}

#[test]
fn silence_of_all_servers_is_known_and_that_a_lookup_was_short_of_time_is_not() {
    let conf = ResolvConf::parse("options attempts:1 timeout:2");
    let mut stage = Stage::new(vec![silent()], conf.clone(), |config| config);
    let reply = stage.begin("www.example");
    stage.pass(2 * SECOND + SECOND / 10);
    assert!(matches!(outcome(reply), Err(LookupError::Timeout)));
    let known = stage.begin("www.example");
    stage.pass(SECOND / 10);
    assert!(matches!(outcome(known), Err(LookupError::Timeout)));
    assert_eq!(stage.seen(0).len(), 1);
    let slow = Served::new(|query, _, _| vec![right(query)]);
    let mut stage = Stage::new(vec![slow], conf, |config| config.lookup_timeout(SECOND / 2));
    stage.sim.set_network(Network::new().latency(SECOND / 3..SECOND * 2 / 5));
    assert!(matches!(stage.look_up("www.example"), Err(LookupError::Timeout)));
    assert!(stage.look_up("www.example").is_ok(), "the answer came behind it");
}

#[test]
fn without_a_cache_a_failure_is_not_known_either() {
    let server = serve(|query| reply(query, 2, &[], &[]));
    let conf = ResolvConf::parse("options attempts:1");
    let mut stage = Stage::new(vec![server], conf, |config| config.cache_bytes_max(0));
    for _ in 0..3 {
        assert!(stage.look_up("www.example").is_err());
    }
    assert_eq!(stage.seen(0).len(), 3);
}

#[test]
fn records_that_were_not_asked_for_are_not_remembered() {
    let mut stage = Stage::of(|query| match asked(query).0.as_str() {
        "bank.example" => right(query),
        host => {
            let forged = address("bank.example", 66);
            let mut message =
                reply(query, 0, &[address(host, 1), forged.clone()], std::slice::from_ref(&forged));
            message[11] = 1;
            message.extend(forged);
            message
        }
    });
    assert!(stage.look_up("www.example").is_ok_and(|answer| answer.data.len() == 1));
    let bank = stage.look_up("bank.example").expect("its own");
    assert_eq!(bank.data, [Data::A([192, 0, 2, 1].into())]);
    assert_eq!(stage.seen(0), ["www.example", "bank.example"]);
}
