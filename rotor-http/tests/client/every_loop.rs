//! The pool and a server of this crate in one loop, on every loop.

use std::net::SocketAddr;

use rotor_core::net::{ListenOptions, Listener};
use rotor_core::{BlockingReply, Compose2, Config, ExitPolicy, Response};
use rotor_http::Status;
use rotor_http::client::{
    ByAddress, ClientConfig, ClientError, Fault, Fetch, Fetched, Pool, PoolConfig, PoolMachine,
    PoolRequest,
};
use rotor_http::server::{self, HttpAccept, HttpSeed};

use crate::loops::{ListenerOn, OnLoop, Rig, StreamOn, local, on_every_loop};
use crate::mirror::Mirror;

type Machines<L> =
    Compose2<HttpAccept<Mirror, ListenerOn<L>>, PoolMachine<Fetch<()>, ByAddress<StreamOn<L>>>>;

struct Stage<L: OnLoop> {
    rig: Rig<Machines<L>, L>,
    pool: Pool<Fetch<()>>,
    server: SocketAddr,
    client: ClientConfig,
}

impl<L: OnLoop> Stage<L> {
    fn new(config: PoolConfig) -> Stage<L> {
        let mut rig = Rig::<Machines<L>, L>::new(&Config::new().exit(ExitPolicy::OnRequest), ());
        let (mut server, mut pool, client) = (None, None, ClientConfig::new());
        rig.add(|scope| {
            Response::attempt(|| {
                let listener = ListenerOn::<L>::bind(&local(), &ListenOptions::new(), scope)?;
                server = listener.local_address();
                let seed = HttpSeed::<Mirror>::new((), server::ServerConfig::new());
                Ok(server::listen::<Mirror, _, _>(listener, seed, scope).wrap(Compose2::A))
            })
        });
        rig.add(|scope| {
            let (handle, response) = PoolMachine::new(config, client.clone(), scope);
            pool = Some(handle);
            response.wrap(Compose2::B)
        });
        let (server, pool) = (server.expect("it listens"), pool.expect("the closure ran"));
        Stage { rig, pool, server, client }
    }

    fn begin(
        &self,
        origin: SocketAddr,
        fetch: Fetch<()>,
    ) -> BlockingReply<Result<Fetched, ClientError>> {
        self.pool.service().ask_from_thread(PoolRequest::new(origin, fetch)).expect("there is room")
    }

    fn end(
        &mut self,
        reply: BlockingReply<Result<Fetched, ClientError>>,
    ) -> Result<Fetched, ClientError> {
        self.rig.until(|_| reply.is_ready());
        reply.wait().expect("the pool answers")
    }

    fn fetch(&mut self, origin: SocketAddr, fetch: Fetch<()>) -> Result<Fetched, ClientError> {
        let reply = self.begin(origin, fetch);
        self.end(reply)
    }
}

on_every_loop!(each_request_gets_its_own_response_over_few_connections);
fn each_request_gets_its_own_response_over_few_connections<L: OnLoop>() {
    const REQUESTS: usize = 200;
    let mut stage = Stage::<L>::new(PoolConfig::new().connections_per_origin_max(3));
    let asked: Vec<_> = (0..REQUESTS)
        .map(|request| {
            let (method, body) = match request % 3 {
                0 => ("GET", None),
                1 => ("POST", Some("x".repeat(request * 40))),
                _ => ("PUT", Some("y".repeat(request * 400))),
            };
            let target = format!("/{request}");
            let mut fetch = Fetch::new(method, &target).host("mirror");
            if let Some(body) = &body {
                fetch = fetch.body(body.as_str());
            }
            let expected = format!("{method} {target} {}", body.unwrap_or_default());
            (stage.begin(stage.server, fetch), expected)
        })
        .collect();
    for (reply, expected) in asked {
        let fetched = stage.end(reply).expect("the server is well");
        assert_eq!(fetched.status, Status::OK);
        assert_eq!(String::from_utf8_lossy(&fetched.body), expected);
    }
    let counters = stage.client.counters();
    assert_eq!((counters.answered(), counters.failed()), (REQUESTS as u64, 0), "{counters:?}");
    // The answer to every target that ends in 7 closes its connection.
    assert!(counters.connections() <= REQUESTS as u64 / 10 + 3, "{counters:?}");
}

on_every_loop!(an_unreachable_server_and_a_wrong_request_are_distinguished);
fn an_unreachable_server_and_a_wrong_request_are_distinguished<L: OnLoop>() {
    let mut stage = Stage::<L>::new(PoolConfig::new());
    let server = stage.server;
    let fault = |stage: &mut Stage<L>, origin, fetch| {
        stage.fetch(origin, fetch).expect_err("it cannot be").fault()
    };
    let hostless = stage.fetch(server, Fetch::new("POST", "/")).expect_err("no host");
    assert_eq!(hostless.fault(), Fault::Caller);
    assert!(!hostless.may_have_been_processed(), "it has not left");
    let (_port, nobody) = L::closed();
    assert_eq!(fault(&mut stage, nobody, Fetch::get("/").host("h")), Fault::Network);
    let head = stage.fetch(server, Fetch::new("HEAD", "/").host("h")).expect("the server is well");
    assert!(head.body.is_empty() && head.field("Content-Length").is_some());
    let limited = Fetch::get("/").host("h").body_bytes_max(3);
    let error = stage.fetch(server, limited).expect_err("the answer is longer");
    assert_eq!(error.gateway_status(), Status::BAD_GATEWAY, "{error}");
}
