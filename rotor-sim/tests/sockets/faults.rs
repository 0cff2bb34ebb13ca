//! Each fault has the effect that its name promises.

use std::io::{Error, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use rotor_core::net::{DatagramSocket, ListenOptions, Listener, StreamSocket};
use rotor_core::{
    EventSet, Future, Infallible, Interest, Job, LoopInstance, Machine, Outcome, Response, Scope,
    Time,
};
use rotor_sim::net::{SimTcpListener, SimTcpStream, SimUdpSocket};
use rotor_sim::{Failure, Fault, Faults, Host, Network, Sim, SimBackend};

use crate::{
    ConnectedPair, EarlyScope, MS, error_kind, host_with_socket, pair, take_edges, with_stream,
};

/// Sets a deadline every 10 ms, and records when it was called.
struct Ticker;

impl Machine for Ticker {
    type Context = Vec<Time>;
    type Seed = Infallible;

    fn timeout(self, scope: &mut Scope<'_, Vec<Time>>) -> Response<Self, Infallible> {
        let now = scope.now();
        scope.push(now);
        Response::ok(self).deadline(now + 10 * MS)
    }
}

/// A host with a machine that wants a call every 10 ms, starting now.
fn ticking_host(sim: &mut Sim) -> Result<Host<Ticker>, Failure> {
    sim.host("host", |boot| {
        let mut creator = boot.new_loop()?;
        creator.add_machine_with(|scope| Response::ok(Ticker).deadline(scope.now() + 10 * MS))?;
        Ok(creator.instantiate(Vec::new()))
    })
}

fn only_fault(fault: Fault) -> Faults {
    Faults::none().set(fault, 1.0)
}

/// The longest time between two calls of a machine that wants one every 10 ms, during `time`.
fn longest_pause(fault: Fault, rate: f64, time: Duration) -> Result<Duration, Failure> {
    let mut sim = Sim::new(1);
    let host = ticking_host(&mut sim)?;
    sim.set_faults(Faults::none().set(fault, rate));
    sim.run_for(time)?;
    assert!(sim.fault_count(fault) > 0);
    let calls = sim.with(host, |instance| instance.context().clone()).unwrap_or_default();
    Ok(calls.windows(2).map(|two| two[1] - two[0]).max().unwrap_or_default())
}

#[test]
fn a_stalled_host_pauses_and_a_slow_turn_delays_its_calls() -> Result<(), Failure> {
    let minute = Duration::from_secs(60);
    let none = longest_pause(Fault::WallStep, 1.0, minute)?;
    assert!(none <= 12 * MS, "{none:?}");
    // With a rate of 1 it would start again each time before it is over.
    let still = longest_pause(Fault::SlowHost, 0.02, minute)?;
    assert!((500 * MS..5_000 * MS).contains(&still), "{still:?}");
    let slow = longest_pause(Fault::SlowTurn, 1.0, minute)?;
    assert!((20 * MS..45 * MS).contains(&slow), "{slow:?}");
    Ok(())
}

#[test]
fn the_clock_jumps_by_up_to_a_minute_and_due_calls_follow() -> Result<(), Failure> {
    let longest = longest_pause(Fault::ClockJump, 1.0, Duration::from_secs(600))?;
    assert!((Duration::from_secs(10)..Duration::from_secs(61)).contains(&longest), "{longest:?}");
    Ok(())
}

#[test]
fn the_wall_clock_steps_by_up_to_an_hour_and_loop_time_does_not() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    let host = ticking_host(&mut sim)?;
    sim.set_faults(only_fault(Fault::WallStep));
    let wall_time = |sim: &mut Sim| {
        let mut time = SystemTime::UNIX_EPOCH;
        sim.with(host, |instance| {
            // It ends immediately, so no machine is added.
            let _ended = instance.add_machine_with(|scope| {
                time = scope.wall_time();
                Response::done()
            });
        });
        time
    };
    let (mut before, mut steps) = (wall_time(&mut sim), [0, 0]);
    let second = Duration::from_secs(1);
    for number in 1..=100 {
        sim.run_for(second / 10)?;
        let now = wall_time(&mut sim);
        let hours = now.duration_since(before).unwrap_or_else(|error| error.duration());
        // Two steps may come within one tenth of a second.
        assert!(hours <= 3 * Duration::from_secs(3_600), "{hours:?}");
        steps[usize::from(now < before)] += usize::from(hours > second);
        before = now;
        assert_eq!(sim.now(), Time::ZERO + number * second / 10);
    }
    assert!(steps.iter().all(|steps| *steps > 10), "{steps:?}");
    Ok(())
}

