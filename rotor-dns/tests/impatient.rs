//! Lookups that are given up and begun again, with few queries at a time and servers that are often
//! silent, in virtual time: each that is not given up has its outcome, and no query is left over.

#[path = "servers/machine.rs"]
mod machine;
#[path = "servers/simulated.rs"]
mod simulated;
#[expect(dead_code, reason = "other tests need the rest")]
#[path = "servers/wire.rs"]
mod wire;

use std::cell::Cell;
use std::net::SocketAddr;
use std::time::Duration;

use machine::Served;
use rotor_core::{BoxError, Compose2, Future, Infallible, Machine, Outcome, Response, Scope};
use rotor_dns::{Dns, LookupError, ResolvConf, Resolver, ResolverConfig};
use rotor_sim::net::SimNet;
use rotor_sim::{Check, Sim};
use rotor_stream::ResolveResult;

const HOSTS: u64 = 12;
const ROUNDS: u32 = 60;
const ROUND: Duration = Duration::from_millis(150);
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(6);

struct Context {
    dns: Dns,
    found: usize,
}

/// In each round, gives up some lookups and begins others.
struct Impatient {
    waits: Vec<Future<ResolveResult>>,
    rounds_left: u32,
}

impl Impatient {
    fn take_outcomes(&mut self, context: &mut Context) -> Result<(), BoxError> {
        for future in std::mem::take(&mut self.waits) {
            match future.take() {
                Outcome::Pending(future) => self.waits.push(future),
                Outcome::Value(Ok(found)) if !found.is_empty() => context.found += 1,
                Outcome::Value(Ok(_)) => return Err("it was found, without an address".into()),
                Outcome::Value(Err(error)) => {
                    let cause = std::error::Error::source(&error);
                    match cause.and_then(|cause| cause.downcast_ref()) {
                        // No query ends without a reason while somebody waits for it.
                        None | Some(LookupError::Lost) => return Err(error.into()),
                        // The faults of the simulation: no slot, a server that is down.
                        Some(_) => {}
                    }
                }
                Outcome::Lost(lost) => return Err(lost.into()),
            }
        }
        Ok(())
    }
}

impl Machine for Impatient {
    type Context = Context;
    type Seed = Infallible;

    fn timeout(mut self, scope: &mut Scope<'_, Context>) -> Response<Self, Infallible> {
        self.waits.retain(|_| !scope.random_u64().is_multiple_of(3));
        for _ in 0..scope.random_u64() % 4 {
            let name = format!("h{}.example", scope.random_u64() % HOSTS);
            // With 16 lookups under way and as many that wait, some are refused.
            self.waits.extend(scope.dns.addresses().ask(name.into(), scope));
        }
        self.rounds_left -= 1;
        let deadline = (self.rounds_left > 0).then_some(scope.now() + ROUND);
        Response::ok(self).deadline_opt(deadline)
    }

    fn wakeup(mut self, scope: &mut Scope<'_, Context>) -> Response<Self, Infallible> {
        match self.take_outcomes(scope) {
            Ok(()) => Response::keep(self),
            Err(error) => Response::error(error),
        }
    }
}

type Client = Compose2<Resolver<SimNet, Context>, Impatient>;

/// Returns how many lookups succeeded.
fn impatient_lookups(sim: &mut Sim) -> Result<usize, BoxError> {
    // It never answers questions for the IPv6 addresses of some hosts.
    let served = Served::new(|query, _, random| {
        let (host, kind) = wire::asked(query);
        let is_odd = host.split('.').next().is_some_and(|label| label.ends_with(['1', '3', '5']));
        let is_silent = random.is_multiple_of(4) || (is_odd && kind == wire::AAAA);
        if is_silent { vec![] } else { vec![wire::found(query, &[wire::address(&host, 1)])] }
    });
    let server = simulated::serving(sim, "server", &served)?;
    let target = SocketAddr::new(sim.address(server), 53);
    let clients = sim.host("clients", move |boot| {
        let mut creator = boot.new_loop::<Client>()?;
        let conf = ResolvConf::parse("options timeout:3 attempts:2");
        // Without a cache, each lookup asks.
        let config = ResolverConfig::new(conf).servers(vec![target]).lookups_max(16).queries_max(3);
        let config = config.cache_bytes_max(0).lookup_timeout(LOOKUP_TIMEOUT);
        let dns = creator.add_part(Compose2::A, |scope| Ok(Resolver::new(config, scope)))?;
        creator.add_machine_with(|scope| {
            let machine = Impatient { waits: Vec::new(), rounds_left: ROUNDS };
            Response::ok(Compose2::B(machine)).deadline(scope.now())
        })?;
        Ok(creator.instantiate(Context { dns, found: 0 }))
    })?;
    sim.protect(clients);
    sim.run_for(ROUND * ROUNDS + LOOKUP_TIMEOUT)?;
    // A stalled loop replies late, by as long as it stalls. The resolver and the one who asked stay.
    sim.eventually(Duration::from_secs(60), move |sim| {
        let waiting: Vec<Option<usize>> =
            sim.machines(clients, |_, machine: &Client| match machine {
                Compose2::A(_) => None,
                Compose2::B(impatient) => Some(impatient.waits.len()),
            });
        waiting == [None, Some(0)]
    })?;
    Ok(sim.with(clients, |instance| instance.context().found).unwrap_or(0))
}

#[test]
fn lookups_not_given_up_have_an_outcome_and_no_query_is_left_over() {
    let found = Cell::new(0);
    Check::new().seeds(100).run(|sim| {
        found.set(found.get() + impatient_lookups(sim)?);
        Ok(())
    });
    assert!(found.get() > 0, "most names have an address");
}
