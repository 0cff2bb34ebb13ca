//! Limits on the work of one turn, from the table in doc/architecture.md. However much is due at
//! the same time, no turn calls more machines, moves more bytes, accepts more or fires more timers
//! than the budgets of its loop and its streams allow.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rotor::net::ListenOptions;
use rotor::stream::{
    Accept, AcceptConfig, Exception, Intent, Matched, Protocol, Stream, StreamConfig, Transport,
};
use rotor::{BoxError, Loop, Notifier, Scope, Time};
use rotor_sim::net::{SimTcpListener, SimTcpStream};
use rotor_sim::{Check, Fault, Host, Network, Script, Sim, Watched, Work, WorkBounds};

use crate::stage::{self, Clients, PORT};

// Small budgets, and enough clients to reach each.
const WAKEUPS: u32 = 5;
const DEADLINES: u32 = 3;
const SCANNED: u32 = 4;
/// How many connections one call of a listener accepts: limited by its own budget, or by how many
/// spawns its loop allows.
const ACCEPTS: u32 = 2;
const READ: u32 = 1_000;
const WRITTEN: u32 = 700;
const CALLS: u32 = 8;
const CLIENTS: u32 = 14;
const PORTS: [u16; 2] = [PORT, PORT + 1];
const MACHINES: u32 = CLIENTS + PORTS.len() as u32;

/// By how much the last read of a budget may exceed it: a block.
const ROOM: u64 = 16 << 10;
/// More than some write budgets.
const MUCH: usize = 4_000;
const LINE_BYTES_MAX: usize = 3_600;
const INPUT_MAX: usize = 4_000;

/// The deadlines of all connections coincide, as after a burst.
const PERIOD: Duration = Duration::from_secs(1);
const PERIODS_MAX: u32 = 100;

/// How often a listener may be called in one turn, each time with a whole budget: once for an event
/// or for work left from the previous turn, and once because a slot is free again.
const LISTENER_CALLS: u64 = 2;

fn bounds() -> WorkBounds {
    let [wakeups, deadlines, scanned, accepts, machines] =
        [WAKEUPS, DEADLINES, SCANNED, ACCEPTS, MACHINES].map(u64::from);
    // A machine that wakes itself is removed from the list in one turn and called in the next.
    let wakeups = 2 * wakeups;
    // Events of each source (a simulated loop gets all of them) or events owed from the previous
    // turn; wakeups; deadlines that are due or overdue; and a drain, now or owed.
    let due = machines + wakeups + 2 * deadlines + 2 * scanned;
    // A listener spawns another machine and is notified of it.
    let accepts = accepts * PORTS.len() as u64 * LISTENER_CALLS;
    WorkBounds::new()
        .wakeups_per_turn(wakeups)
        .timeouts_per_turn(2 * deadlines)
        .accepts_per_turn(accepts)
        .calls_per_turn(due + 2 * accepts)
        .read_per_call(u64::from(READ) + ROOM)
        .read_per_turn((u64::from(READ) + ROOM) * machines)
        .written_per_call(u64::from(WRITTEN))
        .written_per_turn(u64::from(WRITTEN) * due)
}

/// The existing connections.
#[derive(Default)]
struct Roster {
    notifiers: Vec<Notifier>,
}

/// Echoes each line, except lines of dots. `much` gets a long answer, `wake` wakes all other
/// connections, and `late` sets a deadline in the past.
struct Task {
    periods: u32,
}

impl Task {
    fn wait(self, scope: &Scope<'_, Roster>) -> Intent<Self> {
        let next = Time::ZERO + PERIOD * (since_start(scope).as_secs() as u32 + 1);
        Intent::of(self).delimiter(b"\n", LINE_BYTES_MAX).deadline(next)
    }
}

fn since_start(scope: &Scope<'_, Roster>) -> Duration {
    scope.now() - Time::ZERO
}

impl Protocol for Task {
    type Context = Roster;
    type Seed = ();

    fn config(_: &()) -> Arc<StreamConfig> {
        let config = StreamConfig::new().read_budget(READ as usize).write_budget(WRITTEN as usize);
        config.calls_budget(CALLS).input_max(INPUT_MAX).share()
    }

    fn create((): (), _: &mut Transport<'_>, scope: &mut Scope<'_, Roster>) -> Intent<Self> {
        scope.notifiers.retain(Notifier::is_alive);
        let notifier = scope.notifier();
        scope.notifiers.push(notifier);
        Task { periods: 0 }.wait(scope)
    }

    fn bytes_read(
        self,
        line: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Roster>,
    ) -> Intent<Self> {
        let text = transport.input[..line.len()].to_vec();
        line.consume(transport.input);
        let written = match &text[..] {
            [b'.', ..] => Ok(()),
            b"much\n" => transport.output.write_all(&vec![b'+'; MUCH]),
            b"wake\n" => {
                scope.notifiers.iter().for_each(|notifier| {
                    notifier.wakeup();
                });
                transport.output.write_all(&text)
            }
            _ => transport.output.write_all(&text),
        };
        match written {
            Ok(()) if text == b"late\n" => {
                Intent::of(self).delimiter(b"\n", LINE_BYTES_MAX).deadline(scope.now())
            }
            Ok(()) => self.wait(scope),
            Err(error) => Intent::error(error),
        }
    }

