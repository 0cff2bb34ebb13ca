//! What happens when something runs out: buffers, room in a queue, room for unread bytes.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod rig;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use rig::{Rig, connect, fill, not_yet, send_datagram, text};
use rotor_core::net::{DatagramSocket, Listener, StreamSocket};
use rotor_core::{Config, EventSet, Interest, Loop};
use rotor_uring::{UringConfig, UringUdpSocket};

#[test]
fn a_socket_without_a_free_buffer_is_read_by_system_calls() {
    let Some(mut rig) = Rig::open(&UringConfig::new().buffers(1, 256)) else { return };
    let mut pairs: Vec<_> = (0..3).map(|_| rig.pair()).collect();
    let text = text(10_000);
    for (_, client) in &mut pairs {
        client.write_all(&text).expect("it fits");
    }
    for (server, _) in &mut pairs {
        assert!(rig.read(server, Some(text.len())) == text);
    }
    assert!(rig.stats().buffers_exhausted > 0 && rig.stats().direct_calls > 0);
    // The ring delivers again once a buffer is free.
    let calls = rig.stats().direct_calls;
    for (server, client) in &mut pairs {
        assert!(not_yet(server.read(&mut [0])).is_none());
        rig.turn();
        client.write_all(b"again").expect("it fits");
        assert_eq!(rig.read(server, Some(5)), b"again");
    }
    assert!(rig.stats().direct_calls <= calls + 3, "{:?}", rig.stats());
}

#[test]
fn unread_bytes_leave_their_buffer_when_the_turn_ends() {
    let Some(mut rig) = Rig::open(&UringConfig::new().buffers(1, 4_096)) else { return };
    let (mut idle, mut its_peer) = rig.pair();
    its_peer.write_all(b"for later").expect("it fits");
    rig.until(|rig| rig.stats().bytes_copied == 9);
    let (mut server, mut client) = rig.pair();
    for _ in 0..100 {
        // Delivered by the ring, to which the receive has been submitted.
        rig.turn();
        client.write_all(&[7; 100]).expect("it fits");
        rig.turn();
        assert_eq!(rig.read(&mut server, Some(100)), [7; 100]);
    }
    // While the buffer is full, there is none for a moment. If the first stream kept it, there
    // would never be one again.
    assert!(rig.stats().buffers_exhausted < 10, "{:?}", rig.stats());
    its_peer.write_all(b", and more").expect("it fits");
    assert_eq!(rig.read(&mut idle, Some(19)), b"for later, and more");
}

#[test]
fn unread_bytes_count_as_held_until_they_are_read() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let (mut server, mut client) = rig.pair();
    rig.turns(3);
    assert_eq!(server.held_bytes(), 0);
    client.write_all(&text(10_000)).expect("it fits");
    // In a buffer of the ring, and then copied.
    rig.until(|_| server.held_bytes() >= 10_000);
    rig.turns(3);
    assert!((10_000..=20_000).contains(&server.held_bytes()), "{}", server.held_bytes());
    client.write_all(&text(10_000)).expect("it fits");
    rig.until(|_| server.held_bytes() >= 20_000);
    assert_eq!(rig.read(&mut server, Some(20_000)).len(), 20_000);
    assert_eq!(server.held_bytes(), 0);
    server.write_all(b"an answer").expect("it is taken");
    assert_eq!(server.held_bytes(), 0, "it leaves when the turn ends");
}

#[test]
fn delivery_to_an_unread_stream_stops_at_the_maximum() {
    let config = UringConfig::new().unread_bytes_max(4_096);
    let Some(mut rig) = Rig::open(&config) else { return };
    let (mut server, mut client) = rig.pair();
    server.set_receive_buffer(32 * 1024).expect("it can be");
    let text = text(32 << 20);
    let mut sent = 0;
    // Until the kernel has no more room, however many turns are taken.
    for _ in 0..50 {
        sent += fill(&mut client, &text[sent..]);
        rig.turn();
    }
    assert!(sent < text.len() && rig.stats().held_back == 1, "{sent}, {:?}", rig.stats());
    // At most what fits into all buffers.
    assert!(rig.stats().bytes_copied <= config.memory_bytes() as u64, "{:?}", rig.stats());
    let mut got = Vec::new();
    while got.len() < text.len() {
        let so_far = got.len();
        got.extend(rig.read(&mut server, Some(sent - so_far)));
        sent += fill(&mut client, &text[sent..]);
    }
    assert!(got == text);
}

