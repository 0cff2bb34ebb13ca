//! The resolver, and a name server made of machines, in one loop, on every loop.

use std::net::SocketAddr;
use std::time::Duration;

use rotor_core::{BlockingReply, Compose2, Config, ExitPolicy};
use rotor_dns::{
    Data, Dns, Kind, LookupError, LookupResult, Question, ResolvConf, Resolver, ResolverConfig,
};

use crate::loops::{OnLoop, Rig, local, on_every_loop};
use crate::machine::{NameServer, Served};
use crate::wire::{
    A, AAAA, address, alias, asked, authority, found, name, record, reply, truncated,
};

type Machines<L> = Compose2<NameServer<<L as OnLoop>::Net>, Resolver<<L as OnLoop>::Net, Served>>;

/// A name server, and a resolver that asks it.
struct Stage<L: OnLoop> {
    rig: Rig<Machines<L>, L>,
    served: Served,
    dns: Dns,
}

impl<L: OnLoop> Stage<L> {
    fn new(script: impl Fn(&[u8], bool) -> Vec<Vec<u8>> + 'static) -> Stage<L> {
        Stage::with(script, ResolvConf::default(), Duration::from_secs(30))
    }

    fn with(
        script: impl Fn(&[u8], bool) -> Vec<Vec<u8>> + 'static,
        mut conf: ResolvConf,
        timeout: Duration,
    ) -> Stage<L> {
        let served = Served::new(move |query, is_tcp, _| script(query, is_tcp));
        let config = Config::new().exit(ExitPolicy::OnRequest);
        let mut rig = Rig::<Machines<L>, L>::new(&config, served.clone());
        let server = serve(&mut rig);
        (conf.timeout, conf.attempts) = (timeout, 1);
        let config =
            ResolverConfig::new(conf).servers(vec![server]).lookup_timeout(Duration::from_secs(30));
        let mut dns = None;
        rig.add(|scope| {
            let (handle, response) = Resolver::new(config, scope);
            dns = Some(handle);
            response.wrap(Compose2::B)
        });
        Stage { rig, served, dns: dns.expect("made above") }
    }

    fn start_lookup(&self, text: &str) -> BlockingReply<LookupResult> {
        let name = text.parse().expect("a name");
        self.dns.records().ask_from_thread(Question { name, kind: Kind::A }).expect("there is room")
    }

    fn wait_for<T>(&mut self, reply: BlockingReply<T>) -> T {
        self.rig.until(|_| reply.is_ready());
        reply.wait().expect("none goes unanswered")
    }

    fn look_up(&mut self, text: &str) -> LookupResult {
        let reply = self.start_lookup(text);
        self.wait_for(reply)
    }

    /// How many queries have arrived.
    fn queries(&self) -> usize {
        self.served.queries.borrow().len()
    }
}

/// Serves datagrams and streams at one port.
fn serve<L: OnLoop>(rig: &mut Rig<Machines<L>, L>) -> SocketAddr {
    // The UDP socket's port may be taken on TCP.
    for _ in 0..100 {
        let token = rig.add(|scope| NameServer::udp(&local(), scope).wrap(Compose2::A));
        let address = rig.with(|instance| {
            let found = instance.machines().iter().find(|(other, _)| *other == token);
            match found.expect("it was made").1 {
                Compose2::A(server) => server.address(),
                Compose2::B(_) => None,
            }
        });
        let address = address.expect("it is bound");
        let listening = rig.with(|instance| {
            let tcp = instance
                .add_machine_with(|scope| NameServer::tcp(&address, scope).wrap(Compose2::A));
            tcp.is_ok()
        });
        if listening {
            return address;
        }
    }
    panic!("no port is free for both");
}

fn is_right(reply: &LookupResult) -> bool {
    reply.as_ref().is_ok_and(|answer| answer.data == [Data::A([192, 0, 2, 1].into())])
}

fn right_answer(query: &[u8]) -> Vec<u8> {
    found(query, &[address("www.example", 1)])
}

on_every_loop!(equal_questions_are_asked_once_and_the_answer_is_cached);
fn equal_questions_are_asked_once_and_the_answer_is_cached<L: OnLoop>() {
    let mut stage = Stage::<L>::new(|query, _| vec![right_answer(query)]);
    let replies: Vec<_> = (0..100).map(|_| stage.start_lookup("WWW.example.")).collect();
    for reply in replies {
        assert!(is_right(&stage.wait_for(reply)));
    }
    assert!(is_right(&stage.look_up("www.example")));
    assert_eq!(stage.queries(), 1);
}

on_every_loop!(an_answer_too_long_for_a_datagram_is_fetched_over_tcp);
fn an_answer_too_long_for_a_datagram_is_fetched_over_tcp<L: OnLoop>() {
    let mut stage = Stage::<L>::new(|query, is_tcp| {
        vec![if is_tcp { right_answer(query) } else { truncated(query) }]
    });
    assert!(is_right(&stage.look_up("www.example")));
    assert_eq!(stage.queries(), 2);
}

on_every_loop!(datagrams_that_do_not_match_the_query_are_ignored);
fn datagrams_that_do_not_match_the_query_are_ignored<L: OnLoop>() {
    let mut stage = Stage::<L>::new(|query, _| {
        let mut forged = found(query, &[address("www.example", 66)]);
        forged[0] ^= 0x55;
        let other = found(&[&query[..13], b"WWX", &query[16..]].concat(), &[]);
        vec![forged, b"noise".to_vec(), other, right_answer(query)]
    });
    assert!(is_right(&stage.look_up("www.example")));
}

on_every_loop!(an_incomplete_alias_chain_is_followed_with_more_queries);
fn an_incomplete_alias_chain_is_followed_with_more_queries<L: OnLoop>() {
    let mut stage = Stage::<L>::new(|query, _| {
        vec![match asked(query).0.as_str() {
            "www.example" => found(query, &[alias("www.example", "a.example")]),
            _ => found(query, &[address("a.example", 1)]),
        }]
    });
    let reply = stage.look_up("www.example");
    assert!(is_right(&reply), "{reply:?}");
    assert_eq!(stage.queries(), 2);
}

on_every_loop!(both_address_families_and_the_search_list_are_queried);
fn both_address_families_and_the_search_list_are_queried<L: OnLoop>() {
    const SIX: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let script = |query: &[u8], _| {
        vec![match asked(query) {
            (host, AAAA) if host == "www.b.example" => {
                found(query, &[record(&name(&host), AAAA, 9, &SIX)])
            }
            (host, A) if host == "www.b.example" => found(query, &[address(&host, 1)]),
            _ => reply(query, 3, &[], &[authority(60)]),
        }]
    };
    let conf = ResolvConf::parse("search a.example b.example");
    let mut stage = Stage::<L>::with(script, conf, Duration::from_secs(30));
    let asked = stage.dns.addresses().ask_from_thread("www".into()).expect("there is room");
    let addresses = stage.wait_for(asked).expect("it is in the second domain");
    let texts: Vec<_> = addresses.iter().map(|address| address.to_string()).collect();
    assert_eq!(texts, ["2001:db8::1", "192.0.2.1"]);
    assert_eq!(stage.queries(), 4);
}

on_every_loop!(a_silent_server_times_out);
fn a_silent_server_times_out<L: OnLoop>() {
    let conf = ResolvConf::default();
    let mut stage = Stage::<L>::with(|_, _| Vec::new(), conf, Duration::from_millis(100));
    let reply = stage.look_up("www.example");
    assert!(matches!(reply, Err(LookupError::Timeout)), "{reply:?}");
    assert_eq!(stage.queries(), 1);
}
