//! Which server is asked, how often, and how: by datagram or over TCP.

use std::cell::Cell;
use std::net::SocketAddr;
use std::time::Duration;

use rotor_dns::{LookupError, ResolvConf, ResolverConfig, ServerFault};
use rotor_sim::{Fault, Faults, Network};
use rotor_stream::ResolveError;

use crate::machine::Served;
use crate::wire::{self, AAAA, address, alias, asked, found, name, record, reply, truncated};
use crate::{SECOND, Stage, negative_answer, outcome, right_answer, serve, silent};

#[test]
fn servers_are_asked_in_turn_for_the_set_number_of_attempts() {
    let mut conf = ResolvConf::default();
    (conf.timeout, conf.attempts) = (2 * SECOND, 3);
    let mut stage = Stage::new(vec![silent(), silent()], conf, |config| config);
    let reply = stage.start_lookup("www.example");
    for (first, second) in [(1, 0), (0, 1), (1, 0), (0, 1), (1, 0), (0, 1)] {
        assert!(!reply.is_ready());
        stage.run_for(SECOND);
        assert_eq!((stage.names_asked(0).len(), stage.names_asked(1).len()), (first, second));
        stage.run_for(SECOND + Duration::from_millis(1));
    }
    stage.run_for(Duration::from_millis(20));
    assert!(matches!(outcome(reply), Err(LookupError::Timeout)));
    stage.run_for(60 * SECOND);
    assert_eq!((stage.names_asked(0).len(), stage.names_asked(1).len()), (0, 0));
}

#[test]
fn rotation_starts_each_lookup_at_the_next_server() {
    for (rotate, expected) in [(true, [2, 2, 2]), (false, [6, 0, 0])] {
        let mut conf = ResolvConf::default();
        conf.rotate = rotate;
        let mut stage = Stage::new(
            vec![serve(right_answer), serve(right_answer), serve(right_answer)],
            conf,
            |config| config,
        );
        for number in 0..6 {
            assert!(stage.look_up(&format!("h{number}.example")).is_ok());
        }
        assert_eq!([0, 1, 2].map(|server| stage.names_asked(server).len()), expected);
    }
}

/// Otherwise each host would wait for a silent server.
#[test]
fn rotation_asks_one_server_for_both_families_of_a_host() {
    let mut conf = ResolvConf::default();
    conf.rotate = true;
    let servers = vec![serve(right_answer), serve(right_answer)];
    let mut stage = Stage::new(servers, conf, |config| config);
    for number in 0..4 {
        let host = format!("h{number}.example");
        assert!(stage.host(&host).is_ok());
        let expected = if number % 2 == 0 { [2, 0] } else { [0, 2] };
        assert_eq!([0, 1].map(|server| stage.names_asked(server).len()), expected, "{host}");
    }
}

#[test]
fn a_server_with_a_closed_port_costs_no_time() {
    // A port of the first host, which serves only port 53.
    fn server(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }
    let second = |config: ResolverConfig| config.servers(vec![server(54), server(53)]);
    let mut stage = Stage::new(vec![serve(right_answer)], ResolvConf::default(), second);
    // Within a second, far less than the 5 seconds that a silent server gets.
    assert!(stage.look_up("www.example").is_ok());
    let alone = |config: ResolverConfig| config.servers(vec![server(54)]);
    let mut stage = Stage::new(vec![silent()], ResolvConf::default(), alone);
    let reply = stage.look_up("www.example");
    assert!(matches!(reply, Err(LookupError::Server(_, ServerFault::PortClosed))), "{reply:?}");
}

