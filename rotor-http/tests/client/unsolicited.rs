//! A server that sends unsolicited bytes on the idle connections of a pool, while more events are
//! pending than the loop reads in one turn: on real sockets.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rotor_core::net::UnixStream;
use rotor_core::{Config, ExitPolicy, Loop, LoopInstance, Response, rotor_compose};
use rotor_http::client::{ByAddress, ClientConfig, Pool, PoolConfig, PoolMachine};
use rotor_test_kit::Directory;

use crate::pool::Requester;
use crate::probe::{Probe, TestContext};

type Sockets = Arc<Mutex<Vec<std::os::unix::net::UnixStream>>>;

rotor_compose! {
    enum Machines / Seeds<TestContext> {
        Pool(PoolMachine<Probe, ByAddress<UnixStream>>),
        Requester(Requester),
    }
}

/// Answers each request with its target. Its sockets are shared, so that a test can send more bytes
/// on them.
fn upstream(path: &Path) -> Sockets {
    let listener = UnixListener::bind(path).expect("nobody else has this name");
    let sockets = Sockets::default();
    let shared = sockets.clone();
    thread::spawn(move || {
        while let Ok((mut socket, _)) = listener.accept() {
            lock(&shared).push(socket.try_clone().expect("there are descriptors"));
            thread::spawn(move || {
                let mut request = [0; 1024];
                while let Ok(count @ 1..) = socket.read(&mut request) {
                    let text = String::from_utf8_lossy(&request[..count]).into_owned();
                    let target = text.split(' ').nth(1).unwrap_or_default();
                    let length = target.len();
                    let _the_test_is_over = write!(
                        socket,
                        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{target}"
                    );
                }
            });
        }
    });
    sockets
}

fn lock(sockets: &Sockets) -> std::sync::MutexGuard<'_, Vec<std::os::unix::net::UnixStream>> {
    sockets.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts all these requests together, and turns the loop until each has an outcome.
fn request_all(
    instance: &mut LoopInstance<Machines>,
    pool: &Pool<Probe, PathBuf>,
    path: &Path,
    targets: &[&'static str],
) -> Vec<String> {
    for name in targets {
        let asked = instance.add_machine_with(|scope| {
            let future = pool.ask(path.to_owned(), Probe::get(name), scope).ok();
            Response::ok(Machines::Requester(Requester { name, future }))
        });
        asked.expect("there is a slot");
    }
    let is_outcome = |event: &&String| event.contains(": ");
    while instance.context().events.iter().filter(is_outcome).count() < targets.len() {
        instance.turn(Some(Duration::from_secs(60))).expect("the backend can wait");
    }
    let events = std::mem::take(&mut instance.context_mut().events);
    let mut outcomes: Vec<String> =
        events.into_iter().filter(|event| event.contains(": ")).collect();
    outcomes.sort();
    outcomes
}

#[test]
fn unsolicited_upstream_bytes_without_an_event_answer_no_request() {
    const TARGETS: [&str; 8] = ["/0", "/1", "/2", "/3", "/4", "/5", "/6", "/7"];
    let directory = Directory::create();
    let path = directory.join("upstream");
    let sockets = upstream(&path);
    let config = Config::new().events_max(1).exit(ExitPolicy::OnRequest);
    let mut creator = Loop::<Machines>::new(&config).expect("there are descriptors");
    let settings = ClientConfig::new();
    let pool = creator
        .add_part(Machines::Pool, |scope| {
            Ok(PoolMachine::new(PoolConfig::new(), settings.clone(), scope))
        })
        .expect("there is a slot");
    let mut instance = creator.instantiate(TestContext::default());
    let expected = TARGETS.map(|target| format!("{target}: 200 {target}"));
    assert_eq!(request_all(&mut instance, &pool, &path, &TARGETS), expected);

    // Eight connections are idle, and each has an unsolicited answer now. The loop gets one event
    // per turn.
    assert_eq!(lock(&sockets).len(), TARGETS.len());
    for socket in lock(&sockets).iter_mut() {
        socket
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
            .expect("the pool is connected");
    }
    assert_eq!(request_all(&mut instance, &pool, &path, &TARGETS), expected);
    assert!(settings.counters().stray() > 0);
}
