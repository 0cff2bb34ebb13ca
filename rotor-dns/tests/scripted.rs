//! The resolver on a network that does as it is told, in virtual time: what is asked of whom, when,
//! and when not.

#[path = "servers/machine.rs"]
mod machine;
#[expect(dead_code, reason = "another test needs the rest")]
#[path = "servers/wire.rs"]
mod wire;

use std::net::SocketAddr;
use std::time::Duration;

use machine::{NameServer, Served};
use rotor_core::{BlockingReply, Loop, SendError};
use rotor_dns::{
    Data, Dns, Hosts, Kind, LookupError, LookupResult, Question, ResolvConf, Resolver,
    ResolverConfig, ServerFault,
};
use rotor_sim::net::SimNet;
use rotor_sim::{Fault, Faults, Host, Network, Sim};
use rotor_stream::{HasResolver, HostName, ResolveError, ResolveResult};
use wire::{SOA, address, alias, asked, found, name, record, reply, truncated};

const SECOND: Duration = Duration::from_secs(1);

/// Servers, and a resolver that asks them in their order.
struct Stage {
    sim: Sim,
    servers: Vec<Served>,
    _hosts: Vec<Host<NameServer>>,
    resolver: Host<Resolver<SimNet, Dns>>,
    dns: Dns,
}

impl Stage {
    fn new(
        servers: Vec<Served>,
        conf: ResolvConf,
        set: fn(ResolverConfig) -> ResolverConfig,
    ) -> Stage {
        Stage::with_seeds(1, 1, servers, conf, set)
    }

    /// With the seed of the simulation, and that of the resolver's fast random numbers.
    fn with_seeds(
        seed: u64,
        fast: u64,
        servers: Vec<Served>,
        conf: ResolvConf,
        set: fn(ResolverConfig) -> ResolverConfig,
    ) -> Stage {
        let mut sim = Sim::new(seed);
        let name = |number: usize| format!("server {number}");
        let started = servers
            .iter()
            .enumerate()
            .map(|(n, served)| machine::serving(&mut sim, &name(n), served));
        let hosts: Vec<_> = started.collect::<Result<_, _>>().expect("the servers start");
        let addresses: Vec<_> =
            hosts.iter().map(|host| SocketAddr::new(sim.address(*host), 53)).collect();
        let config = set(ResolverConfig::new(conf).servers(addresses));
        let resolver = sim.host("resolver", move |boot| {
            let loop_config = boot.config().seed(fast);
            let mut creator =
                Loop::<Resolver<SimNet, Dns>, _>::with_backend(boot.backend(), &loop_config)?;
            let mut dns = None;
            creator.add_machine_with(|scope| {
                let (handle, response) = Resolver::new(config.clone(), scope);
                dns = Some(handle);
                response
            })?;
            Ok(creator.instantiate(dns.expect("made above")))
        });
        let resolver = resolver.expect("the resolver starts");
        let dns = sim.with(resolver, |instance| instance.context().clone()).expect("it is up");
        Stage { sim, servers, _hosts: hosts, resolver, dns }
    }

    /// With one server, and the defaults.
    fn of(script: impl Fn(&[u8]) -> Vec<u8> + 'static) -> Stage {
        Stage::new(vec![serve(script)], ResolvConf::default(), |config| config)
    }

    fn pass(&mut self, time: Duration) {
        self.sim.run_for(time).expect("nothing goes wrong by itself");
    }

    fn begin(&self, text: &str) -> BlockingReply<LookupResult> {
        self.dns.records().ask_from_thread(question(text)).expect("there is room")
    }

    /// A lookup that ends within a second, in which nothing else happens.
    fn look_up(&mut self, text: &str) -> LookupResult {
        let reply = self.begin(text);
        self.pass(SECOND);
        outcome(reply)
    }

    fn host(&mut self, text: &str) -> ResolveResult {
        let reply =
            self.dns.addresses().ask_from_thread(HostName::from(text)).expect("there is room");
        self.pass(SECOND);
        outcome(reply)
    }

    /// The names that a server was asked for since the last time, in their order.
    fn seen(&self, server: usize) -> Vec<String> {
        self.servers[server].queries.take().iter().map(|query| asked(query).0).collect()
    }
}

fn question(text: &str) -> Question {
    Question { name: text.parse().expect("a name"), kind: Kind::A }
}

