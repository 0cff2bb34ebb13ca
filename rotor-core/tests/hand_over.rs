//! Listeners that go from one process to the next. Most of it in one process, whose loops stand for
//! two; what needs another user, with a second one.
#![cfg(any(target_os = "linux", target_os = "android"))]
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "clients and processes outside of any loop")]

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread::{self, yield_now};
use std::time::{Duration, Instant};

use rotor_core::hand_over::{HandOver, HandOverError, HandOverErrorKind as Kind};
use rotor_core::net::{ListenOptions, Listener, TcpListener};
use rotor_core::threads::LoopGroup;
use rotor_core::{
    Config, EventSet, Exit, Infallible, Interest, Loop, Machine, Response, Scope, Time,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use socket2::{Domain, SockAddr, Socket, Type};

/// How long is waited for what comes at once on a machine that does nothing else.
const PATIENCE: Duration = Duration::from_secs(60);

/// Says a word to each who connects.
struct Greeter {
    /// None once it drains.
    listener: Option<TcpListener>,
    word: &'static str,
}

/// The word of one that takes all its time to drain.
const SLOW: &str = "slow";

impl Greeter {
    fn greet(&mut self) {
        while let Some(Ok((mut socket, _))) = self.listener.as_mut().map(Listener::accept) {
            let _gone = socket.write(self.word.as_bytes());
        }
    }
}

impl Machine for Greeter {
    type Context = ();
    type Seed = Infallible;

    fn ready(mut self, _: EventSet, _: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        self.greet();
        Response::keep(self)
    }

    fn draining(mut self, _: Time, _: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        self.greet();
        self.listener = None;
        if self.word == SLOW { Response::keep(self) } else { Response::done() }
    }
}

/// A directory of a test's own.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let place = std::env::temp_dir().join(format!("rotor-{}-{name}", std::process::id()));
        let _none = fs::remove_dir_all(&place);
        fs::create_dir(&place).expect("there is room");
        Place(place)
    }

    fn path(&self) -> PathBuf {
        self.0.join("hand-over")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

/// What stands for a process: its loops.
struct Process {
    group: LoopGroup,
    address: SocketAddr,
}

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// Makes the loops, and is not ready yet.
fn make(hand_over: &mut HandOver, loops: usize, word: &'static str) -> Process {
    let queues = hand_over.tcp("web", ANY, &ListenOptions::new(), loops).expect("a port is free");
    let address = queues.local_address();
    let group = LoopGroup::start(queues, move |listeners, _| {
        let mut creator = Loop::new(&Config::new())?;
        for listener in listeners {
            creator.add_machine_with(|scope| {
                Response::attempt(|| {
                    let mut listener = TcpListener::from_std(listener, scope)?;
                    scope.register(&mut listener, Interest::Readable)?;
                    Ok(Response::ok(Greeter { listener: Some(listener), word }))
                })
            })?;
        }
        Ok(creator.instantiate(()))
    });
    Process { group: group.expect("threads are left"), address }
}

fn at(place: &Place) -> Result<HandOver, HandOverError> {
    HandOver::at(place.path())
}

/// One that serves, with so many loops.
fn start(place: &Place, loops: usize, word: &'static str) -> Process {
    let mut hand_over = at(place).expect("nobody is in the way");
    let process = make(&mut hand_over, loops, word);
    hand_over.ready(process.group.handle(), PATIENCE).expect("it serves");
    process
}

impl Process {
    /// Waits until it has drained by itself.
    fn has_left(self) {
        for exit in self.group.join() {
            assert_eq!(exit.expect("it can wait"), Exit::Drained { dropped: 0 });
        }
    }

    fn end(self) {
        self.group.handle().drain(PATIENCE);
        self.has_left();
    }
}

fn greeting(address: SocketAddr) -> String {
    let mut text = String::new();
    let mut socket = TcpStream::connect(address).expect("somebody listens");
    socket.read_to_string(&mut text).expect("it is greeted");
    text
}

/// Whether nobody listens: a queue that is full and that nobody serves is something else.
fn is_refused(address: SocketAddr) -> bool {
    let connected = TcpStream::connect_timeout(&address, Duration::from_secs(1));
    connected.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// Waits until it is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        yield_now();
    }
}

