//! The client and its pool with third-party servers and all kinds of exchanges: keep-alive, chunked
//! bodies, heads without bodies, interim responses, bodies that end with the connection, large
//! bodies in both directions, and connections closed without notice.
//!
//! Python and nginx are tested here, Go and Node by `tests/long/servers/run`, which runs
//! `the_client_exchanges_with_the_server_in_rotor_server`.

mod transfer;

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use rotor::http::client::{
    ByAddress, ClientConfig, ClientError, Pool, PoolConfig, PoolMachine, PoolRequest,
};
use rotor::net::TcpStream;
use rotor::{Config, ExitPolicy, Loop};
use rotor_test_kit::{Directory, Process};

use self::transfer::{Body, Taken, Transfer};
use crate::nginx::start_nginx;
use crate::support::program;

const BIG: usize = 32 << 20;

/// A pool with one connection to one server. Its loop runs on its own thread.
struct Asker {
    pool: Pool<Transfer>,
    server: SocketAddr,
    config: ClientConfig,
}

/// Runs `work` with a pool for a server.
fn asking(server: SocketAddr, work: impl FnOnce(&Asker) + Send) {
    let config = ClientConfig::new();
    let mut pool = None;
    let loop_config = Config::new().exit(ExitPolicy::OnRequest);
    let mut creator = Loop::<PoolMachine<Transfer, ByAddress<TcpStream>>>::new(&loop_config)
        .expect("descriptors");
    creator
        .add_machine_with(|scope| {
            let pool_config = PoolConfig::new().connections_per_origin_max(1);
            let (handle, response) = PoolMachine::new(pool_config, config.clone(), scope);
            pool = Some(handle);
            response
        })
        .expect("there is room");
    let asker = Asker { pool: pool.expect("the closure ran"), server, config };
    let mut instance = creator.instantiate(());
    let handle = instance.handle();
    thread::scope(|threads| {
        let worker = threads.spawn(move || {
            let _stop = StopWhenDropped(handle);
            work(&asker);
        });
        instance.run().expect("the backend can wait");
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// Stops the loop however the work ends.
struct StopWhenDropped(rotor::LoopHandle);

impl Drop for StopWhenDropped {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Asker {
    fn try_ask(&self, handler: Transfer) -> Result<Taken, ClientError> {
        let ask = PoolRequest::new(self.server, handler);
        self.pool
            .service()
            .ask_from_thread(ask)
            .expect("there is room")
            .wait()
            .expect("the pool answers")
    }

    fn ask(&self, handler: Transfer) -> Taken {
        self.try_ask(handler).expect("the server is well")
    }

    fn get(&self, target: &str) -> Taken {
        self.ask(Transfer::get(target))
    }

    fn connections(&self) -> u64 {
        self.config.counters().connections()
    }
}

fn is(taken: &Taken, status: u16, body: &str) {
    let begin = String::from_utf8_lossy(&taken.begin);
    assert_eq!((taken.status, &*begin, taken.octets), (status, body, body.len()), "{taken:?}");
}

/// Checks what every file server supports.
fn check_files(asker: &Asker) {
    for _ in 0..5 {
        is(&asker.get("/hello"), 200, "hello");
        let head = asker.ask(Transfer::new("HEAD", "/hello", Body::Nothing));
        is(&head, 200, "");
        assert_eq!(head.length.as_deref(), Some("5"));
        is(&asker.get("/204"), 204, "");
        is(&asker.get("/304"), 304, "");
    }
    assert_eq!(asker.connections(), 1, "all of it on one");
    let big = asker.get("/big");
    assert_eq!((big.status, big.octets, big.wrong), (200, BIG, 0));
}

/// Checks what needs a program behind the server.
fn check_programs(asker: &Asker) {
    let before = asker.connections();
    is(&asker.get("/chunked"), 200, "onetwothree");
    let hints = asker.get("/103");
    is(&hints, 200, "hello");
    assert_eq!(hints.interim, [103]);
    for octets in [0, 1, 1_000, 100_000] {
        for body in [Body::Length(octets), Body::Chunked(octets)] {
            let echo = asker.ask(Transfer::new("POST", "/echo", body));
            assert_eq!((echo.status, echo.octets, echo.wrong), (200, octets, 0), "{body:?}");
        }
    }
    let echo = asker.ask(Transfer::new("POST", "/echo", Body::Length(1_000)).expecting());
    assert_eq!(
        (echo.status, echo.octets, echo.wrong),
        (200, 1_000, 0),
        "100 is not told as an interim answer"
    );
    assert!(echo.interim.is_empty(), "{echo:?}");
    for body in [Body::Length(BIG), Body::Chunked(BIG)] {
        is(&asker.ask(Transfer::new("PUT", "/count", body)), 200, &BIG.to_string());
    }
    assert_eq!(asker.connections(), before, "all of it on the one that there was");
    is(&asker.get("/until-close"), 200, "no length");
    is(&asker.get("/hello"), 200, "hello");
    assert_eq!(asker.connections(), before + 1, "it was no use any more");
    // The server closes without notice. The pool notices it while the connection is idle, or
    // repeats the request.
    for _ in 0..20 {
        is(&asker.get("/closes"), 200, "hello");
        is(&asker.get("/hello"), 200, "hello");
    }
    assert_eq!(asker.config.counters().failed(), 0);
}

fn python(program: &Path) -> (Process, SocketAddr) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("long/servers/server.py");
    let child =
        Command::new(program).arg(script).arg(BIG.to_string()).stdout(Stdio::piped()).spawn();
    let mut server = Process::from(child.expect("Python starts"));
    let stdout = server.stdout.take().expect("it was asked to be a pipe above");
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).expect("it says where it listens");
    (server, line.trim().parse().unwrap_or_else(|_| panic!("no address in {line:?}")))
}

#[test]
fn python_understands_the_client_in_all_kinds_of_exchanges() {
    let Some(program) = program("python3") else { return };
    let (_server, address) = python(&program);
    asking(address, |asker| {
        check_files(asker);
        check_programs(asker);
    });
}

#[test]
fn nginx_understands_the_client_and_takes_large_bodies() {
    let Some(nginx) = program("nginx") else { return };
    let site = Directory::create();
    std::fs::write(site.join("hello"), "hello").expect("a file");
    std::fs::write(site.join("big"), (0..BIG).map(transfer::octet).collect::<Vec<u8>>())
        .expect("a file");
    let server = start_nginx(
        &nginx,
        &format!(
            "client_max_body_size 0;
             server {{
                 listen 127.0.0.1:PORT; root {};
                 location = /204 {{ return 204; }}
                 location = /304 {{ add_header ETag '\"x\"'; return 304; }}
                 location = /count {{ proxy_pass http://127.0.0.1:PORT/hello; proxy_method GET; }}
             }}",
            site.display()
        ),
    );
    asking(([127, 0, 0, 1], server.port).into(), |asker| {
        check_files(asker);
        for body in [Body::Length(BIG), Body::Chunked(BIG)] {
            is(&asker.ask(Transfer::new("PUT", "/count", body)), 200, "hello");
        }
        assert_eq!(asker.connections(), 1, "all of it on one");
    });
    drop(server);
}

#[test]
#[ignore = "tests/long/servers/run names the server"]
fn the_client_exchanges_with_the_server_in_rotor_server() {
    let address = std::env::var("ROTOR_SERVER").expect("an address, in ROTOR_SERVER");
    asking(address.parse().expect("an address"), |asker| {
        check_files(asker);
        check_programs(asker);
    });
}
