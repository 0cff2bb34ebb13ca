//! `Serve` with a successor process, which another thread plays.
#![cfg(any(target_os = "linux", target_os = "android"))]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rotor_core::hand_over::{HandOver, RejectedSuccessors};
use rotor_core::net::{ListenOptions, TcpListener};
use rotor_core::service_manager::ServiceManager;
use rotor_core::threads::LoopGroup;
use rotor_core::{
    BoxError, Config, Infallible, Loop, LoopInstance, Machine, Pulses, Response as MachineResponse,
};
use rotor_http::Status;
use rotor_http::health::Health;
use rotor_http::server::{
    self, Head, HttpSeed, Reply, Response, Scope, Serve, ServeError, ServerConfig,
};
use rotor_test_kit::{Directory, PATIENCE, Process, until};

use crate::probe::{Probe, TestContext};

/// Any free port.
const ANY: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));

fn hello(_: &Head<'_>, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
    response.reply(Status::OK, "text/plain", b"hello\n")
}

#[test]
fn a_successor_that_does_not_serve_is_counted() {
    let directory = Directory::create();
    let path = directory.join("control");
    let server = Serve::new("127.0.0.1:0").hand_over(&path);
    let rejected_successors = server.rejected_successors();
    assert_eq!(rejected_successors.count(), 0);
    let first = thread::spawn(move || server.run_fn(hello, || ()));
    until("the first one serves", || path.exists().then_some(()));
    let gone = until("it gives its listeners", || HandOver::at(&path).ok());
    assert!(gone.has_predecessor());
    drop(gone);
    until("it is counted", || (rejected_successors.count() > 0).then_some(()));
    follow(&path, first);
}

/// A service manager: its socket, and a connection to it.
fn service_manager(path: &Path) -> (UnixDatagram, ServiceManager) {
    let socket = UnixDatagram::bind(path).expect("a new directory");
    socket.set_nonblocking(true).expect("it can");
    (socket, ServiceManager::at(path).expect("it listens"))
}

fn received(socket: &UnixDatagram) -> Option<String> {
    let mut bytes = [0; 512];
    let len = socket.recv(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes[..len]).into_owned())
}

#[test]
fn a_successor_reports_itself_to_the_service_manager() {
    let directory = Directory::create();
    let path = directory.join("control");
    let (socket, manager) = service_manager(&directory.join("first"));
    let server = Serve::new("127.0.0.1:0").hand_over(&path).service_manager(manager);
    let first = thread::spawn(move || server.run_fn(hello, || ()));
    assert_eq!(until("the first one is ready", || received(&socket)), "READY=1\n");
    let (socket_of_next, manager) = service_manager(&directory.join("next"));
    let server = Serve::new("127.0.0.1:0").hand_over(&path).service_manager(manager);
    let next = thread::spawn(move || server.run_fn(hello, || ()));
    let ready = format!("MAINPID={}\nREADY=1\n", std::process::id());
    // Before the first one drains, and again by the thread that keeps the manager informed.
    assert_eq!(until("the next one takes over", || received(&socket_of_next)), ready);
    assert_eq!(until("the next one is ready", || received(&socket_of_next)), ready);
    first.join().expect("no panic").expect("it drains");
    // The service goes on.
    assert_eq!(received(&socket), None);
    follow(&path, next);
    assert_eq!(received(&socket_of_next), None);
}

/// A probe that takes less is answered in any case.
const HASTE: Duration = Duration::from_millis(500);

/// Asks a port for probes whether the process is ready. A process that has been followed waits one
/// second for the probes of its connections, and this thread may be slower on a busy machine: then
/// it gets no answer.
fn readiness(port: SocketAddr) -> Option<String> {
    let mut client = TcpStream::connect(port).expect("it listens");
    let probe = b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    client.write_all(probe).ok()?;
    let mut answer = String::new();
    client.read_to_string(&mut answer).ok()?;
    (!answer.is_empty()).then_some(answer)
}

/// The address of the port for probes, as it is handed over to a successor that does not stay.
fn port_for_probes(path: &Path) -> SocketAddr {
    let mut asking = until("it gives its listeners", || HandOver::at(path).ok());
    let port = asking.tcp("health", ANY, &ListenOptions::new(), 1).expect("it has it");
    port.local_address()
}

/// Tells a process that it plays the service to which sockets are given.
const GIVEN: &str = "ROTOR_TEST_GIVEN_SOCKETS";

