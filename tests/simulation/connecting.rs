//! Attempts to connect, to one address and to a host with several. Some addresses refuse, some are
//! silent, some are slow. Each attempt leads to a connection if one is possible, and otherwise
//! fails with the reason of one of the addresses.

use std::net::SocketAddr;
use std::time::Duration;

use rotor::dns::{Dns, Hosts, ResolvConf, Resolver, ResolverConfig};
use rotor::stream::{
    AddressService, Connect, Fatal, HasResolver, Host as Named, Intent, Matched, Protocol, Stream,
    Transport,
};
use rotor::{BoxError, Loop, Response, Scope, rotor_compose};
use rotor_sim::net::{SimNet, SimTcpStream};
use rotor_sim::{Busy, Check, Fault, Host, Network, ScriptClient, Sim, attempt_failed};

use crate::lines;
use crate::stage::{self, FAULTY, PORT};

const LINE: &[u8] = b"hello\n";
/// The host name with all addresses.
const NAME: &str = "many";
/// No host has this address: packets to it are lost.
const NOWHERE: &str = "192.0.2.1";

/// The results of the callers.
struct Callers {
    dns: Dns,
    answered: u32,
    failed: Vec<String>,
}

impl HasResolver for Callers {
    fn addresses(&self) -> &AddressService {
        self.dns.addresses()
    }
}

/// Sends a line and waits for its echo.
struct Caller {
    _busy: Busy,
}

impl Protocol for Caller {
    type Context = Callers;
    type Seed = Option<Busy>;

    fn create(
        busy: Option<Busy>,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Callers>,
    ) -> Intent<Self> {
        let caller = Caller { _busy: busy.unwrap_or_else(|| Busy::new(scope)) };
        match transport.output.write_pieces(&[LINE]) {
            Ok(()) => {
                Intent::of(caller).bytes(LINE.len()).deadline(scope.now() + Duration::from_secs(20))
            }
            Err(error) => Intent::error(error),
        }
    }

    fn bytes_read(
        self,
        line: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Callers>,
    ) -> Intent<Self> {
        line.consume(transport.input);
        scope.answered += 1;
        Intent::done()
    }

    fn not_connected(_: Option<Busy>, error: Fatal, scope: &mut Scope<'_, Callers>) {
        attempt_failed(&error, scope);
        scope.failed.push(rotor::with_causes(&error).to_string());
    }
}

rotor_compose! {
    enum Machines <Callers> {
        Resolver(Resolver<SimNet, Callers>),
        ByName(Connect<Caller, SimTcpStream, Named>),
        ByAddress(Stream<Caller, SimTcpStream>),
    }
}

/// A host of callers that resolves the name to these addresses. It never crashes or panics, and has
/// enough slots.
fn caller_host(sim: &mut Sim, addresses: &[String]) -> Result<Host<Machines>, BoxError> {
    let faults = sim.faults();
    sim.set_faults(faults.clone().set(Fault::SmallSlab, 0.0));
    let hosts: String = addresses.iter().map(|address| format!("{address} {NAME}\n")).collect();
    let host = sim.host("callers", move |boot| {
        let mut creator: Loop<Machines, _> = boot.new_loop()?;
        let hosts = Hosts::parse(&hosts);
        let config = ResolverConfig::new(ResolvConf::default()).servers(Vec::new()).hosts(hosts);
        let dns = creator.add_part(Machines::Resolver, |scope| Ok(Resolver::new(config, scope)))?;
        Ok(creator.instantiate(Callers { dns, answered: 0, failed: Vec::new() }))
    })?;
    sim.set_faults(faults);
    sim.protect(host);
    Ok(host)
}

