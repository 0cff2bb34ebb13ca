//! The resolver on a scripted network, in virtual time: which server is asked what and when, and
//! when none is asked.

#[path = "../servers/machine.rs"]
mod machine;
#[path = "../servers/simulated.rs"]
mod simulated;
#[expect(dead_code, reason = "another test needs the rest")]
#[path = "../servers/wire.rs"]
mod wire;

mod asking;
mod counting;
mod ending;
mod extremes;
mod guessing;
mod logging;
mod remembering;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use machine::{NameServer, Served};
use rotor_core::{BlockingReply, Loop, SendError};
use rotor_dns::{
    Data, Dns, Hosts, Kind, LookupError, LookupResult, NameError, Question, ResolvConf, Resolver,
    ResolverConfig,
};
use rotor_sim::net::SimNet;
use rotor_sim::{Host, Network, Sim};
use rotor_stream::{HostName, ResolveError, ResolveResult};
use simulated::serving;
use wire::{SOA, address, asked, found, name, record, reply};

const SECOND: Duration = Duration::from_secs(1);

/// Servers, and a resolver that asks them in order.
struct Stage {
    sim: Sim,
    servers: Vec<Served>,
    hosts: Vec<Host<NameServer<SimNet>>>,
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

    /// With a seed for the simulation, and one for the resolver's fast random numbers.
    fn with_seeds(
        seed: u64,
        fast: u64,
        servers: Vec<Served>,
        conf: ResolvConf,
        set: fn(ResolverConfig) -> ResolverConfig,
    ) -> Stage {
        let mut sim = Sim::new(seed);
        let name = |number: usize| format!("server {number}");
        let started =
            servers.iter().enumerate().map(|(n, served)| serving(&mut sim, &name(n), served));
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
        Stage { sim, servers, hosts, resolver, dns }
    }

    /// With one server and the default settings.
    fn of(script: impl Fn(&[u8]) -> Vec<u8> + 'static) -> Stage {
        Stage::new(vec![serve(script)], ResolvConf::default(), |config| config)
    }

    fn run_for(&mut self, time: Duration) {
        self.sim.run_for(time).expect("nothing goes wrong by itself");
    }

    fn start_lookup(&self, text: &str) -> BlockingReply<LookupResult> {
        self.dns.records().ask_from_thread(question(text)).expect("there is room")
    }

    /// A lookup that must end within a second. Runs the simulation for that second.
    fn look_up(&mut self, text: &str) -> LookupResult {
        let reply = self.start_lookup(text);
        self.run_for(SECOND);
        outcome(reply)
    }

    fn host(&mut self, text: &str) -> ResolveResult {
        let reply =
            self.dns.addresses().ask_from_thread(HostName::from(text)).expect("there is room");
        self.run_for(SECOND);
        outcome(reply)
    }