#[test]
fn an_interrupted_wait_keeps_its_edges_for_the_next_one() -> Result<(), Failure> {
    let mut pair = pair(Network::new())?;
    pair.sim.set_faults(Faults::none().set(Fault::WaitInterrupted, 0.7));
    for _ in 0..50 {
        pair.server.write_all(b"x").expect("there is room");
        pair.sim.run_for(10 * MS)?;
        assert_eq!(take_edges(&mut pair.sim, pair.client_host), [EventSet::READABLE]);
        assert_eq!(pair.client(|client| client.read(&mut [0; 8])).expect("it is there"), 1);
        assert_eq!(
            error_kind(pair.client(|client| client.read(&mut [0; 8]))),
            ErrorKind::WouldBlock
        );
    }
    assert!(pair.sim.fault_count(Fault::WaitInterrupted) > 10);
    Ok(())
}

/// The arrival times of bytes that the server writes, in ms after each write; several times.
fn arrivals(pair: &mut ConnectedPair) -> Result<Vec<u32>, Failure> {
    let mut all = Vec::new();
    for _ in 0..30 {
        pair.server.write_all(b"x").expect("there is room");
        let mut after = 0;
        while pair.client(|client| client.read(&mut [0; 8])).is_err() {
            pair.sim.run_for(MS)?;
            after += 1;
        }
        all.push(after);
    }
    Ok(all)
}

#[test]
fn a_latency_spike_is_up_to_a_hundred_times_as_long() -> Result<(), Failure> {
    let mut pair = pair(Network::new().latency(MS..MS))?;
    assert!(arrivals(&mut pair)?.into_iter().all(|after| after <= 2));
    pair.sim.set_faults(only_fault(Fault::LatencySpike));
    let spikes = arrivals(&mut pair)?;
    assert!(spikes.iter().all(|after| *after <= 101), "{spikes:?}");
    assert!(spikes.iter().filter(|after| **after > 30).count() > 10, "{spikes:?}");
    Ok(())
}

#[test]
fn a_late_edge_comes_up_to_20_ms_after_its_cause() -> Result<(), Failure> {
    let mut pair = pair(Network::new().latency(MS..MS))?;
    pair.sim.set_faults(only_fault(Fault::LateEdge));
    let mut waits = Vec::new();
    for _ in 0..30 {
        pair.server.write_all(b"x").expect("there is room");
        let mut after = 0;
        while take_edges(&mut pair.sim, pair.client_host).is_empty() {
            pair.sim.run_for(MS)?;
            after += 1;
        }
        waits.push(after);
        assert_eq!(pair.client(|client| client.read(&mut [0; 8])).expect("it is there"), 1);
        assert_eq!(
            error_kind(pair.client(|client| client.read(&mut [0; 8]))),
            ErrorKind::WouldBlock
        );
    }
    assert!(waits.iter().all(|after| *after <= 22), "{waits:?}");
    assert!(waits.iter().filter(|after| **after > 5).count() > 10, "{waits:?}");
    Ok(())
}

#[test]
fn a_reset_discards_received_bytes_if_the_fault_strikes() -> Result<(), Failure> {
    for (faults, is_kept) in [(Faults::none(), true), (only_fault(Fault::ResetDropsInput), false)] {
        let mut pair = pair(Network::new())?;
        pair.sim.set_faults(faults);
        pair.client(|client| client.write_all(b"unread")).expect("there is room");
        pair.server.write_all(b"arrived").expect("there is room");
        pair.sim.run_for(5 * MS)?;
        drop(pair.server);
        pair.sim.run_for(5 * MS)?;
        let read = || with_stream(&pair.client, |client| client.read(&mut [0; 16]));
        if is_kept {
            assert_eq!(read().expect("it had arrived"), 7);
        }
        assert_eq!(error_kind(read()), ErrorKind::ConnectionReset);
    }
    Ok(())
}

