//! How much memory a resolver holds, whatever servers answer and callers do: measured by the
//! allocator, not by the resolver's own accounting.
//!
//! The tests have a process of their own, with a counting allocator, and take turns.

#[path = "servers/machine.rs"]
mod machine;
#[path = "servers/simulated.rs"]
mod simulated;
#[expect(dead_code, reason = "another test needs the rest")]
#[path = "servers/wire.rs"]
mod wire;

use std::alloc::System;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use machine::Served;
use rotor_core::BlockingReply;
use rotor_dns::{Dns, Kind, LookupResult, Question, ResolvConf, Resolver, ResolverConfig};
use rotor_sim::Sim;
use rotor_sim::net::SimNet;
use simulated::serving;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use wire::{A, CNAME, SRV, TXT, asked, found, name, record};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What the simulation and the test harness may allocate in addition.
const OVERHEAD: usize = 32 << 10;

fn take_turns() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The bytes that are allocated now.
fn live_bytes() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// A scripted server, and a resolver.
struct Stage {
    sim: Sim,
    served: Served,
    dns: Dns,
}

impl Stage {
    fn new(
        script: impl Fn(&[u8]) -> Vec<Vec<u8>> + 'static,
        conf: &str,
        set: fn(ResolverConfig) -> ResolverConfig,
    ) -> Stage {
        let mut sim = Sim::new(1);
        let served = Served::new(move |query, _, _| script(query));
        let server = serving(&mut sim, "server", &served).expect("the server starts");
        let address = SocketAddr::new(sim.address(server), 53);
        let config = set(ResolverConfig::new(ResolvConf::parse(conf)).servers(vec![address]));
        let resolver = sim.host("resolver", move |boot| {
            let mut creator = boot.new_loop::<Resolver<SimNet, Option<Dns>>>()?;
            let dns = creator
                .add_part(|resolver| resolver, |scope| Ok(Resolver::new(config.clone(), scope)))?;
            Ok(creator.instantiate(Some(dns)))
        });
        let resolver = resolver.expect("the resolver starts");
        let dns = sim.with(resolver, |instance| instance.context_mut().take()).flatten();
        Stage { sim, served, dns: dns.expect("it is up") }
    }

    fn start_lookup(&self, text: &str, kind: Kind) -> BlockingReply<LookupResult> {
        let question = Question { name: text.parse().expect("a name"), kind };
        self.dns.records().ask_from_thread(question).expect("there is room")
    }

    fn run_for(&mut self, time: Duration) {
        self.sim.run_for(time).expect("nothing goes wrong by itself");
        // What the server has recorded does not count.
        self.served.queries.take();
        self.served.ports.take();
    }

    /// Looks up names, one after the other, and drops the replies.
    fn look_up(&mut self, texts: impl Iterator<Item = String>, kind: Kind) {
        for text in texts {
            let reply = self.start_lookup(&text, kind);
            self.run_for(Duration::from_millis(200));
            assert!(reply.is_ready(), "{text} is still open");
        }
    }
}

/// The longest possible reply: as many records as fit.
fn longest(query: &[u8], first: &[u8], more: &[u8]) -> Vec<u8> {
    let room = 65_535 - query.len() - first.len();
    let mut records = vec![first.to_vec()];
    records.extend((0..room / more.len()).map(|_| more.to_vec()));
    found(query, &records)
}

/// A pointer to the name in the question.
const ASKED: [u8; 2] = [0xC0, 12];
const WEEK: u32 = 604_800;

/// One record of empty strings, each of which takes one byte on the wire.
fn empty_strings(query: &[u8]) -> Vec<u8> {
    longest(query, &record(&ASKED, TXT, WEEK, &vec![0; 65_000]), &[0; 65_535])
}

/// Records of one empty string each.
fn small_records(query: &[u8]) -> Vec<u8> {
    longest(query, &[], &record(&ASKED, TXT, WEEK, &[0]))
}

fn addresses(query: &[u8]) -> Vec<u8> {
    longest(query, &[], &record(&ASKED, A, WEEK, &[192, 0, 2, 1]))
}

fn cacheable_addresses(query: &[u8]) -> Vec<u8> {
    found(query, &vec![record(&ASKED, A, WEEK, &[192, 0, 2, 1]); 2_000])
}

/// Records with a target that is long as text. It is written in the first record only.
fn long_names(query: &[u8]) -> Vec<u8> {
    let label = String::from_utf8(vec![1; 63]).expect("text");
    let long = name(&format!("{label}.{label}.{label}.{}", &label[..61]));
    let srv = |target: &[u8]| record(&ASKED, SRV, WEEK, &[&[0; 6], target].concat());
    // Behind the question and the fields of the first record.
    let place = 0xC000 | (query.len() + 2 + 10 + 6) as u16;
    longest(query, &srv(&long), &srv(&place.to_be_bytes()))
}

