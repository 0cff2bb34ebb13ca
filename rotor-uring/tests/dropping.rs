//! Connections that are dropped at each step of their life, by either side, and loops that end with
//! operations in flight. `ROTOR_CHURN` sets how often each step runs (6 by default), and
//! `ROTOR_CHURN_MANY` the number of connections that are opened and dropped by the hundred (2,000
//! by default). `tests/long/uring` runs this under the address sanitizer.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod rig;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rig::{Rig, connect, fill, fill_stream, read_on, text};
use rotor_core::net::StreamSocket;
use rotor_core::{Exit, Interest};
use rotor_uring::{UringConfig, UringTcpListener, UringTcpStream, UringUnixStream};

/// What is done with a connection before it is dropped.
type Step = (&'static str, fn(&mut Rig, &mut UringTcpStream, &mut TcpStream));

const STEPS: [Step; 15] = [
    ("accepted", |_, _, _| {}),
    ("registered", |rig, server, _| rig.register(server)),
    ("given", |rig, server, _| {
        rig.register(server);
        rig.turn();
    }),
    ("spoken to", |rig, server, client| {
        rig.register(server);
        rig.turn();
        client.write_all(&text(3_000)).expect("it fits");
    }),
    ("unread", |rig, server, client| {
        rig.register(server);
        client.write_all(&text(3_000)).expect("it fits");
        rig.turns(2);
    }),
    ("half read", |rig, server, client| {
        rig.register(server);
        client.write_all(&text(3_000)).expect("it fits");
        rig.read(server, Some(1_000));
    }),
    ("held back", |rig, server, client| {
        rig.register(server);
        for _ in 0..4 {
            fill(client, &text(200_000));
            rig.turn();
        }
    }),
    ("deregistered", |rig, server, client| {
        rig.register(server);
        rig.turn();
        client.write_all(b"x").expect("it fits");
        rig.with(|scope| scope.deregister(server)).expect("it is registered");
    }),
    ("written to", |rig, server, _| {
        rig.register(server);
        server.write_all(&text(3_000)).expect("it is taken");
    }),
    ("sending", |rig, server, _| {
        rig.register(server);
        server.set_send_buffer(4_096).expect("it can be");
        for _ in 0..100 {
            let _full = server.write(&text(9_000));
            rig.turn();
        }
    }),
    ("full", |rig, server, _| {
        rig.register(server);
        server.set_send_buffer(4_096).expect("it can be");
        let text = text(200_000);
        while fill(server, &text) == text.len() {}
        rig.turn();
    }),
    ("sending, and its peer is gone", |rig, server, client| {
        rig.register(server);
        for _ in 0..40 {
            let _full = server.write(&text(9_000));
        }
        let _gone = client.shutdown(Shutdown::Both);
        rig.turns(2);
        let _reset = server.write(&text(9_000));
    }),
    ("ended by its peer", |rig, server, client| {
        rig.register(server);
        client.write_all(b"last words").expect("it fits");
        client.shutdown(Shutdown::Write).expect("it is connected");
        rig.turns(2);
    }),
    ("ended, with more to be sent", |rig, server, _| {
        rig.register(server);
        server.write_all(&text(9_000)).expect("it is taken");
        server.shutdown(Shutdown::Write).expect("it is told later");
    }),
    ("just turned", |rig, server, client| {
        rig.register(server);
        client.write_all(&text(3_000)).expect("it fits");
        server.write_all(&text(3_000)).expect("it is taken");
        rig.turn();
    }),
];

fn rounds() -> usize {
    std::env::var("ROTOR_CHURN").ok().and_then(|text| text.parse().ok()).unwrap_or(6)
}

/// Small limits, so that everything that can run out does.
fn small() -> UringConfig {
    UringConfig::new()
        .buffers(2, 2_048)
        .unread_bytes_max(4_096)
        .submissions(8)
        .completions(16)
        .linger(Duration::from_millis(1))
}

fn accept(rig: &mut Rig, listener: &mut UringTcpListener) -> UringTcpStream {
    rig.accept(listener)
}

/// How many rounds a loop runs. Then a new one is made, since each registration leaves a machine in
/// it.
const ROUNDS_PER_LOOP: usize = 1_000;

#[test]
fn a_connection_dropped_at_any_step_frees_its_socket() {
    for config in [UringConfig::new().linger(Duration::from_millis(1)), small()] {
        for first in (0..rounds()).step_by(ROUNDS_PER_LOOP) {
            let Some(mut rig) = Rig::open(&config) else { return };
            churn(&mut rig, first..rounds().min(first + ROUNDS_PER_LOOP));
        }
    }
}

fn churn(rig: &mut Rig, rounds: Range<usize>) {
    let (mut witness, mut its_peer) = rig.pair();
    let (mut listener, address) = rig.listen();
    let base = rig.stats().sockets;
    for round in rounds {
        for (name, step) in STEPS {
            let mut client = connect(address);
            let mut server = accept(rig, &mut listener);
            step(rig, &mut server, &mut client);
            // One side is dropped first, or the other.
            if (round + name.len()) % 2 == 0 {
                drop(client);
                rig.turns(round % 3);
                drop(server);
            } else {
                drop(server);
                rig.turns(round % 3);
                drop(client);
            }
        }
        its_peer.write_all(&text(5_000)).expect("it fits");
        assert!(rig.read(&mut witness, Some(5_000)) == text(5_000));
        rig.take_events();
    }
    rig.until(|rig| rig.stats().sockets == base);
    assert_eq!(rig.stats().stale, 0);
}

/// The number of connections in a batch.
const BATCH_SIZE: usize = 100;

#[test]
fn many_short_connections_leave_no_sockets() {
    let count = std::env::var("ROTOR_CHURN_MANY").ok().and_then(|text| text.parse().ok());
    let batches = count.unwrap_or(2_000) / BATCH_SIZE;
    for config in [UringConfig::new().linger(Duration::from_millis(1)), small()] {
        let Some(mut rig) = Rig::open(&config) else { return };
        let (mut witness, mut its_peer) = rig.pair();
        let base = rig.stats().sockets;
        for batch in 0..batches / 2 {
            run_batch(&mut rig, batch);
            its_peer.write_all(&[7; 100]).expect("it fits");
            assert_eq!(rig.read(&mut witness, Some(100)), [7; 100]);
            rig.take_events();
        }
        rig.until(|rig| rig.stats().sockets == base);
        assert_eq!(rig.stats().stale, 0);
    }
}

/// Runs a batch: each connection has come to another point when it is dropped, by one side first or
/// by the other. The batch uses Unix sockets, since ports would run out.
fn run_batch(rig: &mut Rig, batch: usize) {
    let mut pairs: Vec<_> = rig.with(|scope| {
        let pair = |_| {
            let (own, peer) = UnixStream::pair().expect("descriptors are left");
            let mut own = UringUnixStream::from_std(own, scope).expect("of this backend");
            scope.register(&mut own, Interest::Both).expect("of this backend");
            (own, peer)
        };
        (0..BATCH_SIZE).map(pair).collect()
    });
    rig.turns(batch % 2);
    for (number, (own, peer)) in pairs.iter_mut().enumerate() {
        if number.is_multiple_of(2) {
            peer.write_all(&text(1_000)).expect("it fits");
        }
        if number.is_multiple_of(3) {
            own.write_all(&text(3_000)).expect("it is taken");
        }
        if number.is_multiple_of(5) {
            peer.shutdown(Shutdown::Write).expect("it is connected");
        }
    }
    rig.turns(batch % 3);
    for (number, (mut own, peer)) in pairs.into_iter().enumerate() {
        let _some = own.read(&mut [0; 500][..number * 5]);
        if (number + batch).is_multiple_of(2) {
            drop(peer);
            drop(own);
        } else {
            drop(own);
            drop(peer);
        }
    }
}

#[test]
fn a_loop_can_end_with_operations_of_every_kind_in_flight() {
    for round in 0..rounds().min(6) {
        for config in [UringConfig::new(), small()] {
            let Some(mut rig) = Rig::open(&config) else { return };
            let (mut listener, address) = rig.listen();
            let mut kept = Vec::new();
            for (_, step) in STEPS {
                let mut client = connect(address);
                let mut server = accept(&mut rig, &mut listener);
                step(&mut rig, &mut server, &mut client);
                kept.push((server, client));
            }
            let (servers, clients): (Vec<_>, Vec<_>) = kept.into_iter().unzip();
            // The loop is dropped before its sockets, after them, or after some of them.
            match round % 3 {
                0 => drop(rig),
                1 => drop((servers, rig)),
                _ => drop((clients, rig)),
            }
        }
    }
}

#[test]
fn bytes_written_before_a_loop_ends_are_sent() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let (mut server, mut client) = rig.pair();
    rig.turn();
    server.write_all(b"farewell").expect("it is taken");
    drop((server, rig));
    client.set_nonblocking(false).expect("it can be");
    let mut got = Vec::new();
    client.read_to_end(&mut got).expect("it ends in order");
    assert_eq!(got, b"farewell");
}

