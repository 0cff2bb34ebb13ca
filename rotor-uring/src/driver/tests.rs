//! The driver alone. The test holds one end of each connection.

use std::io::{IoSlice, Read, Write};
use std::os::unix::net::UnixStream;

use rotor_core::net::ReadBuf;
use rustix::event::{EventfdFlags, eventfd};

use super::*;

#[test]
fn finished_streams_behind_a_slow_sender_leave_the_linger_list() {
    let waker = eventfd(0, EventfdFlags::NONBLOCK).expect("there are descriptors");
    let Ok(mut driver) = Driver::open(UringConfig::new(), waker) else { return };
    let mut ready = Ready::new();
    let mut dropped = |driver: &mut Driver, count: usize| {
        let (own, peer) = UnixStream::pair().expect("there are descriptors");
        own.set_nonblocking(true).expect("it can be");
        let id = driver.insert(own.into(), SocketKind::Stream);
        driver.register(id, Token::from_usize(1), Interest::Both).expect("it is new");
        for _ in 0..count {
            // Takes only as much as there is room for.
            let _taken = driver.write(id, &[IoSlice::new(&[7; 10_000])]);
            driver.wait(Some(Time::ZERO), &mut ready).expect("it goes on");
        }
        let _taken = driver.write(id, &[IoSlice::new(b"last")]);
        driver.drop_socket(id);
        driver.wait(Some(Time::ZERO), &mut ready).expect("it goes on");
        peer
    };
    let _reads_nothing = dropped(&mut driver, 1_000);
    for _ in 0..1_000 {
        dropped(&mut driver, 0);
    }
    driver.wait(Some(Time::ZERO), &mut Ready::new()).expect("it goes on");
    assert_eq!(driver.sockets.len(), 1, "the others are done");
    assert!(driver.lingering.capacity() < 64, "{}", driver.lingering.capacity());
}

#[test]
fn a_stream_frees_its_buffers_once_its_data_is_read() {
    let waker = eventfd(0, EventfdFlags::NONBLOCK).expect("there are descriptors");
    let Ok(mut driver) = Driver::open(UringConfig::new(), waker) else { return };
    let (own, mut peer) = UnixStream::pair().expect("there are descriptors");
    let id = driver.insert(own.into(), SocketKind::Stream);
    driver.register(id, Token::from_usize(1), Interest::Both).expect("it is new");
    let mut ready = Ready::new();
    driver.wait(Some(Time::ZERO), &mut ready).expect("it goes on");
    peer.write_all(b"hello").expect("it fits");
    while ready.is_empty() {
        driver.wait(Some(Time::ZERO), &mut ready).expect("it goes on");
    }
    // The turn ends, and unread bytes are kept.
    driver.wait(Some(Time::ZERO), &mut ready).expect("it goes on");
    let is_at_work =
        |driver: &Driver| driver.sockets.get(id).is_some_and(|socket| socket.buffers.is_some());
    let mut bytes = [0; 4];
    for (count, is_left) in [(4, true), (1, false)] {
        assert!(is_at_work(&driver));
        let mut filled = 0;
        let mut buf = ReadBuf::new(&mut bytes, &mut filled);
        assert!(driver.read(id, &mut buf).is_ok());
        assert_eq!(filled, count);
        assert_eq!(is_at_work(&driver), is_left);
    }
}

#[test]
fn a_wait_does_not_block_while_a_stream_holds_unreported_data() {
    let waker = eventfd(0, EventfdFlags::NONBLOCK).expect("there are descriptors");
    let Ok(mut driver) = Driver::open(UringConfig::new(), waker) else { return };
    let (own, mut peer) = UnixStream::pair().expect("there are descriptors");
    let id = driver.insert(own.into(), SocketKind::Stream);
    driver.register(id, Token::from_usize(1), Interest::Both).expect("it is new");
    let wait = |driver: &mut Driver| {
        let mut ready = Ready::new();
        driver.wait(Some(Time::ZERO), &mut ready).expect("it goes on");
        ready
    };
    wait(&mut driver);
    peer.write_all(b"hello").expect("it fits");
    while wait(&mut driver).is_empty() {}
    driver.deregister(id).expect("it is registered");
    (0..5).for_each(|_| drop(wait(&mut driver)));
    assert_eq!(driver.choose_wait(None), Wait::Forever);
    driver.register(id, Token::from_usize(2), Interest::Both).expect("it is not");
    assert_eq!(driver.choose_wait(None), Wait::Poll);
    assert_eq!(wait(&mut driver), [(Token::from_usize(2), EventSet::READABLE)]);
    assert_eq!(driver.choose_wait(None), Wait::Forever);
}