#[test]
fn sockets_without_names_are_that_of_the_service_and_that_for_probes() {
    if let Some(path) = std::env::var_os(GIVEN) {
        let health = Health::new(Pulses::new());
        let server = Serve::new("127.0.0.1:0").hand_over(path).health_at(health, ANY);
        server.run_fn(hello, || ()).expect("it is ended");
        return;
    }
    let directory = Directory::create();
    let [service, port] = [(); 2].map(|()| std::net::TcpListener::bind(ANY).expect("a free port"));
    let addresses = [&service, &port].map(|socket| socket.local_addr().expect("it is bound"));
    // The shell duplicates them to the first descriptors after the standard ones.
    let script = "LISTEN_FDS=2 LISTEN_PID=$$ exec \"$0\" --exact \"$1\" 3<&0 4<&1 0</dev/null 1>&2";
    let test = "succession::sockets_without_names_are_that_of_the_service_and_that_for_probes";
    let child = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().expect("it has a path"))
        .arg(test)
        .env(GIVEN, directory.join("control"))
        .stdin(OwnedFd::from(service))
        .stdout(OwnedFd::from(port))
        .stderr(Stdio::null())
        .spawn();
    let process = Process::from(child.expect("it can be started"));
    let answers = addresses.map(request);
    drop(process);
    assert!(answers[0].ends_with("hello\n"), "{answers:?}");
    assert!(answers[1].contains(" 404 "), "{answers:?}");
}

#[test]
fn a_port_for_probes_answers_for_the_health_that_was_set_last() {
    let directory = Directory::create();
    let path = directory.join("control");
    let [replaced, health] = [(); 2].map(|()| Health::new(Pulses::new()));
    let server = Serve::new("127.0.0.1:0").hand_over(&path);
    let server = server.health_at(replaced, ANY).health(health);
    let first = thread::spawn(move || server.run_fn(hello, || ()));
    until("the first one serves", || path.exists().then_some(()));
    let port = port_for_probes(&path);
    until("it is ready", || readiness(port).filter(|answer| answer.contains(" 200 ")));
    follow(&path, first);
}

#[test]
fn a_health_can_be_used_for_one_server_after_another() {
    let directory = Directory::create();
    let health = Health::new(Pulses::new());
    let port = health.serve_at(ANY).expect("a free port");
    let answer = || readiness(port.local_address());
    for name in ["first", "second"] {
        let path = directory.join(name);
        let server = Serve::new("127.0.0.1:0").hand_over(&path).health(health.clone());
        let server = thread::spawn(move || server.run_fn(hello, || ()));
        until("it is ready", || answer().filter(|answer| answer.contains(" 200 ")));
        follow(&path, server);
        let ended = answer().expect("the port is open");
        assert!(ended.contains("it has not started yet"), "the next one: {ended}");
    }
}

#[test]
fn probes_find_the_service_ready_throughout_a_succession() {
    let directory = Directory::create();
    let path = directory.join("control");
    let server = || {
        let health = Health::new(Pulses::new());
        Serve::new("127.0.0.1:0").hand_over(&path).health_at(health, ANY)
    };
    let start = |server: Serve| thread::spawn(move || server.run_fn(hello, || ()));
    let first = server();
    let rejected_successors = first.rejected_successors();
    let mut last = start(first);
    until("the first one serves", || path.exists().then_some(()));
    let port = port_for_probes(&path);
    until("it is counted", || (rejected_successors.count() > 0).then_some(()));
    until("it is ready", || readiness(port).filter(|answer| answer.contains(" 200 ")));
    let (ended, has_ended) = mpsc::channel::<()>();
    let prober = thread::spawn(move || {
        let mut count = 0;
        while has_ended.try_recv() == Err(mpsc::TryRecvError::Empty) {
            let answer = until("a probe is answered", || {
                let begun = Instant::now();
                let answer = readiness(port);
                assert!(answer.is_some() || begun.elapsed() > HASTE, "it was in time");
                answer
            });
            assert!(answer.contains(" 200 "), "{answer}");
            count += 1;
        }
        count
    });
    for _ in 0..3 {
        let next = start(server());
        last.join().expect("no panic").expect("it drains");
        last = next;
    }
    // Until the end, since the last one still answers.
    drop(ended);
    assert!(prober.join().expect("each probe is answered with 200") > 0);
    follow(&path, last);
}

/// Follows the first server with one that serves, so that it ends.
fn follow(path: &Path, first: JoinHandle<Result<(), ServeError>>) {
    let mut next = until("it gives its listeners", || HandOver::at(path).ok());
    let queues = next.tcp("http", ANY, &ListenOptions::new(), 1).expect("it has them");
    let group = LoopGroup::start(queues, |listeners, _| -> Result<_, BoxError> {
        let mut creator = Loop::new(&Config::new())?;
        for listener in listeners {
            creator.add_machine_with(|scope| {
                MachineResponse::attempt(|| {
                    let seed = HttpSeed::<Probe>::new((), ServerConfig::new());
                    Ok(server::listen(TcpListener::from_std(listener, scope)?, seed, scope))
                })
            })?;
        }
        Ok(creator.instantiate(TestContext::default()))
    });
    let group = group.expect("it starts");
    next.ready(group.handle(), Duration::from_secs(10)).expect("it follows");
    first.join().expect("no panic").expect("it was served");
    group.handle().stop();
    for ended in group.join() {
        ended.expect("it was stopped");
    }
}