#[test]
fn a_drained_loop_ends_once_the_kernel_has_everything() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let (server, mut client, taken) = fill_stream(&mut rig);
    drop(server);
    rig.instance.handle().drain(Duration::from_secs(60));
    for _ in 0..100 {
        let exit = rig.instance.turn(Some(Duration::ZERO)).expect("it can wait");
        assert_eq!(exit, None, "the peer has not read");
    }
    let mut got = Vec::new();
    let exit = loop {
        read_on(&mut client, None, &mut got);
        if let Some(exit) = rig.instance.turn(Some(Duration::from_millis(1))).expect("it can wait")
        {
            break exit;
        }
    };
    assert_eq!(exit, Exit::Drained { dropped: 0 });
    drop(rig);
    client.set_nonblocking(false).expect("it can be");
    client.read_to_end(&mut got).expect("it ends in order");
    assert_eq!(got.len(), taken);
}

#[test]
fn bytes_queued_behind_a_send_are_sent_when_the_loop_ends() {
    for completions in [2, 64] {
        let config = UringConfig::new().events_max(1).submissions(2).completions(completions);
        let Some(mut rig) = Rig::open(&config) else { return };
        let mut pairs: Vec<_> = (0..8).map(|_| rig.pair()).collect();
        rig.turns(50);
        // The loop sees the completion of only one of these writes, since it takes one per turn.
        pairs.iter_mut().for_each(|(server, _)| server.write_all(b"one").expect("it is taken"));
        rig.turn();
        pairs.iter_mut().for_each(|(server, _)| server.write_all(b"two").expect("it is taken"));
        let (servers, clients): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        drop((servers, rig));
        for mut client in clients {
            client.set_nonblocking(false).expect("it can be");
            let mut got = Vec::new();
            client.read_to_end(&mut got).expect("it ends in order");
            assert_eq!(got, b"onetwo");
        }
    }
}
