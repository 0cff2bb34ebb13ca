//! The example `udp_sessions`: what peers are sent and how often, to the millisecond; and the
//! consequences of a bug.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use rotor::net::DatagramSocket;
use rotor::{
    BackendHandle, BoxError, EventSet, Exit, Infallible, Interest, Machine, Response, Scope,
    Source, Time, Token,
};
use rotor_sim::net::SimUdpSocket;
use rotor_sim::{Check, Crash, Fault, Faults, Host, Sim, Watched};

use crate::echo_of_the_book::send_despite_signals;
use crate::examples::udp_sessions::session::{IDLE_TIME_MAX, RESENDS_MAX};
use crate::examples::udp_sessions::world::{Counters, DATAGRAMS_PER_SECOND};
use crate::examples::udp_sessions::{UdpSessions, wire};
use crate::stage::{self, FAULTY, PORT};

const HELLO: &str = "HELLO to everybody here";
/// The server has a planted bug: it panics when it sends the state to a peer with this port.
const UNLUCKY_PORT: u16 = 6_666;

/// A socket with planted bugs.
struct BuggySocket(SimUdpSocket);

impl Source for BuggySocket {
    fn register(
        &mut self,
        backend: &dyn BackendHandle,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        self.0.register(backend, token, interest)
    }

    fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
        self.0.deregister(backend)
    }
}

impl DatagramSocket for BuggySocket {
    type Address = SocketAddr;

    fn bind<C>(address: &SocketAddr, scope: &Scope<'_, C>) -> io::Result<BuggySocket> {
        SimUdpSocket::bind(address, scope).map(BuggySocket)
    }

    fn receive_from(&mut self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.receive_from(buffer)
    }

    fn send_to(&mut self, datagram: &[u8], target: &SocketAddr) -> io::Result<usize> {
        let is_unlucky = target.port() == UNLUCKY_PORT && datagram.starts_with(b"STATE");
        assert!(!is_unlucky && datagram != b"ERROR", "a planted bug");
        send_despite_signals(&mut self.0, datagram, target)
    }

    fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_address()
    }
}

/// What a client has received, and when.
#[derive(Default)]
struct Heard(Vec<(Time, String)>);

#[derive(Clone, Copy, PartialEq)]
enum Acknowledges {
    Nothing,
    Welcome,
    Everything,
}

/// Sends HELLO until it gets a welcome, then all its messages in one burst. After that it
/// acknowledges, or does not.
struct Client {
    socket: SimUdpSocket,
    server: SocketAddr,
    acknowledges: Acknowledges,
    says: Vec<String>,
}

impl Client {
    fn say(&mut self, text: &str) {
        // A lost datagram is sent again, or does not matter.
        let _lost = send_despite_signals(&mut self.socket, text.as_bytes(), &self.server);
    }

    fn hear(&mut self, text: &str) {
        let mut words = text.split(' ');
        let (word, number) = (words.next(), words.next().unwrap_or_default());
        let acknowledges = match word {
            Some("WELCOME") => self.acknowledges != Acknowledges::Nothing,
            Some("STATE" | "CLOSING") => self.acknowledges == Acknowledges::Everything,
            _ => false,
        };
        if acknowledges {
            self.say(&format!("ACK {number}"));
        }
        if word == Some("STATE") {
            for text in std::mem::take(&mut self.says) {
                self.say(&text);
            }
        }
    }
}

impl Machine for Client {
    type Context = Heard;
    type Seed = Infallible;

