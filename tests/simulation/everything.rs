//! The unmodified example `everything`, on simulated sockets and in virtual time. A client that
//! requests a page gets that page in the end, whatever happens to the network, the page server and
//! the application. Everything that is counted was sent.

#[path = "../../examples/everything/front.rs"]
mod front;
#[path = "../../examples/everything/machine.rs"]
mod machine;
#[path = "../../examples/everything/stats.rs"]
mod stats;
#[path = "../../examples/everything/statsd.rs"]
mod statsd;
#[path = "../../examples/everything/ticker.rs"]
mod ticker;

use std::net::SocketAddr;
use std::time::Duration;

use rotor::dns::{Hosts, ResolvConf, ResolverConfig};
use rotor::net::DatagramSocket;
use rotor::{BoxError, Exit, Infallible, Loop, Machine, Response, Scope};
use rotor_sim::net::{SimNet, SimTcpStream, SimUdpSocket};
use rotor_sim::{Check, Host, Script, Sim};

use self::machine::{App, Plan};
use self::stats::Own;
use crate::http_pool::{Ledger, serving};
use crate::stage::{self, Clients, FAULTY, PORT};

const STATSD_PORT: u16 = 8125;
const CLIENTS: u32 = 5;
const REQUESTS: u32 = 3;
const DATAGRAMS: u32 = 40;

type Application = Host<App<SimNet>>;

/// Enough slots for all machines.
const ENOUGH: usize = 1_024;
const PARTS: usize = 5;

/// A host that runs the application. The application knows the page host by name.
fn application<M>(sim: &mut Sim, pages: Host<M>, slots: usize) -> Result<Application, BoxError> {
    let hosts = format!("{} pages", sim.address(pages));
    let host = sim.host("application", move |boot| {
        let at = |port| SocketAddr::new(boot.address(), port);
        let resolver = ResolverConfig::new(ResolvConf::default())
            .servers(Vec::new())
            .hosts(Hosts::parse(&hosts));
        let every = Duration::from_secs(10);
        let creator = Loop::<App<SimNet>, _>::with_backend(
            boot.backend(),
            &boot.config().machines_max(slots),
        )?;
        let plan =
            Plan { http: at(PORT), statsd: at(STATSD_PORT), every, resolver, report: |_| () };
        let (instance, bound) = machine::set_up(creator, plan)?;
        assert_eq!((bound.http, bound.statsd), (at(PORT), at(STATSD_PORT)));
        Ok(instance)
    })?;
    Ok(host)
}

fn own(sim: &mut Sim, application: Application) -> Option<Own> {
    sim.with(application, |instance| instance.context().stats.own)
}

/// Sends one request per connection, for a page that no other client requests.
fn script(number: u32, request: u32) -> Script {
    let tag = format!("c{number}r{request}");
    let head = format!(
        "GET /fetch?url=http://pages:{PORT}/{tag} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    );
    stage::persistent_script()
        .may_refuse(b"HTTP/1.1 408")
        .may_refuse(b"HTTP/1.1 5")
        .pause(stage::think_time(number, request) * 2)
        .send(head.as_bytes())
        .expect(b"HTTP/1.1 200 OK\r\n")
        .receive_until(b"\r\n\r\n")
        .expect(format!("{tag} ").as_bytes())
        .expect_end()
}

/// Sends a sample now and then.
struct Reporter {
    socket: SimUdpSocket,
    target: SocketAddr,
    left: u32,
}

impl Machine for Reporter {
    type Context = ();
    type Seed = Infallible;

    fn timeout(mut self, scope: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        if self.left == 0 {
            return Response::done();
        }
        self.left -= 1;
        let _no_route = self.socket.send_to(b"hits:1|c\nlevel:+0.5|g", &self.target);
        Response::ok(self).deadline(scope.now() + Duration::from_millis(500))
    }
}

fn reporter(sim: &mut Sim, application: Application) -> Result<(), BoxError> {
    let target = SocketAddr::new(sim.address(application), STATSD_PORT);
    let host = sim.host("reporter", move |boot| {
        let mut creator = boot.new_loop()?;
        let address = SocketAddr::new(boot.address(), 0);
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let socket = SimUdpSocket::bind(&address, scope)?;
                Ok(Response::ok(Reporter { socket, target, left: DATAGRAMS }).deadline(scope.now()))
            })
        })?;
        Ok(creator.instantiate(()))
    })?;
    sim.protect(host);
    Ok(())
}