#[test]
fn a_stream_is_polled_for_its_end_only_while_it_is_left_unread() {
    let waker = eventfd(0, EventfdFlags::NONBLOCK).expect("there are descriptors");
    let config = UringConfig::new().unread_bytes_max(4_096);
    let Ok(mut driver) = Driver::open(config, waker) else { return };
    for goes_to_sleep in [false, true] {
        let (own, mut peer) = UnixStream::pair().expect("there are descriptors");
        own.set_nonblocking(true).expect("it can be");
        let id = driver.insert(own.into(), SocketKind::Stream);
        driver.register(id, Token::from_usize(1), Interest::Both).expect("it is new");
        peer.write_all(&[7; 50_000]).expect("it fits");
        let read_some = |driver: &mut Driver| {
            let (mut bytes, mut filled) = ([0; 100], 0);
            // The first read finds nothing.
            let _read = driver.read(id, &mut ReadBuf::new(&mut bytes, &mut filled));
        };
        let wait = |driver: &mut Driver, until| {
            driver.wait(Some(until), &mut Ready::new()).expect("it goes on");
            driver.sockets.get(id).map(|socket| (socket.is_left_unread(), socket.polls_closed))
        };
        while wait(&mut driver, Time::ZERO) != Some((true, false)) {
            read_some(&mut driver);
        }
        for _ in 0..3 {
            read_some(&mut driver);
            assert_eq!(wait(&mut driver, Time::ZERO), Some((true, false)));
        }
        let until = if goes_to_sleep {
            read_some(&mut driver);
            driver.clock.now() + std::time::Duration::from_millis(1)
        } else {
            Time::ZERO
        };
        assert_eq!(wait(&mut driver, until), Some((true, true)), "{goes_to_sleep}");
    }
}

/// Eight streams of the driver. Returns their other ends.
fn add_eight_streams(driver: &mut Driver) -> Vec<UnixStream> {
    let peer_of = |number| {
        let (own, peer) = UnixStream::pair().expect("there are descriptors");
        own.set_nonblocking(true).expect("it can be");
        let id = driver.insert(own.into(), SocketKind::Stream);
        driver.register(id, Token::from_usize(number), Interest::Both).expect("it is new");
        peer
    };
    (1..9).map(peer_of).collect()
}

#[test]
fn the_waker_works_after_the_completion_queue_was_full() {
    let waker = eventfd(0, EventfdFlags::NONBLOCK).expect("there are descriptors");
    let writer = waker.try_clone().expect("there are descriptors");
    let config = UringConfig::new().submissions(1).completions(2);
    let Ok(mut driver) = Driver::open(config, waker) else { return };
    let wait = |driver: &mut Driver, count: usize| {
        for _ in 0..count {
            driver.wait(Some(Time::ZERO), &mut Ready::new()).expect("it goes on");
        }
        driver.ring.stats().completed
    };
    let wake = || rustix::io::write(&writer, &1_u64.to_ne_bytes()).expect("it has room");
    let mut peers = add_eight_streams(&mut driver);
    wait(&mut driver, 50);
    for _ in 0..3 {
        peers.iter_mut().for_each(|peer| peer.write_all(b"x").expect("it fits"));
        wake();
        let before = wait(&mut driver, 50);
        wake();
        assert!(wait(&mut driver, 5) > before, "nobody was woken");
    }
    assert!(driver.stats().completions_overflowed > 0);
}

#[test]
fn overflowed_completions_count_as_more_to_come() {
    let waker = eventfd(0, EventfdFlags::NONBLOCK).expect("there are descriptors");
    let config = UringConfig::new().submissions(1).completions(2);
    let Ok(mut driver) = Driver::open(config, waker) else { return };
    let mut peers = add_eight_streams(&mut driver);
    let mut ready = Ready::new();
    (0..50).for_each(|_| driver.wait(Some(Time::ZERO), &mut ready).expect("it goes on"));
    ready.clear();
    peers.iter_mut().for_each(|peer| peer.write_all(b"x").expect("it fits"));
    driver.wait(Some(Time::ZERO), &mut ready).expect("it goes on");
    while driver.may_have_more() {
        driver.wait(Some(Time::ZERO), &mut ready).expect("it goes on");
    }
    let told: std::collections::BTreeSet<_> =
        ready.iter().map(|(token, _)| token.into_usize()).collect();
    assert_eq!(told.len(), 8, "{ready:?}");
}

/// The kernel may have left work for the next call, 20 items at a time.
#[test]
fn a_wait_that_takes_as_much_as_it_may_leaves_more_to_come() {
    let waker = eventfd(0, EventfdFlags::NONBLOCK).expect("there are descriptors");
    let Ok(mut driver) = Driver::open(UringConfig::new().events_max(20), waker) else { return };
    let mut peers: Vec<_> = (0..5).flat_map(|_| add_eight_streams(&mut driver)).collect();
    (0..50).for_each(|_| driver.wait(Some(Time::ZERO), &mut Ready::new()).expect("it goes on"));
    assert!(!driver.may_have_more());
    peers.iter_mut().for_each(|peer| peer.write_all(b"x").expect("it fits"));
    let before = driver.stats().completed;
    driver.wait(Some(Time::ZERO), &mut Ready::new()).expect("it goes on");
    assert_eq!((driver.stats().completed - before, driver.may_have_more()), (20, true));
}