    fn ready(mut self, _: EventSet, scope: &mut Scope<'_, Heard>) -> Response<Self, Infallible> {
        let mut buffer = [0; 1_500];
        loop {
            match self.socket.receive_from(&mut buffer) {
                Ok((length, _)) => {
                    let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
                    self.hear(&text);
                    let now = scope.now();
                    scope.0.push((now, text));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {}
            }
        }
        Response::keep(self)
    }

    fn timeout(mut self, scope: &mut Scope<'_, Heard>) -> Response<Self, Infallible> {
        // The answer may be lost, and so may the sessions of a server that crashes. A client that
        // receives nothing starts over.
        let last = scope.0.last().map(|(time, _)| *time);
        if last.is_none_or(|last| scope.now() - last > Duration::from_secs(3)) {
            self.say(HELLO);
        }
        Response::ok(self).deadline(scope.now() + Duration::from_secs(4))
    }
}

type Server = Host<Watched<UdpSessions<BuggySocket>>>;

fn server(sim: &mut Sim, sessions_max: usize) -> Result<Server, BoxError> {
    let host = sim.host("server", move |boot| {
        let mut creator = boot.new_loop()?;
        let address = SocketAddr::new(boot.address(), PORT);
        let mut world = None;
        creator.add_machine_with(|scope| {
            Watched::make(scope, |scope| {
                Response::attempt(|| {
                    let (made, endpoint) = UdpSessions::open(&address, sessions_max, scope)?;
                    world = Some(made);
                    Ok(endpoint)
                })
            })
        })?;
        Ok(creator.instantiate(world.ok_or("it was made")?))
    })?;
    Ok(host)
}

fn client(
    sim: &mut Sim,
    server: Server,
    port: u16,
    acknowledges: Acknowledges,
    says: &[&str],
) -> Result<Host<Client>, BoxError> {
    let target = SocketAddr::new(sim.address(server), PORT);
    let says: Vec<String> = says.iter().map(ToString::to_string).collect();
    let host = sim.host("client", move |boot| {
        let mut creator = boot.new_loop()?;
        let address = SocketAddr::new(boot.address(), port);
        let says = says.clone();
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let mut socket = SimUdpSocket::bind(&address, scope)?;
                scope.register(&mut socket, Interest::Readable)?;
                let client = Client { socket, server: target, acknowledges, says };
                Ok(Response::ok(client).deadline(scope.now()))
            })
        })?;
        Ok(creator.instantiate(Heard::default()))
    })?;
    sim.protect(host);
    Ok(host)
}

/// Runs for some seconds without faults.
fn run_without_faults(sim: &mut Sim, seconds: u64) -> Result<(), BoxError> {
    sim.set_faults(Faults::none());
    Ok(sim.run_for(Duration::from_secs(seconds))?)
}

fn heard(sim: &mut Sim, client: Host<Client>) -> Vec<String> {
    let heard = sim
        .with(client, |instance| std::mem::take(&mut instance.context_mut().0))
        .expect("it is up");
    heard.into_iter().map(|(_, text)| text).collect()
}

fn counters(sim: &mut Sim, server: Server) -> (usize, Counters) {
    let counters =
        sim.with(server, |instance| (instance.context().peers.len(), instance.context().counters));
    counters.expect("it is up")
}

/// Runs a scenario under a few seeds, which differ only in the network's latency.
#[track_caller]
fn check_calm(scenario: impl Fn(&mut Sim) -> Result<(), BoxError>) {
    Check::new().seeds(3).calm().run(scenario);
}

#[test]
fn an_acknowledging_peer_receives_the_state_once_a_second() {
    check_calm(|sim| {
        let server = server(sim, 10)?;
        let one = client(sim, server, 1_000, Acknowledges::Everything, &["MOVE 3 -4"])?;
        let two = client(sim, server, 1_000, Acknowledges::Everything, &["MOVE 0 7"])?;
        // Longer than a peer may be silent.
        sim.run_for(Duration::from_millis(20_500))?;
        for (client, own, other) in [(one, ":3,-4", ":0,7"), (two, ":0,7", ":3,-4")] {
            let heard = heard(sim, client);
            assert_eq!(heard.len(), 1 + 21, "{heard:?}");
            assert!(heard[1..].iter().all(|text| text.starts_with("STATE ")), "{heard:?}");
            let words: Vec<&str> = heard[21].split(' ').collect();
            assert!(
                matches!(words[..], [_, _, first, second] if first.ends_with(own) && second.ends_with(other))
            );
        }
        let (sessions, counters) = counters(sim, server);
        assert_eq!((sessions, counters.sent_again), (2, 0));
        // The acknowledgements end the sessions, and the last session ends the loop.
        sim.with(server, |instance| instance.handle().drain(Duration::from_secs(10)));
        sim.run_for(Duration::from_millis(100))?;
        assert_eq!(sim.exit(server), Some(Exit::Drained { dropped: 0 }));
        assert!(matches!(&heard(sim, one)[..], [closing] if closing.starts_with("CLOSING ")));
        Ok(())
    });
}

