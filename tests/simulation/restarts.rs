//! A server that is drained while its clients send requests. No request is lost that was sent
//! before its connection said `Connection: close`, on existing connections and on new ones. If a
//! successor has a copy of the listener, no connection is refused either.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use rotor::stream::{Connect, Exception, Fatal, Intent, Matched, Protocol, Transport};
use rotor::{BoxError, Drain, Exit, Grace, Scope};
use rotor_sim::net::SimTcpStream;
use rotor_sim::{Check, Family, Fault, Host, Sim, Watched};

use crate::draining::set_faults;
use crate::requests::{self, Server};
use crate::stage::PORT;

const REQUEST: &[u8] =
    b"POST / HTTP/1.1\r\nHost: server\r\nX-Tag: a\r\nContent-Length: 4\r\n\r\npay!";

/// The longest pause of a client between two requests. It is shorter than the grace by more than
/// two network latencies.
const PAUSE: Duration = Duration::from_millis(700);

/// The results of all clients' requests.
#[derive(Default)]
struct Ledger {
    answered: u32,
    /// Responses that said `Connection: close`.
    closed: u32,
    /// Clients that were answered at least once.
    served: u32,
    lost: Vec<String>,
}

/// A client that keeps its connection, and checks what the responses say about it.
struct Asker {
    number: u32,
    /// How many requests are left to send.
    left: u32,
    is_served: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    Resting,
    Head,
    Body { is_last: bool },
}

impl Asker {
    fn rest(mut self, scope: &Scope<'_, Ledger>) -> Intent<Self> {
        if self.left == 0 {
            return Intent::done();
        }
        self.state = State::Resting;
        let pause = Duration::from_millis(scope.random_u64() % PAUSE.as_millis() as u64);
        // Nothing more is expected: this waits for EOF.
        Intent::of(self).bytes(1).deadline(scope.now() + pause)
    }

    fn ended(&self, why: &str, scope: &mut Scope<'_, Ledger>) {
        if !matches!(self.state, State::Resting) {
            let lost = format!("client {}: {:?}, {why}", self.number, self.state);
            scope.lost.push(lost);
        }
    }
}

impl Protocol for Asker {
    type Context = Ledger;
    type Seed = (u32, u32);

    fn create(
        (number, left): (u32, u32),
        _: &mut Transport<'_>,
        scope: &mut Scope<'_, Ledger>,
    ) -> Intent<Self> {
        Asker { number, left, is_served: false, state: State::Resting }.rest(scope)
    }

    fn timeout(
        mut self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Ledger>,
    ) -> Intent<Self> {
        if !matches!(self.state, State::Resting) {
            self.ended("no answer", scope);
            return Intent::done();
        }
        if let Err(error) = transport.output.write_all(REQUEST) {
            return Intent::error(error);
        }
        self.left -= 1;
        self.state = State::Head;
        Intent::of(self).delimiter(b"\r\n\r\n", 4_096).deadline(scope.now() + PAUSE * 100)
    }

    fn bytes_read(
        mut self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Ledger>,
    ) -> Intent<Self> {
        let text = String::from_utf8_lossy(matched.content(transport.input)).to_lowercase();
        matched.consume(transport.input);
        match self.state {
            State::Head => {
                self.state = State::Body { is_last: text.contains("connection: close") };
                Intent::of(self).bytes(4).keep_deadline()
            }
            State::Body { is_last } => {
                scope.answered += 1;
                scope.closed += u32::from(is_last);
                scope.served += u32::from(!self.is_served);
                self.is_served = true;
                if is_last { Intent::done() } else { self.rest(scope) }
            }
            State::Resting => {
                scope.lost.push(format!("client {}: {text} for nothing", self.number));
                Intent::done()
            }
        }
    }

    fn exception(
        self,
        exception: Exception,
        _: &mut Transport<'_>,
        scope: &mut Scope<'_, Ledger>,
    ) -> Intent<Self> {
        self.ended(&exception.to_string(), scope);
        Intent::done()
    }

    fn fatal(self, fatal: Fatal, scope: &mut Scope<'_, Ledger>) {
        self.ended(&fatal.to_string(), scope);
    }
}

type Clients = Host<Connect<Asker, SimTcpStream>>;

fn clients(sim: &mut Sim) -> Result<Clients, BoxError> {
    let faults = sim.faults();
    sim.set_faults(faults.clone().set(Fault::SmallSlab, 0.0));
    let clients =
        sim.host("clients", |boot| Ok(boot.new_loop()?.instantiate(Ledger::default())))?;
    sim.set_faults(faults);
    sim.protect(clients);
    Ok(clients)
}

