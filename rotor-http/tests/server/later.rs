//! Handlers that wait for one result and then reply, with and without a route around them.

use std::io::{ErrorKind, Read, Write};
use std::marker::PhantomData;
use std::net::TcpStream;
use std::time::Duration;

use rotor_core::net::{ListenOptions, Listener, TcpListener};
use rotor_core::{Config, Future, FutureError, Loop, OffloadPool, Port, Scope};
use rotor_http::server::{
    self, Connection, Head, HttpAccept, HttpSeed, Next, NoUpgrade, RecvMode, Response, Route,
    Routed, Server, ServerConfig,
};
use rotor_http::{Status, Trailers};
use rotor_stream::Block;
use rotor_stream::testing::Driver;

use crate::wire::transcript;

const SECOND: Duration = Duration::from_secs(1);

/// What the test and the handlers share.
#[derive(Default)]
struct Shared {
    port: Option<Port<String>>,
}

/// Does what its path says.
struct WaitingServer;

impl WaitingServer {
    fn ask(scope: &mut Scope<'_, Shared>) -> Future<String> {
        let (port, future) = scope.create_future();
        scope.port = Some(port);
        future
    }

    fn wait(scope: &mut Scope<'_, Shared>) -> Next<WaitingServer> {
        let future = WaitingServer::ask(scope);
        Next::wait(future, scope.now() + SECOND, |came, response, _| match came {
            Ok(text) => response.reply(Status::OK, "text/plain", text.as_bytes()),
            Err(FutureError::Dropped) => {
                response.reply(Status::BAD_GATEWAY, "text/plain", b"dropped")
            }
            Err(_) => response.reply(Status::BAD_GATEWAY, "text/plain", b"lost"),
        })
    }
}

impl Server for WaitingServer {
    type Context = Shared;
    type Seed = ();
    type Upgrade = NoUpgrade<Shared>;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        _: &mut Response<'_>,
        scope: &mut Scope<'_, Shared>,
    ) -> Next<Self> {
        match head.path() {
            "/wait" => WaitingServer::wait(scope),
            "/after" => Next::after(scope.now() + SECOND, |response, _| {
                response.reply(Status::OK, "text/plain", b"a second later")
            }),
            "/twice" => Next::after(scope.now() + SECOND, |_, scope| WaitingServer::wait(scope)),
            "/offload" => Next::offload(
                scope,
                SECOND,
                || 6 * 7,
                |sum, response, scope| {
                    scope.port = None; // the compiler knows the context from the first argument
                    response.reply(Status::OK, "text/plain", sum.to_string().as_bytes())
                },
            ),
            "/panics" => Next::offload(
                scope,
                SECOND,
                || -> u8 { panic!("as asked") },
                |_, r, _| r.reply(Status::OK, "text/plain", b"never"),
            ),
            "/reply-panics" => {
                Next::after(scope.now(), |_, _| -> Next<WaitingServer> { panic!("as asked") })
            }
            _ => Next::recv(WaitingServer, RecvMode::Progressive(1)).keep_deadline(),
        }
    }

    fn request_chunk(
        self,
        _: &[u8],
        _: &mut Response<'_>,
        scope: &mut Scope<'_, Shared>,
    ) -> Next<Self> {
        WaitingServer::wait(scope)
    }
}

/// Sends all requests to one of two equal servers.
pub(crate) struct SingleRoute<S, const IS_FIRST: bool>(PhantomData<S>);

impl<S: Server + 'static, const IS_FIRST: bool> Route for SingleRoute<S, IS_FIRST> {
    type First = S;
    type Second = S;

    fn is_first(_: &Head<'_>) -> bool {
        IS_FIRST
    }
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes()
}

/// Runs the same test on the handler itself and on one that a route wraps.
macro_rules! both {
    (|$driver:ident| $body:block) => {
        let seed = HttpSeed::new((), ServerConfig::new());
        let mut $driver = Driver::<Connection<WaitingServer>>::new(seed, Shared::default());
        $body;
        let seed = HttpSeed::new(((), ()), ServerConfig::new());
        let mut $driver = Driver::<Connection<Routed<SingleRoute<WaitingServer, false>>>>::new(
            seed,
            Shared::default(),
        );
        $body;
    };
}

#[test]
fn an_awaited_value_is_the_reply_and_the_connection_goes_on() {
    both!(|driver| {
        for text in ["one", "two"] {
            driver.send(&get("/wait"));
            driver.wakeup(); // spurious
            assert_eq!(driver.take_received(), b"");
            let port = driver.context_mut().port.take().expect("it waits");
            port.set(text.to_owned()).expect("somebody waits");
            driver.settle();
            assert_eq!(transcript(&driver.take_received()), format!("200 {text}"));
        }
        assert!(driver.is_alive());
    });
}

/// Creates a future when the head has come, and waits for it when the body has come.
struct EarlyRequest(Future<String>);

impl Server for EarlyRequest {
    type Context = Shared;
    type Seed = ();
    type Upgrade = NoUpgrade<Shared>;