#[test]
fn an_unacknowledged_state_is_sent_four_times_and_silence_ends_the_session() {
    check_calm(|sim| {
        let server = server(sim, 10)?;
        let client = client(sim, server, 1_000, Acknowledges::Welcome, &[])?;
        run_without_faults(sim, 20)?;
        let heard = heard(sim, client);
        let (first, states) = heard.split_first().ok_or("it is welcome")?;
        assert!(first.starts_with("WELCOME "));
        let times = 1 + usize::from(RESENDS_MAX);
        assert_eq!(states.len(), IDLE_TIME_MAX.as_secs() as usize * times, "{states:?}");
        for same in states.chunks(times) {
            assert!(same.iter().all(|text| *text == same[0]), "{same:?}");
        }
        let (sessions, counters) = counters(sim, server);
        assert_eq!((sessions, counters.idle), (0, 1));
        Ok(())
    });
}

#[test]
fn an_unverified_address_receives_no_more_bytes_than_it_sends() {
    check_calm(|sim| {
        let server = server(sim, 10)?;
        let victim = client(sim, server, 1_000, Acknowledges::Nothing, &[])?;
        run_without_faults(sim, 3)?;
        let (sessions, counters) = counters(sim, server);
        assert_eq!((sessions, counters.received), (1, 1));
        let heard = heard(sim, victim);
        assert!(heard.len() == 1 && heard[0].len() <= HELLO.len(), "{heard:?}");
        run_without_faults(sim, 17)?;
        Ok(())
    });
    assert_eq!(wire::parse(&[b'x'; wire::DATAGRAM_BYTES_MAX + 1]), None);
    let padded = |length: usize| format!("{:length$}", "HELLO");
    assert_eq!(
        wire::parse(padded(wire::welcome(u32::MAX).len()).as_bytes()),
        Some(wire::Command::Hello)
    );
    assert_eq!(wire::parse(padded(wire::welcome(u32::MAX).len() - 1).as_bytes()), None);
}

#[test]
fn a_full_server_refuses_peers_and_accepts_again_when_one_leaves() {
    check_calm(|sim| {
        let server = server(sim, 1)?;
        let one = client(sim, server, 1_000, Acknowledges::Everything, &[])?;
        run_without_faults(sim, 1)?;
        let two = client(sim, server, 1_000, Acknowledges::Everything, &[])?;
        run_without_faults(sim, 6)?;
        assert_eq!(heard(sim, two), ["FULL", "FULL"]);
        sim.crash(one, Crash::Power);
        run_without_faults(sim, 20)?;
        assert!(heard(sim, two).iter().any(|text| text.starts_with("STATE ")));
        let (sessions, counters) = counters(sim, server);
        assert_eq!((sessions, counters.idle), (1, 1));
        Ok(())
    });
}

#[test]
fn a_draining_server_accepts_no_peer_and_notifies_all() {
    check_calm(|sim| {
        let server = server(sim, 10)?;
        let quiet = client(sim, server, 1_000, Acknowledges::Welcome, &[])?;
        let unproven = client(sim, server, 1_000, Acknowledges::Nothing, &[])?;
        sim.run_for(Duration::from_millis(900))?;
        assert_eq!(heard(sim, unproven).len(), 1);
        let alone = |text: &String| text.starts_with("WELCOME ") || text.split(' ').count() == 3;
        assert!(heard(sim, quiet).iter().all(alone), "who is not proven is not shown");
        sim.with(server, |instance| instance.handle().drain(Duration::from_secs(10)));
        let late = client(sim, server, 1_000, Acknowledges::Everything, &[])?;
        sim.run_for(Duration::from_millis(500))?;
        assert_eq!((heard(sim, late), heard(sim, unproven)), (vec!["FULL".to_string()], vec![]));
        sim.run_for(Duration::from_millis(1_000))?;
        let told = heard(sim, quiet);
        assert!(
            told.len() == 4 && told.iter().all(|text| text.starts_with("CLOSING ")),
            "{told:?}"
        );
        assert_eq!(sim.exit(server), Some(Exit::Drained { dropped: 0 }));
        Ok(())
    });
}

