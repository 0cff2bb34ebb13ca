//! What is cached, and for how long.

use std::cell::Cell;
use std::rc::Rc;

use rotor_dns::{Data, LookupError, ResolvConf};
use rotor_sim::Network;

use crate::machine::Served;
use crate::wire::{self, address, asked, found, name, record, reply};
use crate::{
    SECOND, Stage, answer_with_ttl, negative_answer, outcome, right_answer, serve, silent,
};

#[test]
fn a_cached_answer_is_used_until_it_expires() {
    let mut stage = Stage::of(right_answer);
    for _ in 0..50 {
        assert!(stage.look_up("www.example").is_ok());
    }
    assert_eq!(stage.names_asked(0).len(), 1);
    stage.run_for(11 * SECOND);
    assert!(stage.look_up("WWW.example.").is_ok());
    assert_eq!(stage.names_asked(0), ["www.example"]);
}

#[test]
fn an_answer_with_a_zero_ttl_is_not_cached() {
    let mut stage = Stage::of(|query| answer_with_ttl(query, 0));
    for _ in 0..3 {
        assert!(stage.look_up("www.example").is_ok());
    }
    assert_eq!(stage.names_asked(0).len(), 3);
}

#[test]
fn a_negative_answer_lives_for_the_smaller_of_soa_ttl_and_minimum() {
    for (code, ttl, minimum) in [(3, 3600, 10), (3, 10, 3600), (0, 3600, 10), (0, 10, 3600)] {
        let mut stage = Stage::of(move |query| negative_answer(query, code, ttl, minimum));
        // Each lookup takes a second: the last one begins in the tenth second.
        for _ in 0..10 {
            let reply = stage.look_up("www.example");
            let is_no_name = matches!(reply, Err(LookupError::NoSuchName(_)));
            assert!(is_no_name == (code == 3) && reply.is_err(), "{code}: {reply:?}");
        }
        assert_eq!(stage.names_asked(0).len(), 1, "code {code}, {ttl} s and {minimum} s");
        stage.run_for(SECOND);
        assert!(stage.look_up("www.example").is_err());
        assert_eq!(stage.names_asked(0).len(), 1, "code {code}, {ttl} s and {minimum} s");
    }
    let mut stage = Stage::of(|query| reply(query, 3, &[], &[]));
    for _ in 0..3 {
        assert!(matches!(stage.look_up("www.example"), Err(LookupError::NoSuchName(_))));
    }
    assert_eq!(stage.names_asked(0).len(), 3, "without an authority it is not remembered");
}

#[test]
fn the_reply_that_expires_first_makes_room() {
    let ttl = |query: &[u8]| if asked(query).0 == "short.example" { 20 } else { 600 };
    let server = serve(move |query| answer_with_ttl(query, ttl(query)));
    let mut stage =
        Stage::new(vec![server], ResolvConf::default(), |config| config.cache_bytes_max(1_400));
    for text in ["one.example", "short.example", "two.example"] {
        assert!(stage.look_up(text).is_ok());
    }
    stage.names_asked(0);
    for text in ["one.example", "two.example", "short.example"] {
        assert!(stage.look_up(text).is_ok());
    }
    assert_eq!(stage.names_asked(0), ["short.example"]);
}

#[test]
fn a_chain_over_several_queries_lives_for_its_shortest_ttl() {
    let short = |query: &[u8]| {
        let target = name("end.example");
        match asked(query).0.as_str() {
            "end.example" => answer_with_ttl(query, 60),
            "none.example" => found(
                query,
                &[record(&name("none.example"), wire::CNAME, 10, &name("nobody.example"))],
            ),
            "nobody.example" => negative_answer(query, 3, 60, 60),
            host => found(query, &[record(&name(host), wire::CNAME, 10, &target)]),
        }
    };
    for (text, expected) in [("www.example", true), ("none.example", false)] {
        let mut stage = Stage::of(short);
        let reply = stage.look_up(text);
        assert_eq!(reply.is_ok(), expected, "{reply:?}");
        assert!(reply.as_ref().map_or(true, |answer| answer.ttl == 10 * SECOND), "{reply:?}");
        assert_eq!(stage.names_asked(0).len(), 2);
        stage.run_for(8 * SECOND);
        stage.look_up(text).ok();
        assert!(stage.names_asked(0).is_empty(), "{text}: known for ten seconds");
        stage.run_for(SECOND);
        assert_eq!(stage.look_up(text).is_ok(), expected);
        assert_eq!(stage.names_asked(0).len(), 2, "{text}: and no longer");
    }
}

#[test]
fn the_ttl_of_an_alias_limits_the_records_behind_it() {
    let link = |from: &str, ttl, to: &str| record(&name(from), wire::CNAME, ttl, &name(to));
    let mut stage = Stage::of(move |query| match asked(query).0.as_str() {
        "www.example" => found(query, &[link("www.example", 10, "a.example")]),
        "a.example" => found(query, &[link("a.example", 30, "b.example")]),
        _ => answer_with_ttl(query, 60),
    });
    let answer = stage.look_up("www.example").expect("there is one");
    assert_eq!((answer.ttl, stage.names_asked(0).len()), (10 * SECOND, 3));
}

