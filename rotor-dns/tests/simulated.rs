//! The resolver with faults, in virtual time: every question gets one reply, the right one, before
//! its deadline.
#![expect(dead_code, reason = "the answers are made by a module that other tests use more of")]

#[path = "servers/wire.rs"]
mod wire;

use std::net::SocketAddr;
use std::time::Duration;

use rotor_core::net::DatagramSocket;
use rotor_core::{
    BoxError, Compose2, EventSet, Future, Infallible, Interest, Machine, Outcome, Response, Scope,
};
use rotor_dns::{Data, Dns, Kind, LookupResult, Question, ResolvConf, Resolver, ResolverConfig};
use rotor_sim::net::{SimNet, SimUdpSocket};
use rotor_sim::{Check, Fault, Faults, Host, Sim};

const QUESTIONS: u8 = 20;
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(8);

/// Answers each question for the address of `hN.example` with an address that ends in N, sometimes
/// after an answer with a forged id.
struct NameServer(SimUdpSocket);

impl Machine for NameServer {
    type Context = ();
    type Seed = Infallible;
    fn ready(mut self, _: EventSet, scope: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        let mut buffer = [0; 512];
        loop {
            match self.0.receive_from(&mut buffer) {
                Ok((length, from)) => {
                    let query = &buffer[..length];
                    let (host, _) = wire::asked(query);
                    let number = host.trim_start_matches('h').split('.').next().unwrap_or_default();
                    let number: u8 = number.parse().unwrap_or_default();
                    if scope.random_u64().is_multiple_of(4) {
                        let mut forged = wire::found(query, &[wire::address(&host, 255)]);
                        forged[0] ^= 0x55;
                        let _ = self.0.send_to(&forged, &from);
                    }
                    // An answer that the system has no room for is lost, as a datagram may be.
                    let _ =
                        self.0.send_to(&wire::found(query, &[wire::address(&host, number)]), &from);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return Response::ok(self),
            }
        }
    }
}

struct Context {
    dns: Dns,
    replies: Vec<(u8, Option<LookupResult>)>,
}

/// Asks everything in one turn and records the replies.
#[derive(Default)]
struct Asker(Vec<(u8, Future<LookupResult>)>);

impl Machine for Asker {
    type Context = Context;
    type Seed = Infallible;
    fn timeout(mut self, scope: &mut Scope<'_, Context>) -> Response<Self, Infallible> {
        for number in 0..QUESTIONS {
            // Each name is asked for twice; the second question joins the first.
            let name = format!("h{}.example", number / 2).parse().expect("a name");
            let future = scope
                .dns
                .records()
                .ask(Question { name, kind: Kind::A }, scope)
                .expect("there is room");
            self.0.push((number, future));
        }
        Response::ok(self)
    }
    fn wakeup(mut self, scope: &mut Scope<'_, Context>) -> Response<Self, Infallible> {
        for (number, future) in std::mem::take(&mut self.0) {
            match future.take() {
                Outcome::Pending(future) => self.0.push((number, future)),
                Outcome::Value(reply) => scope.replies.push((number, Some(reply))),
                Outcome::Lost(_) => scope.replies.push((number, None)),
            }
        }
        Response::ok(self)
    }
}

type Client = Compose2<Resolver<SimNet, Context>, Asker>;

/// Starts a name server, and a host whose machine asks it.
fn start_hosts(sim: &mut Sim) -> Result<Host<Client>, BoxError> {
    let server = sim.host("server", |boot| {
        let mut creator = boot.new_loop()?;
        let address = SocketAddr::new(boot.address(), 53);
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let mut socket = SimUdpSocket::bind(&address, scope)?;
                scope.register(&mut socket, Interest::Both)?;
                Ok(Response::ok(NameServer(socket)))
            })
        })?;
        Ok(creator.instantiate(()))
    })?;
    let target = SocketAddr::new(sim.address(server), 53);
    let clients = sim.host("clients", move |boot| {
        let mut creator = boot.new_loop::<Client>()?;
        let mut conf = ResolvConf::default();
        (conf.timeout, conf.attempts) = (Duration::from_secs(1), 4);
        let config = ResolverConfig::new(conf).servers(vec![target]).lookup_timeout(LOOKUP_TIMEOUT);
        let mut dns = None;
        creator.add_machine_with(|scope| {
            let (handle, response) = Resolver::new(config.queries_max(3), scope);
            dns = Some(handle);
            response.wrap(Compose2::A)
        })?;
        creator.add_machine_with(|scope| {
            Response::ok(Compose2::B(Asker::default())).deadline(scope.now())
        })?;
        Ok(creator.instantiate(Context { dns: dns.expect("made above"), replies: Vec::new() }))
    })?;
    sim.protect(clients);
    Ok(clients)
}

fn has_all_replies(sim: &mut Sim, clients: Host<Client>) -> bool {
    let count = sim.with(clients, |instance| instance.context().replies.len());
    count == Some(usize::from(QUESTIONS))
}

fn lookups(sim: &mut Sim) -> Result<(), BoxError> {
    let clients = start_hosts(sim)?;
    sim.run_for(LOOKUP_TIMEOUT)?;
    // A stalled loop replies late, by as long as it stalls.
    sim.eventually(Duration::from_secs(60), |sim| has_all_replies(sim, clients))?;
    sim.with(clients, |instance| check_replies(&instance.context().replies)).unwrap_or(Ok(()))?;
    Ok(())
}

fn check_replies(replies: &[(u8, Option<LookupResult>)]) -> Result<(), String> {
    if replies.len() != usize::from(QUESTIONS) {
        return Err(format!("{} replies to {QUESTIONS} questions", replies.len()));
    }
    for (number, reply) in replies {
        let expected = [Data::A([192, 0, 2, number / 2].into())];
        match reply {
            Some(Ok(answer)) if answer.data != expected => {
                return Err(format!("{number} got {answer:?}"));
            }
            None => return Err(format!("{number} got no reply")),
            _ => {}
        }
    }
    Ok(())
}

#[test]
fn every_question_gets_its_own_reply_or_an_error_in_time() {
    Check::new().seeds(300).run(lookups);
}

#[test]
fn a_query_whose_sending_was_interrupted_is_sent_at_once() {
    Check::new().seeds(1).calm().run(|sim| {
        let clients = start_hosts(sim)?;
        // Not each time: no time passes until the first queries are sent.
        sim.set_faults(Faults::none().set(Fault::Interrupted, 0.9));
        sim.run_for(Duration::from_micros(50))?;
        sim.set_faults(Faults::none());
        // A server has a second to answer.
        sim.run_until(Duration::from_millis(500), |sim| has_all_replies(sim, clients))?;
        Ok(())
    });
}
