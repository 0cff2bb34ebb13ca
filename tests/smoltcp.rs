//! HTTP, plain and over TLS, between two user-space stacks. The machines are the same as on every
//! other loop, and the network between them can be made arbitrarily bad. Time is virtual.
#![forbid(unsafe_code)]

#[path = "../rotor-tls/tests/kit/mod.rs"]
mod kit;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use kit::Issuer;
use rotor::http::client::{ByAddress, ClientConfig, Fetch, Pool, PoolConfig, PoolMachine};
use rotor::http::server::{
    Head, HttpAccept, HttpSeed, Reply, Response as Answer, ServerConfig, ServerFn, listen,
};
use rotor::http::{Limits, Status};
use rotor::net::{ListenOptions, Listener, StreamSocket};
use rotor::tls::{TlsClient, TlsClientConfig, TlsListener, TlsStream};
use rotor::{
    BoxError, Compose2, Config, ExitPolicy, Future, Infallible, Loop, LoopInstance, Machine,
    Outcome, Response, Scope,
};
use rotor_smoltcp::{
    ManualClock, MemoryConfig, MemoryDevice, Smoltcp, SmoltcpHandle, SmoltcpTcpListener,
    SmoltcpTcpStream, StackConfig,
};

const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

type Pages = ServerFn<fn(&Head<'_>, &mut Answer<'_>, &mut Scope<'_, ()>) -> Reply, ()>;

/// A page as long as its path says.
fn page(head: &Head<'_>, answer: &mut Answer<'_>, _: &mut Scope<'_, ()>) -> Reply {
    let len = head.path().trim_start_matches('/').parse().unwrap_or(0);
    answer.reply(Status::OK, "text/plain", &text(len))
}

/// Bytes whose values depend on their positions, so that a misplaced byte is noticed.
fn text(len: usize) -> Vec<u8> {
    (0..len).map(|byte| (byte % 251) as u8).collect()
}

/// The lengths of the received bodies, or why a request failed.
type Got = Vec<Result<usize, String>>;

/// Waits for one response.
struct Asker<O>(Future<Result<rotor::http::client::Fetched, rotor::http::client::ClientError>>, O);

impl<O: 'static> Machine for Asker<O> {
    type Context = Got;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, Got>) -> Response<Self, Infallible> {
        let got = match self.0.take() {
            Outcome::Pending(future) => return Response::keep(Asker(future, self.1)),
            Outcome::Value(Ok(fetched)) if fetched.body == text(fetched.body.len()) => {
                Ok(fetched.body.len())
            }
            Outcome::Value(Ok(_)) => Err("another body".into()),
            Outcome::Value(Err(error)) => Err(rotor::with_causes(&error).to_string()),
            Outcome::Lost(_) => Err("the pool is gone".into()),
        };
        scope.push(got);
        Response::done()
    }
}

/// The worst networks here may be silent for longer than an honest peer on the internet.
fn patient() -> Limits {
    let long = Duration::from_secs(300);
    Limits::new().handshake_timeout(long).body_grace(long).response_grace(long)
}

type Serving<L> = LoopInstance<HttpAccept<Pages, L>, Smoltcp>;

fn serving<L: Listener>(
    device: MemoryDevice,
    clock: &ManualClock,
    over: impl FnOnce(SmoltcpTcpListener) -> L,
) -> Result<Serving<L>, BoxError> {
    let config = StackConfig::new().address(SERVER, 24).seed(1);
    let backend = Smoltcp::in_virtual_time(device, &config, clock)?;
    let mut creator = Loop::<HttpAccept<Pages, L>, _>::with_backend(backend, &Config::new())?;
    creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let address = SocketAddr::from((SERVER, 80));
            let listener = SmoltcpTcpListener::bind(&address, &ListenOptions::new(), scope)?;
            Ok(listen(
                over(listener),
                HttpSeed::<Pages>::new(page, ServerConfig::new().limits(patient())),
                scope,
            ))
        })
    })?;
    Ok(creator.instantiate(()))
}