#[test]
fn operations_beyond_the_queue_size_complete_in_order() {
    let config = UringConfig::new().submissions(1).completions(2);
    let Some(mut rig) = Rig::open(&config) else { return };
    let mut pairs: Vec<_> = (0..40).map(|_| rig.pair()).collect();
    for (number, (server, client)) in pairs.iter_mut().enumerate() {
        server.write_all(&[number as u8; 100]).expect("it is taken");
        client.write_all(&[number as u8 + 100; 100]).expect("it fits");
    }
    for (number, (server, client)) in pairs.iter_mut().enumerate() {
        assert_eq!(rig.read(client, Some(100)), [number as u8; 100]);
        assert_eq!(rig.read(server, Some(100)), [number as u8 + 100; 100]);
    }
    let stats = rig.stats();
    assert!(stats.submissions_overflowed > 0 && stats.completions_overflowed > 0, "{stats:?}");
    assert_eq!(stats.stale, 0);
}

#[test]
fn rings_of_all_sizes_transfer_the_same_bytes() {
    let (small, large) = (UringConfig::new(), UringConfig::new());
    for config in [
        small.submissions(0).completions(0).buffers(0, 0).events_max(0).unread_bytes_max(0),
        large.submissions(u32::MAX).completions(u32::MAX).buffers(u16::MAX, u32::MAX),
        UringConfig::new().submissions(3).completions(5).buffers(7, 777),
    ] {
        // If there is no memory for the largest configuration, the others are tried nevertheless.
        let Some(mut rig) = Rig::open(&config) else { continue };
        let mut pairs: Vec<_> = (0..3).map(|_| rig.pair()).collect();
        let text = text(20_000);
        for (server, client) in &mut pairs {
            client.write_all(&text).expect("it fits");
            assert!(rig.read(server, Some(text.len())) == text, "{config:?}");
            server.write_all(&text[..10_000]).expect("it is taken");
            assert!(rig.read(client, Some(10_000)) == text[..10_000], "{config:?}");
        }
        assert_eq!(rig.stats().stale, 0, "{config:?}");
    }
}

/// So operations run where their loop runs: there is no other thread that would have to be bound to
/// the same processors (`IORING_REGISTER_IOWQ_AFF`, io_uring_register(2)).
#[test]
fn no_operation_runs_on_a_kernel_worker_thread() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    for _ in 0..10 {
        let (mut server, mut client) = rig.pair();
        let text = text(300_000);
        let (mut sent, mut got) = (fill(&mut client, &text), Vec::new());
        while got.len() < text.len() {
            let so_far = got.len();
            got.extend(rig.read(&mut server, Some(sent - so_far)));
            sent += fill(&mut client, &text[sent..]);
        }
        server.write_all(&text[..10_000]).expect("it is taken");
        assert!(rig.read(&mut client, Some(10_000)) == text[..10_000]);
        server.shutdown(Shutdown::Write).expect("it is connected");
        assert!(rig.read(&mut client, None).is_empty());
        drop(server);
        rig.turns(2);
    }
    assert_no_kernel_workers();
}

/// A poll for room completes as soon as the peer has ended its side. If a send waited in the kernel,
/// that would poll in vain some times, and then give the send to a worker.
#[test]
fn no_send_to_a_full_stream_behind_an_end_occupies_a_kernel_worker() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let text = text(10_000);
    let mut pairs = Vec::new();
    for is_ended_first in [true, false].repeat(5) {
        let (mut server, client) = rig.pair();
        let end = || client.shutdown(Shutdown::Write).expect("it is connected");
        if is_ended_first {
            end();
            assert!(rig.read(&mut server, None).is_empty());
        }
        for _ in 0..1_000 {
            fill(&mut server, &text);
            rig.turn();
        }
        if !is_ended_first {
            end();
            rig.turns(10);
        }
        pairs.push((server, client));
    }
    assert_no_kernel_workers();
    let (servers, clients): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    drop(servers);
    rig.turns(10);
    // They still have something to send.
    assert_eq!(rig.stats().sockets, clients.len());
    assert_no_kernel_workers();
}

