//! The example `mqtt_broker`. Each connection is watched separately: a panic in a handler ends its
//! connection, and no other.

#[path = "../../examples/mqtt_broker/answer.rs"]
mod answer;
#[path = "../../examples/mqtt_broker/broker.rs"]
mod broker;
#[path = "../../examples/mqtt_broker/limits.rs"]
mod limits;
#[path = "../../examples/mqtt_broker/machine.rs"]
mod machine;
#[path = "../../examples/mqtt_broker/packet.rs"]
mod packet;
#[path = "../../examples/mqtt_broker/reader.rs"]
mod reader;
#[path = "../../examples/mqtt_broker/retained.rs"]
mod retained;
#[path = "../../examples/mqtt_broker/session.rs"]
mod session;
#[path = "../../examples/mqtt_broker/topic.rs"]
mod topic;
#[path = "../../examples/mqtt_broker/tree.rs"]
mod tree;

use std::net::SocketAddr;
use std::time::Duration;

use rotor::BoxError;
use rotor::stream::{Accept, Stream, WithOutbox};
use rotor_sim::net::{SimTcpListener, SimTcpStream};
use rotor_sim::{Check, Family, Fault, Faults, Host, Network, Script, Sim, Watched};

use crate::stage::{self, Clients, PORT};
use broker::{Broker, HasBroker};
use limits::Limits;
use machine::{Client, stream_config};

struct Shared(Broker);

impl HasBroker for Shared {
    fn broker(&mut self) -> &mut Broker {
        &mut self.0
    }
}

/// Not `Watched<Accept<..>>`: a panic must not end the listener.
type Server = Accept<Watched<Stream<WithOutbox<Client<Shared>>, SimTcpStream>>, SimTcpListener>;

fn serve(sim: &mut Sim) -> Result<Host<Server>, BoxError> {
    let host = sim.host("broker", |boot| {
        let mut creator = boot.new_loop()?;
        let address = SocketAddr::new(boot.address(), PORT);
        creator.add_machine_with(|scope| stage::accept(&address, stream_config(), scope))?;
        Ok(creator.instantiate(Shared(Broker::new(Limits::default()))))
    })?;
    Ok(host)
}

/// Connects with a name, subscribes to all topics, and waits for the acknowledgements of its own
/// messages, which have QoS 1.
fn script(number: u8, attempts: u32) -> Script {
    let connect = [b"\x10\x0d\0\x04MQTT\x04\x02\0\0\0\x01", &[b'a' + number][..]].concat();
    let script = Script::new().attempts(attempts).patience(Duration::from_secs(90));
    let script = script.send(&connect).expect(b"\x20\x02\0\0");
    let script = script.send(b"\x82\x06\0\x01\0\x01#\0").expect(b"\x90\x03\0\x01\0");
    let script = (1..=8).fold(script, |script, id: u8| {
        script
            .pause(stage::think_time(number.into(), id.into()))
            .send(&[0x32, 5, 0, 1, b't', 0, id])
            .receive_until(&[0x40, 2, 0, id])
    });
    script.send(b"\xe0\0").pause(Duration::from_secs(1))
}

/// Nothing restarts the listener here.
#[test]
fn a_panic_ends_a_connection_and_never_the_listener() {
    let panics = stage::faults(|family| family == Family::Panic);
    Check::new().seeds(stage::SEEDS).must_strike(panics).run(|sim| {
        sim.set_faults(Faults::none().set(Fault::HandlerPanics, 0.05));
        let server = serve(sim)?;
        let mut clients = Clients::<SimTcpStream>::of(sim, server)?;
        for number in 0..6 {
            clients.add(sim, script(number, 10_000));
        }
        sim.run_for(stage::FAULTY)?;
        clients.assert_all_complete(sim)?;
        let is_left = |sim: &mut Sim| {
            sim.with(server, |instance| instance.context().0.len()) == Some((0, 0, 0))
        };
        sim.run_until(Duration::from_secs(200), is_left)?;
        stage::drain(sim, server)
    });
}

/// As in `chat`, under all faults. The session of a client ends with its connection.
#[test]
fn every_client_is_served_once_the_network_heals() {
    let seeds = Check::new().seeds(stage::SEEDS);
    seeds.run(|sim| {
        let server = serve(sim)?;
        let mut clients = Clients::<SimTcpStream>::of(sim, server)?;
        for number in 0..6 {
            clients.add(sim, script(number, 10_000));
        }
        stage::play(sim, server, &clients)
    });
}

#[test]
fn the_trace_names_the_deadline_that_has_passed() {
    Check::new().seeds(1).calm().run(|sim| {
        sim.set_network(Network::new().window(64));
        sim.keep_trace();
        let server = serve(sim)?;
        let mut clients = Clients::<SimTcpStream>::of(sim, server)?;
        clients.add(sim, script(0, 1));
        sim.run_for(Duration::from_millis(500))?;
        clients.cut_off(sim, server);
        // No client takes what is retained for it.
        sim.with(server, |instance| {
            for number in 0..100 {
                let topic = format!("t/{number}");
                let message = packet::Publish {
                    topic: &topic,
                    id: 0,
                    qos: packet::Qos::Zero,
                    retain: false,
                    payload: &[b'x'; 100],
                };
                instance.context_mut().0.publish(&message);
            }
        });
        sim.run_for(Duration::from_secs(100))?;
        let trace = sim.trace();
        let says = trace.lines().filter(|line| line.ends_with(": FlushTimeout")).count();
        (says == 1).then_some(()).ok_or_else(|| format!("{says} times in:\n{trace}").into())
    });
}
