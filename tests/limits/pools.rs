//! Two offload pools: a full pool does not delay requests that need the other.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rotor::http::Status;
use rotor::http::server::{
    self, Head, HttpAccept, HttpSeed, Next, NoUpgrade, Response, Scope, Server, ServerConfig,
};
use rotor::net::{ListenOptions, TcpListener, TcpListeners};
use rotor::threads::LoopGroup;
use rotor::{Config, Loop, OffloadPool};

const PATIENCE: Duration = Duration::from_secs(100);

/// The event that slow queries wait for.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn pass(&self) {
        let is_open = self.is_open.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.opened.wait_timeout_while(is_open, PATIENCE, |is_open| !*is_open);
        drop(waited);
    }

    fn open(&self) {
        *self.is_open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.opened.notify_all();
    }
}

/// `/report` runs a query that takes until the gate opens. Any other path is a file, read by the
/// loop's own pool.
struct Site;

impl Server for Site {
    type Context = Arc<Gate>;
    type Seed = OffloadPool;
    type Upgrade = NoUpgrade<Arc<Gate>>;

    fn headers_received(
        queries: OffloadPool,
        head: &Head<'_>,
        _: &mut Response<'_>,
        scope: &mut Scope<'_, Arc<Gate>>,
    ) -> Next<Self> {
        if head.path() != "/report" {
            let read = || std::fs::read(env!("CARGO_MANIFEST_PATH"));
            return Next::offload(scope, PATIENCE, read, |file, response, _| match file {
                Ok(file) => response.reply(Status::OK, "text/plain", &file),
                Err(_) => response.reply(Status::NOT_FOUND, "text/plain", b"none"),
            });
        }
        let gate = (**scope).clone();
        let Ok(report) = scope.job(move |_| gate.pass()).on(&queries).start() else {
            return Next::fail(Status::SERVICE_UNAVAILABLE);
        };
        Next::wait(report, scope.now() + PATIENCE, |report, response, _| match report {
            Ok(()) => response.reply(Status::OK, "text/plain", b"a report"),
            Err(_lost) => response.reply(Status::BAD_GATEWAY, "text/plain", b"lost"),
        })
    }
}

fn ask(address: SocketAddr, path: &str) -> TcpStream {
    let mut client = TcpStream::connect(address).expect("it listens");
    client.set_read_timeout(Some(PATIENCE)).expect("not zero");
    write!(client, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .expect("it reads");
    client
}

fn answer(mut client: TcpStream) -> String {
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("an answer in time");
    answer
}

#[test]
fn four_slow_queries_on_their_own_pool_do_not_delay_a_file_job() {
    let gate = Arc::new(Gate::default());
    let queries = OffloadPool::new(4, 100);
    let listeners =
        TcpListeners::bind(SocketAddr::from(([127, 0, 0, 1], 0)), &ListenOptions::new(), 1)
            .expect("a free port");
    let address = listeners.local_address();
    let (shared, pool) = (gate.clone(), queries.clone());
    let group = LoopGroup::start(listeners, move |listener, _| {
        // One slow query occupies the only thread.
        let config = Config::new().offload_pool(OffloadPool::new(1, 100));
        let mut creator = Loop::<HttpAccept<Site, TcpListener>>::new(&config)?;
        creator.add_machine_with(|scope| {
            rotor::Response::attempt(|| {
                let listener = TcpListener::from_std(listener, scope)?;
                let seed = HttpSeed::new(pool.clone(), ServerConfig::new());
                Ok(server::listen(listener, seed, scope))
            })
        })?;
        Ok(creator.instantiate(shared.clone()))
    })
    .expect("a loop");
    let reports: Vec<TcpStream> = (0..5).map(|_| ask(address, "/report")).collect();
    let until = Instant::now() + PATIENCE;
    while queries.stats().begun < 4 {
        assert!(Instant::now() < until, "four queries have not begun");
        std::thread::yield_now();
    }
    let file = answer(ask(address, "/file"));
    assert!(file.starts_with("HTTP/1.1 200 "), "{file}");
    assert_eq!(queries.stats().begun, 4, "the fifth waits for one of its own kind");
    gate.open();
    for report in reports {
        let report = answer(report);
        assert!(report.ends_with("a report"), "{report}");
    }
    group.handle().drain(PATIENCE);
    for exit in group.join() {
        exit.expect("it drains");
    }
}