#[test]
fn a_flood_is_received_and_processed_within_its_budget() {
    check_calm(|sim| {
        sim.set_faults(
            Faults::none().set(Fault::Interrupted, 0.5).set(Fault::UnarmedEdgeLost, 1.0),
        );
        let server = server(sim, 10)?;
        let flood: Vec<String> = (1..=100).map(|x| format!("MOVE {x} 0")).collect();
        let flood: Vec<&str> = flood.iter().map(String::as_str).collect();
        let client = client(sim, server, 1_000, Acknowledges::Welcome, &flood)?;
        // Within the first second.
        sim.run_for(Duration::from_millis(900))?;
        let (sessions, counters) = counters(sim, server);
        let (greetings, taken) = (2, DATAGRAMS_PER_SECOND as u64);
        assert_eq!((sessions, counters.received), (1, greetings + 100));
        assert_eq!(counters.ignored, 1 + 100 - taken);
        sim.run_for(Duration::from_millis(1_600))?;
        assert!(
            heard(sim, client)
                .iter()
                .any(|text| text.starts_with("STATE ") && !text.ends_with(":0,0"))
        );
        Ok(())
    });
}

#[test]
fn a_panic_over_one_datagram_affects_no_other_session() {
    check_calm(|sim| {
        let server = server(sim, 10)?;
        let good = client(sim, server, 1_000, Acknowledges::Everything, &[])?;
        let bad = client(sim, server, 1_000, Acknowledges::Everything, &["NONSENSE", "NONSENSE"])?;
        sim.run_for(Duration::from_millis(5_500))?;
        for client in [good, bad] {
            assert_eq!(heard(sim, client).len(), 1 + 6);
        }
        let (sessions, counters) = counters(sim, server);
        assert_eq!((sessions, counters.panics), (2, 2));
        stage::drain(sim, server)
    });
}

#[test]
fn a_panicking_session_leaves_no_entry() {
    check_calm(|sim| {
        let server = server(sim, 10)?;
        sim.allow_panics(server);
        let good = client(sim, server, 1_000, Acknowledges::Everything, &[])?;
        let unlucky = client(sim, server, UNLUCKY_PORT, Acknowledges::Everything, &[])?;
        sim.run_for(Duration::from_millis(2_500))?;
        assert_eq!(heard(sim, good).len(), 1 + 3);
        assert_eq!(heard(sim, unlucky).len(), 1);
        let (sessions, counters) = counters(sim, server);
        assert_eq!((sessions, counters.panics), (1, 0));
        stage::drain(sim, server)
    });
}

/// Datagrams may be lost, duplicated or late, and hosts may crash. A client that keeps trying plays
/// in the end, and the server drains.
#[test]
fn every_client_plays_once_the_network_heals() {
    stage::check(|sim| {
        let server = server(sim, 10)?;
        let clients = [1_000, 2_000, 3_000].map(|port| {
            client(sim, server, port, Acknowledges::Everything, &["MOVE 1 1", "NO COMMAND"])
        });
        sim.run_for(FAULTY)?;
        stage::heal(sim, server)?;
        for client in clients {
            let client = client?;
            let _before = heard(sim, client);
            sim.run_until(Duration::from_secs(60), |sim| {
                let heard =
                    sim.with(client, |instance| instance.context().0.clone()).unwrap_or_default();
                heard.iter().filter(|(_, text)| text.starts_with("STATE ")).count() > 5
            })?;
        }
        stage::drain(sim, server)
    });
}