/// Aliases between two names that are long as text, and have nothing to do with the question. The
/// names are written in the first record only.
fn unrelated_aliases(query: &[u8]) -> Vec<u8> {
    let label = String::from_utf8(vec![1; 63]).expect("text");
    let long = name(&format!("{label}.{label}.{label}.{}", &label[..61]));
    let place = 0xC000 | query.len() as u16;
    let [one, other] = [place, place + 64].map(u16::to_be_bytes);
    let alias = |owner: &[u8], target: &[u8]| record(owner, CNAME, WEEK, target);
    longest(query, &alias(&long, &one), &[alias(&other, &one), alias(&one, &other)].concat())
}

#[test]
fn an_answer_is_decoded_in_bounded_memory() {
    /// All allocations of the lookup together, with those of the simulation and of strings that
    /// grow. Before there was a limit, it was 9 MiB.
    const ALLOCATED: usize = 6 << 20;
    let _turn = take_turns();
    let mut stage = Stage::new(|query| vec![unrelated_aliases(query)], "options use-vc", |set| set);
    stage.look_up(["warms.up".to_owned()].into_iter(), Kind::A);
    let before = ALLOCATOR.stats().bytes_allocated;
    stage.look_up(["h.example".to_owned()].into_iter(), Kind::A);
    let allocated = ALLOCATOR.stats().bytes_allocated - before;
    assert!(allocated <= ALLOCATED, "{allocated} bytes");
}

#[test]
fn long_replies_stay_within_the_cache_limit() {
    /// Half of what six replies take that are just short enough to be cached.
    const LIMIT: usize = 192 << 10;
    let _turn = take_turns();
    type Script = fn(&[u8]) -> Vec<u8>;
    let scripts: [(&str, Kind, Script); 5] = [
        ("empty strings", Kind::Txt, empty_strings),
        ("small records", Kind::Txt, small_records),
        ("addresses", Kind::A, addresses),
        ("as many addresses as are kept", Kind::A, cacheable_addresses),
        ("long names", Kind::Srv, long_names),
    ];
    for (what, kind, script) in scripts {
        let set = |config: ResolverConfig| config.cache_bytes_max(LIMIT);
        let mut stage = Stage::new(move |query| vec![script(query)], "options use-vc", set);
        stage.look_up(["warms.up".to_owned()].into_iter(), kind);
        let before = live_bytes();
        stage.look_up((0..6).map(|number| format!("h{number}.example")), kind);
        let grown = live_bytes().saturating_sub(before);
        assert!(grown <= LIMIT + OVERHEAD, "{what}: {grown} bytes more");
    }
}

#[test]
fn cancelled_queued_lookups_hold_no_memory() {
    let _turn = take_turns();
    let mut stage = Stage::new(|_| vec![], "", |config| config.queries_max(1));
    let _holds_the_turn = stage.start_lookup("silent.example", Kind::A);
    stage.run_for(Duration::from_millis(1));
    let mut before = 0;
    for round in 0..21 {
        let given_up: Vec<_> = (0..500)
            .map(|number| stage.start_lookup(&format!("h{number}.r{round}.example"), Kind::A))
            .collect();
        stage.run_for(Duration::from_millis(1));
        drop(given_up);
        stage.run_for(Duration::from_millis(1));
        if round == 0 {
            before = live_bytes();
        }
    }
    let grown = live_bytes().saturating_sub(before);
    assert!(grown <= OVERHEAD, "{grown} bytes more for 10,000 questions");
}

#[test]
fn ordinary_replies_take_the_memory_that_is_counted() {
    let _turn = take_turns();
    const LIMIT: usize = 64 << 10;
    let script = |query: &[u8]| {
        let (name, _) = asked(query);
        vec![found(query, &[wire::address(&name, 1), wire::address(&name, 2)])]
    };
    let mut stage = Stage::new(script, "", |config| config.cache_bytes_max(LIMIT));
    stage.look_up(["warms.up".to_owned()].into_iter(), Kind::A);
    let before = live_bytes();
    // In a scattered order, so that tree nodes are split anywhere.
    let texts = |salt: usize| {
        (0..300).map(move |n: usize| format!("h{}.example", (n * 7_919 + salt) % 9_973))
    };
    for salt in [0, 4_000] {
        stage.look_up(texts(salt), Kind::A);
        let grown = live_bytes().saturating_sub(before);
        assert!((LIMIT / 2..=LIMIT).contains(&grown), "{grown} bytes more");
    }
}