#[test]
fn a_successor_gets_the_listeners_and_the_one_before_drains() {
    let place = Place::new("follows");
    let mut processes = vec![start(&place, 2, "0")];
    let address = processes[0].address;
    for (number, (loops, word)) in [(1, "1"), (4, "2"), (3, "3"), (2, "4")].into_iter().enumerate()
    {
        let next = start(&place, loops, word);
        assert_eq!(next.address, address, "the same port, which the system chose once");
        processes.remove(0).has_left();
        for _ in 0..40 {
            assert_eq!(greeting(address), word, "hand-over {number}");
        }
        processes.push(next);
    }
    processes.remove(0).end();
}

#[test]
fn the_socket_at_the_path_is_for_its_user_alone() {
    let place = Place::new("mode");
    let first = start(&place, 1, "1");
    let mode = fs::metadata(place.path()).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(fs::read_dir(&place.0).expect("it is there").count(), 1, "nothing is left beside");
    first.end();
}

#[test]
fn a_successor_that_dies_before_it_is_ready_costs_nothing() {
    let place = Place::new("dies");
    let first = start(&place, 1, "1");
    for _ in 0..3 {
        let hand_over = at(&place).expect("it is answered");
        assert!(hand_over.has_predecessor());
        drop(hand_over);
        assert_eq!(greeting(first.address), "1");
    }
    let second = start(&place, 1, "2");
    first.has_left();
    second.end();
}