/// Requests pages of these lengths concurrently, and returns what was received.
fn fetch<L: Listener, S: StreamSocket>(
    cable: MemoryConfig,
    over: impl FnOnce(SmoltcpTcpListener) -> L,
    target: S::Target,
    lengths: &[usize],
) -> Result<Got, BoxError>
where
    S::Target: Clone + Ord + fmt::Debug,
{
    let clock = ManualClock::new();
    let (left, right) = MemoryDevice::pair(&cable.clock(&clock))?;
    let mut serving = serving(left, &clock, over)?;
    let config = StackConfig::new().address(CLIENT, 24).seed(2);
    let backend = Smoltcp::in_virtual_time(right, &config, &clock)?;
    let limits = Config::new().exit(ExitPolicy::OnRequest);
    type Asking<S> =
        Compose2<PoolMachine<Fetch<Got>, ByAddress<S>>, Asker<<S as StreamSocket>::Target>>;
    let mut creator = Loop::<Asking<S>, _>::with_backend(backend, &limits)?;
    let pool: Pool<Fetch<Got>, S::Target> = creator.add_part(Compose2::A, |scope| {
        Ok(PoolMachine::new(PoolConfig::new(), ClientConfig::new().limits(patient()), scope))
    })?;
    let mut asking = creator.instantiate(Got::new());
    for len in lengths {
        asking.add_machine_with(|scope| {
            let fetch = Fetch::get(format!("/{len}")).host("server");
            let deadline = scope.now() + Duration::from_secs(600);
            match pool.ask_until(target.clone(), fetch, deadline, scope) {
                Ok(future) => Response::ok(Compose2::B(Asker(future, target.clone()))),
                Err(_) => Response::error("the pool is full"),
            }
        })?;
    }
    for _ in 0..1_000_000 {
        if asking.context().len() == lengths.len() {
            return Ok(asking.into_context());
        }
        serving.turn(None)?;
        asking.turn(None)?;
        assert!(clock.step(), "nothing happens any more");
    }
    Err(format!("it does not come to an end: {:?}", asking.context()).into())
}

/// Checks that the pages have these lengths, in any order.
fn assert_all(mut got: Got, lengths: &[usize]) {
    let mut all: Got = lengths.iter().copied().map(Ok).collect();
    let key = |one: &Result<usize, String>| one.clone().unwrap_or(0);
    got.sort_by_key(key);
    all.sort_by_key(key);
    assert_eq!(got, all);
}

const LENGTHS: [usize; 8] = [0, 1, 13, 1_460, 1_461, 100_000, 900_000, 13];

fn cables() -> [MemoryConfig; 3] {
    let slow = || MemoryConfig::new().latency(Duration::from_millis(5));
    [
        MemoryConfig::new(),
        slow().mtu(576).seed(1),
        slow().lost(50).doubled(20).delayed(100, Duration::from_millis(10)).corrupted(10).seed(2),
    ]
}

#[test]
fn pages_arrive_whole_over_any_network() -> Result<(), BoxError> {
    for cable in cables() {
        let got = fetch::<SmoltcpTcpListener, SmoltcpTcpStream>(
            cable,
            |listener| listener,
            (SERVER, 80).into(),
            &LENGTHS,
        )?;
        assert_all(got, &LENGTHS);
    }
    Ok(())
}

#[test]
fn pages_arrive_whole_over_tls_over_any_network() -> Result<(), BoxError> {
    let issuer = Issuer::new();
    for cable in cables() {
        let tls = issuer.server_with(|config| config.alpn(&[]));
        let target = TlsClient::new(TlsClientConfig::new(issuer.roots()))?
            .to(SocketAddr::from((SERVER, 80)), "localhost")?;
        let got = fetch::<TlsListener<SmoltcpTcpListener>, TlsStream<SmoltcpTcpStream>>(
            cable,
            |listener| tls.over(listener),
            target,
            &LENGTHS,
        )?;
        assert_all(got, &LENGTHS);
    }
    Ok(())
}

#[test]
fn a_loop_on_a_stack_can_be_handed_over() {
    fn is_send<T: Send>() {}
    is_send::<Smoltcp>();
    is_send::<SmoltcpHandle>();
    is_send::<SmoltcpTcpStream>();
    is_send::<HttpAccept<Pages, SmoltcpTcpListener>>();
}
