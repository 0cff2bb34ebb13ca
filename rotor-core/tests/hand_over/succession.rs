//! One process succeeds another: what it receives, and what happens to its predecessor.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::thread;
use std::time::Duration;

use rotor_core::Exit;
use rotor_core::hand_over::HandOverErrorKind as Kind;
use rotor_core::net::ListenOptions;
use rotor_core::service_manager::ServiceManager;

use crate::rig::{
    ANY, PATIENCE, Place, SLOW, at, greeting, is_refused, make_process, start, start_counting,
    wait_until,
};

#[test]
fn a_successor_gets_the_listeners_and_its_predecessor_drains() {
    let place = Place::new();
    let mut processes = vec![start(&place, 2, "0")];
    let address = processes[0].address;
    for (number, (loops, word)) in [(1, "1"), (4, "2"), (3, "3"), (2, "4")].into_iter().enumerate()
    {
        let next = start(&place, loops, word);
        assert_eq!(next.address, address, "the same port, which the system chose once");
        processes.remove(0).wait_until_drained();
        for _ in 0..40 {
            assert_eq!(greeting(address), word, "hand-over {number}");
        }
        processes.push(next);
    }
    processes.remove(0).end();
}

/// A predecessor that looks, before it drains, at what the service manager has received.
#[test]
fn the_service_manager_knows_of_a_successor_before_its_predecessor_drains() {
    let place = Place::new();
    let inbox = UnixDatagram::bind(place.0.join("manager")).expect("a new directory");
    inbox.set_nonblocking(true).expect("it can");
    let manager = ServiceManager::at(place.0.join("manager")).expect("it listens");
    let listener = UnixListener::bind(place.path()).expect("the path is free");
    let predecessor = thread::spawn(move || {
        let (mut peer, _) = listener.accept().expect("a successor comes");
        peer.write_all(b"rotorHO1+.").expect("there is room");
        let mut word = [0];
        let mut hear = |peer: &mut UnixStream| {
            peer.read_exact(&mut word).expect("it goes on");
            word[0]
        };
        assert_eq!(hear(&mut peer), b'R');
        assert_eq!(inbox.recv(&mut [0; 64]).expect_err("too early").kind(), ErrorKind::WouldBlock);
        peer.write_all(b"G").expect("there is room");
        assert_eq!(hear(&mut peer), b'T');
        let mut message = [0; 64];
        let length = inbox.recv(&mut message).expect("it was told before");
        String::from_utf8_lossy(&message[..length]).into_owned()
    });
    let mut hand_over = at(&place).expect("it is handed over").service_manager(&manager);
    let process = make_process(&mut hand_over, 1, "2");
    hand_over.ready(process.group.handle(), PATIENCE).expect("it serves");
    let message = predecessor.join().expect("it was told in time");
    assert_eq!(message, format!("MAINPID={}\nREADY=1\n", std::process::id()));
    process.end();
}

#[test]
fn a_successor_that_dies_before_it_is_ready_has_no_effect() {
    let place = Place::new();
    let (first, rejected_successors) = start_counting(&place, PATIENCE);
    for number in 1..=3 {
        let hand_over = at(&place).expect("it is answered");
        assert!(hand_over.has_predecessor());
        drop(hand_over);
        assert_eq!(greeting(first.address), "1");
        wait_until("it is counted", || rejected_successors.count() == number);
    }
    let second = start(&place, 1, "2");
    first.wait_until_drained();
    second.end();
}

#[test]
fn one_of_two_first_processes_that_start_at_once_is_rejected() {
    let place = Place::new();
    let mut one = at(&place).expect("nobody is there");
    let error = at(&place).expect_err("the other one is at it");
    assert!(matches!(error.kind(), Kind::Busy), "{error}");
    let first = make_process(&mut one, 1, "1");
    one.ready(first.group.handle(), PATIENCE).expect("it serves");
    let second = start(&place, 1, "2");
    first.wait_until_drained();
    second.end();
}

#[test]
fn a_successor_that_is_not_ready_in_time_is_rejected_as_late() {
    let place = Place::new();
    let (first, rejected_successors) = start_counting(&place, Duration::from_millis(1));
    let mut slow = at(&place).expect("it is answered");
    let late = make_process(&mut slow, 1, "late");
    wait_until("the slow one is given up", || match at(&place) {
        Ok(_) => true,
        Err(error) => {
            assert!(matches!(error.kind(), Kind::Busy), "{error}");
            false
        }
    });
    assert_ne!(rejected_successors.count(), 0);
    let error = slow.ready(late.group.handle(), PATIENCE).expect_err("it is too late");
    assert!(matches!(error.kind(), Kind::Late), "{error}");
    late.end();
    assert_eq!(greeting(first.address), "1");
    first.end();
}

#[test]
fn one_of_two_simultaneous_successors_is_rejected() {
    let place = Place::new();
    let (first, rejected_successors) = start_counting(&place, PATIENCE);
    let mut one = at(&place).expect("it is answered");
    let error = at(&place).expect_err("the other one is at it");
    assert!(matches!(error.kind(), Kind::Busy));
    wait_until("it is counted", || rejected_successors.count() == 1);
    let path = place.path();
    let text = "another process is starting with these listeners: start one at a time";
    assert_eq!(error.to_string(), format!("no hand-over at {}: {text}", path.display()));
    let second = make_process(&mut one, 1, "2");
    one.ready(second.group.handle(), PATIENCE).expect("it serves");
    first.wait_until_drained();
    assert_eq!(greeting(second.address), "2");
    second.end();
}

