//! A pool that connects by name: its connections use the resolver of the context.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rotor_core::{Calls, Future, Infallible, Machine, Outcome, Response, Scope, rotor_compose};
use rotor_http::client::{
    ByName, ClientConfig, ClientResult, Connector, Fault, Fetch, Pool, PoolConfig, PoolMachine,
};
use rotor_stream::testing::{Scripted, Target, TestLoop};
use rotor_stream::{
    AddressService, Destination, HasResolver, Host, HostName, Resolution, ResolveError,
    ResolveResult,
};

#[derive(Default)]
struct NamesContext {
    addresses: Option<AddressService>,
    asked: Vec<String>,
    outcomes: Vec<String>,
    faults: Vec<Fault>,
}

impl HasResolver for NamesContext {
    fn addresses(&self) -> &AddressService {
        self.addresses.as_ref().expect("it is made first")
    }
}

/// Knows one host, at 10.0.0.1.
struct Resolver(Calls<HostName, ResolveResult>);

/// An error as programs print it.
fn error_chain(error: &dyn Error) -> String {
    error
        .source()
        .map_or_else(|| error.to_string(), |cause| format!("{error}: {}", error_chain(cause)))
}

struct Requester(Option<Future<ClientResult<Fetch<NamesContext>>>>);

impl Machine for Resolver {
    type Context = NamesContext;
    type Seed = Infallible;

    fn wakeup(mut self, scope: &mut Scope<'_, NamesContext>) -> Response<Self, Infallible> {
        while let Some(call) = self.0.receive() {
            let name = call.request().to_string();
            let answer: ResolveResult = match name.as_str() {
                "known" => Ok([IpAddr::from([10, 0, 0, 1])].into()),
                "unknown" => Err(ResolveError::NotFound(Arc::new(std::fmt::Error))),
                _ => Err(ResolveError::Busy),
            };
            scope.asked.push(name);
            call.answer(answer).expect("a connection waits for it");
        }
        Response::keep(self)
    }
}

impl Machine for Requester {
    type Context = NamesContext;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, NamesContext>) -> Response<Self, Infallible> {
        match self.0.map(Future::take) {
            Some(Outcome::Pending(future)) => return Response::keep(Requester(Some(future))),
            Some(Outcome::Value(Ok(fetched))) => scope.outcomes.push(fetched.status.to_string()),
            Some(Outcome::Value(Err(error))) => {
                scope.faults.push(error.fault());
                assert!(!error.may_have_been_processed());
                scope.outcomes.push(error_chain(&error));
            }
            Some(Outcome::Lost(lost)) => scope.outcomes.push(lost.to_string()),
            None => {}
        }
        Response::done()
    }
}

rotor_compose! {
    enum Machines <NamesContext> {
        Pool(PoolMachine<Fetch<NamesContext>, ByName<Scripted<false>>>),
        Resolver(Resolver),
        Requester(Requester),
    }
}

fn ask(test: &mut TestLoop<Machines>, pool: &Pool<Fetch<NamesContext>, Host>, name: &'static str) {
    test.add(|scope| {
        let asked = pool.ask(Host::new(name, 80), Fetch::get("/").host(name), scope);
        Response::ok(Machines::Requester(Requester(Some(asked.expect("there is room")))))
    });
    test.settle();
}

#[test]
fn a_name_is_resolved_once_per_connection_and_fails_without_address() {
    let mut test = TestLoop::<Machines>::new(NamesContext::default());
    test.world().target(([10, 0, 0, 1], 80).into(), Target::Accepts);
    let (mut addresses, mut pool) = (None, None);
    test.add(|scope| {
        let (service, calls) = scope.create_service(8);
        addresses = Some(service);
        Response::ok(Machines::Resolver(Resolver(calls)))
    });
    test.context_mut().addresses = addresses;
    test.add(|scope| {
        let (handle, response) = PoolMachine::new(PoolConfig::new(), ClientConfig::new(), scope);
        pool = Some(handle);
        response.wrap(Machines::Pool)
    });
    let pool = pool.expect("the closure ran");
    ask(&mut test, &pool, "known");
    let peers = test.world().take_connections();
    for _ in 0..2 {
        assert!(peers[0].take_received().ends_with(b"\r\nHost: known\r\n\r\n"));
        peers[0].send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        test.settle();
        ask(&mut test, &pool, "known");
    }
    ask(&mut test, &pool, "unknown");
    ask(&mut test, &pool, "one too many");
    let NamesContext { asked, outcomes, faults, .. } = test.context();
    assert_eq!(*asked, ["known", "unknown", "one too many"]);
    let there_is_none = "could not connect to the server: cannot resolve: no such host: ";
    assert!(outcomes[2].starts_with(there_is_none), "{outcomes:?}");
    let too_many =
        "could not connect to the server: cannot resolve: too many lookups wait for the resolver";
    assert_eq!(
        (&outcomes[0], &outcomes[1], &*outcomes[3]),
        (&"200 OK".into(), &"200 OK".into(), too_many)
    );
    assert_eq!(*faults, [Fault::Network, Fault::Here]);
}

/// A server, and the protocols that connections to it offer.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct OfferingServer(Vec<&'static [u8]>);

impl Destination<Scripted<false>, NamesContext> for OfferingServer {
    fn may_agree_on(&self, protocol: &[u8]) -> bool {
        self.0.contains(&protocol)
    }

    fn without(self, protocol: &[u8]) -> Option<OfferingServer> {
        let left: Vec<_> = self.0.iter().copied().filter(|own| *own != protocol).collect();
        (left.len() < self.0.len() && !left.is_empty()).then_some(OfferingServer(left))
    }

    fn resolve(&self, _: &Scope<'_, NamesContext>) -> Resolution<SocketAddr> {
        Resolution::Known(([10, 0, 0, 1], 443).into())
    }
}

/// Otherwise a pool would open a connection for each waiting request, and could not fall back to
/// HTTP/1.1.
#[test]
fn a_pool_by_name_knows_which_protocols_its_servers_may_use() {
    type Connects = ByName<Scripted<false>, OfferingServer>;
    let http1 = || OfferingServer(vec![b"http/1.1"]);
    for (server, may_multiplex, without) in [
        (OfferingServer(vec![b"h2", b"http/1.1"]), true, Some(http1())),
        (http1(), false, None),
        (OfferingServer(vec![b"h2"]), true, None),
    ] {
        assert_eq!(<Connects as Connector<NamesContext>>::may_multiplex(&server), may_multiplex);
        assert_eq!(<Connects as Connector<NamesContext>>::without_http2(&server), without);
    }
}