/// Recursion is a bit of the header's fourth byte, authority one of its third.
#[test]
fn a_server_without_recursion_is_skipped() {
    let saying = |authority: bool, recursion: bool, records: &'static [u8]| {
        serve(move |query| {
            let mut message = match records {
                [] => reply(query, 0, &[], &[]),
                _ => negative_answer(query, 0, 60, 60),
            };
            message[2] |= if authority { 4 } else { 0 };
            message[3] &= if recursion { 0xff } else { 0x7f };
            message
        })
    };
    for (authority, recursion, records, is_answer) in [
        (false, false, &b""[..], false),
        (false, true, b"", true),
        (true, false, b"", true),
        (false, false, b"SOA", true),
    ] {
        let servers = vec![saying(authority, recursion, records), serve(right_answer)];
        let mut stage = Stage::new(servers, ResolvConf::default(), |config| config);
        let what = format!("{authority} {recursion} {records:?}");
        let reply = stage.look_up("www.example");
        assert_eq!(matches!(reply, Err(LookupError::NoRecords(_))), is_answer, "{what}: {reply:?}");
        assert_eq!(reply.is_ok(), !is_answer, "{what}: {reply:?}");
    }
    let mut stage = Stage::new(vec![saying(false, false, b"")], ResolvConf::default(), |it| it);
    let reply = stage.look_up("www.example");
    assert!(matches!(reply, Err(LookupError::Server(_, ServerFault::NoRecursion))), "{reply:?}");
}

#[test]
fn edns_announces_its_payload_size_only_if_enabled() {
    for (options, expected) in [("", None), ("options edns0", Some([0, 0, 41, 0x04, 0xd0]))] {
        let mut stage =
            Stage::new(vec![serve(right_answer)], ResolvConf::parse(options), |config| config);
        assert!(stage.look_up("www.example").is_ok());
        let query = stage.servers[0].queries.take().remove(0);
        // The root's name, OPT, 1,232 bytes (RFC 6891 §6.1.2).
        let additional = query.get(wire::question_end(&query)..).and_then(<[u8]>::first_chunk::<5>);
        assert_eq!((additional.copied(), query[11]), (expected, u8::from(expected.is_some())));
    }
}

/// Whether a query has a record behind its question, for EDNS.
fn has_edns(query: &[u8]) -> bool {
    query[11] == 1
}

/// A response that refuses a query with this code, with its question or without.
fn refusal_of(query: &[u8], code: u8, with_question: bool) -> Vec<u8> {
    let mut message = reply(query, code, &[], &[]);
    if !with_question {
        message.truncate(12);
        message[5] = 0;
    }
    message
}

#[test]
fn a_server_that_refuses_edns_is_asked_without_it() {
    for (code, with_question, is_tcp) in
        [(1, true, false), (1, false, false), (4, true, false), (1, true, true), (4, false, true)]
    {
        let old = Served::new(move |query, _, _| {
            let refusal = || refusal_of(query, code, with_question);
            vec![if has_edns(query) { refusal() } else { right_answer(query) }]
        });
        let options = if is_tcp { "options edns0 use-vc" } else { "options edns0" };
        let servers = vec![old, serve(right_answer)];
        let mut stage = Stage::new(servers, ResolvConf::parse(options), |config| config);
        let what = format!("code {code}, its question {with_question}, over TCP {is_tcp}");
        assert!(stage.look_up("www.example").is_ok(), "{what}");
        let queries = stage.servers[0].queries.take();
        assert_eq!(queries.iter().map(|query| has_edns(query)).collect::<Vec<_>>(), [true, false]);
        assert!(stage.names_asked(1).is_empty(), "{what}: the first one knows");
    }
}

#[test]
fn a_refusal_of_edns_is_remembered_for_fifteen_minutes() {
    let old = Served::new(|query, _, _| {
        vec![if has_edns(query) { refusal_of(query, 1, false) } else { right_answer(query) }]
    });
    let mut stage = Stage::new(vec![old], ResolvConf::parse("options edns0"), |config| config);
    let ask = |stage: &mut Stage, name: &str| {
        assert!(stage.look_up(name).is_ok(), "{name}");
        stage.servers[0].queries.take().iter().map(|query| has_edns(query)).collect::<Vec<_>>()
    };
    assert_eq!(ask(&mut stage, "a.example"), [true, false]);
    assert_eq!(ask(&mut stage, "b.example"), [false], "known");
    stage.run_for(14 * 60 * SECOND);
    assert_eq!(ask(&mut stage, "c.example"), [false], "which makes it known for no longer");
    stage.run_for(60 * SECOND);
    assert_eq!(ask(&mut stage, "d.example"), [true, false], "it may have been replaced");
    assert_eq!(ask(&mut stage, "e.example"), [false]);
}