    fn headers_received(
        (): (),
        _: &Head<'_>,
        _: &mut Response<'_>,
        scope: &mut Scope<'_, Shared>,
    ) -> Next<Self> {
        Next::recv(EarlyRequest(WaitingServer::ask(scope)), RecvMode::Buffered(9)).keep_deadline()
    }

    fn request_received(
        self,
        _: &[u8],
        _: &mut Response<'_>,
        scope: &mut Scope<'_, Shared>,
    ) -> Next<Self> {
        Next::wait(self.0, scope.now() + SECOND, |came, response, _| {
            response.reply(Status::OK, "text/plain", came.unwrap_or_default().as_bytes())
        })
    }
}

/// The wakeup of that value came before the handler waited for it.
#[test]
fn a_value_set_before_the_wait_is_the_reply_at_once() {
    fn test<S: Server<Context = Shared> + 'static>(seed: HttpSeed<S>) {
        let mut driver = Driver::<Connection<S>>::new(seed, Shared::default());
        for text in ["one", "two"] {
            driver.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n");
            let port = driver.context_mut().port.take().expect("it was asked for");
            port.set(text.to_owned()).expect("somebody waits");
            driver.settle();
            assert_eq!(driver.take_received(), b"");
            driver.send(b"x");
            assert_eq!(transcript(&driver.take_received()), format!("200 {text}"));
        }
    }
    test::<EarlyRequest>(HttpSeed::new((), ServerConfig::new()));
    test::<Routed<SingleRoute<EarlyRequest, false>>>(HttpSeed::new(((), ()), ServerConfig::new()));
}

#[test]
fn a_dropped_value_is_reported_and_a_late_one_is_a_503() {
    both!(|driver| {
        driver.send(&get("/wait"));
        driver.context_mut().port = None;
        driver.settle();
        assert!(driver.take_received().ends_with(b"\r\n\r\ndropped"));
        driver.send(&get("/wait"));
        driver.advance(SECOND);
        assert!(driver.take_received().starts_with(b"HTTP/1.1 503 "));
        assert!(driver.is_ended());
        let port = driver.context_mut().port.take().expect("it was made");
        assert!(port.is_cancelled(), "nobody waits any more");
    });
}

#[test]
fn a_pause_lasts_as_requested_and_may_lead_to_another_wait() {
    both!(|driver| {
        driver.send(&get("/after"));
        driver.advance(SECOND - Duration::from_millis(2));
        driver.wakeup(); // spurious
        assert_eq!(driver.take_received(), b"");
        driver.advance(Duration::from_millis(2));
        assert_eq!(transcript(&driver.take_received()), "200 a second later");
        driver.send(&get("/twice"));
        driver.advance(SECOND);
        let port = driver.context_mut().port.take().expect("it waits for it now");
        port.set("then".to_owned()).expect("somebody waits");
        driver.settle();
        assert_eq!(transcript(&driver.take_received()), "200 then");
    });
}

/// The response to one request, from a server on real sockets with a thread pool.
fn response_on_real_sockets(path: &str, pool: OffloadPool) -> Vec<u8> {
    let config = Config::new().offload_pool(pool);
    let mut creator = Loop::<HttpAccept<WaitingServer, TcpListener>>::new(&config).expect("a loop");
    let mut address = None;
    let made = creator.add_machine_with(|scope| {
        rotor_core::Response::attempt(|| {
            let any = "127.0.0.1:0".parse()?;
            let listener = TcpListener::bind(&any, &ListenOptions::new(), scope)?;
            address = listener.local_address();
            let seed = HttpSeed::new((), ServerConfig::new());
            Ok(server::listen(listener, seed, scope))
        })
    });
    made.expect("a listener");
    let mut instance = creator.instantiate(Shared::default());
    let mut client = TcpStream::connect(address.expect("it is bound")).expect("it listens");
    client.set_nonblocking(true).expect("a socket that does not block");
    client.write_all(&get(path)).expect("there is room");
    let mut received = Vec::new();
    loop {
        instance.turn(Some(Duration::from_millis(10))).expect("a turn");
        match client.read_to_end(&mut received) {
            Err(error) if error.kind() == ErrorKind::WouldBlock && received.is_empty() => {}
            _ => return received,
        }
    }
}

#[test]
fn offloaded_work_is_the_reply_or_a_500_on_panic_or_a_503_if_full() {
    assert_eq!(transcript(&response_on_real_sockets("/offload", OffloadPool::new(1, 1))), "200 42");
    assert!(
        response_on_real_sockets("/panics", OffloadPool::new(1, 1)).starts_with(b"HTTP/1.1 500 ")
    );
    both!(|driver| {
        driver.send(&get("/offload"));
        assert_eq!(transcript(&driver.take_received()), "200 42");
        driver.send(&get("/panics"));
        assert!(driver.take_received().starts_with(b"HTTP/1.1 500 "));
    });
    both!(|driver| {
        driver.test().world().refuse_jobs(true);
        driver.send(&get("/offload"));
        assert!(driver.take_received().starts_with(b"HTTP/1.1 503 "));
    });
}

#[test]
fn a_panic_in_the_reply_is_a_500() {
    both!(|driver| {
        driver.send(&get("/reply-panics"));
        driver.settle();
        assert!(driver.take_received().starts_with(b"HTTP/1.1 500 "));
    });
}

