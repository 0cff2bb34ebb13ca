//! The packet network, under a stand-in for a network stack: it sends numbered packets and keeps
//! what it receives.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rotor_core::{
    Backend, BackendHandle, BoxError, EventSet, Infallible, Interest, Loop, Machine, Response,
    Scope, Source, Time, Token, Wake,
};
use rotor_sim::net::SimUdpSocket;
use rotor_sim::{Boot, Check, Crash, Fault, Faults, Host, Network, PacketPort, Sim, SimBackend};

/// Packets with the time of their arrival, or the time to send them.
type PacketLog = Rc<RefCell<Vec<(Time, Vec<u8>)>>>;

/// Sends the packets it is given, and keeps the packets it receives.
struct Stub {
    port: PacketPort,
    received: PacketLog,
    to_send: PacketLog,
}

struct StubHandle;

impl BackendHandle for StubHandle {
    fn name(&self) -> &str {
        "stub"
    }

    fn now(&self) -> Time {
        Time::ZERO
    }

    fn wall_time(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

struct NoopWaker;

impl Wake for NoopWaker {
    fn wake(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Backend for Stub {
    type Handle = StubHandle;

    fn handle(&self) -> io::Result<StubHandle> {
        Ok(StubHandle)
    }

    fn waker(&self) -> io::Result<Arc<dyn Wake>> {
        Ok(Arc::new(NoopWaker))
    }

    fn wait(&mut self, _: Option<Time>, _: &mut Vec<(Token, EventSet)>) -> io::Result<()> {
        let mut packet = [0; 2_000];
        while let Some(len) = self.port.receive(&mut packet) {
            self.received.borrow_mut().push((self.port.now(), packet[..len].to_vec()));
        }
        let now = self.port.now();
        let (due, later) = self.to_send.take().into_iter().partition(|(at, _)| *at <= now);
        self.to_send.replace(later);
        let due: Vec<(Time, Vec<u8>)> = due;
        due.iter().for_each(|(_, packet)| self.port.send(packet));
        Ok(())
    }
}

/// Does nothing: only its loop is needed, which runs the stack.
struct Idle;

impl Machine for Idle {
    type Context = ();
    type Seed = Infallible;
}

/// A host with a stub, the packets received there, and the packets to send with their times.
fn host(sim: &mut Sim, name: &str) -> Result<(Host<Idle>, PacketLog, PacketLog), BoxError> {
    let (received, to_send) = (PacketLog::default(), PacketLog::default());
    let (keeps, sends) = (received.clone(), to_send.clone());
    let host = sim.host(name, move |boot| {
        let backend = stub_backend(boot, keeps.clone(), sends.clone())?;
        Ok(Loop::<Idle, _>::with_backend(backend, &boot.config())?.instantiate(()))
    })?;
    Ok((host, received, to_send))
}

fn stub_backend(boot: &Boot, received: PacketLog, to_send: PacketLog) -> io::Result<SimBackend> {
    let port = boot.packet_port();
    let wants = to_send.clone();
    let stub = Stub { port, received, to_send };
    boot.backend_around(stub, move || wants.borrow().iter().map(|(at, _)| *at).min())
}

/// A packet with this destination and length, which contains a number.
fn packet(to: IpAddr, len: usize, number: u8) -> Vec<u8> {
    let mut packet = vec![0; len];
    let IpAddr::V4(four) = to else {
        let IpAddr::V6(six) = to else { return packet };
        packet[0] = 0x60;
        packet[24..40].copy_from_slice(&six.octets());
        packet[len - 1] = number;
        return packet;
    };
    packet[0] = 0x45;
    packet[16..20].copy_from_slice(&four.octets());
    packet[len - 1] = number;
    packet
}

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn numbers(received: &PacketLog) -> Vec<u8> {
    received.borrow().iter().map(|(_, packet)| packet[packet.len() - 1]).collect()
}

/// Sends a hundred packets from one host to another, one per millisecond.
fn send_hundred_packets(sim: &mut Sim) -> Result<Vec<u8>, BoxError> {
    let (_, _, to_send) = host(sim, "left")?;
    let (right, received, _) = host(sim, "right")?;
    let to = sim.address(right);
    to_send.borrow_mut().extend((0..100).map(|n| (at(u64::from(n)), packet(to, 100, n))));
    sim.run_for(Duration::from_secs(1))?;
    Ok(numbers(&received))
}

#[test]
fn packets_arrive_once_and_in_order_without_faults() -> Result<(), BoxError> {
    // Latencies differ by more than the interval between two packets.
    let network = Network::new().latency(Duration::from_millis(1)..Duration::from_millis(50));
    let mut sim = Sim::new(1);
    sim.set_network(network);
    assert_eq!(send_hundred_packets(&mut sim)?, (0..100).collect::<Vec<u8>>());
    Ok(())
}

#[test]
fn each_packet_fault_has_its_documented_effect() -> Result<(), BoxError> {
    let receive_with = |fault| {
        let mut sim = Sim::new(2);
        sim.set_faults(Faults::none().set(fault, 0.3));
        let received = send_hundred_packets(&mut sim)?;
        let count = sim.fault_count(fault) as usize;
        assert!((15..45).contains(&count), "{fault:?} has struck {count} times");
        Ok::<_, BoxError>((received, count))
    };
    let all: Vec<u8> = (0..100).collect();
    let (lost, count) = receive_with(Fault::PacketLost)?;
    assert!(lost.is_sorted() && lost.len() == 100 - count, "{lost:?}");
    let (twice, count) = receive_with(Fault::PacketTwice)?;
    assert_eq!(twice.len(), 100 + count);
    let (mut late, _) = receive_with(Fault::PacketLate)?;
    assert!(!late.is_sorted(), "others overtake them");
    late.sort_unstable();
    assert_eq!(late, all);
    let mut sim = Sim::new(2);
    sim.set_faults(Faults::none().set(Fault::PacketChanged, 1.0));
    let (_, _, to_send) = host(&mut sim, "left")?;
    let (right, received, _) = host(&mut sim, "right")?;
    let sent = packet(sim.address(right), 100, 7);
    to_send.borrow_mut().push((at(1), sent.clone()));
    sim.run_for(Duration::from_secs(1))?;
    let bits = |packet: &[u8]| -> u32 {
        packet.iter().zip(&sent).map(|(a, b)| (a ^ b).count_ones()).sum()
    };
    let received = received.borrow();
    assert_eq!(received.iter().map(|(_, packet)| bits(packet)).collect::<Vec<_>>(), [1]);
    Ok(())
}

#[test]
fn oversized_and_unroutable_packets_are_lost_and_both_ip_versions_work() -> Result<(), BoxError> {
    let mut sim = Sim::new(3);
    sim.set_network(Network::new().mtu(600));
    let (left, back, to_send) = host(&mut sim, "left")?;
    let (right, received, _) = host(&mut sim, "right")?;
    let (right, left) = (sim.address(right), sim.address(left));
    let six: IpAddr = "fd00::a00:2".parse()?;
    assert_eq!(right, IpAddr::from([10, 0, 0, 2]));
    for (number, to, len) in [
        (1, right, 600),
        (2, right, 601),
        (3, IpAddr::from([10, 0, 0, 3]), 100),
        (4, six, 100),
        (5, left, 100),
    ] {
        to_send.borrow_mut().push((at(1), packet(to, len, number)));
    }
    to_send.borrow_mut().push((at(1), b"nonsense".to_vec()));
    sim.run_for(Duration::from_secs(1))?;
    assert_eq!(numbers(&received), [1, 4]);
    assert_eq!(numbers(&back), [5], "a host reaches itself");
    Ok(())
}

#[test]
fn a_slow_link_delays_packets_and_queues_at_most_two_seconds_of_them() -> Result<(), BoxError> {
    let mut sim = Sim::new(4);
    let latency = Duration::from_micros(100)..Duration::from_micros(101);
    sim.set_network(Network::new().bandwidth(1_000).latency(latency));
    let (_, _, to_send) = host(&mut sim, "left")?;
    let (right, received, _) = host(&mut sim, "right")?;
    let to = sim.address(right);
    to_send.borrow_mut().extend((0..30).map(|n| (at(1), packet(to, 100, n))));
    sim.run_for(Duration::from_secs(10))?;
    assert_eq!(numbers(&received), (0..21).collect::<Vec<u8>>());
    let times: Vec<Time> = received.borrow().iter().map(|(time, _)| *time).collect();
    // The latency varies by a microsecond.
    let is_a_tenth = |pair: &[Time]| {
        let between = (pair[1] - pair[0]).as_micros();
        (99_999..=100_001).contains(&between)
    };
    assert!(times.windows(2).all(is_a_tenth), "{times:?}");
    Ok(())
}

#[test]
fn no_packet_reaches_a_partitioned_or_crashed_host() -> Result<(), BoxError> {
    let mut sim = Sim::new(5);
    let (left, _, to_send) = host(&mut sim, "left")?;
    let (right, received, _) = host(&mut sim, "right")?;
    let to = sim.address(right);
    let send = |sim: &mut Sim, number| {
        to_send.borrow_mut().push((sim.now(), packet(to, 100, number)));
        sim.run_for(Duration::from_secs(1))
    };
    send(&mut sim, 1)?;
    sim.partition(left, right);
    send(&mut sim, 2)?;
    sim.join(left, right);
    for (how, number) in [(Crash::Process, 3), (Crash::Power, 4)] {
        sim.crash(right, how);
        send(&mut sim, number)?;
        sim.restart(right)?;
    }
    send(&mut sim, 5)?;
    assert_eq!(numbers(&received), [1, 5]);
    Ok(())
}

#[test]
fn a_run_of_packets_depends_on_its_seed_and_on_every_byte() {
    Check::new().seeds(10).twice().run(|sim| send_hundred_packets(sim).map(drop));
    let hash = |last| {
        let mut sim = Sim::new(1);
        let (_, _, to_send) = host(&mut sim, "left").expect("it starts");
        let to = IpAddr::from([10, 0, 0, 2]);
        to_send.borrow_mut().push((at(1), packet(to, 100, last)));
        sim.run_for(Duration::from_secs(1)).expect("nothing fails");
        sim.hash()
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}

/// Finds both backend handles: the simulation's and the stack's.
struct BothSockets(SimUdpSocket);

impl Machine for BothSockets {
    type Context = ();
    type Seed = Infallible;

    fn ready(mut self, _: EventSet, scope: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        match self.0.deregister(scope.backend()) {
            Ok(()) => Response::done(),
            Err(error) => Response::error(error),
        }
    }
}

#[test]
fn sockets_of_the_simulation_and_of_the_stack_work_on_one_loop() -> Result<(), BoxError> {
    use rotor_core::net::DatagramSocket;
    let mut sim = Sim::new(6);
    let host = sim.host("host", |boot| {
        let backend = stub_backend(boot, PacketLog::default(), PacketLog::default())?;
        let mut creator = Loop::<BothSockets, _>::with_backend(backend, &boot.config())?;
        let address = (boot.address(), 80).into();
        creator.add_machine_with(|scope| {
            assert_eq!(scope.backend().name(), "simulation");
            assert!(scope.backend().expect::<StubHandle>("a socket").is_ok());
            Response::attempt(|| {
                let mut socket = SimUdpSocket::bind(&address, scope)?;
                scope.register(&mut socket, Interest::Both)?;
                Ok(Response::ok(BothSockets(socket)))
            })
        })?;
        Ok(creator.instantiate(()))
    })?;
    sim.run_for(Duration::from_secs(1))?;
    assert_eq!(sim.machines(host, |_, _| ()).len(), 0, "its socket was ready, and it has ended");
    assert!(sim.with(host, |_| ()).is_some());
    Ok(())
}