/// Returns what a new connection is answered.
fn request(address: SocketAddr) -> String {
    let mut client = TcpStream::connect(address).expect("it listens");
    let request = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    client.write_all(request).expect("there is room");
    let mut answers = String::new();
    client.read_to_string(&mut answers).expect("it is no reset");
    answers
}

#[test]
fn a_successor_that_panics_as_it_makes_a_loop_leaves_no_queue_behind() {
    let directory = Directory::create();
    let path = directory.join("control");
    let server = Serve::new("127.0.0.1:0").hand_over(&path);
    let rejected_successors = server.rejected_successors();
    let first = thread::spawn(move || server.run_fn(hello, || ()));
    until("the first one serves", || path.exists().then_some(()));
    let mut asking = until("it gives its listeners", || HandOver::at(&path).ok());
    let queues = asking.tcp("http", ANY, &ListenOptions::new(), 1).expect("it has them");
    let address = queues.local_address();
    drop((asking, queues));
    until("it is counted", || (rejected_successors.count() > 0).then_some(()));
    for round in 0..10 {
        let counted = rejected_successors.count();
        let made = AtomicUsize::new(0);
        let make_context = Arc::new(move || assert_eq!(made.fetch_add(1, SeqCst), 0, "a bug"));
        // It has one more queue than the first one, for its second loop.
        let next = Serve::new(address).threads(2).hand_over(&path);
        let error = next.run_fn(hello, move || make_context()).expect_err("a loop is missing");
        let text = format!("{error:?}");
        assert!(text.contains("the thread that makes it panicked"), "{text}");
        // That queue is closed by now: a client that got into it would be reset.
        for _ in 0..4 {
            let answer = request(address);
            assert!(answer.ends_with("hello\n"), "round {round}: {answer}");
        }
        until("it is counted", || (rejected_successors.count() > counted).then_some(()));
    }
    follow(&path, first);
}

/// A process that has given its listeners away and accepts nothing, and whose successor is late in
/// any case; how many were late. It exists as long as the loop does.
fn impatient_predecessor(path: &Path) -> (LoopInstance<Idle>, SocketAddr, RejectedSuccessors) {
    let mut hand_over = HandOver::at(path).expect("none runs").ready_within(Duration::ZERO);
    let queues = hand_over.tcp("http", ANY, &ListenOptions::new(), 1).expect("a free port");
    let (address, rejected) = (queues.local_address(), hand_over.rejected_successors());
    let instance = Loop::new(&Config::new()).expect("descriptors are left").instantiate(());
    hand_over.ready(instance.handle(), PATIENCE).expect("it serves");
    (instance, address, rejected)
}

/// A machine of a process that serves nobody.
struct Idle;

impl Machine for Idle {
    type Context = ();
    type Seed = Infallible;
}

#[test]
fn a_rejected_successor_finishes_the_requests_that_it_has_accepted() {
    let directory = Directory::create();
    let path = directory.join("control");
    let (_predecessor, address, rejected) = impatient_predecessor(&path);
    // The loop runs only when there are connections.
    let (go, may_go) = mpsc::channel::<()>();
    let may_go = Arc::new(Mutex::new(may_go));
    let make_context = move || {
        let _closed = may_go.lock().expect("no panic").recv();
    };
    let server = Serve::new(address).hand_over(&path);
    let server = thread::spawn(move || server.run_fn(hello, make_context));
    let connect = |request: &str| {
        let mut client = TcpStream::connect(address).expect("it listens");
        client.write_all(request.as_bytes()).expect("there is room");
        client
    };
    let mut begun = connect("GET / HTT");
    let mut complete = connect("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    until("it is late", || (rejected.count() > 0).then_some(()));
    drop(go);
    let read = |client: &mut TcpStream| {
        let mut answers = String::new();
        client.read_to_string(&mut answers).expect("it is no reset");
        answers
    };
    // The end of this connection shows that the loop drains, because the server was rejected.
    let answers = read(&mut complete);
    assert_eq!(answers.matches("hello\n").count(), 1, "{answers}");
    begun.write_all(b"P/1.1\r\nHost: x\r\n\r\n").expect("it is still open");
    let answers = read(&mut begun);
    assert_eq!(answers.matches("hello\n").count(), 1, "{answers}");
    drop([begun, complete]);
    let error = server.join().expect("no panic").expect_err("it was late");
    assert!(format!("{error:?}").contains("not ready in time"), "{error:?}");
}
