//! The path: which process owns it, which one replaces it, and what else may exist there.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};

use rotor_core::hand_over::{HandOver, HandOverErrorKind as Kind};
use rotor_core::with_causes;

use crate::rig::{
    PATIENCE, Place, at, greeting, is_refused, make_process, start, start_counting, wait_until,
};

#[test]
fn the_socket_at_the_path_is_accessible_to_its_user_only() {
    let place = Place::new();
    let first = start(&place, 1, "1");
    let mode = fs::metadata(place.path()).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(fs::read_dir(&place.0).expect("it is there").count(), 1, "nothing is left beside");
    first.end();
}

/// A hand-written successor: it has the listeners, has reported that it is ready, and was told to
/// go ahead.
fn approved_successor(place: &Place) -> UnixStream {
    let mut peer = UnixStream::connect(place.path()).expect("it listens");
    let mut byte = [0];
    while byte != *b"." {
        peer.read_exact(&mut byte).expect("the list comes whole");
    }
    peer.write_all(b"R").expect("there is room");
    peer.read_exact(&mut byte).expect("it is answered");
    assert_eq!(byte, *b"G");
    peer
}

#[test]
fn a_successor_that_never_takes_the_path_is_ignored() {
    let place = Place::new();
    let (first, rejected_successors) = start_counting(&place, PATIENCE);
    for number in 1..=3 {
        drop(approved_successor(&place));
        // This is answered by the same thread, which must have seen EOF by then.
        drop(at(&place).expect("it is answered"));
        assert_eq!(greeting(first.address), "1");
        wait_until("both are counted", || rejected_successors.count() == 2 * number);
    }
    let second = start(&place, 1, "2");
    first.wait_until_drained();
    second.end();
}

#[test]
fn a_path_taken_by_a_successor_that_dies_is_reclaimed() {
    let place = Place::new();
    let first = start(&place, 1, "1");
    let peer = approved_successor(&place);
    let theirs = place.0.join("theirs");
    drop(UnixListener::bind(&theirs).expect("the path is free"));
    fs::rename(&theirs, place.path()).expect("it is ours");
    drop(peer);
    wait_until("the path is taken back", || UnixStream::connect(place.path()).is_ok());
    let second = start(&place, 1, "2");
    first.wait_until_drained();
    second.end();
}

#[test]
fn a_successor_that_cannot_take_the_path_leaves_its_predecessor_alone() {
    let place = Place::new();
    let first = start(&place, 1, "1");
    let mut hand_over = at(&place).expect("it is answered");
    let second = make_process(&mut hand_over, 1, "2");
    fs::remove_file(place.path()).expect("it is there");
    fs::create_dir(place.path()).expect("there is room");
    let error = hand_over.ready(second.group.handle(), PATIENCE).expect_err("it is a directory");
    assert!(matches!(error.kind(), Kind::Refused { .. }), "{error}");
    second.end();
    assert_eq!(greeting(first.address), "1");
    assert_eq!(fs::read_dir(&place.0).expect("it is there").count(), 1, "nothing is left beside");
    first.end();
}

#[test]
fn a_process_without_predecessor_reports_that_the_path_is_blocked() {
    let place = Place::new();
    let first = start(&place, 1, "1");
    let mut hand_over = at(&place).expect("it is answered");
    let second = make_process(&mut hand_over, 1, "2");
    first.end();
    wait_until("the path is free", || !place.path().exists());
    fs::create_dir(place.path()).expect("there is room");
    let error = hand_over.ready(second.group.handle(), PATIENCE).expect_err("it is a directory");
    assert!(matches!(error.kind(), Kind::NoPath(_)), "{error}");
    assert_eq!(greeting(second.address), "2");
    second.end();
}

#[test]
fn an_abandoned_start_leaves_no_files_behind() {
    let place = Place::new();
    drop(at(&place).expect("nobody is there"));
    assert_eq!(fs::read_dir(&place.0).expect("it is there").count(), 0, "nothing is left");
    // As a killed process leaves it.
    fs::write(place.0.join("hand-over.lock"), "").expect("there is room");
    let first = start(&place, 1, "1");
    assert_eq!(fs::read_dir(&place.0).expect("it is there").count(), 1, "only the socket");
    first.end();
}

#[test]
fn a_path_taken_meanwhile_by_another_process_is_not_replaced() {
    let place = Place::new();
    let mut late = at(&place).expect("nobody is there");
    let _other = UnixListener::bind(place.path()).expect("the path is free");
    let process = make_process(&mut late, 1, "late");
    let error = late.ready(process.group.handle(), PATIENCE).expect_err("another one is there");
    assert!(matches!(error.kind(), Kind::Busy), "{error}");
    process.end();
}

#[test]
fn an_ending_process_leaves_the_path_to_its_present_owner() {
    let place = Place::new();
    let first = start(&place, 1, "1");
    fs::remove_file(place.path()).expect("it is there");
    let second = start(&place, 1, "2");
    let address = first.address;
    first.end();
    wait_until("the first one has closed its copies", || is_refused(address));
    assert!(at(&place).expect("it is answered").has_predecessor());
    second.end();
}

#[test]
fn the_socket_of_a_killed_process_is_replaced() {
    let place = Place::new();
    drop(UnixListener::bind(place.path()).expect("the path is free"));
    let first = start(&place, 1, "1");
    let second = start(&place, 1, "2");
    first.wait_until_drained();
    second.end();
}

#[test]
fn a_file_that_is_no_socket_is_left_untouched() {
    let place = Place::new();
    fs::write(place.path(), "precious").expect("there is room");
    let error = at(&place).expect_err("it is a file");
    assert!(matches!(error.kind(), Kind::NotASocket));
    assert!(error.to_string().ends_with("remove it, or choose another"), "{error}");
    assert_eq!(fs::read(place.path()).expect("it is there"), b"precious");
}

#[test]
fn a_missing_directory_is_reported_at_once() {
    let place = Place::new();
    let error = HandOver::at(place.0.join("no/hand-over")).expect_err("there is no directory");
    assert!(error.to_string().contains("cannot find its directory: No such file"), "{error}");
    // The cause appears once: as `main` prints the error, and with its chain of causes.
    let shown = (format!("{error:?}"), with_causes(&error).to_string());
    assert_eq!(shown, (error.to_string(), error.to_string()));
}

#[test]
fn a_path_that_is_too_long_is_reported() {
    let place = Place::new();
    let error = HandOver::at(place.0.join("x".repeat(100))).expect_err("it does not fit");
    assert!(matches!(error.kind(), Kind::PathTooLong { max: 96, .. }), "{error}");
}
