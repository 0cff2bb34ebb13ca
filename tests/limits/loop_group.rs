//! Loops that share an address, each with its own accept queue (SO_REUSEPORT). A full loop delays
//! only its own clients.
#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rotor::net::{ListenOptions, TcpListener, TcpListeners};
use rotor::threads::LoopGroup;
use rotor::{Config, Exit, Loop, Response, StatsHandle};

use crate::driving::{PATIENCE, Total, allow_many_sockets};
use crate::echo::EchoServer;

/// Enough clients that both loops get some: the chance that one loop gets all is 2⁻⁶³.
const CLIENTS: usize = 64;

/// Starts two loops on one address. The first has room for one connection. Also returns the stats
/// of each, in order.
fn start() -> (LoopGroup, SocketAddr, Vec<StatsHandle>) {
    allow_many_sockets();
    let any = (Ipv4Addr::LOCALHOST, 0).into();
    let listeners = TcpListeners::bind(any, &ListenOptions::new(), 2).expect("a free port");
    let address = listeners.local_address();
    let (sender, stats) = mpsc::channel();
    let group = LoopGroup::start(listeners, move |listener, index| {
        let machines_max = if index == 0 { 2 } else { 1_000 };
        let mut creator = Loop::new(&Config::new().machines_max(machines_max))?;
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let listener = TcpListener::from_std(listener, scope)?;
                Ok(Response::ok(EchoServer::listen(listener, scope)?))
            })
        })?;
        let instance = creator.instantiate(Total::default());
        sender.send((index, instance.stats()))?;
        Ok(instance)
    });
    let group = group.expect("threads are left");
    let mut stats: Vec<(usize, StatsHandle)> = stats.iter().take(2).collect();
    stats.sort_by_key(|(index, _)| *index);
    (group, address, stats.into_iter().map(|(_, stats)| stats).collect())
}

/// Connects and sends a request. Sends the connection over the channel when it has been answered.
fn ask(address: SocketAddr, answered: mpsc::Sender<TcpStream>) {
    thread::spawn(move || {
        let mut socket = TcpStream::connect(address).expect("the listeners are open");
        socket.set_read_timeout(Some(PATIENCE)).expect("not zero");
        socket.write_all(b"?").expect("the system takes it");
        socket.read_exact(&mut [0]).expect("it comes back, sooner or later");
        answered.send(socket).expect("the test waits for all");
    });
}

/// Waits for something that another thread is about to do.
fn wait_until(done: impl Fn() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < PATIENCE, "it never happened");
        thread::yield_now();
    }
}

#[test]
fn a_full_loop_of_a_group_delays_no_other_loop_and_drops_no_client() {
    let (group, address, stats) = start();
    let (sender, answered) = mpsc::channel();
    let mut held = Vec::new();
    let mut asked = 0;
    // Clients connect one at a time and all stay, until the small loop has its one connection.
    while stats[0].read().alive < 2 {
        ask(address, sender.clone());
        asked += 1;
        assert!(asked <= CLIENTS, "all clients are for the same loop");
        held.push(answered.recv_timeout(PATIENCE).expect("there is room in both loops"));
        wait_until(|| {
            stats.iter().map(|stats| stats.read().alive).sum::<u64>() == 2 + asked as u64
        });
    }
    let turns = stats[0].read().turns;
    for _ in 0..CLIENTS {
        ask(address, sender.clone());
    }
    // Clients of the other loop are answered while the small loop is full.
    for number in 0..CLIENTS / 8 {
        let socket = answered.recv_timeout(PATIENCE);
        held.push(socket.unwrap_or_else(|_| panic!("only {number} clients were answered")));
    }
    assert_eq!(stats[0].read().alive, 2);
    let turns = stats[0].read().turns - turns;
    assert!(turns <= 2 * CLIENTS as u64, "{turns} turns: it spins");

    // As clients leave, those that wait are served, each by the loop that has it in its queue.
    let mut served = held.len();
    drop(held);
    while served < asked + CLIENTS {
        let socket = answered.recv_timeout(PATIENCE);
        drop(
            socket.unwrap_or_else(|_| panic!("only {served} of {} were answered", asked + CLIENTS)),
        );
        served += 1;
    }
    group.handle().drain(Duration::from_secs(60));
    for exit in group.join() {
        assert_eq!(exit.expect("the backend waits"), Exit::Drained { dropped: 0 });
    }
    let (small, large) = (stats[0].read(), stats[1].read());
    assert_eq!(small.spawned + large.spawned, (2 + asked + CLIENTS) as u64);
    assert_eq!(small.failed + large.failed + small.panicked + large.panicked, 0);
}