fn assert_no_kernel_workers() {
    let threads = std::fs::read_dir("/proc/self/task").expect("it is Linux");
    let names = threads.flatten().flat_map(|thread| {
        // A thread that has ended meanwhile has no name.
        std::fs::read_to_string(thread.path().join("comm"))
    });
    // The kernel's names for its workers: `iou-wrk-` and the id of the thread that they work for.
    let workers: Vec<_> = names.filter(|name| name.starts_with("iou-wrk")).collect();
    assert!(workers.is_empty(), "{workers:?}");
}

#[test]
fn a_turn_takes_at_most_events_max_completions() {
    let Some(mut rig) = Rig::open(&UringConfig::new().events_max(3)) else { return };
    let mut pairs: Vec<_> = (0..20).map(|_| rig.pair()).collect();
    rig.turns(10);
    rig.take_events();
    for (_, client) in &mut pairs {
        client.write_all(b"x").expect("it fits");
    }
    rig.turn();
    let first = rig.take_events().len();
    assert!((1..=3).contains(&first), "{first}");
    for (server, _) in &mut pairs {
        assert_eq!(rig.read(server, Some(1)), b"x");
    }
}

#[test]
fn unaccepted_connections_stay_in_the_systems_backlog() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let (mut listener, address) = rig.listen();
    rig.turn();
    let base = rig.stats();
    let clients: Vec<_> = (0..200).map(|_| connect(address)).collect();
    rig.turns(20);
    assert!(listener.has_waiting());
    assert_eq!(rig.stats().sockets, base.sockets, "none is with us");
    let servers: Vec<_> = clients.iter().map(|_| rig.accept(&mut listener)).collect();
    assert_eq!(rig.stats().sockets, base.sockets + servers.len());
    assert!(not_yet(listener.accept()).is_none() && !listener.has_waiting());
    // The next connection is reported.
    rig.turns(2);
    rig.take_events();
    let _last = connect(address);
    rig.until(|rig| rig.take_events().iter().any(|events| events.is_readable()));
    drop(rig.accept(&mut listener));
}

#[test]
fn accepting_makes_no_call_that_finds_no_connection() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let (mut listener, address) = rig.listen();
    for count in [1, 1, 3, 1] {
        rig.turns(2);
        rig.take_events();
        let _clients: Vec<_> = (0..count).map(|_| connect(address)).collect();
        rig.until(|rig| rig.take_events().iter().any(|events| events.is_readable()));
        let calls = rig.stats().direct_calls;
        // On loopback, every established connection is already in the queue.
        let taken = (0..).map_while(|_| not_yet(listener.accept())).count();
        assert_eq!((taken, rig.stats().direct_calls - calls), (count, count as u64));
    }
}

#[test]
fn a_slow_peer_gets_all_bytes_and_then_the_end() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let (mut server, mut client) = rig.pair();
    server.set_send_buffer(4_096).expect("it can be");
    let text = text(400_000);
    let (mut taken, mut got) = (0, Vec::new());
    let mut chunk = [0; 1_000];
    rig.until(|rig| {
        // Small writes, so that they go through the ring.
        while taken < text.len() {
            let piece = &text[taken..(taken + 3_000).min(text.len())];
            let Some(count) = not_yet(server.write(piece)) else { break };
            taken += count;
        }
        rig.turn();
        if let Some(count) = not_yet(client.read(&mut chunk)) {
            got.extend_from_slice(&chunk[..count]);
        }
        taken == text.len()
    });
    server.shutdown(Shutdown::Write).expect("it is told later");
    let late = server.write(b"more").expect_err("its end was told");
    assert_eq!(late.kind(), ErrorKind::BrokenPipe);
    got.extend(rig.read(&mut client, None));
    assert!(got == text, "{} of {}", got.len(), text.len());
}