#[test]
fn a_server_that_also_fails_without_edns_is_not_marked() {
    // It fails for the names of one domain, with EDNS or without.
    let broken = serve(|query| {
        let is_broken = asked(query).0.ends_with("broken.example");
        if is_broken { refusal_of(query, 1, true) } else { right_answer(query) }
    });
    let conf = ResolvConf::parse("options edns0 attempts:1");
    let mut stage = Stage::new(vec![broken], conf, |config| config);
    assert!(stage.look_up("broken.example").is_err());
    assert_eq!(stage.servers[0].queries.take().len(), 2);
    assert!(stage.look_up("www.example").is_ok());
    let queries = stage.servers[0].queries.take();
    assert_eq!(queries.iter().map(|query| has_edns(query)).collect::<Vec<_>>(), [true]);
}

#[test]
fn a_server_that_also_fails_without_edns_is_not_asked_again() {
    for with_question in [true, false] {
        let server = serve(move |query| refusal_of(query, 1, with_question));
        let conf = ResolvConf::parse("options edns0 attempts:2 timeout:1");
        let mut stage = Stage::new(vec![server, serve(right_answer)], conf, |config| config);
        let reply = stage.start_lookup("www.example");
        stage.run_for(3 * SECOND);
        assert!(outcome(reply).is_ok());
        assert_eq!((stage.names_asked(0).len(), stage.names_asked(1).len()), (2, 1));
    }
}

#[test]
fn a_format_error_without_question_is_ignored_if_edns_was_not_used() {
    // A forger may have guessed the id and the port, but not the case of the letters.
    let server = Served::new(|query, _, _| vec![refusal_of(query, 1, false), right_answer(query)]);
    let mut stage = Stage::new(vec![server], ResolvConf::default(), |config| config);
    assert!(stage.look_up("www.example").is_ok());
    assert_eq!(stage.names_asked(0).len(), 1);
}

#[test]
fn edns_refusals_are_tracked_per_server_and_across_rounds() {
    // The first server is silent without EDNS, the second always.
    let old = Served::new(
        |query, _, _| {
            if has_edns(query) { vec![refusal_of(query, 4, true)] } else { vec![] }
        },
    );
    let conf = ResolvConf::parse("options edns0 attempts:2 timeout:1");
    let mut stage = Stage::new(vec![old, silent()], conf, |config| config);
    let reply = stage.start_lookup("www.example");
    stage.run_for(6 * SECOND);
    assert!(matches!(outcome(reply), Err(LookupError::Timeout)));
    let asked = |server: usize| {
        stage.servers[server].queries.take().iter().map(|q| has_edns(q)).collect::<Vec<_>>()
    };
    assert_eq!((asked(0), asked(1)), (vec![true, false, false], vec![true, true]));
}

#[test]
fn a_spurious_edge_does_not_end_an_attempt_over_tcp() {
    for seed in 0..20 {
        // The datagram socket was registered with the same token as the TCP socket.
        let server = Served::new(|query, is_tcp, _| {
            vec![if is_tcp { right_answer(query) } else { truncated(query) }]
        });
        let conf = ResolvConf::parse("options attempts:1");
        let mut stage = Stage::with_seeds(seed, 1, vec![server], conf, |config| config);
        // Such edges come about every 100 ms; connecting takes longer.
        stage.sim.set_network(
            Network::new().latency(Duration::from_millis(400)..Duration::from_millis(500)),
        );
        stage.sim.set_faults(Faults::none().set(Fault::SpuriousEdge, 1.0));
        let reply = stage.start_lookup("www.example");
        stage.run_for(4 * SECOND);
        assert!(outcome(reply).is_ok(), "seed {seed}");
    }
}

