//! The pool and a server of this crate in one loop, on real sockets. Threads without a loop send
//! the requests.

use std::net::SocketAddr;
use std::thread;

use rotor_core::net::{ListenOptions, Listener, TcpListener, TcpStream};
use rotor_core::{Config, ExitPolicy, Loop, LoopHandle, Response, rotor_compose};
use rotor_http::Status;
use rotor_http::client::{
    ByAddress, ClientConfig, ClientError, Fetch, Fetched, Pool, PoolConfig, PoolMachine,
    PoolRequest,
};
use rotor_http::server::{self, HttpAccept, HttpSeed};

use crate::mirror::Mirror;

rotor_compose! {
    enum Machines <()> {
        Accept(HttpAccept<Mirror, TcpListener>),
        Pool(PoolMachine<Fetch<()>, ByAddress<TcpStream>>),
    }
}

fn get(
    pool: &Pool<Fetch<()>>,
    origin: SocketAddr,
    handler: Fetch<()>,
) -> Result<Fetched, ClientError> {
    let ask = PoolRequest::new(origin, handler);
    pool.service().ask_from_thread(ask).expect("there is room").wait().expect("the pool answers")
}

/// Ends the loop however the test ends.
struct StopOnDrop(LoopHandle);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Runs a server and a pool while `work` sends requests to the server through the pool.
fn with_server(
    config: PoolConfig,
    work: impl FnOnce(&Pool<Fetch<()>>, SocketAddr) + Send,
) -> ClientConfig {
    let (mut address, mut pool) = (None, None);
    let settings = ClientConfig::new();
    let mut creator = Loop::<Machines>::new(&Config::new().exit(ExitPolicy::OnRequest))
        .expect("there are descriptors");
    let made = creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener =
                TcpListener::bind(&"127.0.0.1:0".parse()?, &ListenOptions::new(), scope)?;
            address = listener.local_address();
            let seed = HttpSeed::<Mirror>::new((), server::ServerConfig::new());
            Ok(server::listen::<Mirror, _, _>(listener, seed, scope).wrap(Machines::Accept))
        })
    });
    made.expect("a listener");
    let made = creator.add_machine_with(|scope| {
        let (handle, response) = PoolMachine::new(config, settings.clone(), scope);
        pool = Some(handle);
        response.wrap(Machines::Pool)
    });
    made.expect("there is room");
    let (address, pool) = (address.expect("it listens"), pool.expect("the closure ran"));
    let mut instance = creator.instantiate(());
    let handle = instance.handle();
    thread::scope(|threads| {
        threads.spawn(move || {
            // Also if `work` panics: a loop that continued after a failed assertion would hide the
            // failure.
            let _stop = StopOnDrop(handle);
            work(&pool, address);
        });
        instance.run().expect("the backend can wait");
    });
    settings
}

#[test]
fn threads_get_their_own_responses_over_few_connections() {
    const THREADS: usize = 4;
    const REQUESTS_EACH: usize = 250;
    let config = PoolConfig::new().connections_per_origin_max(3);
    let settings = with_server(config, |pool, address| {
        thread::scope(|threads| {
            for thread in 0..THREADS {
                threads.spawn(move || {
                    for request in 0..REQUESTS_EACH {
                        let target = format!("/{thread}/{request}");
                        let body = "x".repeat(request * 40);
                        let (method, sent) = match request % 3 {
                            0 => ("GET", None),
                            1 => ("POST", Some(body)),
                            _ => ("PUT", Some(body)),
                        };
                        let mut fetch = Fetch::new(method, &target).host("mirror");
                        if let Some(body) = &sent {
                            fetch = fetch.body(body.as_str());
                        }
                        let fetched = get(pool, address, fetch).expect("the server is well");
                        let expected = format!("{method} {target} {}", sent.unwrap_or_default());
                        assert_eq!(fetched.status, Status::OK);
                        assert_eq!(String::from_utf8_lossy(&fetched.body), expected);
                        assert_eq!(fetched.field("content-type"), Some(&b"text/plain"[..]));
                    }
                });
            }
        });
    });
    let counters = settings.counters();
    assert_eq!(counters.answered(), (THREADS * REQUESTS_EACH) as u64, "{counters:?}");
    assert_eq!(counters.failed(), 0, "{counters:?}");
    let closed = (0..REQUESTS_EACH).filter(|request| request % 10 == 7).count() * THREADS;
    assert!(counters.connections() <= closed as u64 + 3, "{counters:?}");
}

#[test]
fn errors_name_the_caller_or_the_network_as_the_fault() {
    let _settings = with_server(PoolConfig::new(), |pool, address| {
        let fault = |origin, fetch| get(pool, origin, fetch).expect_err("it cannot be").fault();
        assert_eq!(fault(address, Fetch::get("/")), rotor_http::client::Fault::Caller, "no host");
        // The port of a socket that is connected elsewhere: it is in use, and no socket listens on
        // it.
        let elsewhere = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let taken = elsewhere.local_addr().and_then(std::net::TcpStream::connect);
        let taken = taken.expect("it listens");
        let nobody = taken.local_addr().expect("it is bound");
        assert_eq!(fault(nobody, Fetch::get("/").host("h")), rotor_http::client::Fault::Network);
        let head =
            get(pool, address, Fetch::new("HEAD", "/").host("h")).expect("the server is well");
        assert!(head.body.is_empty() && head.field("Content-Length").is_some());
        let limited = Fetch::get("/").host("h").body_bytes_max(3);
        let error = get(pool, address, limited).expect_err("the answer is longer");
        assert_eq!(error.gateway_status(), Status::BAD_GATEWAY, "{error}");
    });
}