#[test]
fn a_dropped_stream_sends_its_bytes_until_its_linger_time_ends() {
    for (linger, is_kept) in [(Duration::from_secs(60), true), (Duration::ZERO, false)] {
        let Some(mut rig) = Rig::open(&UringConfig::new().linger(linger)) else { return };
        let base = rig.stats().sockets;
        let (mut server, mut client) = rig.pair();
        server.set_send_buffer(4_096).expect("it can be");
        let (text, mut taken) = (text(16 << 20), 0);
        // Until neither the kernel nor the stream takes more.
        for _ in 0..2_000 {
            taken += not_yet(server.write(&text[taken..taken + 10_000])).unwrap_or(0);
            rig.turn();
        }
        drop(server);
        if is_kept {
            let got = rig.read(&mut client, None);
            assert!(got == text[..taken], "{} of {taken}", got.len());
        }
        rig.until(|rig| rig.stats().sockets == base);
        assert_eq!(rig.stats().lingered_too_long, u64::from(!is_kept));
        assert_eq!(rig.stats().stale, 0);
    }
}

#[test]
fn a_socket_belongs_to_one_ring_and_registers_once() {
    let config = UringConfig::new();
    let (Some(mut rig), Some(mut other)) = (Rig::open(&config), Rig::open(&config)) else {
        return;
    };
    let (mut server, _client) = rig.pair();
    let twice = rig.with(|scope| scope.register(&mut server, Interest::Both));
    assert_eq!(twice.expect_err("it is registered").kind(), ErrorKind::AlreadyExists);
    rig.with(|scope| scope.deregister(&mut server)).expect("it is registered");
    let again = rig.with(|scope| scope.deregister(&mut server));
    assert_eq!(again.expect_err("no longer").kind(), ErrorKind::NotFound);
    let elsewhere = other.with(|scope| scope.register(&mut server, Interest::Both));
    assert_eq!(elsewhere.expect_err("another ring").kind(), ErrorKind::Unsupported);
    let mut on_mio = Loop::<rig::Note>::new(&Config::new()).expect("there are descriptors");
    let made = on_mio.add_machine_with(|scope| {
        let foreign = scope.register(&mut server, Interest::Both).expect_err("another backend");
        assert_eq!(foreign.kind(), ErrorKind::Unsupported);
        assert!(foreign.to_string().contains("io_uring") && foreign.to_string().contains("mio"));
        rotor_core::Response::done()
    });
    made.expect_err("it ended at once");
    // Events that came meanwhile are reported when it is registered again.
    rig.register(&mut server);
}

#[test]
fn bytes_that_arrive_while_deregistered_are_reported_on_registration() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let (mut server, mut client) = rig.pair();
    rig.turn();
    client.write_all(b"hello").expect("it fits");
    rig.with(|scope| scope.deregister(&mut server)).expect("it is registered");
    rig.turns(3);
    rig.take_events();
    rig.register(&mut server);
    rig.until(|rig| rig.take_events().iter().any(|events| events.contains(EventSet::READABLE)));
    assert_eq!(rig.read(&mut server, Some(5)), b"hello");
}

#[test]
fn room_gained_while_deregistered_is_reported_on_registration() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    // Through the ring, and by direct calls with a poll for room.
    for len in [10_000, 20_000] {
        let (mut server, mut client) = rig.pair();
        server.set_send_buffer(4_096).expect("it can be");
        let (text, mut taken) = (text(len), 0);
        // Until neither the kernel nor the stream takes more.
        rig.until(|rig| {
            (0..100).all(|_| {
                let count = not_yet(server.write(&text));
                taken += count.unwrap_or(0);
                rig.turn();
                count.is_none()
            })
        });
        rig.with(|scope| scope.deregister(&mut server)).expect("it is registered");
        rig.read(&mut client, Some(taken));
        rig.turns(5);
        rig.take_events();
        rig.register(&mut server);
        rig.until(|rig| rig.take_events().iter().any(|events| events.contains(EventSet::WRITABLE)));
        assert!(not_yet(server.write(&text)).is_some());
    }
}