fn outcome<T>(reply: BlockingReply<T>) -> T {
    assert!(reply.is_ready(), "it is still open");
    reply.wait().expect("none goes unanswered")
}

fn serve(script: impl Fn(&[u8]) -> Vec<u8> + 'static) -> Served {
    Served::new(move |query, _, _| vec![script(query)])
}

fn silent() -> Served {
    Served::new(|_, _, _| Vec::new())
}

/// Answers with an address that is good for a minute.
fn right(query: &[u8]) -> Vec<u8> {
    found(query, &[address(&asked(query).0, 1)])
}

fn lasting(query: &[u8], ttl: u32) -> Vec<u8> {
    found(query, &[record(&name(&asked(query).0), wire::A, ttl, &[192, 0, 2, 1])])
}

/// "There is none", good for the less of two times.
fn none(query: &[u8], code: u8, ttl: u32, minimum: u32) -> Vec<u8> {
    let mut data = [name("ns.example"), name("admin.example")].concat();
    [1, 3600, 600, 86_400, minimum]
        .iter()
        .for_each(|number: &u32| data.extend(number.to_be_bytes()));
    reply(query, code, &[], &[record(&name("example"), SOA, ttl, &data)])
}

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
fn a_lookup_that_is_given_up_harms_no_other() {
    let mut stage = Stage::of(right);
    let (first, second, third) =
        (stage.begin("www.example"), stage.begin("www.example"), stage.begin("www.example"));
    drop(first);
    stage.pass(Duration::from_micros(50)); // on its way
    drop(third);
    stage.pass(SECOND);
    assert!(outcome(second).is_ok());
    assert_eq!(stage.seen(0).len(), 1);
}

#[test]
fn a_question_that_is_under_way_serves_who_comes_after_its_asker_has_gone() {
    let mut stage = Stage::of(right);
    stage.sim.set_network(Network::new().latency(SECOND / 10..SECOND / 5));
    let given_up = stage.begin("www.example");
    stage.pass(Duration::from_millis(10));
    drop(given_up);
    stage.pass(Duration::from_millis(10));
    assert!(stage.look_up("www.example").is_ok());
    assert_eq!(stage.seen(0).len(), 1);
}

#[test]
fn what_nobody_waits_for_is_not_asked_or_not_in_vain() {
    let server =
        Served::new(
            |query, _, _| {
                if asked(query).0 == "none.example" { vec![] } else { vec![right(query)] }
            },
        );
    let mut stage = Stage::new(vec![server], ResolvConf::default(), |config| config.queries_max(1));
    let (holds, waits) = (stage.begin("none.example"), stage.begin("waits.example"));
    stage.pass(SECOND);
    drop(waits);
    stage.pass(30 * SECOND);
    assert!(matches!(outcome(holds), Err(LookupError::Timeout)));
    assert!(stage.seen(0).iter().all(|name| name == "none.example"));
    // One that is asked already is remembered.
    let given_up = stage.begin("www.example");
    stage.pass(Duration::from_micros(50));
    drop(given_up);
    stage.pass(SECOND);
    assert!(stage.look_up("www.example").is_ok());
    assert_eq!(stage.seen(0), ["www.example"]);
}

#[test]
fn servers_are_asked_in_turn_as_often_as_was_said() {
    let mut conf = ResolvConf::default();
    (conf.timeout, conf.attempts) = (2 * SECOND, 3);
    let mut stage = Stage::new(vec![silent(), silent()], conf, |config| config);
    let reply = stage.begin("www.example");
    for (first, second) in [(1, 0), (0, 1), (1, 0), (0, 1), (1, 0), (0, 1)] {
        assert!(!reply.is_ready());
        stage.pass(SECOND);
        assert_eq!((stage.seen(0).len(), stage.seen(1).len()), (first, second));
        stage.pass(SECOND + Duration::from_millis(1));
    }
    stage.pass(Duration::from_millis(20));
    assert!(matches!(outcome(reply), Err(LookupError::Timeout)));
    stage.pass(60 * SECOND);
    assert_eq!((stage.seen(0).len(), stage.seen(1).len()), (0, 0));
}