#[test]
fn zero_attempts_count_as_one() {
    let mut conf = ResolvConf::default();
    conf.attempts = 0;
    let mut stage = Stage::new(vec![serve(right_answer)], conf, |config| config);
    assert!(stage.look_up("www.example").is_ok());
    assert_eq!(stage.names_asked(0), ["www.example"]);
}

#[test]
fn too_many_attempts_count_as_five() {
    let mut conf = ResolvConf::default();
    (conf.timeout, conf.attempts) = (SECOND, usize::MAX);
    let mut stage = Stage::new(vec![silent(), silent()], conf, |config| config);
    let reply = stage.start_lookup("www.example");
    stage.run_for(11 * SECOND);
    assert!(matches!(outcome(reply), Err(LookupError::Timeout)));
    assert_eq!([0, 1].map(|server| stage.names_asked(server).len()), [5, 5]);
}

#[test]
fn an_endless_server_timeout_counts_as_thirty_seconds() {
    let server = Served::new(|query, _, _| {
        if asked(query).0 == "none.example" { vec![] } else { vec![right_answer(query)] }
    });
    let mut conf = ResolvConf::default();
    (conf.timeout, conf.attempts) = (Duration::MAX, 1);
    let mut stage = Stage::new(vec![server], conf, |config| config.queries_max(1));
    let silent = stage.start_lookup("none.example");
    stage.run_for(29 * SECOND);
    let waits = stage.start_lookup("www.example");
    assert!(matches!(outcome(silent), Err(LookupError::Timeout)));
    // The only query that is allowed has ended, and the next one has its turn.
    stage.run_for(2 * SECOND);
    assert!(outcome(waits).is_ok());
}

#[test]
fn addresses_of_one_family_are_returned_when_the_lookup_times_out() {
    let silent_for_six =
        || {
            Served::new(|query, _, _| {
                if asked(query).1 == wire::AAAA { vec![] } else { vec![right_answer(query)] }
            })
        };
    // Less than the time that one family waits for the other (RFC 8305 §3).
    let short = |config: ResolverConfig| config.lookup_timeout(Duration::from_millis(40));
    let mut stage = Stage::new(vec![silent_for_six()], ResolvConf::default(), short);
    let found = stage.host("www.example").expect("one family is known");
    assert_eq!(found.len(), 1);
    let mut stage = Stage::new(vec![silent()], ResolvConf::default(), short);
    assert!(matches!(stage.host("www.example"), Err(ResolveError::Failed(_))));
}

