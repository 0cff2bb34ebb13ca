//! Servers that are silent, wrong, or not there.

use std::sync::atomic::Ordering::SeqCst;

use rotor_core::net::Inet;
use rotor_dns::{
    Kind, LookupError, LookupResult, ResolvConf, Resolver, ResolverConfig, ServerFault,
};
use rotor_stream::ResolveError;

use crate::scripted::{Act, Server};
use crate::wire::{self, A, alias, asked, found, name, record, reply, truncated};
use crate::{
    PATIENCE, SHORT, config, fault, host, is_right, one, question, records, right_answer, start,
};

#[test]
fn a_server_with_a_closed_port_is_skipped_at_once() {
    // The port is taken by a socket that receives only from itself.
    let deaf = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    let closed = deaf.local_addr().expect("it is bound");
    deaf.connect(closed).expect("there is such an address");
    let server = Server::start(|query, _| vec![Act::Send(right_answer(query))]);
    // A server that is taken for a silent one would get all the time that the lookup has.
    let servers = [closed, server.address];
    let reply = records(config(&servers, PATIENCE), &[question("www.example", Kind::A)]).remove(0);
    assert!(is_right(&reply), "{reply:?}");
}

#[test]
fn truncation_leads_to_tcp_in_any_segmentation() {
    for is_dribbled in [false, true] {
        let server = Server::start(move |query, is_tcp| {
            if !is_tcp {
                return vec![Act::Send(truncated(query))];
            }
            let message = right_answer(query);
            let framed = [&(message.len() as u16).to_be_bytes()[..], &message].concat();
            vec![if is_dribbled { Act::Dribble(framed) } else { Act::Send(message) }]
        });
        assert!(is_right(&one(&server, PATIENCE)));
        assert_eq!((server.udp_queries.load(SeqCst), server.tcp_queries.load(SeqCst)), (1, 1));
    }
}

#[test]
fn each_kind_of_wrong_answer_is_reported_as_a_server_fault() {
    type WrongAnswer = fn(&[u8]) -> Vec<Act>;
    let over_tcp: [(WrongAnswer, ServerFault); 4] = [
        (|query| vec![Act::Send(truncated(query))], ServerFault::Truncated),
        (|_| vec![], ServerFault::Closed),
        (|query| vec![Act::Dribble(right_answer(query)[..7].to_vec())], ServerFault::Closed),
        (
            |query| {
                let mut message = right_answer(query);
                message[0] ^= 1;
                vec![Act::Send(message)]
            },
            ServerFault::OtherQuestion,
        ),
    ];
    for (wrong, expected) in over_tcp {
        let server = Server::start(
            move |q, is_tcp| if is_tcp { wrong(q) } else { vec![Act::Send(truncated(q))] },
        );
        assert_eq!(fault(one(&server, PATIENCE)), expected);
    }
    let by_datagram: [(WrongAnswer, ServerFault); 8] = [
        (|query| vec![Act::Send(reply(query, 2, &[], &[]))], ServerFault::Code(2)),
        (|query| vec![Act::Send(reply(query, 5, &[], &[]))], ServerFault::Code(5)),
        // A record is announced, but it is missing or truncated.
        (
            |query| vec![Act::Send(right_answer(query)[..wire::question_end(query)].to_vec())],
            ServerFault::Malformed,
        ),
        (
            |query| {
                let message = right_answer(query);
                vec![Act::Send(message[..message.len() - 1].to_vec())]
            },
            ServerFault::Malformed,
        ),
        // An owner that points at itself, one that points forward, an address of three bytes.
        (|query| vec![Act::Send(looping(query, 0))], ServerFault::Malformed),
        (|query| vec![Act::Send(looping(query, 2))], ServerFault::Malformed),
        (
            |query| {
                vec![Act::Send(found(query, &[record(&name("www.example"), A, 1, &[1, 2, 3])]))]
            },
            ServerFault::Malformed,
        ),
        (
            |query| {
                let chain = |i: u8| alias(&link(i), &link(i + 1));
                vec![Act::Send(found(query, &(0..9).map(chain).collect::<Vec<_>>()))]
            },
            ServerFault::ChainTooLong,
        ),
    ];
    for (number, (wrong, expected)) in by_datagram.into_iter().enumerate() {
        let server = Server::start(move |query, _| wrong(query));
        assert_eq!(fault(one(&server, PATIENCE)), expected, "number {number}");
    }
}

/// A record whose owner is a pointer to itself, or to `behind` bytes after itself.
fn looping(query: &[u8], behind: usize) -> Vec<u8> {
    let at = wire::question_end(query) + behind;
    let pointer = [0xc0 | (at >> 8) as u8, at as u8];
    found(query, &[record(&pointer, A, 1, &[1, 2, 3, 4])])
}

fn link(number: u8) -> String {
    if number == 0 { "www.example".into() } else { format!("n{number}.example") }
}