#[test]
fn a_lookup_ends_in_its_time_however_many_servers_are_silent() {
    let mut stage = Stage::new(vec![silent(), silent()], ResolvConf::default(), |config| {
        config.lookup_timeout(7 * SECOND)
    });
    let reply = stage.begin("www.example");
    stage.pass(7 * SECOND - Duration::from_millis(1));
    assert!(!reply.is_ready());
    stage.pass(Duration::from_millis(10));
    assert!(matches!(outcome(reply), Err(LookupError::Timeout)));
}

#[test]
fn rotation_begins_each_lookup_with_the_next_server() {
    for (rotate, expected) in [(true, [2, 2, 2]), (false, [6, 0, 0])] {
        let mut conf = ResolvConf::default();
        conf.rotate = rotate;
        let mut stage =
            Stage::new(vec![serve(right), serve(right), serve(right)], conf, |config| config);
        for number in 0..6 {
            assert!(stage.look_up(&format!("h{number}.example")).is_ok());
        }
        assert_eq!([0, 1, 2].map(|server| stage.seen(server).len()), expected);
    }
}

#[test]
fn beyond_the_bound_a_question_is_handed_back() {
    let mut stage =
        Stage::new(vec![silent()], ResolvConf::default(), |config| config.lookups_max(2));
    let mut replies: Vec<_> =
        (0..2).map(|number| stage.begin(&format!("h{number}.example"))).collect();
    stage.pass(SECOND);
    replies.extend((2..4).map(|number| stage.begin(&format!("h{number}.example"))));
    stage.pass(SECOND);
    let refused = stage.dns.records().ask_from_thread(question("h4.example"));
    assert!(
        matches!(refused, Err(SendError::Full(question)) if question.name.as_str() == "h4.example")
    );
    // Those that waited have their turn, and their time.
    stage.pass(60 * SECOND);
    assert_eq!(stage.seen(0).len(), 8);
    for reply in replies {
        assert!(matches!(outcome(reply), Err(LookupError::Timeout)));
    }
}

#[test]
fn who_waits_for_room_has_it_as_soon_as_those_before_are_out_of_time() {
    let conf = ResolvConf::parse("options timeout:30 attempts:1");
    let mut stage =
        Stage::new(vec![silent()], conf, |config| config.lookups_max(1).lookup_timeout(2 * SECOND));
    let first = stage.begin("h0.example");
    stage.pass(SECOND / 10);
    let second = stage.begin("h1.example");
    stage.pass(SECOND);
    assert_eq!(stage.seen(0), ["h0.example"]);
    stage.pass(SECOND);
    assert!(matches!(outcome(first), Err(LookupError::Timeout)));
    assert_eq!(stage.seen(0), ["h1.example"]);
    stage.pass(2 * SECOND);
    assert!(matches!(outcome(second), Err(LookupError::Timeout)));
}

#[test]
fn a_loop_that_drains_answers_those_who_wait() {
    let server =
        Served::new(
            |query, _, _| {
                if asked(query).0 == "none.example" { vec![] } else { vec![right(query)] }
            },
        );
    let mut stage = Stage::new(vec![server], ResolvConf::default(), |config| config);
    let (found, waits) = (stage.begin("www.example"), stage.begin("none.example"));
    stage.pass(Duration::from_micros(50));
    stage.sim.drain(stage.resolver, 60 * SECOND).expect("nothing is left");
    assert!(outcome(found).is_ok());
    assert!(matches!(outcome(waits), Err(LookupError::Timeout)));
}

#[test]
fn names_are_tried_as_the_dots_and_the_list_say() {
    let mut conf = ResolvConf::parse("search a.example b.example\noptions ndots:2");
    conf.attempts = 1;
    let stage =
        || Stage::new(vec![serve(|query| none(query, 3, 60, 60))], conf.clone(), |config| config);
    for (text, expected) in [
        ("www", ["www.a.example", "www.b.example", "www"]),
        ("www.x", ["www.x.a.example", "www.x.b.example", "www.x"]),
        ("www.x.y", ["www.x.y", "www.x.y.a.example", "www.x.y.b.example"]),
    ] {
        let mut stage = stage();
        assert!(matches!(stage.host(text), Err(ResolveError::NotFound(_))));
        let mut seen = stage.seen(0);
        seen.dedup(); // for both families
        assert_eq!(seen, expected, "{text}");
    }
    let mut stage = stage();
    assert!(stage.host("www.").is_err());
    assert_eq!(stage.seen(0), ["www", "www"], "a name with a dot at its end is complete");
}