/// A successor by hand: it has the listeners, has said that it is ready, and was told to go on.
fn told_to_go(place: &Place) -> UnixStream {
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
fn a_successor_that_never_takes_the_path_is_not_believed() {
    let place = Place::new("untaken");
    let first = start(&place, 1, "1");
    for _ in 0..3 {
        drop(told_to_go(&place));
        // Answered by the thread that is to have seen the end by then.
        drop(at(&place).expect("it is answered"));
        assert_eq!(greeting(first.address), "1");
    }
    let second = start(&place, 1, "2");
    first.has_left();
    second.end();
}

#[test]
fn a_successor_that_dies_with_the_path_leaves_it_to_the_one_before() {
    let place = Place::new("retaken");
    let first = start(&place, 1, "1");
    let peer = told_to_go(&place);
    let theirs = place.0.join("theirs");
    drop(UnixListener::bind(&theirs).expect("the path is free"));
    fs::rename(&theirs, place.path()).expect("it is ours");
    drop(peer);
    until("the path is taken back", || UnixStream::connect(place.path()).is_ok());
    let second = start(&place, 1, "2");
    first.has_left();
    second.end();
}

#[test]
fn a_successor_that_cannot_take_the_path_leaves_the_one_before_as_it_is() {
    let place = Place::new("cannot");
    let first = start(&place, 1, "1");
    let mut hand_over = at(&place).expect("it is answered");
    let second = make(&mut hand_over, 1, "2");
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
fn one_that_is_alone_and_cannot_take_the_path_is_told_so() {
    let place = Place::new("alone");
    let first = start(&place, 1, "1");
    let mut hand_over = at(&place).expect("it is answered");
    let second = make(&mut hand_over, 1, "2");
    first.end();
    until("the path is free", || !place.path().exists());
    fs::create_dir(place.path()).expect("there is room");
    let error = hand_over.ready(second.group.handle(), PATIENCE).expect_err("it is a directory");
    assert!(matches!(error.kind(), Kind::NoPath(_)), "{error}");
    assert_eq!(greeting(second.address), "2");
    second.end();
}

#[test]
fn of_two_that_start_at_once_where_none_runs_one_is_sent_away() {
    let place = Place::new("both");
    let mut one = at(&place).expect("nobody is there");
    let error = at(&place).expect_err("the other one is at it");
    assert!(matches!(error.kind(), Kind::Busy), "{error}");
    let first = make(&mut one, 1, "1");
    one.ready(first.group.handle(), PATIENCE).expect("it serves");
    let second = start(&place, 1, "2");
    first.has_left();
    second.end();
}

#[test]
fn one_that_gives_up_is_in_nobodys_way() {
    let place = Place::new("gives-up");
    drop(at(&place).expect("nobody is there"));
    assert_eq!(fs::read_dir(&place.0).expect("it is there").count(), 0, "nothing is left");
    // As a process leaves it that was killed.
    fs::write(place.0.join("hand-over.lock"), "").expect("there is room");
    let first = start(&place, 1, "1");
    assert_eq!(fs::read_dir(&place.0).expect("it is there").count(), 1, "only the socket");
    first.end();
}

#[test]
fn the_path_of_another_process_is_not_taken_at_the_last_moment() {
    let place = Place::new("last");
    let mut late = at(&place).expect("nobody is there");
    let _other = UnixListener::bind(place.path()).expect("the path is free");
    let process = make(&mut late, 1, "late");
    let error = late.ready(process.group.handle(), PATIENCE).expect_err("another one is there");
    assert!(matches!(error.kind(), Kind::Busy), "{error}");
    process.end();
}

#[test]
fn one_that_ends_leaves_the_path_to_who_has_it_now() {
    let place = Place::new("not-its");
    let first = start(&place, 1, "1");
    fs::remove_file(place.path()).expect("it is there");
    let second = start(&place, 1, "2");
    let address = first.address;
    first.end();
    until("the first one has closed its copies", || is_refused(address));
    assert!(at(&place).expect("it is answered").has_predecessor());
    second.end();
}

#[test]
fn one_that_is_not_ready_in_time_is_given_up_and_told_so() {
    let place = Place::new("hangs");
    let mut hand_over = at(&place).expect("nobody is there").ready_within(Duration::from_millis(1));
    let first = make(&mut hand_over, 1, "1");
    hand_over.ready(first.group.handle(), PATIENCE).expect("it serves");
    let mut slow = at(&place).expect("it is answered");
    let late = make(&mut slow, 1, "late");
    until("the slow one is given up", || match at(&place) {
        Ok(_) => true,
        Err(error) => {
            assert!(matches!(error.kind(), Kind::Busy), "{error}");
            false
        }
    });
    let error = slow.ready(late.group.handle(), PATIENCE).expect_err("it is too late");
    assert!(matches!(error.kind(), Kind::Late), "{error}");
    late.end();
    assert_eq!(greeting(first.address), "1");
    first.end();
}

#[test]
fn of_two_that_come_at_once_one_is_sent_away() {
    let place = Place::new("two");
    let first = start(&place, 1, "1");
    let mut one = at(&place).expect("it is answered");
    let error = at(&place).expect_err("the other one is at it");
    assert!(matches!(error.kind(), Kind::Busy));
    let path = place.path();
    let text = "another process is starting with these listeners: start one at a time";
    assert_eq!(error.to_string(), format!("no hand-over at {}: {text}", path.display()));
    let second = make(&mut one, 1, "2");
    one.ready(second.group.handle(), PATIENCE).expect("it serves");
    first.has_left();
    assert_eq!(greeting(second.address), "2");
    second.end();
}

#[test]
fn the_socket_of_a_process_that_was_killed_is_in_nobodys_way() {
    let place = Place::new("stale");
    drop(UnixListener::bind(place.path()).expect("the path is free"));
    let first = start(&place, 1, "1");
    let second = start(&place, 1, "2");
    first.has_left();
    second.end();
}

#[test]
fn what_is_no_socket_is_left_alone() {
    let place = Place::new("file");
    fs::write(place.path(), "precious").expect("there is room");
    let error = at(&place).expect_err("it is a file");
    assert!(matches!(error.kind(), Kind::NotASocket));
    assert!(error.to_string().ends_with("remove it, or choose another"), "{error}");
    assert_eq!(fs::read(place.path()).expect("it is there"), b"precious");
}

#[test]
fn a_directory_that_is_not_there_is_missed_at_once() {
    let place = Place::new("nowhere");
    let error = HandOver::at(place.0.join("no/hand-over")).expect_err("there is no directory");
    assert!(error.to_string().contains("cannot find its directory: No such file"), "{error}");
}

#[test]
fn a_path_that_is_too_long_is_said_to_be() {
    let place = Place::new("long");
    let error = HandOver::at(place.0.join("x".repeat(100))).expect_err("it does not fit");
    assert!(matches!(error.kind(), Kind::PathTooLong { max: 96, .. }), "{error}");
}

#[test]
fn who_talks_nonsense_is_sent_away_and_all_goes_on() {
    let place = Place::new("nonsense");
    let first = start(&place, 1, "1");
    for nonsense in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\0", b"r"] {
        let mut stranger = UnixStream::connect(place.path()).expect("it listens");
        stranger.write_all(nonsense).expect("there is room");
        let mut told = Vec::new();
        // A copy of the list, and then the end; a reset where not all was read.
        let _reset = stranger.read_to_end(&mut told);
        assert_eq!(greeting(first.address), "1");
    }
    let second = start(&place, 1, "2");
    first.has_left();
    second.end();
}

/// A process at the path that says just this, and closes.
fn impostor(place: &Place, says: &[u8]) -> HandOverError {
    let _none = fs::remove_file(place.path());
    let listener = UnixListener::bind(place.path()).expect("the path is free");
    let says = says.to_owned();
    let speaker = thread::spawn(move || {
        let (mut peer, _) = listener.accept().expect("somebody asks");
        let _gone = peer.write_all(&says);
    });
    let error = at(place).expect_err("it is no predecessor");
    speaker.join().expect("it does not panic");
    error
}

#[test]
fn a_predecessor_that_talks_nonsense_is_not_believed() {
    let place = Place::new("impostor");
    for (says, words) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "it greets otherwise"),
        (b"rotorHO2+.", "it greets otherwise"),
        (b"rotorHO1?", "it greets otherwise"),
        (b"rotorHO1+x\x01a.", "what is no kind of socket"),
        (b"rotorHO1+t\x01a.", "a name came without its socket"),
    ] {
        let error = impostor(&place, says);
        assert!(matches!(error.kind(), Kind::Nonsense(_)), "{says:?}: {error}");
        assert!(error.to_string().contains(words), "{says:?}: {error}");
    }
    let whole = b"rotorHO1+";
    for cut in 0..=whole.len() {
        let error = impostor(&place, &whole[..cut]);
        assert!(matches!(error.kind(), Kind::Gone), "{cut}: {error}");
    }
}