/// Clients arrive all the time, some with one request, some with many.
fn run(
    sim: &mut Sim,
    clients: Clients,
    target: SocketAddr,
    first: u32,
    count: u32,
) -> Result<(), BoxError> {
    for number in first..first + count {
        let requests = if number % 2 == 0 { 1 } else { 40 };
        sim.with(clients, |instance| {
            instance
                .add_machine_with(|scope| Connect::new(&target, (number, requests), scope))
                .is_ok()
        });
        let pause = Duration::from_millis(sim.random_u64() % 60);
        sim.run_for(pause)?;
    }
    Ok(())
}

fn scenario(sim: &mut Sim) -> Result<(), BoxError> {
    set_faults(sim);
    // A slab that is too small closes idle connections to make room.
    let faults = sim.faults();
    sim.set_faults(faults.clone().set(Fault::SmallSlab, 0.0));
    let server = requests::serve(sim)?;
    sim.set_faults(faults);
    sim.protect(server);
    let clients = clients(sim)?;
    let target = SocketAddr::new(sim.address(server), PORT);
    let before = 10 + (sim.random_u64() % 20) as u32;
    run(sim, clients, target, 0, before)?;
    if sim.random_u64().is_multiple_of(2) {
        sim.pause(server, Duration::from_millis(100));
    }
    let announce = Duration::from_millis([0, 0, 300, 2_000][(sim.random_u64() % 4) as usize]);
    let grace =
        [Grace::For(Duration::from_secs(1)), Grace::WholeDrain][(sim.random_u64() % 2) as usize];
    let drain = Drain::new(Duration::from_secs(60)).announce(announce).grace(grace);
    sim.note(format!("{drain:?}"));
    sim.with(server, |instance| instance.handle().drain_with(drain));
    run(sim, clients, target, before, 30)?;
    ends(sim, server, drain)?;
    sim.run_for(Duration::from_secs(10))?;
    check(sim, clients)?;
    Ok(())
}

/// The server's loop ends by itself within the drain.
fn ends(sim: &mut Sim, server: Host<Watched<Server>>, drain: Drain) -> Result<(), BoxError> {
    sim.run_until(drain.in_all() + Duration::from_secs(10), |sim| sim.exit(server).is_some())?;
    if sim.exit(server) != Some(Exit::Drained { dropped: 0 }) {
        return Err(format!("the server ended by {:?}", sim.exit(server)).into());
    }
    Ok(())
}

/// Checks that nothing was lost. Returns how many clients were answered.
fn check(sim: &mut Sim, clients: Clients) -> Result<u32, BoxError> {
    let ledger = sim.with(clients, |instance| std::mem::take(instance.context_mut()));
    let ledger = ledger.ok_or("the clients are up")?;
    if !ledger.lost.is_empty() {
        return Err(format!("lost: {:?}", ledger.lost).into());
    }
    if ledger.answered == 0 || ledger.closed == 0 {
        return Err(format!("{} answers, {} the last", ledger.answered, ledger.closed).into());
    }
    Ok(ledger.served)
}

/// Starts a successor that has a copy of the listener. Both accept until the old server is told to
/// drain, which happens once the successor says that it is ready.
fn hand_over(sim: &mut Sim) -> Result<(), BoxError> {
    set_faults(sim);
    // With these faults off, only the servers can be the reason why a client is not served.
    sim.set_faults(sim.faults().without(Family::SmallSlab).without(Family::Connect));
    let server = requests::serve(sim)?;
    sim.protect(server);
    let clients = clients(sim)?;
    let target = SocketAddr::new(sim.address(server), PORT);
    let before = 10 + (sim.random_u64() % 20) as u32;
    run(sim, clients, target, 0, before)?;
    let successor = requests::follow(sim, target)?;
    sim.protect(successor);
    run(sim, clients, target, before, 10)?;
    if sim.random_u64().is_multiple_of(2) {
        sim.pause(server, Duration::from_millis(100));
    }
    let drain = Drain::new(Duration::from_secs(60)).grace(Grace::WholeDrain);
    sim.with(server, |instance| instance.handle().drain_with(drain));
    run(sim, clients, target, before + 10, 30)?;
    ends(sim, server, drain)?;
    // As many pauses as a client has requests.
    sim.run_for(PAUSE * 50)?;
    let served = check(sim, clients)?;
    if served != before + 40 {
        return Err(format!("{served} of {} clients were served", before + 40).into());
    }
    Ok(())
}

#[test]
fn no_request_sent_before_a_connection_close_is_lost() {
    Check::new().seeds(60).run(scenario);
}

#[test]
fn clients_that_connect_during_a_listener_hand_over_are_served() {
    Check::new().seeds(60).run(hand_over);
}
