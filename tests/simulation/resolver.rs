//! A resolver with two name servers of ours, under all faults. Each lookup has one outcome within
//! its time: its own answer, or an error. After the faults each is answered.

#[path = "../../rotor-dns/tests/servers/machine.rs"]
mod machine;
#[path = "../../rotor-dns/tests/servers/simulated.rs"]
mod simulated;
#[expect(dead_code, reason = "another test needs the rest")]
#[path = "../../rotor-dns/tests/servers/wire.rs"]
mod wire;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use rotor::dns::{
    Data, Dns, Kind, LookupError, LookupResult, Question, ResolvConf, Resolver, ResolverConfig,
};
use rotor::net::IpNet;
use rotor::{
    BoxError, Compose2, EventSet, Future, Infallible, Loop, Machine, Outcome, Response, Scope, Time,
};
use rotor_sim::{Busy, Check, Family, Fault, Host, Sim};

use self::machine::Served;
use crate::ground::{Bytes, Ground};
use crate::stage::{self, FAULTY};

/// The slowest network takes up to 330 ms one way and carries 64 bytes at a time. Three round
/// trips, for an answer over TCP, take two seconds. With a shorter timeout, partial progress would
/// be thrown away again and again.
const TRY_TIMEOUT: Duration = Duration::from_secs(3);
/// On such a network every name may have to wait for its turn.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(12);
/// How late an outcome may be. One of the faults stops a host for up to two seconds.
const LATENESS_MAX: Duration = Duration::from_secs(3);
/// There are few names, so some lookups coalesce and some are answered from the cache.
const NAMES: u64 = 14;

/// The results of the lookups.
#[derive(Default)]
struct Log {
    asked: u32,
    answered: u32,
    given_up: u32,
    failed: Vec<String>,
    wrong: Vec<String>,
    lateness: Duration,
}

impl Log {
    fn is_over(&self, asked: u32) -> bool {
        let over = self.answered + self.given_up + (self.failed.len() + self.wrong.len()) as u32;
        self.asked == asked && over == asked
    }
}

struct World {
    dns: Dns,
    log: Rc<RefCell<Log>>,
}

struct PendingLookup {
    number: u8,
    deadline: Time,
    future: Future<LookupResult>,
    busy: Busy,
}

/// Looks up one name after the other, and cancels some lookups.
struct Asker {
    left: u32,
    open: Vec<PendingLookup>,
}

impl Asker {
    fn ask(&mut self, scope: &mut Scope<'_, World>) {
        self.left -= 1;
        let number = (scope.random_u64() % NAMES) as u8;
        let name = format!("h{number}.example").parse().expect("a name");
        let asked = scope.dns.records().ask(Question { name, kind: Kind::A }, scope);
        let future = asked.expect("few are asked at a time");
        scope.log.borrow_mut().asked += 1;
        let deadline = scope.now() + LOOKUP_TIMEOUT;
        self.open.push(PendingLookup { number, deadline, future, busy: Busy::new(scope) });
        if scope.random_u64().is_multiple_of(8) {
            let given_up = scope.random_u64() as usize % self.open.len();
            self.open.swap_remove(given_up);
            scope.log.borrow_mut().given_up += 1;
        }
    }

    fn collect(mut self, scope: &mut Scope<'_, World>) -> Response<Self, Infallible> {
        let mut log = scope.log.borrow_mut();
        for PendingLookup { number, deadline, future, busy } in std::mem::take(&mut self.open) {
            match future.take() {
                Outcome::Pending(future) => {
                    self.open.push(PendingLookup { number, deadline, future, busy });
                    continue;
                }
                Outcome::Value(reply) if is_own(number, &reply) => log.answered += 1,
                // Any other answer belongs to a different name, so it is wrong.
                Outcome::Value(
                    reply @ (Ok(_) | Err(LookupError::NoSuchName(_) | LookupError::NoRecords(_))),
                ) => log.wrong.push(format!("h{number}: {reply:?}")),
                Outcome::Value(Err(error)) => log.failed.push(format!("h{number}: {error}")),
                Outcome::Lost(lost) => log.wrong.push(format!("h{number}: {lost}")),
            }
            log.lateness = log.lateness.max(scope.now() - deadline);
        }
        Response::keep(self)
    }
}

fn is_own(number: u8, reply: &LookupResult) -> bool {
    match reply {
        Ok(answer) => !is_none(number) && answer.data == [Data::A([192, 0, 2, number].into())],
        Err(LookupError::NoSuchName(name)) => {
            is_none(number) && name.as_str() == format!("h{number}.example")
        }
        Err(_) => false,
    }
}

/// Whether the host does not exist.
fn is_none(number: u8) -> bool {
    number % 7 == 5
}

/// Whether its answer fits only into TCP.
fn is_long(number: u8) -> bool {
    number.is_multiple_of(3)
}