#[test]
fn a_reset_overtakes_bytes_under_way_if_the_fault_strikes() -> Result<(), Failure> {
    let mut read_in_all = Vec::new();
    for (faults, is_lost) in [(Faults::none(), false), (only_fault(Fault::ResetOvertakes), true)] {
        for lead in [5 * MS, Duration::ZERO] {
            let mut pair = pair(Network::new())?;
            pair.sim.set_faults(faults.clone());
            pair.client(|client| client.write_all(b"unread")).expect("there is room");
            pair.sim.run_for(5 * MS)?;
            for _ in 0..20 {
                pair.server.write_all(b"x").expect("there is room");
            }
            // Bytes that have arrived stay.
            pair.sim.run_for(lead)?;
            drop(pair.server);
            pair.sim.run_for(5 * MS)?;
            let read = || with_stream(&pair.client, |client| client.read(&mut [0; 100]));
            // The error is reported once, perhaps by the first read.
            let first = read();
            let count = *first.as_ref().unwrap_or(&0);
            assert_eq!(count < 20, is_lost && lead.is_zero(), "{count} after {lead:?}");
            let error = if first.is_err() { first } else { read() };
            assert_eq!(error_kind(error), ErrorKind::ConnectionReset);
            read_in_all.push(count);
        }
    }
    assert_eq!(read_in_all[..3], [20; 3]);
    Ok(())
}

#[test]
fn a_loss_is_reported_as_a_time_out_if_the_fault_strikes() -> Result<(), Failure> {
    let mut pair = pair(Network::new())?;
    // An interval of chaos brings one reset at most.
    pair.sim.set_faults(only_fault(Fault::LossTimesOut).set(Fault::Reset, 1.0));
    pair.sim.run_for(Duration::from_secs(1))?;
    pair.sim.set_faults(Faults::none());
    assert_eq!(error_kind(pair.server.read(&mut [0; 8])), ErrorKind::TimedOut);
    let read = || with_stream(&pair.client, |client| client.read(&mut [0; 8]));
    assert_eq!(error_kind(read()), ErrorKind::TimedOut);
    assert_eq!(read().expect("the error is reported once"), 0);
    Ok(())
}

#[test]
fn a_client_without_a_descriptor_fails_at_once() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    sim.set_faults(only_fault(Fault::ConnectExhausted));
    let address: SocketAddr = "10.0.0.1:80".parse().expect("an address");
    let (host, _) = host_with_socket(&mut sim, "client", move |scope| {
        let error = SimTcpStream::connect(&address, scope).expect_err("it fails at once");
        assert_eq!(error.raw_os_error(), Some(24));
        SimTcpListener::bind(&address, &ListenOptions::new(), scope).expect("it binds")
    })?;
    assert_eq!((sim.fault_count(Fault::ConnectExhausted), sim.open_sockets(host)), (1, 1));
    Ok(())
}

#[test]
fn a_datagram_socket_without_a_descriptor_is_not_bound() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    let address: SocketAddr = "10.0.0.1:80".parse().expect("an address");
    sim.set_faults(only_fault(Fault::DatagramExhausted));
    let (host, _) = host_with_socket(&mut sim, "host", move |scope| {
        let error = SimUdpSocket::bind(&address, scope).expect_err("there is none");
        assert!(error.to_string().contains("10.0.0.1:80"), "{error}");
        let cause = error.get_ref().and_then(|error| error.source()).map(ToString::to_string);
        assert_eq!(cause, Some(Error::from_raw_os_error(24).to_string()));
        SimTcpListener::bind(&address, &ListenOptions::new(), scope).expect("it binds")
    })?;
    assert_eq!((sim.fault_count(Fault::DatagramExhausted), sim.open_sockets(host)), (1, 1));
    Ok(())
}

#[test]
fn a_slow_reader_has_room_for_few_bytes() -> Result<(), Failure> {
    for seed in 0..20 {
        let mut sim = Sim::new(seed);
        let address: SocketAddr = "10.0.0.1:80".parse().expect("an address");
        let (_, _listener) = host_with_socket(&mut sim, "server", move |scope| {
            SimTcpListener::bind(&address, &ListenOptions::new(), scope).expect("it binds")
        })?;
        let (_, client) = host_with_socket(&mut sim, "client", move |scope| {
            SimTcpStream::connect(&address, scope).expect("it begins")
        })?;
        sim.set_faults(only_fault(Fault::SlowReader));
        sim.run_for(10 * MS)?;
        let taken =
            with_stream(&client, |client| client.write(&[1; 1_000])).expect("there is room");
        assert!((1..=64).contains(&taken), "seed {seed}: {taken}");
    }
    Ok(())
}