#[test]
fn listeners_and_datagram_sockets_get_events_after_reregistering() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let (mut listener, address) = rig.listen();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut datagrams =
        rig.with(|scope| UringUdpSocket::bind(&any, scope)).expect("a port is free");
    let theirs = datagrams.local_address().expect("it is bound");
    rig.with(|scope| scope.register(&mut datagrams, Interest::Readable)).expect("of this backend");
    rig.turns(3);
    // In one turn: the kernel still has the first poll when the second one is requested.
    rig.with(|scope| {
        scope.deregister(&mut listener).expect("it is registered");
        scope.register(&mut listener, Interest::Readable).expect("it is not");
        scope.deregister(&mut datagrams).expect("it is registered");
        scope.register(&mut datagrams, Interest::Readable).expect("it is not");
    });
    // Spurious events are allowed: the machines find nothing.
    rig.turns(3);
    assert!(not_yet(listener.accept()).is_none());
    assert!(not_yet(datagrams.receive_from(&mut [0; 9])).is_none());
    rig.take_events();
    let _client = connect(address);
    rig.until(|rig| rig.take_events().iter().any(|events| events.is_readable()));
    drop(rig.accept(&mut listener));
    rig.turns(3);
    rig.take_events();
    send_datagram(b"hello", theirs);
    rig.until(|rig| rig.take_events().iter().any(|events| events.is_readable()));
    assert_eq!(not_yet(datagrams.receive_from(&mut [0; 9])).map(|(len, _)| len), Some(5));
}

#[test]
fn bytes_in_the_kernel_are_read_once_before_the_first_wait() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let (mut listener, address) = rig.listen();
    let mut client = connect(address);
    let mut server = rig.accept(&mut listener);
    client.write_all(b"request").expect("it fits");
    rig.register(&mut server);
    // Like a machine that reads once more before it ends.
    let mut bytes = [0; 4];
    assert_eq!(not_yet(server.read(&mut bytes)), Some(4));
    assert_eq!(&bytes, b"requ");
    client.write_all(b", another").expect("it fits");
    // A system call in the middle of a turn, which also submits the receive to the kernel.
    drop(listener);
    assert_eq!(rig.read(&mut server, Some(12)), b"est, another");
}

#[test]
fn a_read_into_an_empty_buffer_leaves_the_bytes_in_place() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let (mut server, mut client) = rig.pair();
    rig.turns(2);
    client.write_all(b"hello").expect("it fits");
    rig.until(|rig| rig.take_events().iter().any(|events| events.is_readable()));
    assert_eq!(not_yet(server.read(&mut [])), Some(0));
    assert_eq!(rig.read(&mut server, Some(5)), b"hello");
    assert_eq!(not_yet(server.read(&mut [])), None, "as recv(2)");
}

#[test]
fn a_bulk_stream_is_read_by_system_calls_until_a_small_read() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let (mut server, mut client) = rig.pair();
    let text = text(8 << 20);
    let (mut sent, mut got) = (0, Vec::new());
    while got.len() < text.len() {
        // At the end of the turn the kernel is told that the stream was emptied.
        rig.turn();
        sent += fill(&mut client, &text[sent..]);
        let so_far = got.len();
        got.extend(rig.read(&mut server, Some(sent - so_far)));
    }
    assert!(got == text);
    // The kernel has put arriving bytes into the buffers only at first.
    assert_eq!(rig.stats().held_back, 1, "{:?}", rig.stats());
    // The first small message is read by a direct call; the others are delivered.
    let calls = rig.stats().direct_calls;
    for _ in 0..10 {
        rig.turn();
        client.write_all(b"little").expect("it fits");
        rig.turn();
        assert_eq!(rig.read(&mut server, Some(6)), b"little");
        assert!(not_yet(server.read(&mut [0])).is_none());
    }
    assert!(rig.stats().direct_calls <= calls + 3, "{:?}", rig.stats());
    // The end is reported as usual, even after a bulk transfer.
    let (mut sent, mut got) = (0, Vec::new());
    while sent < text.len() {
        rig.turn();
        sent += fill(&mut client, &text[sent..]);
        let so_far = got.len();
        got.extend(rig.read(&mut server, Some(sent - so_far)));
    }
    rig.turn();
    drop(client);
    assert!(got == text && rig.read(&mut server, None).is_empty());
    assert!(rig.stats().held_back <= 2, "{:?}", rig.stats());
}