#[test]
fn a_negative_answer_behind_an_alias_expires_with_the_alias() {
    for code in [0, 3] {
        let mut stage = Stage::of(move |query| {
            let target = record(&name("www.example"), wire::CNAME, 10, &name("nobody.example"));
            reply(query, code, &[target], &[wire::authority(3600)])
        });
        assert!(stage.look_up("www.example").is_err());
        stage.run_for(8 * SECOND);
        assert!(stage.look_up("www.example").is_err());
        assert_eq!(stage.names_asked(0).len(), 1, "code {code}: known for ten seconds");
        stage.run_for(SECOND);
        assert!(stage.look_up("www.example").is_err());
        assert_eq!(stage.names_asked(0).len(), 1, "code {code}: and no longer");
    }
}

#[test]
fn a_failure_is_cached_for_a_second_and_longer_when_repeated() {
    let conf = ResolvConf::parse("options attempts:1");
    let failing = || serve(|query| reply(query, 2, &[], &[]));
    let mut stage = Stage::new(vec![failing(), failing()], conf, |config| config);
    for seconds in [1, 2, 4, 8, 8] {
        // Each lookup takes a second, and the servers need part of the first one.
        for _ in 0..=seconds {
            let reply = stage.look_up("www.example");
            assert!(matches!(reply, Err(LookupError::Server(..))), "{reply:?}");
        }
        assert_eq!((stage.names_asked(0).len(), stage.names_asked(1).len()), (1, 1), "{seconds} s");
    }
}

#[test]
fn a_repaired_server_is_asked_after_the_failure_expires() {
    let is_mended = Rc::new(Cell::new(false));
    let mended = is_mended.clone();
    let server = serve(
        move |query| if mended.get() { right_answer(query) } else { reply(query, 5, &[], &[]) },
    );
    let mut stage = Stage::new(vec![server], ResolvConf::default(), |config| config);
    assert!(stage.look_up("www.example").is_err());
    is_mended.set(true);
    assert!(stage.look_up("www.example").is_err(), "it is known for a second");
    assert!(stage.look_up("other.example").is_ok());
    assert!(stage.look_up("www.example").is_ok());
}

#[test]
fn silence_of_all_servers_is_cached_but_a_lookup_timeout_is_not() {
    let conf = ResolvConf::parse("options attempts:1 timeout:2");
    let mut stage = Stage::new(vec![silent()], conf.clone(), |config| config);
    let reply = stage.start_lookup("www.example");
    stage.run_for(2 * SECOND + SECOND / 10);
    assert!(matches!(outcome(reply), Err(LookupError::Timeout)));
    let known = stage.start_lookup("www.example");
    stage.run_for(SECOND / 10);
    assert!(matches!(outcome(known), Err(LookupError::Timeout)));
    assert_eq!(stage.names_asked(0).len(), 1);
    let slow = Served::new(|query, _, _| vec![right_answer(query)]);
    let mut stage = Stage::new(vec![slow], conf, |config| config.lookup_timeout(SECOND / 2));
    stage.sim.set_network(Network::new().latency(SECOND / 3..SECOND * 2 / 5));
    assert!(matches!(stage.look_up("www.example"), Err(LookupError::Timeout)));
    assert!(stage.look_up("www.example").is_ok(), "the answer came behind it");
}

/// With the default times: two servers, asked twice for 5 s each, take as long as a lookup may, and
/// the lookup ends a moment earlier than the last try.
#[test]
fn silence_is_cached_although_the_last_lookup_ended_just_before_the_query() {
    let conf = ResolvConf::default();
    let mut stage = Stage::new(vec![silent(), silent()], conf, |config| config);
    let reply = stage.start_lookup("www.example");
    stage.run_for(20 * SECOND + SECOND / 10);
    assert!(matches!(outcome(reply), Err(LookupError::Timeout)));
    assert_eq!([0, 1].map(|server| stage.names_asked(server).len()), [2, 2]);
    assert!(matches!(stage.look_up("www.example"), Err(LookupError::Timeout)), "known for 1 s");
    assert_eq!([0, 1].map(|server| stage.names_asked(server).len()), [0, 0]);
}

#[test]
fn failures_are_not_cached_without_a_cache() {
    let server = serve(|query| reply(query, 2, &[], &[]));
    let conf = ResolvConf::parse("options attempts:1");
    let mut stage = Stage::new(vec![server], conf, |config| config.cache_bytes_max(0));
    for _ in 0..3 {
        assert!(stage.look_up("www.example").is_err());
    }
    assert_eq!(stage.names_asked(0).len(), 3);
}

#[test]
fn unrequested_records_are_not_cached() {
    let mut stage = Stage::of(|query| match asked(query).0.as_str() {
        "bank.example" => right_answer(query),
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
    assert_eq!(stage.names_asked(0), ["www.example", "bank.example"]);
}
