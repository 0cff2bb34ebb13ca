//! The resolver on real sockets, against servers that behave arbitrarily.
#![expect(
    clippy::disallowed_methods,
    reason = "servers with plain blocking sockets, outside of any loop"
)]

#[path = "../../../tests/loops/on_mio.rs"]
mod loops;
#[path = "../servers/machine.rs"]
mod machine;
#[path = "../servers/scripted.rs"]
mod scripted;
#[path = "../servers/wire.rs"]
mod wire;

mod every_loop;
mod failing;
mod forging;

use std::net::SocketAddr;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use rotor_core::net::{Inet, IpNet};
use rotor_core::{Config, Loop, LoopInstance};
use rotor_dns::{
    Data, Dns, Kind, LookupError, LookupResult, Name, Question, ResolvConf, Resolver,
    ResolverConfig, ServerFault,
};
use rotor_stream::{ResolveError, ResolveResult};
use scripted::{Act, Server};
use wire::{
    A, AAAA, CNAME, MX, PTR, SRV, TXT, address, alias, asked, authority, found, name, record, reply,
};

/// For servers that answer: far more than they need. Tests with silent servers use a shorter time.
const PATIENCE: Duration = Duration::from_secs(30);

const SHORT: Duration = Duration::from_millis(100);

fn config(servers: &[SocketAddr], timeout: Duration) -> ResolverConfig {
    let mut conf = ResolvConf::default();
    (conf.timeout, conf.attempts) = (timeout, 1);
    ResolverConfig::new(conf).servers(servers.to_vec()).lookup_timeout(PATIENCE)
}

fn start<N: IpNet>(config: ResolverConfig) -> (Dns, LoopInstance<Resolver<N, ()>>) {
    let mut creator = Loop::<Resolver<N, ()>>::new(&Config::new()).expect("a loop");
    let mut dns = None;
    let added = creator.add_machine_with(|scope| {
        let (handle, response) = Resolver::new(config, scope);
        dns = Some(handle);
        response
    });
    added.expect("a slot is free");
    (dns.expect("made above"), creator.instantiate(()))
}

/// Runs a resolver until everything that `ask` has asked is answered.
fn run<T>(config: ResolverConfig, ask: impl FnOnce(&Dns) -> T) -> T {
    run_on::<Inet, T>(config, ask)
}

fn run_on<N: IpNet, T>(config: ResolverConfig, ask: impl FnOnce(&Dns) -> T) -> T {
    let (dns, mut instance) = start::<N>(config);
    let asked = ask(&dns);
    drop(dns);
    instance.run().expect("it runs until the resolver ends");
    asked
}

fn question(text: &str, kind: Kind) -> Question {
    Question { name: text.parse().expect("a name"), kind }
}

fn records(config: ResolverConfig, questions: &[Question]) -> Vec<LookupResult> {
    let ask =
        |q: &Question, dns: &Dns| dns.records().ask_from_thread(q.clone()).expect("there is room");
    let asked = run(config, |dns| questions.iter().map(|q| ask(q, dns)).collect::<Vec<_>>());
    asked.into_iter().map(|reply| reply.wait().expect("none goes unanswered")).collect()
}

fn host(config: ResolverConfig, text: &str) -> ResolveResult {
    let asked =
        run(config, |dns| dns.addresses().ask_from_thread(text.into()).expect("there is room"));
    asked.wait().expect("none goes unanswered")
}

/// The reply to one question for the address of `www.example`.
fn one(server: &Server, timeout: Duration) -> LookupResult {
    records(config(&[server.address], timeout), &[question("www.example", Kind::A)]).remove(0)
}

fn is_right(reply: &LookupResult) -> bool {
    reply.as_ref().is_ok_and(|answer| answer.data == [Data::A([192, 0, 2, 1].into())])
}

fn fault(reply: LookupResult) -> ServerFault {
    match reply {
        Err(LookupError::Server(_, fault)) => fault,
        other => panic!("{other:?}"),
    }
}

fn right_answer(query: &[u8]) -> Vec<u8> {
    found(query, &[address("www.example", 1)])
}

#[test]
fn a_server_at_an_unspecified_address_is_on_this_machine() {
    let server = Server::start(|query, _| vec![Act::Send(right_answer(query))]);
    let nowhere = SocketAddr::from(([0, 0, 0, 0], server.address.port()));
    let replies = records(config(&[nowhere], SHORT), &[question("www.example", Kind::A)]);
    assert!(is_right(&replies[0]), "{:?}", replies[0]);
}

#[test]
fn equal_questions_are_asked_once() {
    let server = Server::start(|query, _| vec![Act::Send(right_answer(query))]);
    let questions = vec![question("WWW.example.", Kind::A); 100];
    let replies = records(config(&[server.address], PATIENCE), &questions);
    assert!(replies.len() == 100 && replies.iter().all(is_right));
    assert_eq!(server.udp_queries.load(SeqCst), 1);
    // Questions for addresses share a query too, whichever way they are asked.
    let server = Server::start(|query, _| {
        let records = if asked(query).1 == A { vec![address("www.example", 1)] } else { vec![] };
        vec![Act::Send(reply(query, 0, &records, &[authority(60)]))]
    });
    let (hosts, reply) = run(config(&[server.address], PATIENCE), |dns| {
        let host = || dns.addresses().ask_from_thread("www.example".into()).expect("there is room");
        let hosts: Vec<_> = (0..100).map(|_| host()).collect();
        (
            hosts,
            dns.records().ask_from_thread(question("www.example", Kind::A)).expect("there is room"),
        )
    });
    for host in hosts {
        assert!(
            host.wait().expect("none goes unanswered").is_ok_and(|addresses| addresses.len() == 1)
        );
    }
    assert!(is_right(&reply.wait().expect("none goes unanswered")));
    assert_eq!(server.udp_queries.load(SeqCst), 2);
}