#[test]
fn an_end_by_another_reason_leaves_no_copies_behind() {
    let place = Place::new("ends");
    let first = start(&place, 2, "1");
    let address = first.address;
    first.end();
    until("clients are refused", || is_refused(address));
    until("the path is free", || !place.path().exists());
    let second = start(&place, 1, "2");
    second.end();
}

#[test]
fn copies_are_closed_when_the_drain_begins_not_when_it_is_over() {
    let place = Place::new("drains");
    let first = start(&place, 2, SLOW);
    first.group.handle().drain(PATIENCE * 100);
    until("clients are refused", || is_refused(first.address));
    first.group.handle().stop();
    let still_drained = |exit: &std::io::Result<Exit>| matches!(exit, Ok(Exit::Stopped));
    assert!(first.group.join().iter().all(still_drained));
}

#[test]
fn a_successor_of_a_process_that_has_ended_meanwhile_serves() {
    let place = Place::new("ended");
    let first = start(&place, 1, "1");
    let address = first.address;
    let mut hand_over = at(&place).expect("it is answered");
    let second = make(&mut hand_over, 1, "2");
    first.end();
    until("the path is free", || !place.path().exists());
    hand_over.ready(second.group.handle(), PATIENCE).expect("it is the only one");
    assert_eq!(greeting(address), "2");
    assert!(place.path().exists());
    second.end();
}

#[test]
fn sockets_of_all_kinds_are_handed_over_by_their_names() {
    let place = Place::new("kinds");
    let unix_path = place.0.join("unix");
    let options = ListenOptions::new();
    let mut one = at(&place).expect("nobody is there");
    let first = make(&mut one, 1, "1");
    let _unix = one.unix("control", &unix_path, &options).expect("the path is free");
    let udp = one.udp("names", ANY).expect("a port is free");
    let gone = one.tcp("gone", ANY, &options, 1).expect("a port is free").local_address();
    one.ready(first.group.handle(), PATIENCE).expect("it serves");

    let mut two = at(&place).expect("it is answered");
    let error = two.unix("web", &unix_path, &options).expect_err("it is none");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let text = "\"web\" is a TCP listener in the process before, and a Unix listener here";
    assert_eq!(error.to_string(), text);
    let second = make(&mut two, 1, "2");
    let unix = two.unix("control", &unix_path, &options).expect("it was handed over");
    let same = two.udp("names", ANY).expect("it was handed over");
    assert_eq!(same.local_addr().expect("it is bound"), udp.local_addr().expect("it is bound"));
    two.ready(second.group.handle(), PATIENCE).expect("it serves");
    first.has_left();

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
    until("who is not asked for is closed", || is_refused(gone));
    second.end();
}