#[test]
fn a_hanging_attempt_times_out_and_a_refused_one_fails_at_once() -> Result<(), Failure> {
    for (fault, at_first, at_last) in [
        (Fault::ConnectHang, None, ErrorKind::TimedOut),
        (Fault::ConnectRefused, Some(ErrorKind::ConnectionRefused), ErrorKind::ConnectionRefused),
    ] {
        let mut sim = Sim::new(1);
        let address: SocketAddr = "10.0.0.1:80".parse().expect("an address");
        let (_, listener) = host_with_socket(&mut sim, "server", move |scope| {
            SimTcpListener::bind(&address, &ListenOptions::new(), scope).expect("it binds")
        })?;
        sim.set_faults(only_fault(fault));
        let (_, client) = host_with_socket(&mut sim, "client", move |scope| {
            SimTcpStream::connect(&address, scope).expect("it begins")
        })?;
        let error = || {
            let error = with_stream(&client, |client| client.take_error()).expect("asking works");
            error.map(|error| error.kind())
        };
        sim.run_for(Duration::from_secs(126))?;
        let first = error();
        sim.run_for(Duration::from_secs(2))?;
        assert_eq!((first, first.or_else(error)), (at_first, Some(at_last)));
        assert!(listener.borrow_mut().as_mut().expect("held").accept().is_err(), "nobody came");
    }
    Ok(())
}

#[test]
fn a_small_slab_has_4_to_16_slots() -> Result<(), Failure> {
    let mut slots = Vec::new();
    for seed in 0..50 {
        let mut sim = Sim::new(seed);
        sim.set_faults(only_fault(Fault::SmallSlab));
        let host = sim.host("host", |boot| Ok(boot.new_loop()?.instantiate(Vec::new())))?;
        let count = sim.with(host, |instance: &mut LoopInstance<Ticker, SimBackend>| {
            (0..100)
                .take_while(|_| instance.add_machine_with(|_| Response::ok(Ticker)).is_ok())
                .count()
        });
        slots.extend(count);
    }
    let (least, most) = (slots.iter().min().copied(), slots.iter().max().copied());
    assert_eq!((slots.len(), least, most), (50, Some(4), Some(16)));
    Ok(())
}

#[test]
fn a_socket_queues_256_datagrams_and_gets_none_through_a_partition() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    let bind = |port: u16| {
        move |scope: &EarlyScope<'_>| {
            SimUdpSocket::bind(&SocketAddr::from(([0, 0, 0, 0], port)), scope).expect("it binds")
        }
    };
    let (sender_host, sender) = host_with_socket(&mut sim, "sender", bind(0))?;
    let (receiver_host, receiver) = host_with_socket(&mut sim, "receiver", bind(53))?;
    let target: SocketAddr = "10.0.0.2:53".parse().expect("an address");
    let send = |count: usize| {
        for _ in 0..count {
            let sent = sender.borrow_mut().as_mut().expect("held").send_to(b"?", &target);
            assert_eq!(sent.expect("who sends hears of no loss"), 1);
        }
    };
    let received = || {
        let mut receiver = receiver.borrow_mut();
        let receiver = receiver.as_mut().expect("held");
        (0..1_000).take_while(|_| receiver.receive_from(&mut [0; 8]).is_ok()).count()
    };
    for (sent, expected) in [(255, 255), (256, 256), (257, 256)] {
        send(sent);
        sim.run_for(5 * MS)?;
        assert_eq!(received(), expected);
    }
    sim.partition(sender_host, receiver_host);
    send(5);
    sim.run_for(Duration::from_secs(1))?;
    sim.join(sender_host, receiver_host);
    sim.run_for(Duration::from_secs(1))?;
    assert_eq!(received(), 0, "they are lost, and not kept");
    Ok(())
}

/// Counts the events it gets; it had a socket, but no longer has it.
struct FormerOwner;

impl Machine for FormerOwner {
    type Context = usize;
    type Seed = Infallible;