    fn timeout(mut self, _: &mut Transport<'_>, scope: &mut Scope<'_, Roster>) -> Intent<Self> {
        self.periods += 1;
        if self.periods > PERIODS_MAX { Intent::done() } else { self.wait(scope) }
    }

    fn exception(
        self,
        _: Exception,
        _: &mut Transport<'_>,
        _: &mut Scope<'_, Roster>,
    ) -> Intent<Self> {
        Intent::done()
    }

    fn draining(self, _: Time, _: &mut Transport<'_>, _: &mut Scope<'_, Roster>) -> Intent<Self> {
        Intent::done()
    }
}

type Server = Accept<Stream<Task, SimTcpStream>, SimTcpListener>;

fn serve(sim: &mut Sim) -> Result<Host<Watched<Server>>, BoxError> {
    // One of the two budgets for accepting is the lower one, depending on the seed, so that each is
    // tested.
    let (accepts, spawns) =
        if sim.seed().is_multiple_of(2) { (ACCEPTS, 1_024) } else { (1_024, ACCEPTS - 1) };
    let host = sim.host("server", move |boot| {
        let config = boot.config().machines_max(MACHINES as usize);
        let config = config.spawns_per_event(spawns).wakeups_per_turn(WAKEUPS);
        let config = config.timeouts_per_turn(DEADLINES).scan_budget(SCANNED as usize);
        let mut creator = Loop::<Watched<Server>, _>::with_backend(boot.backend(), &config)?;
        for port in PORTS {
            let address = SocketAddr::new(boot.address(), port);
            creator.add_machine_with(|scope| {
                let accept = AcceptConfig::new().accept_budget(accepts);
                Watched::make(scope, |scope| {
                    Accept::bind(&address, &ListenOptions::new(), (), accept, scope)
                })
            })?;
        }
        Ok(creator.instantiate(Roster::default()))
    })?;
    sim.bound_work(host, bounds());
    Ok(host)
}

fn script(number: u32) -> Script {
    let line = |request: u32| format!("client {number}, request {request}\n").into_bytes();
    let lines: Vec<u8> = (0..40).flat_map(line).collect();
    let mut dots = vec![b'.'; LINE_BYTES_MAX - 1];
    dots.push(b'\n');
    let dots = dots.repeat(if number == 0 { 20 } else { 1 });
    // Most lines are sent at the same time, so much is due at once.
    let pause = Duration::from_millis(u64::from(number % 3));
    let mut script = stage::persistent_script();
    for _ in 0..2 {
        script = script.pause(pause).send(b"much\n").expect(&[b'+'; MUCH]);
        script =
            script.send(b"wake\n").expect(b"wake\n").pause(pause).send(b"late\n").expect(b"late\n");
        script = script.send(&dots).send(&lines).expect(&lines).pause(2 * PERIOD);
    }
    script.shutdown().expect_end()
}

/// Returns the most work of a turn, and of a call.
fn scenario(sim: &mut Sim) -> Result<(Work, Work), BoxError> {
    // The slab of this loop is small anyway; its size is set here.
    let faults = sim.faults().set(Fault::SmallSlab, 0.0);
    sim.set_faults(faults.set(Fault::Gather, 1.0));
    // Windows wide enough for budgets to be spent.
    sim.set_network(Network::new().draining(0.5));
    let server = serve(sim)?;
    let mut clients = PORTS.map(|port| Clients::<SimTcpStream>::at(sim, server, port));
    for number in 0..CLIENTS {
        if let Ok(clients) = &mut clients[number as usize % PORTS.len()] {
            clients.add(sim, script(number));
        }
    }
    sim.run_for(stage::FAULTY)?;
    stage::heal(sim, server)?;
    for clients in clients {
        clients?.assert_all_complete(sim)?;
    }
    let most = (sim.most_of_turns(server), sim.most_of_calls(server));
    stage::drain(sim, server)?;
    Ok(most)
}

#[test]
fn no_turn_exceeds_its_budgets() {
    Check::new().seeds(stage::SEEDS).run(|sim| scenario(sim).map(drop));
}

/// The bounds would prove nothing if no run came near them.
#[test]
fn the_bounds_of_a_turn_are_reached_in_a_calm_network() {
    Check::new().seeds(2).calm().run(|sim| {
        let (turn, call) = scenario(sim)?;
        let clients = u64::from(CLIENTS);
        let reached = [
            ("accepts", turn.accepts, u64::from(ACCEPTS) * PORTS.len() as u64),
            ("deadlines", turn.timeouts, u64::from(DEADLINES)),
            ("wake-ups", turn.wakeups, u64::from(WAKEUPS)),
            ("calls", turn.calls, clients / 2),
            ("bytes read in a call", call.read, u64::from(READ)),
            ("bytes read", turn.read, u64::from(READ) * clients / 4),
            ("bytes written in a call", call.written, u64::from(WRITTEN)),
            ("bytes written", turn.written, u64::from(WRITTEN) * clients / 4),
        ];
        match reached.into_iter().find(|(_, most, expected)| most < expected) {
            None => Ok(()),
            Some((what, most, expected)) => {
                Err(format!("{what}: {most} at most, and not {expected}").into())
            }
        }
    });
}