/// Adds a caller. Returns whether it could start.
fn add(
    sim: &mut Sim,
    callers: Host<Machines>,
    make: impl FnOnce(Option<Busy>, &mut Scope<'_, Callers>) -> Response<Machines>,
) -> bool {
    let added = sim.with(callers, |instance| {
        instance.add_machine_with(|scope| make(Some(Busy::new(scope)), scope)).is_ok()
    });
    added == Some(true)
}

fn call_by_name(sim: &mut Sim, callers: Host<Machines>) -> bool {
    let destination = Named::new(NAME, PORT);
    add(sim, callers, |busy, scope| Connect::new(&destination, busy, scope).wrap(Machines::ByName))
}

fn call_by_address(sim: &mut Sim, callers: Host<Machines>, server: SocketAddr) -> bool {
    add(sim, callers, |busy, scope| Stream::connect(&server, busy, scope).wrap(Machines::ByAddress))
}

/// The addresses of the name, in any order: one that answers, and some of three that do not (two
/// refuse, one is silent).
fn addresses<M>(sim: &mut Sim, server: Host<M>) -> Result<Vec<String>, BoxError> {
    let mut addresses = vec![sim.address(server).to_string()];
    for name in ["refusing", "refusing too"] {
        type Nobody = ScriptClient<SimTcpStream, ()>;
        let host = sim.host(name, |boot| Ok(boot.new_loop::<Nobody>()?.instantiate(())))?;
        addresses.push(sim.address(host).to_string());
    }
    addresses.push(NOWHERE.into());
    for _ in 0..sim.random_u64() % 3 {
        addresses.remove(1 + (sim.random_u64() % (addresses.len() as u64 - 1)) as usize);
    }
    for last in (1..addresses.len()).rev() {
        addresses.swap(last, sim.random_u64() as usize % (last + 1));
    }
    Ok(addresses)
}

/// How many callers were answered, and the errors of those that got no connection.
fn outcomes(sim: &mut Sim, callers: Host<Machines>) -> (u32, Vec<String>) {
    sim.with(callers, |instance| (instance.context().answered, instance.context().failed.clone()))
        .unwrap_or_default()
}

/// Attempts are 250 ms apart and take up to more than a second, so some are pending when others
/// fail.
fn slow_network() -> Network {
    Network::new().latency(Duration::from_millis(10)..Duration::from_millis(600))
}

#[test]
fn a_caller_with_one_working_address_connects_whatever_the_others_do() {
    Check::new().seeds(40).calm().run(|sim| {
        sim.set_network(slow_network());
        let server = lines::serve(sim, "server")?;
        let addresses = addresses(sim, server)?;
        let callers = caller_host(sim, &addresses)?;
        for _ in 0..10 {
            assert!(call_by_name(sim, callers));
            sim.run_for(Duration::from_millis(300))?;
        }
        sim.run_for(Duration::from_secs(30))?;
        assert_eq!(outcomes(sim, callers), (10, Vec::new()), "{addresses:?}");
        Ok(())
    });
}

#[test]
fn each_failed_attempt_has_a_cause_and_none_follows_the_healing() {
    Check::new().seeds(stage::SEEDS).must_strike([Fault::SpuriousEdge, Fault::ConnectRefused]).run(
        |sim| {
            if sim.random_u64().is_multiple_of(2) {
                sim.set_network(slow_network());
            }
            let server = lines::serve(sim, "server")?;
            let at = SocketAddr::new(sim.address(server), PORT);
            let addresses = addresses(sim, server)?;
            let callers = caller_host(sim, &addresses)?;
            for _ in 0..40 {
                call_by_name(sim, callers);
                call_by_address(sim, callers, at);
                sim.run_for(FAULTY / 40)?;
            }
            stage::heal(sim, server)?;
            // Everything that was started must end, including what has filled a small slab.
            sim.run_for(Duration::from_secs(300))?;
            let before = outcomes(sim, callers);
            for _ in 0..10 {
                assert!(call_by_name(sim, callers) && call_by_address(sim, callers, at));
                sim.run_for(Duration::from_secs(5))?;
            }
            sim.run_for(Duration::from_secs(30))?;
            let after = outcomes(sim, callers);
            if after.0 != before.0 + 20 || after.1.len() != before.1.len() {
                return Err(format!(
                    "{} of 20, of {addresses:?}: {:?}",
                    after.0 - before.0,
                    after.1
                )
                .into());
            }
            stage::drain(sim, server)
        },
    );
}

/// An address that was not tried for want of a descriptor is tried again while an earlier attempt is
/// under way.
#[test]
fn an_address_is_tried_again_if_an_earlier_attempt_had_the_last_descriptor() {
    Check::new().seeds(1).calm().run(|sim| {
        let server = lines::serve(sim, "server")?;
        let addresses = [NOWHERE.to_owned(), sim.address(server).to_string()];
        let callers = caller_host(sim, &addresses)?;
        assert!(call_by_name(sim, callers));
        sim.run_for(Duration::from_millis(100))?;
        let faults = sim.faults();
        sim.set_faults(faults.clone().set(Fault::ConnectExhausted, 1.0));
        sim.run_for(Duration::from_secs(1))?;
        assert_eq!(outcomes(sim, callers), (0, Vec::new()));
        assert!(sim.fault_count(Fault::ConnectExhausted) > 0);
        sim.set_faults(faults);
        sim.run_for(Duration::from_secs(1))?;
        assert_eq!(outcomes(sim, callers), (1, Vec::new()));
        Ok(())
    });
}

#[test]
fn the_trace_gives_the_reason_of_each_failed_connect_also_by_name() {
    Check::new().seeds(1).calm().run(|sim| {
        sim.keep_trace();
        let callers = caller_host(sim, &[NOWHERE.to_owned()])?;
        let nowhere = SocketAddr::new(NOWHERE.parse()?, PORT);
        assert!(call_by_name(sim, callers) && call_by_address(sim, callers, nowhere));
        sim.run_for(Duration::from_secs(200))?;
        let trace = sim.trace();
        let says = trace.lines().filter(|line| line.ends_with(": ConnectTimeout")).count();
        let attempts = outcomes(sim, callers).1.len();
        let is_right = (says, attempts) == (2, 2);
        is_right.then_some(()).ok_or_else(|| format!("{says} times in:\n{trace}").into())
    });
}