#[test]
fn a_silent_or_endless_server_costs_only_its_timeout() {
    let silent = Server::start(|_, _| vec![]);
    assert!(matches!(one(&silent, SHORT), Err(LookupError::Timeout)));
    let endless = Server::start(|query, is_tcp| {
        if is_tcp {
            vec![Act::Dribble(vec![0xff; 9]), Act::Hang]
        } else {
            vec![Act::Send(truncated(query))]
        }
    });
    assert!(matches!(one(&endless, SHORT), Err(LookupError::Timeout)));
}

/// Asks two servers a question and asserts that the reply is good. A silent server costs its whole
/// timeout. That is so short that another server's thread may get no CPU time in it; then the
/// timeout is increased.
fn in_time(servers: [&Server; 2], is_good: impl Fn(&LookupResult) -> bool) {
    let addresses = servers.map(|server| server.address);
    for times in 0.. {
        let time = SHORT * 4_u32.pow(times);
        let config = config(&addresses, time);
        let reply = records(config, &[question("www.example", Kind::A)]).remove(0);
        if is_good(&reply) {
            // Each query arrives eventually.
            while servers[0].udp_queries.load(SeqCst) <= times as usize {
                std::thread::yield_now();
            }
            return;
        }
        assert!(time < PATIENCE, "{reply:?}");
    }
}

#[test]
fn the_next_server_is_asked_after_a_silent_or_failing_one() {
    let good = Server::start(|query, _| vec![Act::Send(right_answer(query))]);
    let silent = Server::start(|_, _| vec![]);
    let failing = Server::start(|query, _| vec![Act::Send(reply(query, 2, &[], &[]))]);
    for bad in [&silent, &failing] {
        in_time([bad, &good], is_right);
    }
    // The failure of one server says more than the silence of another.
    in_time(
        [&failing, &silent],
        |reply| matches!(reply, Err(LookupError::Server(at, ServerFault::Code(2))) if *at == failing.address),
    );
}

#[test]
fn an_unreachable_server_does_not_hide_the_fault_of_another() {
    let failing = Server::start(|query, _| vec![Act::Send(reply(query, 5, &[], &[]))]);
    // The system refuses to broadcast, except for sockets that have asked for it.
    let everybody = std::net::SocketAddr::from(([255; 4], 53));
    for servers in [[failing.address, everybody], [everybody, failing.address]] {
        let reply =
            records(config(&servers, PATIENCE), &[question("www.example", Kind::A)]).remove(0);
        assert_eq!(fault(reply), ServerFault::Code(5));
    }
    let alone = config(&[everybody], PATIENCE);
    let reply = records(alone, &[question("www.example", Kind::A)]).remove(0);
    assert!(matches!(reply, Err(LookupError::Network(_))), "{reply:?}");
}

#[test]
fn one_family_is_returned_if_the_server_is_silent_about_the_other() {
    let server = Server::start(|query, _| match asked(query).1 {
        A => vec![Act::Send(right_answer(query))],
        _ => vec![],
    });
    let (dns, mut instance) = start::<Inet>(config(&[server.address], PATIENCE));
    let asked = dns.addresses().ask_from_thread("www.example".into()).expect("there is room");
    while !asked.is_ready() {
        instance.turn(Some(PATIENCE)).expect("the loop is sound");
    }
    // The resolver, and the exchange for the other family, which nobody waits for.
    assert_eq!(instance.machines().len(), 2);
    let addresses = asked.wait().expect("it is ready").expect("the one family");
    assert_eq!(*addresses, [std::net::IpAddr::from([192, 0, 2, 1])]);
}

#[test]
fn a_server_failure_does_not_continue_the_search_list() {
    let server = Server::start(|query, _| match asked(query).0.as_str() {
        "www.a.example" => vec![Act::Send(reply(query, 2, &[], &[]))],
        _ => vec![Act::Send(right_answer(query))],
    });
    let mut conf = ResolvConf::parse("search a.example b.example");
    conf.attempts = 1;
    let config = ResolverConfig::new(conf).servers(vec![server.address]);
    assert!(matches!(host(config, "www"), Err(ResolveError::Failed(_))));
}

#[test]
fn a_loop_without_a_slot_for_a_query_is_an_error() {
    let config = config(&[([127, 0, 0, 1], 53).into()], PATIENCE);
    let limits = rotor_core::Config::new().machines_max(1);
    let mut creator = rotor_core::Loop::<Resolver<Inet, ()>>::new(&limits).expect("a loop");
    let made = creator.add_part(|resolver| resolver, |scope| Ok(Resolver::new(config, scope)));
    let dns = made.expect("it has the one slot");
    let ask = |name| dns.records().ask_from_thread(question(name, Kind::A)).expect("there is room");
    let asked = ["one.example", "other.example", "one.example"].map(ask);
    let host = dns.addresses().ask_from_thread("www.example".into()).expect("there is room");
    drop(dns);
    creator.instantiate(()).run().expect("it runs until the resolver ends");
    for reply in asked {
        let reply = reply.wait().expect("none goes unanswered");
        assert!(matches!(reply, Err(LookupError::NoSlot)), "{reply:?}");
    }
    let host = host.wait().expect("none goes unanswered");
    assert!(matches!(host, Err(ResolveError::NoRoom(_))), "{host:?}");
}