/// The messages of the answer to a query. Some answers are preceded by others that have another id,
/// or are for another question.
fn answers(query: &[u8], is_tcp: bool, random: u64) -> Vec<Vec<u8>> {
    let (host, _) = wire::asked(query);
    let number: u8 =
        host[1..].split('.').next().and_then(|digits| digits.parse().ok()).unwrap_or(255);
    if is_long(number) && !is_tcp {
        return vec![wire::truncated(query)];
    }
    let mut messages = Vec::new();
    if !is_tcp && random.is_multiple_of(4) {
        let mut forged = wire::found(query, &[wire::address(&host, 254)]);
        // Changes the id, or a letter of the name.
        forged[if random.is_multiple_of(8) { 0 } else { 14 }] ^= 0x01;
        messages.push(forged);
    }
    messages.push(if is_none(number) {
        wire::reply(query, 3, &[], &[wire::authority(2)])
    } else {
        let data = [192, 0, 2, number];
        wire::found(query, &[wire::record(&wire::name(&host), wire::A, 3, &data)])
    });
    messages
}

impl Machine for Asker {
    type Context = World;
    type Seed = Infallible;

    fn ready(self, _: EventSet, scope: &mut Scope<'_, World>) -> Response<Self, Infallible> {
        self.collect(scope)
    }

    fn wakeup(self, scope: &mut Scope<'_, World>) -> Response<Self, Infallible> {
        self.collect(scope)
    }

    fn timeout(mut self, scope: &mut Scope<'_, World>) -> Response<Self, Infallible> {
        if self.left == 0 {
            return Response::ok(self);
        }
        self.ask(scope);
        let pause = Duration::from_millis(scope.random_u64() % 500);
        Response::ok(self).deadline(scope.now() + pause)
    }
}

type Machines<N> = Compose2<Resolver<N, World>, Asker>;

/// A host that looks up names. It never crashes, and has enough slots.
fn client_host<G: Ground>(
    sim: &mut Sim,
    servers: Vec<SocketAddr>,
    log: &Rc<RefCell<Log>>,
) -> Result<Host<Machines<G::Net>>, BoxError> {
    let faults = sim.faults();
    sim.set_faults(faults.clone().set(Fault::SmallSlab, 0.0));
    let log = log.clone();
    let mut conf = ResolvConf::default();
    (conf.timeout, conf.attempts, conf.rotate) = (TRY_TIMEOUT, 3, true);
    let config = ResolverConfig::new(conf).servers(servers).lookup_timeout(LOOKUP_TIMEOUT);
    let host = sim.host("clients", move |boot| {
        let mut creator: Loop<Machines<G::Net>, _> = G::new_loop(boot)?;
        let mut dns = None;
        creator.add_machine_with(|scope| {
            let (handle, response) =
                Resolver::new(config.clone().queries_max(4).cache_bytes_max(4_000), scope);
            dns = Some(handle);
            response.wrap(Compose2::A)
        })?;
        Ok(creator.instantiate(World { dns: dns.expect("the closure ran"), log: log.clone() }))
    })?;
    sim.set_faults(faults);
    sim.protect(host);
    Ok(host)
}

fn add_asker<N: IpNet + 'static>(sim: &mut Sim, host: Host<Machines<N>>, left: u32) {
    let asker = Asker { left, open: Vec::new() };
    let added = sim.with(host, |instance| {
        instance
            .add_machine_with(|scope| Response::ok(Compose2::B(asker)).deadline(scope.now()))
            .is_ok()
    });
    assert_eq!(added, Some(true), "the clients' host is up and has room");
}

#[test]
fn each_lookup_has_one_outcome_of_its_own_before_its_deadline() {
    let faults = stage::faults(|family| family == Family::Datagram);
    Check::new().seeds(stage::SEEDS).must_strike(faults).run(scenario::<Bytes>);
}

pub(crate) fn scenario<G: Ground>(sim: &mut Sim) -> Result<(), BoxError> {
    let served = Served::new(answers);
    let servers = ["first", "second"]
        .map(|name| simulated::serving_on::<G::Net>(sim, name, &served, G::backend));
    let [first, second] = servers;
    let (first, second) = (first?, second?);
    let addresses = [first, second].map(|host| SocketAddr::new(sim.address(host), 53)).to_vec();
    let log = Rc::<RefCell<Log>>::default();
    let clients = client_host::<G>(sim, addresses, &log)?;
    add_asker(sim, clients, 40);
    add_asker(sim, clients, 40);
    sim.run_for(FAULTY)?;
    sim.heal();
    sim.eventually(Duration::from_secs(120), |_| log.borrow().is_over(80))?;
    sim.run_for(Duration::from_secs(10))?;
    let failed = log.borrow().failed.len();
    add_asker(sim, clients, 20);
    sim.eventually(Duration::from_secs(60), |_| log.borrow().is_over(100))?;
    let log = log.borrow();
    if !log.wrong.is_empty() {
        return Err(log.wrong.join(", ").into());
    }
    // Another fault is a clock jump of a minute.
    if log.lateness > LATENESS_MAX && sim.fault_count(Fault::ClockJump) == 0 {
        return Err(format!("an outcome {:?} after its time", log.lateness).into());
    }
    // A server with few slots may have none for a connection, and so may the other one.
    if log.failed.len() != failed && sim.fault_count(Fault::SmallSlab) == 0 {
        return Err(format!("after the faults: {}", log.failed[failed..].join(", ")).into());
    }
    Ok(())
}