#[test]
fn an_incomplete_alias_chain_is_followed_with_more_queries() {
    let server = Server::start(|query, _| {
        let message = match asked(query).0.as_str() {
            "www.example" => {
                found(query, &[alias("www.example", "a.example"), address("other.example", 66)])
            }
            "a.example" => found(query, &[alias("a.example", "b.example")]),
            _ => found(query, &[address("b.example", 1)]),
        };
        vec![Act::Send(message)]
    });
    let reply = one(&server, PATIENCE);
    assert!(is_right(&reply), "{reply:?}");
    assert_eq!(reply.expect("right").name.as_str(), "b.example");
    // An endless chain is cut off.
    let endless = Server::start(|query, _| {
        let name = asked(query).0;
        vec![Act::Send(found(query, &[alias(&name, &format!("{name}x"))]))]
    });
    assert_eq!(fault(one(&endless, PATIENCE)), ServerFault::ChainTooLong);
    assert_eq!(endless.udp_queries.load(SeqCst), 9);
}

#[test]
fn records_of_every_kind_are_decoded_completely() {
    let server = Server::start(|query, _| {
        let (host, kind) = asked(query);
        let data = match kind {
            SRV => [&[0, 10, 0, 20, 0x1f, 0x90][..], &name("Sip.Example")].concat(),
            TXT => b"\x03one\x00\x02\xff\x00".to_vec(),
            AAAA => [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1].to_vec(),
            CNAME | PTR => name("Other.Example"),
            MX => [&[0, 10][..], &name("Mail.Example")].concat(),
            _ => return vec![],
        };
        // The requested record is behind an alias, unless the alias itself is requested.
        let records = match kind {
            CNAME => vec![record(&name(&host), kind, 9, &data)],
            _ => vec![alias(&host, "end.example"), record(&name("END.example"), kind, 9, &data)],
        };
        vec![Act::Send(found(query, &records))]
    });
    let questions = [
        question("_sip._udp.example", Kind::Srv),
        question("example", Kind::Txt),
        question("example", Kind::Aaaa),
        question("example", Kind::Cname),
        question("example", Kind::Mx),
        Question { name: Name::reverse([192, 0, 2, 1].into()), kind: Kind::Ptr },
    ];
    let replies = records(config(&[server.address], PATIENCE), &questions);
    let data: Vec<_> =
        replies.into_iter().map(|reply| reply.expect("there are").data.clone()).collect();
    let target = "sip.example".parse().expect("a name");
    assert_eq!(data[0], [Data::Srv { priority: 10, weight: 20, port: 8080, target }]);
    assert_eq!(data[1], [Data::Txt(vec![b"one"[..].into(), b""[..].into(), b"\xff\0"[..].into()])]);
    assert_eq!(data[2], [Data::Aaaa("2001:db8::1".parse().expect("an address"))]);
    let other: Name = "other.example".parse().expect("a name");
    assert_eq!(data[3], [Data::Cname(other.clone())]);
    let exchange = "mail.example".parse().expect("a name");
    assert_eq!(data[4], [Data::Mx { preference: 10, exchange }]);
    assert_eq!(data[5], [Data::Ptr(other)]);
}

#[test]
fn both_address_families_and_the_search_list_are_queried() {
    let server = Server::start(|query, _| {
        let message = match asked(query) {
            (host, AAAA) if host == "www.b.example" => found(
                query,
                &[record(
                    &name(&host),
                    AAAA,
                    9,
                    &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
                )],
            ),
            (host, A) if host == "www.b.example" => found(query, &[address(&host, 1)]),
            _ => reply(query, 3, &[], &[authority(60)]),
        };
        vec![Act::Send(message)]
    });
    let mut conf = ResolvConf::parse("search a.example b.example");
    conf.timeout = PATIENCE;
    let config = ResolverConfig::new(conf).servers(vec![server.address]);
    let addresses = host(config.clone(), "www").expect("it is in the second domain");
    assert_eq!(
        addresses.iter().map(|a| a.to_string()).collect::<Vec<_>>(),
        ["2001:db8::1", "192.0.2.1"]
    );
    assert_eq!(server.udp_queries.load(SeqCst), 4);
    assert!(matches!(host(config.clone(), "no.such.host"), Err(ResolveError::NotFound(_))));
    assert!(matches!(host(config, "not a name"), Err(ResolveError::Name(_))));
}

#[test]
fn only_local_names_resolve_without_a_server() {
    let none = || config(&[], PATIENCE);
    let replies = records(none(), &[question("www.example", Kind::A)]);
    assert!(matches!(replies[0], Err(LookupError::NoServer)));
    assert_eq!(host(none(), "db.localhost").expect("this machine").len(), 2);
    assert_eq!(host(none(), "2001:db8::1").expect("an address").len(), 1);
    assert!(matches!(host(none(), "no.such.host.Invalid"), Err(ResolveError::NotFound(_))));
    let hosts = rotor_dns::Hosts::parse("192.0.2.9 printer");
    assert_eq!(host(none().hosts(hosts), "Printer").expect("in the file").len(), 1);
}