    fn ready(self, _: EventSet, scope: &mut Scope<'_, usize>) -> Response<Self, Infallible> {
        **scope += 1;
        Response::keep(self)
    }

    fn timeout(self, scope: &mut Scope<'_, usize>) -> Response<Self, Infallible> {
        Response::ok(self).deadline(scope.now() + 10 * MS)
    }
}

#[test]
fn a_stale_edge_goes_to_the_former_owner_of_a_socket() -> Result<(), Failure> {
    for (faults, least) in [(Faults::none(), 0), (only_fault(Fault::StaleEdge), 1)] {
        let mut sim = Sim::new(1);
        let host = sim.host("host", |boot| {
            let mut creator = boot.new_loop()?;
            creator.add_machine_with(|scope| {
                Response::attempt(|| {
                    let any = SocketAddr::from(([0, 0, 0, 0], 0));
                    let mut socket = SimUdpSocket::bind(&any, scope)?;
                    scope.register(&mut socket, Interest::Readable)?;
                    Ok(Response::ok(FormerOwner).deadline(scope.now() + 10 * MS))
                })
            })?;
            Ok(creator.instantiate(0))
        })?;
        sim.set_faults(faults);
        sim.run_for(Duration::from_secs(1))?;
        let edges = sim.with(host, |instance| *instance.context()).unwrap_or_default();
        assert!((least..=least * 200).contains(&edges), "{edges}");
    }
    Ok(())
}

/// Runs jobs repeatedly, and records how long each one took; `None` if it did not run.
enum JobRunner {
    Rests,
    Waits(Future<()>, Time),
}

impl JobRunner {
    fn rest(scope: &Scope<'_, Vec<Option<Duration>>>) -> Response<JobRunner, Infallible> {
        Response::ok(JobRunner::Rests).deadline(scope.now() + 10 * MS)
    }
}

impl Machine for JobRunner {
    type Context = Vec<Option<Duration>>;
    type Seed = Infallible;

    fn timeout(self, scope: &mut Scope<'_, Vec<Option<Duration>>>) -> Response<Self, Infallible> {
        match scope.job(|_: &Job<'_>| ()).start() {
            Ok(future) => Response::ok(JobRunner::Waits(future, scope.now())),
            Err(_full) => {
                scope.push(None);
                JobRunner::rest(scope)
            }
        }
    }

    fn wakeup(self, scope: &mut Scope<'_, Vec<Option<Duration>>>) -> Response<Self, Infallible> {
        let JobRunner::Waits(future, since) = self else { return Response::keep(self) };
        let done = match future.take() {
            Outcome::Pending(future) => return Response::keep(JobRunner::Waits(future, since)),
            Outcome::Value(()) => Some(scope.now() - since),
            Outcome::Lost(_) => None,
        };
        scope.push(done);
        JobRunner::rest(scope)
    }
}

#[test]
fn jobs_are_refused_lost_or_slow_according_to_the_faults() -> Result<(), Failure> {
    let jobs = |faults: Faults| {
        let mut sim = Sim::new(1);
        let host = sim.host("host", |boot| {
            let mut creator = boot.new_loop()?;
            creator.add_machine_with(|scope| {
                Response::ok(JobRunner::Rests).deadline(scope.now() + 10 * MS)
            })?;
            Ok(creator.instantiate(Vec::new()))
        })?;
        sim.set_faults(faults);
        sim.run_for(Duration::from_secs(300))?;
        let done = sim.with(host, |instance| instance.context().clone()).unwrap_or_default();
        assert!(done.len() > 10, "{}", done.len());
        Ok::<_, Failure>(done)
    };
    let usual = jobs(Faults::none())?;
    assert!(usual.iter().all(|done| done.is_some_and(|after| after <= 7 * MS)));
    for fault in [Fault::OffloadFull, Fault::OffloadLost] {
        assert!(jobs(only_fault(fault))?.iter().all(Option::is_none), "{fault:?}");
    }
    let slow: Vec<_> = jobs(only_fault(Fault::OffloadSlow))?.into_iter().flatten().collect();
    assert!(slow.iter().all(|after| *after <= Duration::from_secs(10) + 2 * MS), "{slow:?}");
    assert!(slow.iter().any(|after| *after > Duration::from_secs(5)), "{slow:?}");
    Ok(())
}