/// Without these, a machine without a way to IPv6 could not connect at all. The delay of RFC 8305
/// §3 is for the opposite order.
#[test]
fn ipv6_addresses_wait_for_late_ipv4_addresses() {
    // In the first round, the answer with the IPv4 addresses is lost.
    let lost = Cell::new(false);
    let server = Served::new(move |query, _, _| match asked(query).1 {
        AAAA => vec![ipv6_answer(query)],
        _ if !lost.replace(true) => vec![],
        _ => vec![right_answer(query)],
    });
    let conf = ResolvConf::parse("options timeout:1 attempts:2");
    let mut stage = Stage::new(vec![server], conf, |config| config);
    let reply = stage.dns.addresses().ask_from_thread("www.example".into()).expect("room");
    stage.run_for(2 * SECOND);
    let found = outcome(reply).expect("both families are known");
    assert_eq!(found.iter().map(|address| address.is_ipv6()).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn ipv6_addresses_are_enough_if_no_server_tells_the_ipv4_addresses() {
    let silent_for_four = || {
        Served::new(
            |query, _, _| if asked(query).1 == AAAA { vec![ipv6_answer(query)] } else { vec![] },
        )
    };
    let conf = ResolvConf::parse("options timeout:1 attempts:1");
    type Set = fn(ResolverConfig) -> ResolverConfig;
    let cases: [(Set, Duration); 2] =
        [(|config| config, 2 * SECOND), (|config| config.lookup_timeout(SECOND / 2), SECOND)];
    for (set, until) in cases {
        let mut stage = Stage::new(vec![silent_for_four()], conf.clone(), set);
        let reply = stage.dns.addresses().ask_from_thread("www.example".into()).expect("room");
        stage.run_for(until);
        assert_eq!(outcome(reply).expect("one family is known").len(), 1);
    }
}

fn ipv6_answer(query: &[u8]) -> Vec<u8> {
    found(query, &[record(&name(&asked(query).0), AAAA, 60, &[0x20; 16])])
}

#[test]
fn tcp_only_sends_no_datagram() {
    let mut stage =
        Stage::new(vec![serve(right_answer)], ResolvConf::parse("options use-vc"), |config| config);
    assert!(stage.look_up("www.example").is_ok());
    assert_eq!((stage.servers[0].ports.take().len(), stage.names_asked(0).len()), (0, 1));
}

#[test]
fn a_server_that_is_silent_over_tcp_costs_only_its_timeout() {
    let conf = ResolvConf::parse("options use-vc timeout:2 attempts:1");
    let mut stage = Stage::new(vec![silent(), serve(right_answer)], conf, |config| config);
    let reply = stage.start_lookup("www.example");
    stage.run_for(2 * SECOND - SECOND / 10);
    assert!(!reply.is_ready());
    assert_eq!((stage.names_asked(0).len(), stage.names_asked(1).len()), (1, 0));
    stage.run_for(SECOND);
    assert!(outcome(reply).is_ok());
}

#[test]
fn eight_aliases_in_one_answer_are_followed_and_a_ninth_is_not() {
    for (links, is_good) in [(8, true), (9, false)] {
        let mut stage = Stage::of(move |query| {
            let link =
                |n: u32| if n == 0 { "www.example".to_string() } else { format!("n{n}.example") };
            let mut records: Vec<_> = (0..links).map(|n| alias(&link(n), &link(n + 1))).collect();
            records.push(address("elsewhere.example", 66));
            records.push(address(&link(links), 1));
            found(query, &records)
        });
        let reply = stage.look_up("www.example");
        assert_eq!(reply.as_ref().is_ok_and(|answer| answer.data.len() == 1), is_good, "{reply:?}");
    }
}

#[test]
fn a_truncated_answer_is_fetched_over_tcp() {
    let server = Served::new(|query, is_tcp, _| {
        vec![if is_tcp { right_answer(query) } else { truncated(query) }]
    });
    let mut stage = Stage::new(vec![server], ResolvConf::default(), |config| config);
    assert!(stage.look_up("www.example").is_ok());
    assert_eq!(stage.names_asked(0).len(), 2);
}

#[test]
fn an_answer_truncated_over_tcp_too_is_not_requested_again() {
    let mut stage =
        Stage::new(vec![serve(truncated)], ResolvConf::parse("options attempts:1"), |config| {
            config
        });
    let reply = stage.look_up("www.example");
    assert!(matches!(reply, Err(LookupError::Server(_, ServerFault::Truncated))), "{reply:?}");
    assert_eq!(stage.names_asked(0).len(), 2);
}

#[test]
fn a_negative_answer_for_one_family_starts_no_resolution_delay() {
    // In the first round, the answer for the family that has an address is lost.
    let lost = Cell::new(false);
    let server = Served::new(move |query, _, _| match asked(query).1 {
        AAAA => vec![negative_answer(query, 0, 60, 60)],
        _ if !lost.replace(true) => vec![],
        _ => vec![right_answer(query)],
    });
    let conf = ResolvConf::parse("options timeout:1 attempts:2");
    let mut stage = Stage::new(vec![server], conf, |config| config);
    let reply = stage.dns.addresses().ask_from_thread("www.example".into()).expect("room");
    stage.run_for(SECOND / 2);
    assert!(!reply.is_ready());
    stage.run_for(SECOND);
    assert_eq!(outcome(reply).expect("it has one").len(), 1);
}

/// Some servers never answer questions for IPv6 addresses. Lookups do not wait for them, but the
/// queries do.
#[test]
fn queries_that_no_lookup_waits_for_any_more_leave_their_places_to_others() {
    let server =
        Served::new(
            |query, _, _| if asked(query).1 == AAAA { vec![] } else { vec![right_answer(query)] },
        );
    let set = |config: ResolverConfig| config.queries_max(3);
    let mut stage = Stage::new(vec![server], ResolvConf::default(), set);
    let mut replies: Vec<_> = (0..10)
        .map(|number| {
            let host = format!("h{number}.example").as_str().into();
            stage.dns.addresses().ask_from_thread(host).expect("there is room")
        })
        .collect();
    // Each place is free again after a second, not after the five that a server has otherwise.
    stage.run_for(6 * SECOND);
    replies.drain(..).for_each(|reply| assert!(outcome(reply).is_ok()));
    // That the server had less time is not counted against it.
    let expected = [("found", 10), ("asked", 20), ("tries", 20)];
    assert_eq!(stage.nonzero_counters(), expected);
}

#[test]
fn a_query_that_is_awaited_again_has_its_full_time() {
    let conf = ResolvConf::parse("options timeout:5 attempts:3");
    let mut stage = Stage::new(vec![serve(right_answer)], conf, |config| config.queries_max(1));
    stage.sim.set_network(Network::new().latency(SECOND..SECOND * 3 / 2));
    let given_up = stage.start_lookup("slow.example");
    stage.run_for(SECOND / 10);
    drop(given_up);
    let other = stage.start_lookup("other.example");
    stage.run_for(SECOND / 10);
    let again = stage.start_lookup("slow.example");
    stage.run_for(3 * SECOND);
    assert!(outcome(again).is_ok());
    stage.run_for(3 * SECOND);
    assert!(outcome(other).is_ok());
    assert_eq!(stage.names_asked(0), ["slow.example", "other.example"]);
}

/// Otherwise lookups that are given up early, again and again, would leave no query to others.
#[test]
fn a_question_that_nobody_waits_for_is_sent_to_no_further_server() {
    let server = Served::new(|query, _, _| {
        if asked(query).0 == "slow.example" { vec![] } else { vec![right_answer(query)] }
    });
    let conf = ResolvConf::parse("options timeout:5 attempts:3");
    let mut stage = Stage::new(vec![server], conf, |config| config.queries_max(1));
    let slow = stage.start_lookup("slow.example");
    stage.run_for(SECOND);
    drop(slow);
    stage.run_for(6 * SECOND);
    assert_eq!(stage.names_asked(0), ["slow.example"]);
    let slow = stage.start_lookup("slow.example");
    let other = stage.start_lookup("other.example");
    stage.run_for(SECOND);
    assert!(!other.is_ready(), "the other one is awaited");
    drop(slow);
    stage.run_for(SECOND / 10);
    assert!(outcome(other).is_ok(), "it needs the place");
    assert_eq!(stage.names_asked(0), ["slow.example", "other.example"]);
    // Asked for again meanwhile: there is somebody who waits.
    let given_up = stage.start_lookup("slow.example");
    stage.run_for(SECOND);
    drop(given_up);
    stage.run_for(SECOND);
    let again = stage.start_lookup("slow.example");
    stage.run_for(14 * SECOND);
    assert!(matches!(outcome(again), Err(LookupError::Timeout)));
    assert_eq!(stage.names_asked(0), ["slow.example"; 3]);
}
