//! Running out of descriptors: each test runs in its own process.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread::yield_now;

use rotor_core::net::ListenOptions;
use rotor_core::threads::LoopGroup;
use rotor_core::{BoxError, Infallible, LoopInstance, Machine};
use rustix::process::{Resource, Rlimit, setrlimit};
use socket2::{Domain, SockAddr, SockRef, Socket, Type};

use crate::rig::{ANY, PATIENCE, Place, at, start, wait_until};

/// Counts the log messages of the hand-over thread about connections that it could not accept.
struct Refusals(AtomicUsize);

static REFUSALS: Refusals = Refusals(AtomicUsize::new(0));

impl log::Log for Refusals {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        if record.args().to_string().contains("cannot accept") {
            self.0.fetch_add(1, SeqCst);
        }
    }

    fn flush(&self) {}
}

/// Tells the test program that this process runs only one test.
const OWN_PROCESS: &str = "ROTOR_TEST_HAND_OVER_ALONE";

/// Returns whether this process runs only this test; otherwise runs the test in a process of its
/// own.
fn is_in_own_process(test: &str) -> bool {
    if std::env::var_os(OWN_PROCESS).is_some() {
        return true;
    }
    let mut command = std::process::Command::new(std::env::current_exe().expect("it has a path"));
    command.args(["--exact", test]).env(OWN_PROCESS, "1");
    let output = command.output().expect("it can be started");
    let output_text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && output_text.contains("1 passed"), "{output_text}");
    false
}

/// The same, for a process that inherits a socket (`LISTEN_FDS`).
fn is_in_own_process_with(test: &str, socket: impl Into<OwnedFd>) -> bool {
    if std::env::var_os(OWN_PROCESS).is_some() {
        return true;
    }
    // The shell duplicates it to the first descriptor after the standard ones.
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" --exact \"$1\" 3<&0"]);
    command.arg(std::env::current_exe().expect("it has a path")).arg(test).env(OWN_PROCESS, "1");
    let output = command.stdin(socket.into()).output().expect("it can be started");
    let output_text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && output_text.contains("1 passed"), "{output_text}");
    false
}

/// Opens all available descriptors.
fn take_descriptors() -> Vec<fs::File> {
    limit_descriptors();
    std::iter::from_fn(|| fs::File::open("/dev/null").ok()).collect()
}

fn limit_descriptors() {
    let limit = Rlimit { current: Some(256), maximum: Some(256) };
    setrlimit(Resource::Nofile, limit).expect("it is lower");
}

#[test]
fn a_failed_request_for_listeners_can_be_repeated() {
    // Other tests in this process would run out of descriptors.
    if !is_in_own_process("descriptors::a_failed_request_for_listeners_can_be_repeated") {
        return;
    }
    let place = Place::new();
    let first = start(&place, 1, "1");
    limit_descriptors();
    let mut hand_over = at(&place).expect("it is answered");
    let options = ListenOptions::new();
    hand_over.tcp("web", ANY, &options, 300).expect_err("there are no more descriptors");
    let again = hand_over.tcp("web", ANY, &options, 1).expect("it was handed over");
    assert_eq!(again.local_address(), first.address);
    first.end();
}

#[test]
fn an_inherited_tcp_listener_can_be_requested_again_after_a_failure() {
    let listener = TcpListener::bind(ANY).expect("a port is free");
    let test = "descriptors::an_inherited_tcp_listener_can_be_requested_again_after_a_failure";
    if !is_in_own_process_with(test, listener) {
        return;
    }
    let place = Place::new();
    let mut hand_over = at(&place).expect("nobody is there");
    let options = ListenOptions::new();
    let taken = take_descriptors();
    hand_over.tcp("web", ANY, &options, 1).expect_err("there are no descriptors");
    drop(taken);
    let again = hand_over.tcp("web", ANY, &options, 1).expect("it is there").flatten().next();
    let again = again.expect("there is one");
    // A listener that was newly bound instead would have `SO_REUSEPORT`.
    assert!(!SockRef::from(&again).reuse_port().expect("it can be asked"));
}