#[test]
fn ending_without_a_successor_closes_all_copies_of_the_listeners() {
    let place = Place::new();
    let first = start(&place, 2, "1");
    let address = first.address;
    first.end();
    wait_until("clients are refused", || is_refused(address));
    wait_until("the path is free", || !place.path().exists());
    let second = start(&place, 1, "2");
    second.end();
}

#[test]
fn copies_of_listeners_are_closed_when_the_drain_begins() {
    let place = Place::new();
    let first = start(&place, 2, SLOW);
    first.group.handle().drain(PATIENCE * 100);
    wait_until("clients are refused", || is_refused(first.address));
    first.group.handle().stop();
    let still_drained = |exit: &std::io::Result<Exit>| matches!(exit, Ok(Exit::Stopped));
    assert!(first.group.join().iter().all(still_drained));
}

#[test]
fn a_successor_serves_though_its_predecessor_has_ended_meanwhile() {
    let place = Place::new();
    let first = start(&place, 1, "1");
    let address = first.address;
    let mut hand_over = at(&place).expect("it is answered");
    let second = make_process(&mut hand_over, 1, "2");
    first.end();
    wait_until("the path is free", || !place.path().exists());
    hand_over.ready(second.group.handle(), PATIENCE).expect("it is the only one");
    assert_eq!(greeting(address), "2");
    assert!(place.path().exists());
    second.end();
}

#[test]
fn sockets_of_all_kinds_are_handed_over_by_name() {
    let place = Place::new();
    let unix_path = place.0.join("unix");
    let options = ListenOptions::new();
    let mut one = at(&place).expect("nobody is there");
    let first = make_process(&mut one, 1, "1");
    let _unix = one.unix("control", &unix_path, &options).expect("the path is free");
    let udp = one.udp("names", ANY).expect("a port is free");
    let gone = one.tcp("gone", ANY, &options, 1).expect("a port is free").local_address();
    one.ready(first.group.handle(), PATIENCE).expect("it serves");

    let mut two = at(&place).expect("it is answered");
    let error = two.unix("web", &unix_path, &options).expect_err("it is none");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let text = "\"web\" is a TCP listener as it was handed over, and a Unix listener here";
    assert_eq!(error.to_string(), text);
    let second = make_process(&mut two, 1, "2");
    let unix = two.unix("control", &unix_path, &options).expect("it was handed over");
    let same = two.udp("names", ANY).expect("it was handed over");
    assert_eq!(same.local_addr().expect("it is bound"), udp.local_addr().expect("it is bound"));
    two.ready(second.group.handle(), PATIENCE).expect("it serves");
    first.wait_until_drained();

    let mut client = UnixStream::connect(&unix_path).expect("it listens");
    client.write_all(b"hi").expect("there is room");
    drop(client);
    let mut text = String::new();
    unix.accept().expect("one waits").0.read_to_string(&mut text).expect("it is text");
    assert_eq!(text, "hi");
    drop(udp);
    let client = UdpSocket::bind(ANY).expect("a port is free");
    client.send_to(b"who?", same.local_addr().expect("it is bound")).expect("it is sent");
    let mut datagram = [0; 9];
    assert_eq!(same.recv(&mut datagram).expect("it comes"), 4);
    wait_until("who is not asked for is closed", || is_refused(gone));
    second.end();
}

#[test]
fn a_unix_listener_is_opened_with_the_requested_mode() {
    let place = Place::new();
    let mut hand_over = at(&place).expect("nobody is there");
    for (name, mode) in [("nobody", 0o000), ("own", 0o600)] {
        let path = place.0.join(name);
        let options = ListenOptions::new().unix_mode(mode);
        let _listener = hand_over.unix(name, &path, &options).expect("the path is free");
        let found = fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(found & 0o777, mode, "{name}: {found:o}");
    }
}

#[test]
fn an_address_that_is_in_use_is_named_in_the_error() {
    let place = Place::new();
    let mut hand_over = at(&place).expect("nobody is there");
    let taken = UdpSocket::bind(ANY).expect("a port is free");
    let address = taken.local_addr().expect("it is bound");
    let error = hand_over.udp("a", address).expect_err("it is in use");
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert_eq!(error.to_string(), format!("cannot listen on {address}"));
}

#[test]
fn names_of_sockets_are_validated() {
    let place = Place::new();
    let mut hand_over = at(&place).expect("nobody is there");
    let options = ListenOptions::new();
    hand_over.udp("a", ANY).expect("a port is free");
    for (name, words) in [
        ("a", "was asked for before"),
        ("", "is to have 1 to 255 bytes"),
        (&"x".repeat(256), "is to have 1 to 255 bytes"),
    ] {
        let error = hand_over.tcp(name, ANY, &options, 1).expect_err("it is no name");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(words), "{error}");
    }
    hand_over.udp(&"x".repeat(255), ANY).expect("it is as long as may be");
}