#[test]
fn full_waits_report_a_stream_behind_one_that_fills_all_buffers() {
    let waker = eventfd(0, EventfdFlags::NONBLOCK).expect("there are descriptors");
    let config = UringConfig::new().events_max(4).buffers(64, 256);
    let Ok(mut driver) = Driver::open(config, waker) else { return };
    let mut peers = [1, 2].map(|token| {
        let (own, peer) = UnixStream::pair().expect("there are descriptors");
        own.set_nonblocking(true).expect("it can be");
        let id = driver.insert(own.into(), SocketKind::Stream);
        driver.register(id, Token::from_usize(token), Interest::Both).expect("it is new");
        peer
    });
    (0..50).for_each(|_| driver.wait(Some(Time::ZERO), &mut Ready::new()).expect("it goes on"));
    peers[0].write_all(&[7; 64 * 256]).expect("it fits");
    peers[1].write_all(b"x").expect("it fits");
    let mut ready = Ready::new();
    driver.wait(Some(Time::ZERO), &mut ready).expect("it goes on");
    for _ in 1..driver.full_waits() {
        if driver.may_have_more() {
            driver.wait(Some(Time::ZERO), &mut ready).expect("it goes on");
        }
    }
    assert!(ready.iter().any(|(token, _)| token.into_usize() == 2), "{ready:?}");
}

#[test]
fn a_wait_ends_at_the_deadline_of_a_lingering_stream() {
    let waker = eventfd(0, EventfdFlags::NONBLOCK).expect("there are descriptors");
    let linger = std::time::Duration::from_secs(60);
    let Ok(mut driver) = Driver::open(UringConfig::new().linger(linger), waker) else { return };
    let (own, _reads_nothing) = UnixStream::pair().expect("there are descriptors");
    own.set_nonblocking(true).expect("it can be");
    let id = driver.insert(own.into(), SocketKind::Stream);
    driver.register(id, Token::from_usize(1), Interest::Both).expect("it is new");
    for _ in 0..1_000 {
        // Takes only as much as there is room for.
        let _taken = driver.write(id, &[IoSlice::new(&[7; 10_000])]);
        driver.wait(Some(Time::ZERO), &mut Ready::new()).expect("it goes on");
    }
    assert_eq!(driver.choose_wait(None), Wait::Forever);
    driver.drop_socket(id);
    driver.wait(Some(Time::ZERO), &mut Ready::new()).expect("it goes on");
    let later = driver.clock.now() + 2 * linger;
    for until in [None, Some(later)] {
        let wait = driver.choose_wait(until);
        assert!(matches!(wait, Wait::AtMost(time) if time <= linger), "{wait:?}");
    }
}

#[test]
fn of_too_many_lingering_streams_the_one_that_was_dropped_first_is_cut_off() {
    let waker = eventfd(0, EventfdFlags::NONBLOCK).expect("there are descriptors");
    let config = UringConfig::new().lingering_max(2);
    let Ok(mut driver) = Driver::open(config, waker) else { return };
    let mut ready = Ready::new();
    let mut wait = |driver: &mut Driver| {
        driver.wait(Some(Time::ZERO), &mut ready).expect("it goes on");
    };
    let peers: Vec<_> = (0..4)
        .map(|_| {
            let (own, peer) = UnixStream::pair().expect("there are descriptors");
            own.set_nonblocking(true).expect("it can be");
            peer.set_nonblocking(true).expect("it can be");
            let id = driver.insert(own.into(), SocketKind::Stream);
            driver.register(id, Token::from_usize(1), Interest::Both).expect("it is new");
            let mut written = 0;
            // More often than both buffers can be filled.
            for _ in 0..1_000 {
                written += driver.write(id, &[IoSlice::new(&[7; 10_000])]).unwrap_or(0);
                wait(&mut driver);
            }
            driver.drop_socket(id);
            (peer, written)
        })
        .collect();
    (0..1_000).for_each(|_| wait(&mut driver));
    assert_eq!((driver.sockets.len(), driver.stats().lingered_too_long), (2, 2));
    for (number, (mut peer, written)) in peers.into_iter().enumerate() {
        let mut received = 0;
        loop {
            match peer.read(&mut [0; 10_000]) {
                Ok(0) => break,
                Ok(count) => received += count,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
            wait(&mut driver);
        }
        assert_eq!(received == written, number >= 2, "{number}: {received} of {written}");
    }
    assert_eq!((driver.sockets.len(), driver.stats().lingered_too_long), (0, 2));
}