#[test]
fn names_are_checked() {
    let place = Place::new("names");
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

/// Counts what the hand-over thread says of those that it could not accept.
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

/// Tells the test program that it has the process for itself.
const ALONE: &str = "ROTOR_TEST_HAND_OVER_ALONE";

/// Returns whether this process is for this test alone; else runs the test in one.
fn is_alone(test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut command = std::process::Command::new(std::env::current_exe().expect("it has a path"));
    command.args(["--exact", test]).env(ALONE, "1");
    let output = command.output().expect("it can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    false
}

fn limit_descriptors() {
    let limit = Rlimit { current: Some(256), maximum: Some(256) };
    setrlimit(Resource::Nofile, limit).expect("it is lower");
}

#[test]
fn who_could_not_have_its_loops_may_ask_again_for_the_same_listeners() {
    // Others would miss the descriptors.
    if !is_alone("who_could_not_have_its_loops_may_ask_again_for_the_same_listeners") {
        return;
    }
    let place = Place::new("again");
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
fn where_no_descriptor_is_left_it_rests_and_says_so_once() {
    if !is_alone("where_no_descriptor_is_left_it_rests_and_says_so_once") {
        return;
    }
    log::set_logger(&REFUSALS).expect("there is no other");
    log::set_max_level(log::LevelFilter::Warn);
    let place = Place::new("full");
    let first = start(&place, 1, "1");
    let asking = Socket::new(Domain::UNIX, Type::STREAM, None).expect("descriptors are left");
    limit_descriptors();
    let mut taken = Vec::new();
    while let Ok(file) = fs::File::open("/dev/null") {
        taken.push(file);
    }
    asking.connect(&SockAddr::unix(place.path()).expect("it fits")).expect("it listens");
    until("it is refused", || REFUSALS.0.load(SeqCst) > 0);
    // As long as it takes to be refused some times more.
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

/// Tells the test program that it is the process of another user, and where.
const OTHER: &str = "ROTOR_TEST_HAND_OVER";

#[test]
fn a_process_of_another_user_is_not_spoken_to() {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    if let Some(path) = std::env::var_os(OTHER) {
        return be_the_other(Path::new(&path));
    }
    let place = Place::new("user");
    let everybody = fs::Permissions::from_mode(0o777);
    fs::set_permissions(&place.0, everybody).expect("it is ours");
    let first = start(&place, 1, "1");
    let mut command = Command::new(std::env::current_exe().expect("it has a path"));
    command
        .args(["--exact", "a_process_of_another_user_is_not_spoken_to", "--nocapture"])
        .env(OTHER, place.0.join("theirs"))
        .uid(65_534)
        .gid(65_534)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    // Only root may start one, and only where that user may run this file.
    let Ok(mut other) = command.spawn() else {
        eprintln!("not tested: this user may not start a process of another one");
        return first.end();
    };
    until("the other one listens", || {
        place.0.join("theirs").exists() || other.try_wait().is_ok_and(|ended| ended.is_some())
    });
    if place.0.join("theirs").exists() {
        let error = HandOver::at(place.0.join("theirs")).expect_err("it is another user's");
        assert!(matches!(error.kind(), Kind::OtherUser { theirs: 65_534, .. }), "{error}");
    }
    drop(other.stdin.take());
    let output = other.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(greeting(first.address), "1");
    first.end();
}

/// Tries to take the listeners of a process that is not its user's, then offers its own.
fn be_the_other(path: &Path) {
    let error = HandOver::at(path.with_file_name("hand-over")).expect_err("it is another user's");
    let Kind::Refused { cause, .. } = error.kind() else { panic!("{error}") };
    assert_eq!(cause.kind(), ErrorKind::PermissionDenied);
    let mut hand_over = HandOver::at(path).expect("nobody is there");
    let process = make(&mut hand_over, 1, "theirs");
    hand_over.ready(process.group.handle(), PATIENCE).expect("it serves");
    std::io::stdin().read_to_end(&mut Vec::new()).expect("it is closed");
    process.end();
}
