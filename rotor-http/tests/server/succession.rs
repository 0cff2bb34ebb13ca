//! `Serve` with a successor process, which another thread plays.
#![cfg(any(target_os = "linux", target_os = "android"))]

use std::thread::{self, yield_now};
use std::time::{Duration, Instant};

use rotor_core::hand_over::HandOver;
use rotor_core::net::{ListenOptions, TcpListener};
use rotor_core::threads::LoopGroup;
use rotor_core::{BoxError, Config, Loop, Response as MachineResponse};
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