#[test]
fn the_rest_of_a_body_waits_and_is_dropped_after_the_reply() {
    both!(|driver| {
        driver.send(b"POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc");
        driver.send(b"def");
        assert_eq!(driver.take_received(), b"");
        let port = driver.context_mut().port.take().expect("it waits");
        port.set("enough".to_owned()).expect("somebody waits");
        driver.settle();
        assert_eq!(transcript(&driver.take_received()), "200 enough");
        driver.send(&get("/after"));
        driver.advance(SECOND);
        assert_eq!(transcript(&driver.take_received()), "200 a second later");
    });
}

#[test]
fn a_disconnect_cancels_the_wait() {
    both!(|driver| {
        driver.send(&get("/wait"));
        driver.reset();
        assert!(driver.context().port.as_ref().expect("it was made").is_cancelled());
    });
}

/// Waits for a second by `Next::after`, then for the half-close of its peer.
struct AwaitsPeerEnd;

impl Server for AwaitsPeerEnd {
    type Context = Shared;
    type Seed = ();
    type Upgrade = NoUpgrade<Shared>;

    const HEARS_END: bool = true;

    fn headers_received(
        (): (),
        _: &Head<'_>,
        _: &mut Response<'_>,
        scope: &mut Scope<'_, Shared>,
    ) -> Next<Self> {
        Next::after(scope.now() + SECOND, |_, _| Next::go_on(AwaitsPeerEnd).no_deadline())
    }

    fn peer_ended(self, response: &mut Response<'_>, _: &mut Scope<'_, Shared>) -> Next<Self> {
        response.reply(Status::OK, "text/plain", b"heard").into()
    }
}

#[test]
fn a_peer_end_during_a_wait_is_reported_to_the_next_handler() {
    fn test<S: Server<Context = Shared> + 'static>(seed: HttpSeed<S>) {
        for ends_sooner in [true, false] {
            let mut driver = Driver::<Connection<S>>::new(seed.clone(), Shared::default());
            driver.send(&get("/"));
            if ends_sooner {
                driver.end();
            }
            assert_eq!(driver.take_received(), b"");
            driver.advance(SECOND);
            if !ends_sooner {
                assert_eq!(driver.take_received(), b"");
                driver.end();
            }
            assert!(driver.take_received().ends_with(b"\r\n\r\nheard"));
            assert!(driver.is_ended());
        }
    }
    test::<AwaitsPeerEnd>(HttpSeed::new((), ServerConfig::new()));
    test::<Routed<SingleRoute<AwaitsPeerEnd, true>>>(HttpSeed::new(((), ()), ServerConfig::new()));
}

/// Waits for a second with the last piece of its body, then for the end of the body.
struct WaitsWithinBody {
    blocks: bool,
}

impl WaitsWithinBody {
    fn wait(self, scope: &Scope<'_, Shared>) -> Next<WaitsWithinBody> {
        Next::after(scope.now() + SECOND, |_, _| Next::go_on(self).no_deadline())
    }
}

impl Server for WaitsWithinBody {
    type Context = Shared;
    type Seed = ();
    type Upgrade = NoUpgrade<Shared>;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        _: &mut Response<'_>,
        _: &mut Scope<'_, Shared>,
    ) -> Next<Self> {
        let blocks = head.path() == "/blocks";
        let mode = if blocks { RecvMode::Blocks } else { RecvMode::Progressive(1) };
        Next::recv(WaitsWithinBody { blocks }, mode).keep_deadline()
    }

    fn request_chunk(
        self,
        _: &[u8],
        _: &mut Response<'_>,
        scope: &mut Scope<'_, Shared>,
    ) -> Next<Self> {
        assert!(!self.blocks);
        self.wait(scope)
    }

    fn request_block(
        self,
        _: Block,
        _: &mut Response<'_>,
        scope: &mut Scope<'_, Shared>,
    ) -> Next<Self> {
        self.wait(scope)
    }

    fn request_end(
        self,
        trailers: &Trailers,
        response: &mut Response<'_>,
        _: &mut Scope<'_, Shared>,
    ) -> Next<Self> {
        let sum = trailers.get("X-Sum").unwrap_or(b"no sum");
        response.reply(Status::OK, "text/plain", sum).into()
    }
}

#[test]
fn a_body_end_during_a_wait_is_reported_to_the_next_handler() {
    fn test<S: Server<Context = Shared> + 'static>(seed: HttpSeed<S>) {
        let mut driver = Driver::<Connection<S>>::new(seed, Shared::default());
        for path in ["/", "/blocks"] {
            driver.send(
                format!("PUT {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
                    .as_bytes(),
            );
            assert_eq!(driver.take_received(), b"", "{path}");
            driver.advance(SECOND);
            assert_eq!(transcript(&driver.take_received()), "200 no sum", "{path}");
        }
    }
    test::<WaitsWithinBody>(HttpSeed::new((), ServerConfig::new()));
    test::<Routed<SingleRoute<WaitsWithinBody, true>>>(HttpSeed::new(
        ((), ()),
        ServerConfig::new(),
    ));
}
