//! `Serve` with a successor process, which another thread plays.
#![cfg(any(target_os = "linux", target_os = "android"))]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, yield_now};
use std::time::{Duration, Instant};

use rotor_core::hand_over::HandOver;
use rotor_core::net::{ListenOptions, TcpListener};
use rotor_core::threads::LoopGroup;
use rotor_core::{
    BoxError, Config, Infallible, Loop, LoopInstance, Machine, Response as MachineResponse,
};
use rotor_http::Status;
use rotor_http::server::{self, Head, HttpSeed, Reply, Response, Scope, Serve, ServerConfig};
use rotor_test_kit::Directory;

use crate::probe::{Probe, TestContext};

/// How long to wait for something that is immediate on an idle machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn until<T>(what: &str, mut asked: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        match asked() {
            Some(answer) => return answer,
            None if begun.elapsed() < PATIENCE => yield_now(),
            None => panic!("not within {PATIENCE:?}: {what}"),
        }
    }
}

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
    // The next successor serves, and so the first server ends.
    let mut next = until("it gives them again", || HandOver::at(&path).ok());
    let address = "127.0.0.1:0".parse().expect("it is one");
    let queues = next.tcp("http", address, &ListenOptions::new(), 1).expect("it has them");
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

/// The context of a loop, whose end it reports.
struct LoopContext {
    _ended: Sender<()>,
}

fn hello_from_loop(
    _: &Head<'_>,
    response: &mut Response<'_>,
    _: &mut Scope<'_, LoopContext>,
) -> Reply {
    response.reply(Status::OK, "text/plain", b"hello\n")
}

/// A process that has given its listeners away and accepts nothing, and whose successor is late in
/// any case. It exists as long as the loop does.
fn impatient_predecessor(path: &Path) -> (LoopInstance<Idle>, SocketAddr) {
    let mut hand_over = HandOver::at(path).expect("none runs").ready_within(Duration::ZERO);
    let address = "127.0.0.1:0".parse().expect("it is one");
    let queues = hand_over.tcp("http", address, &ListenOptions::new(), 1).expect("a free port");
    let address = queues.local_address();
    let instance = Loop::new(&Config::new()).expect("descriptors are left").instantiate(());
    hand_over.ready(instance.handle(), PATIENCE).expect("it serves");
    (instance, address)
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
    let (_predecessor, address) = impatient_predecessor(&path);
    // The first loop accepts while the second one is being made.
    let (ended, has_ended) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    let (contexts, may_go) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(may_go)));
    let make_context = move || {
        let is_second = {
            let mut contexts = contexts.lock().expect("no panic");
            *contexts += 1;
            *contexts == 2
        };
        if !is_second {
            return LoopContext { _ended: mpsc::channel().0 };
        }
        let _ = may_go.lock().expect("no panic").recv();
        LoopContext { _ended: ended.clone() }
    };
    let server = Serve::new(address).threads(2).hand_over(&path);
    let server = thread::spawn(move || server.run_fn(hello_from_loop, make_context));
    // The system may put connections into the queue of the second loop.
    let mut clients = Vec::new();
    let mut client = until("one is answered", || {
        if clients.len() < 64 {
            let mut client = TcpStream::connect(address).expect("it listens");
            client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect("there is room");
            client.set_nonblocking(true).expect("it can");
            clients.push(client);
        }
        let answered = clients.iter().position(|client| client.peek(&mut [0]).is_ok());
        answered.map(|answered| clients.swap_remove(answered))
    });
    drop(clients);
    client.set_nonblocking(false).expect("it can");
    client.write_all(b"GET / HTT").expect("there is room");
    drop(go);
    // The other loop has nothing to do, and ends.
    assert_eq!(has_ended.recv(), Err(mpsc::RecvError));
    client.write_all(b"P/1.1\r\nHost: x\r\n\r\n").expect("it is still open");
    let mut answers = String::new();
    client.read_to_string(&mut answers).expect("it is no reset");
    assert_eq!(answers.matches("hello\n").count(), 2, "{answers}");
    let error = server.join().expect("no panic").expect_err("it was late");
    assert!(format!("{error:?}").contains("not ready in time"), "{error:?}");
}
