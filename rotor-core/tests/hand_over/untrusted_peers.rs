//! Peers that are none of our processes: they send garbage, or belong to another user.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;

use rotor_core::hand_over::{HandOver, HandOverError, HandOverErrorKind as Kind};

use crate::rig::{PATIENCE, Place, at, greeting, make_process, start, start_counting, wait_until};

#[test]
fn a_peer_that_sends_garbage_is_rejected_and_counted() {
    let place = Place::new();
    let (first, rejected_successors) = start_counting(&place, PATIENCE);
    let nonsense = [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\0", b"r"];
    for (number, nonsense) in (1..).zip(nonsense) {
        let mut stranger = UnixStream::connect(place.path()).expect("it listens");
        stranger.write_all(nonsense).expect("there is room");
        let mut reply = Vec::new();
        // A copy of the list, and then EOF; or a reset if the peer left bytes unread.
        let _reset = stranger.read_to_end(&mut reply);
        assert_eq!(greeting(first.address), "1");
        wait_until("it is counted", || rejected_successors.count() == number);
    }
    let second = start(&place, 1, "2");
    first.wait_until_drained();
    assert_eq!(rejected_successors.count(), 3, "who follows is not one of them");
    second.end();
}

/// A process at the path that sends exactly these bytes, and closes.
fn impostor(place: &Place, sent: &[u8]) -> HandOverError {
    let _none = fs::remove_file(place.path());
    let listener = UnixListener::bind(place.path()).expect("the path is free");
    let sent = sent.to_owned();
    let speaker = thread::spawn(move || {
        let (mut peer, _) = listener.accept().expect("somebody asks");
        let _gone = peer.write_all(&sent);
    });
    let error = at(place).expect_err("it is no predecessor");
    speaker.join().expect("it does not panic");
    error
}

#[test]
fn a_predecessor_that_sends_garbage_is_an_error() {
    let place = Place::new();
    for (sent, words) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "it greets otherwise"),
        (b"rotorHO2+.", "it greets otherwise"),
        (b"rotorHO1?", "it greets otherwise"),
        (b"rotorHO1+x\x01a.", "what is no kind of socket"),
        (b"rotorHO1+t\x01a.", "a name came without its socket"),
    ] {
        let error = impostor(&place, sent);
        assert!(matches!(error.kind(), Kind::Nonsense(_)), "{sent:?}: {error}");
        assert!(error.to_string().contains(words), "{sent:?}: {error}");
    }
    let whole = b"rotorHO1+";
    for cut in 0..=whole.len() {
        let error = impostor(&place, &whole[..cut]);
        assert!(matches!(error.kind(), Kind::Gone), "{cut}: {error}");
    }
}

/// Tells the test program that it is the other user's process, and the path to use.
const OTHER_USER: &str = "ROTOR_TEST_HAND_OVER";

#[test]
fn a_process_of_another_user_is_rejected() {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    if let Some(path) = std::env::var_os(OTHER_USER) {
        return run_as_other_user(Path::new(&path));
    }
    let place = Place::new();
    let everybody = fs::Permissions::from_mode(0o777);
    fs::set_permissions(&place.0, everybody).expect("it is ours");
    let first = start(&place, 1, "1");
    let mut command = Command::new(std::env::current_exe().expect("it has a path"));
    command
        .args(["--exact", "untrusted_peers::a_process_of_another_user_is_rejected", "--nocapture"])
        .env(OTHER_USER, place.0.join("theirs"))
        .uid(65_534)
        .gid(65_534)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    // Only root may start one, and only if that user may execute this file.
    let Ok(mut other) = command.spawn() else {
        eprintln!("not tested: this user may not start a process of another one");
        return first.end();
    };
    wait_until("the other one listens", || {
        place.0.join("theirs").exists() || other.try_wait().is_ok_and(|ended| ended.is_some())
    });
    if place.0.join("theirs").exists() {
        let error = HandOver::at(place.0.join("theirs")).expect_err("it is another user's");
        assert!(matches!(error.kind(), Kind::OtherUser { theirs: 65_534, .. }), "{error}");
    }
    drop(other.stdin.take());
    let output = other.wait_with_output().expect("it ends");
    let output_text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && output_text.contains("1 passed"), "{output_text}");
    assert_eq!(greeting(first.address), "1");
    first.end();
}

/// Tries to get the listeners of another user's process, then offers its own.
fn run_as_other_user(path: &Path) {
    let error = HandOver::at(path.with_file_name("hand-over")).expect_err("it is another user's");
    let Kind::Refused { cause, .. } = error.kind() else { panic!("{error}") };
    assert_eq!(cause.kind(), ErrorKind::PermissionDenied);
    let mut hand_over = HandOver::at(path).expect("nobody is there");
    let (process, rejected_successors) =
        (make_process(&mut hand_over, 1, "theirs"), hand_over.rejected_successors());
    hand_over.ready(process.group.handle(), PATIENCE).expect("it serves");
    std::io::stdin().read_to_end(&mut Vec::new()).expect("it is closed");
    wait_until("it is counted", || rejected_successors.count() == 1);
    process.end();
}
