//! The resolver on real sockets, against servers that do as they please.
#![expect(
    clippy::disallowed_methods,
    reason = "servers with plain blocking sockets, outside of any loop"
)]

#[path = "servers/scripted.rs"]
mod scripted;
#[path = "servers/wire.rs"]
mod wire;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use rotor_core::net::{DatagramSocket, Inet, IpNet, Net, TcpListener, TcpStream, UdpSocket};
use rotor_core::{BackendHandle, Config, Interest, Loop, LoopInstance, Scope, Source, Token};
use rotor_dns::{
    Data, Dns, Kind, LookupError, LookupResult, Question, ResolvConf, Resolver, ResolverConfig,
    ServerFault,
};
use rotor_stream::{HasResolver, ResolveError, ResolveResult};
use scripted::{Act, Server};
use wire::{
    A, AAAA, CNAME, SRV, TXT, address, alias, asked, authority, found, name, record, reply,
    truncated,
};

/// For servers that answer: far more than it takes. For those that do not, a test says less.
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

/// Runs a resolver until all that `ask` asked is answered.
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

/// What one question for the address of `www.example` comes to.
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

fn right(query: &[u8]) -> Vec<u8> {
    found(query, &[address("www.example", 1)])
}

#[test]
fn answers_that_do_not_match_are_ignored() {
    type Spoil = fn(Vec<u8>) -> Act;
    let other_id = |mut message: Vec<u8>| {
        message[1] ^= 1;
        Act::Send(message)
    };
    let other_name = |mut message: Vec<u8>| {
        message[13] ^= 0x07;
        Act::Send(message)
    };
    let no_response = |mut message: Vec<u8>| {
        message[2] &= 0x7f;
        Act::Send(message)
    };
    let two_questions = |mut message: Vec<u8>| {
        message[5] = 2;
        Act::Send(message)
    };
    // The question is 13 octets of name, then type and class, of which the second octet says A and
    // IN.
    let other_type = |mut message: Vec<u8>| {
        message[26] = AAAA as u8;
        Act::Send(message)
    };
    let other_class = |mut message: Vec<u8>| {
        message[28] = 3;
        Act::Send(message)
    };
    let spoilt: [(&str, Spoil); 8] = [
        ("another id", other_id),
        ("another name", other_name),
        ("another type", other_type),
        ("another class", other_class),
        ("no response", no_response),
        ("two questions", two_questions),
        ("another port", Act::SendFromElsewhere),
        ("nearly nothing", |message| Act::Send(message[..11].to_vec())),
    ];
    #[cfg(target_os = "linux")]
    let spoilt = [&spoilt[..], &[("another address", Act::SendFromNextAddress)]].concat();
    for (what, spoil) in spoilt {
        let server = Server::start(move |query, _| {
            let forged = found(query, &[address("www.example", 66)]);
            vec![spoil(forged), Act::Send(right(query))]
        });
        let reply = one(&server, PATIENCE);
        assert!(is_right(&reply), "{what}: {reply:?}");
        assert_eq!(server.tcp_queries.load(SeqCst), 0, "{what}");
    }
}

#[test]
fn a_flood_of_forgeries_leads_to_tcp() {
    let server = Server::start(|query, is_tcp| {
        if is_tcp {
            return vec![Act::Send(right(query))];
        }
        let forged = |id: u8| {
            let mut message = found(query, &[address("www.example", 66)]);
            message[0] ^= 1 + id;
            Act::Send(message)
        };
        (0..40).map(forged).collect()
    });
    assert!(is_right(&one(&server, PATIENCE)));
    assert_eq!(server.tcp_queries.load(SeqCst), 1);
}

#[test]
fn a_server_that_changes_the_case_is_asked_over_tcp() {
    let server = Server::start(|query, _| {
        let mut message = right(query);
        message[12..25].make_ascii_lowercase();
        vec![Act::Send(message)]
    });
    // Thirteen letters by chance all small: once in some thousand questions, UDP is enough.
    let replies: Vec<LookupResult> = (0..4).map(|_| one(&server, PATIENCE)).collect();
    assert!(replies.iter().all(is_right));
    assert!(server.tcp_queries.load(SeqCst) > 0);
}

/// Sockets for datagrams that cannot be tied to a peer: the trait's defaults.
struct Untied(UdpSocket);

impl Source for Untied {
    fn register(
        &mut self,
        backend: &dyn BackendHandle,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        self.0.register(backend, token, interest)
    }

    fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
        self.0.deregister(backend)
    }
}

impl DatagramSocket for Untied {
    type Address = SocketAddr;

    fn bind<C>(address: &SocketAddr, scope: &Scope<'_, C>) -> io::Result<Untied> {
        UdpSocket::bind(address, scope).map(Untied)
    }

    fn receive_from(&mut self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.receive_from(buffer)
    }

    fn send_to(&mut self, datagram: &[u8], target: &SocketAddr) -> io::Result<usize> {
        self.0.send_to(datagram, target)
    }

    fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_address()
    }
}

struct UntiedNet;