    /// The names that a server was asked for since the last call, in order.
    fn names_asked(&self, server: usize) -> Vec<String> {
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

/// Answers with an address whose time to live is a minute.
fn right_answer(query: &[u8]) -> Vec<u8> {
    found(query, &[address(&asked(query).0, 1)])
}

fn answer_with_ttl(query: &[u8], ttl: u32) -> Vec<u8> {
    found(query, &[record(&name(&asked(query).0), wire::A, ttl, &[192, 0, 2, 1])])
}

/// A negative answer that is valid for the shorter of two times.
fn negative_answer(query: &[u8], code: u8, ttl: u32, minimum: u32) -> Vec<u8> {
    let mut data = [name("ns.example"), name("admin.example")].concat();
    [1, 3600, 600, 86_400, minimum]
        .iter()
        .for_each(|number: &u32| data.extend(number.to_be_bytes()));
    reply(query, code, &[], &[record(&name("example"), SOA, ttl, &data)])
}

#[test]
fn a_cancelled_lookup_does_not_affect_others() {
    let mut stage = Stage::of(right_answer);
    let (first, second, third) = (
        stage.start_lookup("www.example"),
        stage.start_lookup("www.example"),
        stage.start_lookup("www.example"),
    );
    drop(first);
    stage.run_for(Duration::from_micros(50)); // the query is in flight
    drop(third);
    stage.run_for(SECOND);
    assert!(outcome(second).is_ok());
    assert_eq!(stage.names_asked(0).len(), 1);
}

#[test]
fn a_lookup_cancelled_before_it_starts_sends_no_query() {
    let mut stage = Stage::new(vec![serve(right_answer)], ResolvConf::default(), |config| config);
    let host = |stage: &Stage| stage.dns.addresses().ask_from_thread("www.example".into());
    drop((stage.start_lookup("www.example"), host(&stage).expect("there is room")));
    stage.run_for(SECOND);
    assert_eq!(stage.names_asked(0), [""; 0]);
    assert!(stage.look_up("www.example").is_ok());
}

/// Would take far too long if each cancelled lookup examined all the others.
#[test]
fn many_lookups_cancelled_one_by_one_free_their_room() {
    const MANY: usize = 20_000;
    let conf = ResolvConf::parse("options timeout:30 attempts:1");
    let mut stage = Stage::new(vec![silent()], conf, |config| {
        config.lookups_max(MANY).queries_max(1).lookup_timeout(1_000 * SECOND)
    });
    let moment = Duration::from_nanos(1);
    let mut replies: Vec<_> = Vec::new();
    // There is room for two such rounds: if cancelled lookups kept their room, the third would be
    // refused.
    for _ in 0..3 {
        for number in 0..MANY {
            replies.push(stage.start_lookup(&format!("h{number}.example")));
            if number % 64 == 0 {
                stage.run_for(moment);
            }
        }
        stage.run_for(moment);
        // Each in its own turn.
        for reply in replies.drain(..) {
            drop(reply);
            stage.run_for(moment);
        }
    }
    stage.run_for(SECOND);
    assert_eq!(stage.names_asked(0), ["h0.example"], "the one that was asked at once");
}

#[test]
fn a_query_in_flight_serves_lookups_after_its_caller_cancelled() {
    let mut stage = Stage::of(right_answer);
    stage.sim.set_network(Network::new().latency(SECOND / 10..SECOND / 5));
    let given_up = stage.start_lookup("www.example");
    stage.run_for(Duration::from_millis(10));
    drop(given_up);
    stage.run_for(Duration::from_millis(10));
    assert!(stage.look_up("www.example").is_ok());
    assert_eq!(stage.names_asked(0).len(), 1);
}

#[test]
fn a_cancelled_question_is_not_asked_or_its_answer_is_cached() {
    let server = Served::new(|query, _, _| {
        if asked(query).0 == "none.example" { vec![] } else { vec![right_answer(query)] }
    });
    let mut stage = Stage::new(vec![server], ResolvConf::default(), |config| config.queries_max(1));
    let (holds, waits) = (stage.start_lookup("none.example"), stage.start_lookup("waits.example"));
    stage.run_for(SECOND);
    drop(waits);
    stage.run_for(30 * SECOND);
    assert!(matches!(outcome(holds), Err(LookupError::Timeout)));
    assert!(stage.names_asked(0).iter().all(|name| name == "none.example"));
    // The answer to a question that was already sent is cached.
    let given_up = stage.start_lookup("www.example");
    stage.run_for(Duration::from_micros(50));
    drop(given_up);
    stage.run_for(SECOND);
    assert!(stage.look_up("www.example").is_ok());
    assert_eq!(stage.names_asked(0), ["www.example"]);
}

#[test]
fn a_lookup_times_out_however_many_servers_are_silent() {
    let mut stage = Stage::new(vec![silent(), silent()], ResolvConf::default(), |config| {
        config.lookup_timeout(7 * SECOND)
    });
    let reply = stage.start_lookup("www.example");
    stage.run_for(7 * SECOND - Duration::from_millis(1));
    assert!(!reply.is_ready());
    stage.run_for(Duration::from_millis(10));
    assert!(matches!(outcome(reply), Err(LookupError::Timeout)));
}

#[test]
fn a_question_beyond_the_limit_is_handed_back() {
    let mut stage =
        Stage::new(vec![silent()], ResolvConf::default(), |config| config.lookups_max(2));
    let mut replies: Vec<_> =
        (0..2).map(|number| stage.start_lookup(&format!("h{number}.example"))).collect();
    stage.run_for(SECOND);
    replies.extend((2..4).map(|number| stage.start_lookup(&format!("h{number}.example"))));
    stage.run_for(SECOND);
    let refused = stage.dns.records().ask_from_thread(question("h4.example"));
    assert!(
        matches!(refused, Err(SendError::Full(question)) if question.name.as_str() == "h4.example")
    );
    // The queued lookups get their turn, and their full time.
    stage.run_for(60 * SECOND);
    assert_eq!(stage.names_asked(0).len(), 8);
    for reply in replies {
        assert!(matches!(outcome(reply), Err(LookupError::Timeout)));
    }
}

#[test]
fn lookups_of_both_kinds_share_one_limit_and_take_turns() {
    let mut stage = Stage::new(vec![silent()], ResolvConf::default(), |config| {
        config.lookups_max(1).lookup_timeout(2 * SECOND)
    });
    let records = stage.start_lookup("record.example");
    let host = stage.dns.addresses().ask_from_thread(HostName::from("host.example")).expect("room");
    stage.run_for(SECOND);
    assert_eq!(stage.names_asked(0), ["record.example"]);
    // It must not overtake the lookup of the other kind.
    let next = stage.start_lookup("next.example");
    stage.run_for(2 * SECOND);
    assert!(records.is_ready() && !host.is_ready() && !next.is_ready());
    assert_eq!(stage.names_asked(0), ["host.example"; 2]);
    stage.run_for(2 * SECOND);
    assert!(host.is_ready() && !next.is_ready());
    assert_eq!(stage.names_asked(0), ["next.example"]);
}

#[test]
fn a_waiting_lookup_starts_as_soon_as_earlier_ones_time_out() {
    let conf = ResolvConf::parse("options timeout:30 attempts:1");
    let mut stage =
        Stage::new(vec![silent()], conf, |config| config.lookups_max(1).lookup_timeout(2 * SECOND));
    let first = stage.start_lookup("h0.example");
    stage.run_for(SECOND / 10);
    let second = stage.start_lookup("h1.example");
    stage.run_for(SECOND);
    assert_eq!(stage.names_asked(0), ["h0.example"]);
    stage.run_for(SECOND);
    assert!(matches!(outcome(first), Err(LookupError::Timeout)));
    assert_eq!(stage.names_asked(0), ["h1.example"]);
    stage.run_for(2 * SECOND);
    assert!(matches!(outcome(second), Err(LookupError::Timeout)));
}

#[test]
fn a_draining_loop_answers_the_waiting_lookups() {
    let server = Served::new(|query, _, _| {
        if asked(query).0 == "none.example" { vec![] } else { vec![right_answer(query)] }
    });
    let mut stage = Stage::new(vec![server], ResolvConf::default(), |config| config);
    let (found, waits) = (stage.start_lookup("www.example"), stage.start_lookup("none.example"));
    stage.run_for(Duration::from_micros(50));
    stage.sim.drain(stage.resolver, 60 * SECOND).expect("nothing is left");
    assert!(outcome(found).is_ok());
    assert!(matches!(outcome(waits), Err(LookupError::Timeout)));
}

#[test]
fn a_query_that_no_lookup_waits_for_does_not_hold_up_a_drain() {
    let server =
        || {
            Served::new(|query, _, _| {
                if asked(query).1 == wire::AAAA { vec![] } else { vec![right_answer(query)] }
            })
        };
    let mut stage = Stage::new(vec![server()], ResolvConf::default(), |config| config);
    stage.host("www.example").expect("its IPv4 addresses are enough");
    let began = stage.sim.now();
    stage.sim.drain(stage.resolver, 60 * SECOND).expect("nothing is left");
    assert!(stage.sim.now() - began < SECOND);
}

#[test]
fn candidates_are_tried_in_the_order_of_ndots_and_search_list() {
    let mut conf = ResolvConf::parse("search a.example b.example\noptions ndots:2");
    conf.attempts = 1;
    let stage = || {
        Stage::new(vec![serve(|query| negative_answer(query, 3, 60, 60))], conf.clone(), |config| {
            config
        })
    };
    for (text, expected) in [
        ("www", ["www.a.example", "www.b.example", "www"]),
        ("www.x", ["www.x.a.example", "www.x.b.example", "www.x"]),
        ("www.x.y", ["www.x.y", "www.x.y.a.example", "www.x.y.b.example"]),
    ] {
        let mut stage = stage();
        let Err(ResolveError::NotFound(error)) = stage.host(text) else {
            panic!("{text} is found")
        };
        assert_eq!(error.to_string(), format!("the name {text} does not exist"), "as it was asked");
        let mut seen = stage.names_asked(0);
        seen.dedup(); // one question per family
        assert_eq!(seen, expected, "{text}");
    }
    let mut stage = stage();
    assert!(stage.host("www.").is_err());
    assert_eq!(stage.names_asked(0), ["www", "www"], "a name with a dot at its end is complete");
}

#[test]
fn the_hosts_file_comes_first_and_sends_no_query() {
    let conf = ResolvConf::parse("search a.example");
    let mut stage = Stage::new(vec![serve(right_answer)], conf, |config| {
        config.hosts(Hosts::parse("192.0.2.9 printer.a.example printer\n2001:db8::9 printer"))
    });
    let addresses = stage.host("Printer").expect("it is in the file");
    assert_eq!(
        addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["192.0.2.9", "2001:db8::9"]
    );
    assert!(stage.names_asked(0).is_empty());
}

#[test]
fn a_host_with_a_port_or_a_zone_sends_no_query() {
    let conf = ResolvConf::parse("search a.example");
    let mut stage = Stage::new(vec![serve(right_answer)], conf, |config| {
        config.hosts(Hosts::parse("192.0.2.9 by:file"))
    });
    for (host, expected) in [
        ("www.example:80", NameError::Colon),
        ("[2001:db8::1]:80", NameError::Colon),
        ("http://www.example", NameError::Colon),
        ("fe80::1%eth0", NameError::Zone),
    ] {
        let Err(ResolveError::Name(error)) = stage.host(host) else {
            panic!("{host} is a host");
        };
        let Some(LookupError::Name(error)) = error.downcast_ref() else {
            panic!("{host}: {error}")
        };
        assert_eq!(*error, expected, "{host}");
    }
    assert!(stage.host("2001:db8::1").is_ok());
    assert!(stage.host("by:file").is_ok(), "whoever needs such a name writes it down");
    assert!(stage.names_asked(0).is_empty());
}

#[test]
fn special_use_hosts_send_no_query() {
    for host in ["invalid", "a.invalid.", "onion", "Example.Onion", "localhost", "a.localhost."] {
        let mut stage = Stage::of(right_answer);
        let is_known = matches!(stage.host(host), Ok(found) if found.len() == 2);
        assert_eq!(is_known, host.contains("localhost"), "{host}");
        assert!(stage.names_asked(0).is_empty(), "{host}");
    }
    for host in ["notonion", "onion.example", "my-localhost", "xinvalid"] {
        let mut stage = Stage::of(right_answer);
        let _whatever = stage.host(host);
        assert_eq!(stage.names_asked(0), [host, host]);
    }
    // An entry in the hosts file still resolves such a name.
    let hosts = |config: ResolverConfig| config.hosts(Hosts::parse("192.0.2.9 a.onion"));
    let mut stage = Stage::new(vec![serve(right_answer)], ResolvConf::default(), hosts);
    assert!(stage.host("a.onion").is_ok());
}

#[test]
fn record_lookups_of_special_use_names_send_no_query() {
    let mut stage = Stage::of(right_answer);
    let mut look_up = |name: &str, kind| {
        let question = Question { name: name.parse().expect("a name"), kind };
        let reply = stage.dns.records().ask_from_thread(question).expect("there is room");
        stage.run_for(SECOND);
        let data = outcome(reply).map(|answer| (answer.name.to_string(), answer.data.clone()));
        (data, stage.names_asked(0).len())
    };
    let here = [
        (Kind::A, Some(Data::A([127, 0, 0, 1].into()))),
        (Kind::Aaaa, Some(Data::Aaaa(1.into()))),
        (Kind::Txt, None),
    ];
    for name in ["localhost", "a.localhost"] {
        for (kind, expected) in &here {
            let (reply, asked) = look_up(name, *kind);
            match (reply, expected) {
                (Ok(found), Some(data)) => assert_eq!(found, (name.into(), vec![data.clone()])),
                (Err(LookupError::NoRecords(of)), None) => assert_eq!(of.as_str(), name),
                (other, _) => panic!("{name} {kind:?}: {other:?}"),
            }
            assert_eq!(asked, 0, "{name} {kind:?}");
        }
    }
    for name in ["invalid", "a.invalid", "example.onion"] {
        for (kind, _) in &here {
            let (reply, asked) = look_up(name, *kind);
            assert!(matches!(&reply, Err(LookupError::NoSuchName(_))), "{name}: {reply:?}");
            assert_eq!(asked, 0, "{name} {kind:?}");
        }
    }
    assert_eq!(look_up("notonion", Kind::A).1, 1);
}

#[test]
fn a_search_list_with_special_use_domains_sends_no_query_for_them() {
    let conf = ResolvConf::parse("search onion a.invalid\noptions ndots:2");
    let mut stage = Stage::new(vec![serve(right_answer)], conf, |config| config);
    assert!(stage.host("www.example").is_ok());
    assert_eq!(stage.names_asked(0), ["www.example"; 2], "the name as it is");
    let conf = ResolvConf::parse("search localhost");
    let mut stage = Stage::new(vec![serve(right_answer)], conf, |config| config);
    let found = stage.host("www").expect("this machine");
    assert!(found.len() == 2 && found.iter().all(IpAddr::is_loopback), "{found:?}");
    assert_eq!(stage.names_asked(0), [""; 0]);
}

#[test]
fn an_alias_to_a_special_use_name_sends_no_further_query() {
    for (target, expected) in [("a.localhost", Some([127, 0, 0, 1])), ("example.onion", None)] {
        let mut stage =
            Stage::of(move |query: &[u8]| found(query, &[wire::alias(&asked(query).0, target)]));
        let question = Question { name: "www.example".parse().expect("a name"), kind: Kind::A };
        let reply = stage.dns.records().ask_from_thread(question).expect("there is room");
        stage.run_for(SECOND);
        let data = outcome(reply).ok().map(|answer| answer.data.clone());
        assert_eq!(data, expected.map(|address| vec![Data::A(address.into())]), "{target}");
        assert_eq!(stage.names_asked(0), ["www.example"]);
    }
}