#[test]
fn the_hosts_file_comes_first_and_asks_nobody() {
    let conf = ResolvConf::parse("search a.example");
    let mut stage = Stage::new(vec![serve(right)], conf, |config| {
        config.hosts(Hosts::parse("192.0.2.9 printer.a.example printer\n2001:db8::9 printer"))
    });
    let addresses = stage.host("Printer").expect("it is in the file");
    assert_eq!(
        addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["192.0.2.9", "2001:db8::9"]
    );
    assert!(stage.seen(0).is_empty());
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

#[test]
fn a_server_that_is_not_there_costs_no_time() {
    // The first host, and a port of it where nobody takes questions.
    fn server(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }
    let second = |config: ResolverConfig| config.servers(vec![server(54), server(53)]);
    let mut stage = Stage::new(vec![serve(right)], ResolvConf::default(), second);
    // In a second, far less than the 5 that a silent server gets.
    assert!(stage.look_up("www.example").is_ok());
    let alone = |config: ResolverConfig| config.servers(vec![server(54)]);
    let mut stage = Stage::new(vec![silent()], ResolvConf::default(), alone);
    let reply = stage.look_up("www.example");
    assert!(matches!(reply, Err(LookupError::Server(_, ServerFault::PortClosed))), "{reply:?}");
}

#[test]
fn ids_ports_and_cases_come_from_the_secure_source_and_no_other() {
    let marks = |seed, fast| {
        let mut stage =
            Stage::with_seeds(seed, fast, vec![serve(right)], ResolvConf::default(), |c| c);
        for text in ["a.long.name.example", "another.long.name.example"] {
            assert!(stage.look_up(text).is_ok());
        }
        let server = &stage.servers[0];
        // The id and the name are all of a question that is not the same each time.
        (server.queries.take(), server.ports.take())
    };
    let (queries, ports) = marks(1, 1);
    assert_eq!(marks(1, 2), (queries.clone(), ports.clone()), "the fast numbers have no say");
    let (other_queries, other_ports) = marks(2, 1);
    for (query, other) in queries.iter().zip(&other_queries) {
        assert_ne!(query[..2], other[..2], "the id");
        assert!(
            query[12..] != other[12..] && query[12..].eq_ignore_ascii_case(&other[12..]),
            "the case"
        );
    }
    assert!(ports.iter().zip(&other_ports).all(|(port, other)| port != other));
}

#[test]
fn ids_ports_and_cases_are_spread_over_all_there_are() {
    let mut stage = Stage::of(right);
    for number in 100..300 {
        assert!(stage.look_up(&format!("h{number}.example")).is_ok());
    }
    let queries = stage.servers[0].queries.take();
    let ids: Vec<u16> =
        queries.iter().map(|query| u16::from_be_bytes([query[0], query[1]])).collect();
    let ports = stage.servers[0].ports.take();
    for (what, first, numbers) in [("ids", 0, &ids), ("ports", 1024, &ports)] {
        assert_eq!(numbers.len(), 200, "{what}");
        assert!(numbers.iter().all(|number| *number >= first), "{what}: {numbers:?}");
        let mut steps: Vec<u16> =
            numbers.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
        steps.sort();
        steps.dedup();
        assert!(steps.len() >= 190, "{what} in steps: {numbers:?}");
        // Each eighth of the range has its share; 25 would be the mean.
        let eighth = |number: u16| usize::from(number - first) * 8 / (65_536 - usize::from(first));
        let count = |part| numbers.iter().filter(|number| eighth(**number) == part).count();
        assert!((0..8).all(|part| count(part) >= 8), "{what}: {numbers:?}");
    }
    // Behind the length of its label: h, then the letters of the domain.
    for at in [13].into_iter().chain(18..25) {
        let capitals = queries.iter().filter(|query| query[at].is_ascii_uppercase()).count();
        assert!((60..=140).contains(&capitals), "{capitals} of 200 at {at}");
    }
}

#[test]
fn each_try_has_an_id_a_port_and_a_case_of_its_own() {
    let mut stage =
        Stage::new(vec![silent()], ResolvConf::parse("options attempts:5"), |config| config);
    let reply = stage.begin("eighteen-letters-long.example");
    stage.pass(30 * SECOND);
    assert!(outcome(reply).is_err());
    let queries = stage.servers[0].queries.take();
    let distinct = |mut of: Vec<Vec<u8>>| {
        of.sort();
        of.dedup();
        of.len()
    };
    assert_eq!(queries.len(), 5);
    assert_eq!(distinct(queries.iter().map(|query| query[..2].to_vec()).collect()), 5);
    assert_eq!(distinct(queries.iter().map(|query| query[12..].to_vec()).collect()), 5);
    let ports = stage.servers[0].ports.take();
    assert_eq!(distinct(ports.iter().map(|port| port.to_be_bytes().to_vec()).collect()), 5);
}

#[test]
fn room_for_long_answers_is_said_when_that_is_wanted() {
    for (options, expected) in [("", None), ("options edns0", Some([0, 0, 41, 0x04, 0xd0]))] {
        let mut stage = Stage::new(vec![serve(right)], ResolvConf::parse(options), |config| config);
        assert!(stage.look_up("www.example").is_ok());
        let query = stage.servers[0].queries.take().remove(0);
        // The root's name, OPT, 1,232 octets (RFC 6891 §6.1.2).
        let additional = query.get(wire::question_end(&query)..).and_then(<[u8]>::first_chunk::<5>);
        assert_eq!((additional.copied(), query[11]), (expected, u8::from(expected.is_some())));
    }
}

#[test]
fn an_edge_that_nothing_caused_does_not_end_an_attempt_over_tcp() {
    for seed in 0..20 {
        // The datagram's socket was registered with the same token as the one over TCP.
        let server = Served::new(|query, is_tcp, _| {
            vec![if is_tcp { right(query) } else { truncated(query) }]
        });
        let conf = ResolvConf::parse("options attempts:1");
        let mut stage = Stage::with_seeds(seed, 1, vec![server], conf, |config| config);
        // Such edges come about every 100 ms, and connecting takes longer.
        stage.sim.set_network(
            Network::new().latency(Duration::from_millis(400)..Duration::from_millis(500)),
        );
        stage.sim.set_faults(Faults::none().set(Fault::SpuriousEdge, 1.0));
        let reply = stage.begin("www.example");
        stage.pass(4 * SECOND);
        assert!(outcome(reply).is_ok(), "seed {seed}");
    }
}

#[test]
fn a_server_is_asked_once_where_the_configuration_says_not_at_all() {
    let mut conf = ResolvConf::default();
    conf.attempts = 0;
    let mut stage = Stage::new(vec![serve(right)], conf, |config| config);
    assert!(stage.look_up("www.example").is_ok());
    assert_eq!(stage.seen(0), ["www.example"]);
}

#[test]
fn tcp_from_the_start_sends_no_datagram() {
    let mut stage =
        Stage::new(vec![serve(right)], ResolvConf::parse("options use-vc"), |config| config);
    assert!(stage.look_up("www.example").is_ok());
    assert_eq!((stage.servers[0].ports.take().len(), stage.seen(0).len()), (0, 1));
}

#[test]
fn a_server_that_is_silent_over_tcp_has_its_time_and_no_more() {
    let conf = ResolvConf::parse("options use-vc timeout:2 attempts:1");
    let mut stage = Stage::new(vec![silent(), serve(right)], conf, |config| config);
    let reply = stage.begin("www.example");
    stage.pass(2 * SECOND - SECOND / 10);
    assert!(!reply.is_ready());
    assert_eq!((stage.seen(0).len(), stage.seen(1).len()), (1, 0));
    stage.pass(SECOND);
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
fn a_truncated_answer_is_asked_for_over_tcp() {
    let server =
        Served::new(|query, is_tcp, _| vec![if is_tcp { right(query) } else { truncated(query) }]);
    let mut stage = Stage::new(vec![server], ResolvConf::default(), |config| config);
    assert!(stage.look_up("www.example").is_ok());
    assert_eq!(stage.seen(0).len(), 2);
}

#[test]
fn an_answer_that_is_truncated_over_tcp_too_is_not_asked_for_again() {
    let mut stage =
        Stage::new(vec![serve(truncated)], ResolvConf::parse("options attempts:1"), |config| {
            config
        });
    let reply = stage.look_up("www.example");
    assert!(matches!(reply, Err(LookupError::Server(_, ServerFault::Truncated))), "{reply:?}");
    assert_eq!(stage.seen(0).len(), 2);
}