impl Net for UntiedNet {
    type Stream = TcpStream;
    type Listener = TcpListener;
    type Datagram = Untied;
}

#[test]
fn strangers_are_not_heard_where_the_system_does_not_see_to_it_either() {
    let server = Server::start(|query, _| {
        let mut forged = right(query);
        *forged.last_mut().expect("not empty") = 66;
        vec![Act::SendFromElsewhere(forged), Act::Send(right(query))]
    });
    let config = config(&[server.address], PATIENCE);
    let reply = run_on::<UntiedNet, _>(config, |dns| {
        dns.records().ask_from_thread(question("www.example", Kind::A)).expect("there is room")
    });
    let reply = reply.wait().expect("none goes unanswered");
    assert!(is_right(&reply), "{reply:?}");
}

#[test]
fn a_server_whose_port_is_closed_is_passed_over_at_once() {
    let closed = std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let server = Server::start(|query, _| vec![Act::Send(right(query))]);
    // A server that is taken for a silent one gets all the time that the lookup has.
    let servers = [closed.expect("a port was free"), server.address];
    let reply = records(config(&servers, PATIENCE), &[question("www.example", Kind::A)]).remove(0);
    assert!(is_right(&reply), "{reply:?}");
}

#[test]
fn ids_ports_and_cases_differ_from_query_to_query() {
    let server = Server::start(|query, _| vec![Act::Send(right(query))]);
    for _ in 0..8 {
        assert!(is_right(&one(&server, PATIENCE)));
    }
    let queries = server.queries.lock().expect("no panic").clone();
    let distinct = |part: std::ops::Range<usize>| {
        let mut parts: Vec<&[u8]> = queries.iter().map(|query| &query[part.clone()]).collect();
        parts.sort();
        parts.dedup();
        parts.len()
    };
    assert!(distinct(0..2) >= 6 && distinct(12..25) >= 4, "{queries:?}");
}

#[test]
fn cases_stay_as_they_are_where_that_is_wanted() {
    let server = Server::start(|query, _| vec![Act::Send(right(query))]);
    let config = config(&[server.address], PATIENCE).mixed_case(false);
    for number in 0..4 {
        let name = format!("letters{number}.example");
        assert!(
            records(config.clone(), &[question(&name, Kind::A)])[0].is_err(),
            "it has another name's"
        );
    }
    let queries = server.queries.lock().expect("no panic");
    assert!(
        queries.iter().all(|query| !query[12..].iter().any(u8::is_ascii_uppercase)),
        "{queries:?}"
    );
}

#[test]
fn truncation_leads_to_tcp_however_the_answer_is_cut() {
    for is_dribbled in [false, true] {
        let server = Server::start(move |query, is_tcp| {
            if !is_tcp {
                return vec![Act::Send(truncated(query))];
            }
            let message = right(query);
            let framed = [&(message.len() as u16).to_be_bytes()[..], &message].concat();
            vec![if is_dribbled { Act::Dribble(framed) } else { Act::Send(message) }]
        });
        assert!(is_right(&one(&server, PATIENCE)));
        assert_eq!((server.udp_queries.load(SeqCst), server.tcp_queries.load(SeqCst)), (1, 1));
    }
}