#[test]
fn an_inherited_unix_listener_can_be_requested_again_after_a_failure() {
    let place = Place::new();
    let listener = UnixListener::bind(place.0.join("web")).expect("the path is free");
    let test = "descriptors::an_inherited_unix_listener_can_be_requested_again_after_a_failure";
    if !is_in_own_process_with(test, listener) {
        return;
    }
    let mut hand_over = at(&place).expect("nobody is there");
    let (options, other) = (ListenOptions::new(), place.0.join("other"));
    let taken = take_descriptors();
    hand_over.unix("web", &other, &options).expect_err("there are no descriptors");
    drop(taken);
    hand_over.unix("web", &other, &options).expect("it is there");
    assert!(!other.exists(), "another one was opened");
}

/// A socket that is not listening.
fn connection() -> OwnedFd {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("descriptors are left");
    socket.bind(&SockAddr::from(ANY)).expect("a port is free");
    socket.into()
}

#[test]
fn a_refused_inherited_socket_is_refused_at_the_next_address_too() {
    let name = "descriptors::a_refused_inherited_socket_is_refused_at_the_next_address_too";
    if !is_in_own_process_with(name, connection()) {
        return;
    }
    let place = Place::new();
    let mut hand_over = at(&place).expect("nobody is in the way");
    for _ in 0..2 {
        let error = hand_over.tcp("web", ANY, &ListenOptions::new(), 1).expect_err("no listener");
        assert!(error.to_string().contains("does not listen"), "{error}");
    }
    let _other = hand_over.tcp("admin", ANY, &ListenOptions::new(), 1).expect("it is opened");
}

#[test]
fn an_inherited_socket_of_another_kind_can_be_requested_as_what_it_is() {
    let name = "descriptors::an_inherited_socket_of_another_kind_can_be_requested_as_what_it_is";
    let place = Place::new();
    let listener = UnixListener::bind(place.0.join("web")).expect("the path is free");
    if !is_in_own_process_with(name, listener) {
        return;
    }
    let mut hand_over = at(&place).expect("nobody is in the way");
    hand_over.tcp("web", ANY, &ListenOptions::new(), 1).expect_err("it is a Unix socket");
    let other = place.0.join("other");
    hand_over.unix("web", &other, &ListenOptions::new()).expect("it is one");
    assert!(!other.exists(), "another one was opened");
}

/// Whether the first descriptor after the standard ones is passed on to children.
fn is_inheritable() -> bool {
    const CLOSE_ON_EXEC: u32 = 0o2_000_000;
    let info = fs::read_to_string("/proc/self/fdinfo/3").expect("it is open");
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).expect("a line");
    u32::from_str_radix(flags.trim(), 8).expect("a number") & CLOSE_ON_EXEC == 0
}

#[test]
fn an_inherited_socket_that_nobody_requests_is_not_passed_on() {
    let listener = TcpListener::bind(ANY).expect("a port is free");
    let name = "descriptors::an_inherited_socket_that_nobody_requests_is_not_passed_on";
    if !is_in_own_process_with(name, listener) {
        return;
    }
    assert!(is_inheritable());
    let place = Place::new();
    let loops = LoopGroup::start(0..0, |_: u8, _| -> Result<LoopInstance<Nothing>, BoxError> {
        Err("there is none".into())
    });
    let loops = loops.expect("there is none to fail");
    at(&place).expect("none runs").ready(loops.handle(), PATIENCE).expect("it is the only one");
    assert!(!is_inheritable());
}

struct Nothing;

impl Machine for Nothing {
    type Context = ();
    type Seed = Infallible;
}

#[test]
fn a_lack_of_descriptors_pauses_accepting_and_is_logged_once() {
    if !is_in_own_process("descriptors::a_lack_of_descriptors_pauses_accepting_and_is_logged_once")
    {
        return;
    }
    log::set_logger(&REFUSALS).expect("there is no other");
    log::set_max_level(log::LevelFilter::Warn);
    let place = Place::new();
    let first = start(&place, 1, "1");
    let asking = Socket::new(Domain::UNIX, Type::STREAM, None).expect("descriptors are left");
    let taken = take_descriptors();
    asking.connect(&SockAddr::unix(place.path()).expect("it fits")).expect("it listens");
    wait_until("it is refused", || REFUSALS.0.load(SeqCst) > 0);
    // Long enough to be refused several more times.
    (0..10_000).for_each(|_| yield_now());
    drop(taken);
    let mut greeting = [0; 8];
    UnixStream::from(std::os::fd::OwnedFd::from(asking))
        .read_exact(&mut greeting)
        .expect("it is accepted after all");
    assert_eq!(&greeting, b"rotorHO1");
    assert_eq!(REFUSALS.0.load(SeqCst), 1, "said once");
    first.end();
}