/// Every part ends by itself when the loop is drained.
fn end(sim: &mut Sim, application: Application) -> Result<(), BoxError> {
    match sim.drain(application, Duration::from_secs(120))? {
        Exit::Drained { dropped: 0 } => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

fn scenario(sim: &mut Sim) -> Result<(), BoxError> {
    let pages = serving(sim, &Ledger::default())?;
    let application = application(sim, pages, ENOUGH)?;
    reporter(sim, application)?;
    sim.always("what is counted was asked for, or sent", move |sim| match own(sim, application) {
        // Each datagram may arrive twice.
        Some(own)
            if own.fetched + own.failed > own.requests
                || own.samples != 2 * own.datagrams
                || own.datagrams > u64::from(2 * DATAGRAMS)
                || own.refused > 0 =>
        {
            Err(format!(
                "{} fetched, {} samples, {} refused",
                own.fetched, own.samples, own.refused
            ))
        }
        _ => Ok(()),
    });
    let mut clients = Clients::<SimTcpStream>::of(sim, application)?;
    for number in 0..CLIENTS {
        for request in 0..REQUESTS {
            clients.add(sim, script(number, request));
        }
    }
    sim.run_for(FAULTY)?;
    stage::heal(sim, pages)?;
    stage::heal(sim, application)?;
    clients.assert_all_complete(sim)?;
    end(sim, application)
}

#[test]
fn every_page_is_fetched_in_the_end_and_the_loop_ends() {
    stage::check(scenario);
}

#[test]
fn every_page_is_fetched_and_counted_once_in_a_calm_network() {
    Check::new().seeds(3).calm().run(|sim| {
        let pages = serving(sim, &Ledger::default())?;
        let application = application(sim, pages, ENOUGH)?;
        reporter(sim, application)?;
        let mut clients = Clients::<SimTcpStream>::of(sim, application)?;
        for number in 0..CLIENTS {
            clients.add(sim, script(number, 1));
        }
        sim.run_for(Duration::from_secs(60))?;
        clients.assert_all_complete(sim)?;
        let own = own(sim, application).ok_or("it is up")?;
        assert_eq!((own.requests, own.fetched, own.failed), (CLIENTS.into(), CLIENTS.into(), 0));
        assert_eq!((own.datagrams, own.samples), (DATAGRAMS.into(), (2 * DATAGRAMS).into()));
        let counted = sim
            .with(application, |instance| instance.context().stats.to_json())
            .ok_or("it is up")?;
        assert_eq!(counted["counters"]["hits"]["total"], f64::from(DATAGRAMS));
        assert_eq!(counted["gauges"]["level"], f64::from(DATAGRAMS) / 2.0);
        end(sim, application)
    });
}

/// A client's connection has the last slot, so there is none for a connection to the page server.
#[test]
fn a_request_waits_for_a_connection_slot_until_its_deadline() {
    Check::new().seeds(3).calm().run(|sim| {
        let pages = serving(sim, &Ledger::default())?;
        let application = application(sim, pages, PARTS + 1)?;
        let mut clients = Clients::<SimTcpStream>::of(sim, application)?;
        let head = format!("GET /fetch?url=http://pages:{PORT}/x HTTP/1.1\r\nHost: a\r\n\r\n");
        let script =
            Script::new().send(head.as_bytes()).expect(b"HTTP/1.1 504 ").receive_until(b"\r\n\r\n");
        clients.add(sim, script);
        sim.run_for(front::FETCH_TIME_MAX - Duration::from_secs(1))?;
        assert_eq!(own(sim, application).ok_or("it is up")?.failed, 0, "it waits");
        sim.run_for(Duration::from_secs(2))?;
        assert_eq!(own(sim, application).ok_or("it is up")?.failed, 1);
        clients.assert_all_complete(sim)?;
        end(sim, application)
    });
}