#[test]
fn what_a_server_does_wrong_is_its_fault() {
    type Wrong = fn(&[u8]) -> Vec<Act>;
    let over_tcp: [(Wrong, ServerFault); 4] = [
        (|query| vec![Act::Send(truncated(query))], ServerFault::Truncated),
        (|_| vec![], ServerFault::Closed),
        (|query| vec![Act::Dribble(right(query)[..7].to_vec())], ServerFault::Closed),
        (
            |query| {
                let mut message = right(query);
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
    let by_datagram: [(Wrong, ServerFault); 8] = [
        (|query| vec![Act::Send(reply(query, 2, &[], &[]))], ServerFault::Code(2)),
        (|query| vec![Act::Send(reply(query, 5, &[], &[]))], ServerFault::Code(5)),
        // A record is announced, and none or half of one is there.
        (
            |query| vec![Act::Send(right(query)[..wire::question_end(query)].to_vec())],
            ServerFault::Malformed,
        ),
        (
            |query| {
                let message = right(query);
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

/// A record whose owner points at its own place, or so many bytes behind it.
fn looping(query: &[u8], behind: usize) -> Vec<u8> {
    let at = wire::question_end(query) + behind;
    let pointer = [0xc0 | (at >> 8) as u8, at as u8];
    found(query, &[record(&pointer, A, 1, &[1, 2, 3, 4])])
}

fn link(number: u8) -> String {
    if number == 0 { "www.example".into() } else { format!("n{number}.example") }
}

#[test]
fn a_server_that_is_silent_or_never_ends_costs_its_time_and_no_more() {
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

#[test]
fn the_next_server_is_asked_when_one_is_of_no_use() {
    let good = Server::start(|query, _| vec![Act::Send(right(query))]);
    let silent = Server::start(|_, _| vec![]);
    let failing = Server::start(|query, _| vec![Act::Send(reply(query, 2, &[], &[]))]);
    for bad in [&silent, &failing] {
        let servers = [bad.address, good.address];
        let replies = records(config(&servers, SHORT), &[question("www.example", Kind::A)]);
        assert!(is_right(&replies[0]), "{replies:?}");
        assert_eq!(bad.udp_queries.load(SeqCst), 1);
    }
    // That a server fails says more than that another one is silent.
    let servers = [failing.address, silent.address];
    let replies = records(config(&servers, SHORT), &[question("www.example", Kind::A)]);
    assert!(
        matches!(replies[0], Err(LookupError::Server(at, ServerFault::Code(2))) if at == failing.address)
    );
}

#[test]
fn equal_questions_are_asked_once() {
    let server = Server::start(|query, _| vec![Act::Send(right(query))]);
    let questions = vec![question("WWW.example.", Kind::A); 100];
    let replies = records(config(&[server.address], PATIENCE), &questions);
    assert!(replies.len() == 100 && replies.iter().all(is_right));
    assert_eq!(server.udp_queries.load(SeqCst), 1);
    // So are those for addresses, by whichever way they are asked for.
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
fn a_chain_that_breaks_off_is_followed_by_asking_on() {
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
    // And one that never ends is cut off.
    let endless = Server::start(|query, _| {
        let name = asked(query).0;
        vec![Act::Send(found(query, &[alias(&name, &format!("{name}x"))]))]
    });
    assert_eq!(fault(one(&endless, PATIENCE)), ServerFault::ChainTooLong);
    assert_eq!(endless.udp_queries.load(SeqCst), 9);
}

#[test]
fn records_of_every_kind_come_whole() {
    let server = Server::start(|query, _| {
        let (host, kind) = asked(query);
        let data = match kind {
            SRV => [&[0, 10, 0, 20, 0x1f, 0x90][..], &name("Sip.Example")].concat(),
            TXT => b"\x03one\x00\x02\xff\x00".to_vec(),
            AAAA => [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1].to_vec(),
            CNAME => name("Other.Example"),
            _ => return vec![],
        };
        // What is asked for stands behind an alias, unless that is what is asked for.
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
    ];
    let replies = records(config(&[server.address], PATIENCE), &questions);
    let data: Vec<_> =
        replies.into_iter().map(|reply| reply.expect("there are").data.clone()).collect();
    let target = "sip.example".parse().expect("a name");
    assert_eq!(data[0], [Data::Srv { priority: 10, weight: 20, port: 8080, target }]);
    assert_eq!(data[1], [Data::Txt(vec![b"one"[..].into(), b""[..].into(), b"\xff\0"[..].into()])]);
    assert_eq!(data[2], [Data::Aaaa("2001:db8::1".parse().expect("an address"))]);
    assert_eq!(data[3], [Data::Cname("other.example".parse().expect("a name"))]);
}

#[test]
fn both_families_and_the_search_list_are_asked() {
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
fn one_family_does_not_wait_for_a_server_that_is_silent_about_the_other() {
    let server = Server::start(|query, _| match asked(query).1 {
        A => vec![Act::Send(right(query))],
        _ => vec![],
    });
    let (dns, mut instance) = start::<Inet>(config(&[server.address], PATIENCE));
    let asked = dns.addresses().ask_from_thread("www.example".into()).expect("there is room");
    while !asked.is_ready() {
        instance.turn(Some(PATIENCE)).expect("the loop is sound");
    }
    // The resolver, and the exchange that nobody waits for.
    assert_eq!(instance.machines().len(), 2);
    let addresses = asked.wait().expect("it is ready").expect("the one family");
    assert_eq!(*addresses, [std::net::IpAddr::from([192, 0, 2, 1])]);
}

#[test]
fn a_server_that_fails_does_not_send_us_to_another_host() {
    let server = Server::start(|query, _| match asked(query).0.as_str() {
        "www.a.example" => vec![Act::Send(reply(query, 2, &[], &[]))],
        _ => vec![Act::Send(right(query))],
    });
    let mut conf = ResolvConf::parse("search a.example b.example");
    conf.attempts = 1;
    let config = ResolverConfig::new(conf).servers(vec![server.address]);
    assert!(matches!(host(config, "www"), Err(ResolveError::Failed(_))));
}

#[test]
fn without_a_server_there_is_an_error_and_local_names_still_have_addresses() {
    let none = || config(&[], PATIENCE);
    let replies = records(none(), &[question("www.example", Kind::A)]);
    assert!(matches!(replies[0], Err(LookupError::NoServer)));
    assert_eq!(host(none(), "db.localhost").expect("this machine").len(), 2);
    assert_eq!(host(none(), "2001:db8::1").expect("an address").len(), 1);
    assert!(matches!(host(none(), "no.such.host.Invalid"), Err(ResolveError::NotFound(_))));
    let hosts = rotor_dns::Hosts::parse("192.0.2.9 printer");
    assert_eq!(host(none().hosts(hosts), "Printer").expect("in the file").len(), 1);
}
