//! The test kit works as documented.

use std::time::Duration;

use rotor_core::{
    Config, EventSet, Future, FutureError, Infallible, Machine, Outcome, Response, Scope,
};
use rotor_stream::testing::{ScriptedListener, ScriptedSocket, TestLoop, listener};
use rotor_stream::{Accept, AcceptConfig, Intent, Matched, Protocol, Stream, Transport};

/// Records a random number when it is made, and may have a deadline.
struct RandomRecorder;

impl RandomRecorder {
    fn begin(until: Option<Duration>, scope: &mut Scope<'_, Vec<u64>>) -> Response<RandomRecorder> {
        let number = scope.random_u64();
        scope.push(number);
        Response::ok(RandomRecorder).deadline_opt(until.map(|until| scope.now() + until))
    }
}

impl Machine for RandomRecorder {
    type Context = Vec<u64>;
    type Seed = Infallible;

    fn ready(self, _: EventSet, _: &mut Scope<'_, Vec<u64>>) -> Response<Self, Infallible> {
        Response::ok(self)
    }

    fn timeout(self, _: &mut Scope<'_, Vec<u64>>) -> Response<Self, Infallible> {
        Response::ok(self)
    }
}

#[test]
fn random_numbers_follow_the_seed_of_the_configuration() {
    let drawn = |config: Config| {
        let mut test = TestLoop::<RandomRecorder>::with_config(Vec::new(), config);
        test.add(|scope| RandomRecorder::begin(None, scope));
        test.context()[0]
    };
    let unnamed = drawn(Config::new());
    assert_eq!(unnamed, drawn(Config::new()), "always the same");
    let (seven, eight) = (drawn(Config::new().seed(7)), drawn(Config::new().seed(8)));
    assert_ne!(seven, eight);
    assert_eq!(seven, drawn(Config::new().seed(7)));
}

#[test]
fn advance_to_deadline_waits_only_for_deadlines_of_machines() {
    let mut test = TestLoop::<RandomRecorder>::new(Vec::new());
    test.add(|scope| RandomRecorder::begin(Some(Duration::from_millis(2_500)), scope));
    test.instance().every(Duration::from_secs(1), |_, scope| scope.push(0));
    let begun = test.world().now();
    let fired = test.advance_to_deadline().expect("it has one");
    assert_eq!((fired - begun, test.context().len()), (Duration::from_millis(2_500), 1 + 2));
    assert_eq!(test.advance_to_deadline(), None);
    assert_eq!(test.world().now(), fired);
}

/// Offloads work, and records what became of it.
enum Offloading {
    Idle,
    Waiting(Future<&'static str>),
}

impl Machine for Offloading {
    type Context = Vec<Result<&'static str, FutureError>>;
    type Seed = Infallible;

    fn timeout(self, scope: &mut Scope<'_, Self::Context>) -> Response<Self> {
        match scope.offload(|| "done") {
            Ok(future) => Response::ok(Offloading::Waiting(future)),
            Err(_full) => Response::error("refused"),
        }
    }

    fn wakeup(self, scope: &mut Scope<'_, Self::Context>) -> Response<Self> {
        let Offloading::Waiting(future) = self else { return Response::keep(self) };
        match future.take() {
            Outcome::Pending(future) => return Response::keep(Offloading::Waiting(future)),
            Outcome::Value(value) => scope.push(Ok(value)),
            Outcome::Lost(lost) => scope.push(Err(lost)),
        }
        Response::done()
    }
}

#[test]
fn offloaded_work_runs_before_the_loop_settles_or_is_refused_as_asked() {
    let mut test = TestLoop::<Offloading>::new(Vec::new());
    let begun = test.world().now();
    for _ in 0..2 {
        test.add(|scope| Response::ok(Offloading::Idle).deadline(scope.now()));
    }
    assert_eq!(*test.context(), [Ok("done"), Ok("done")]);
    assert_eq!(test.world().now(), begun, "it takes no time");

    test.world().refuse_jobs(true);
    test.add(|scope| Response::ok(Offloading::Idle).deadline(scope.now()));
    assert_eq!((test.context().len(), test.failures()), (2, vec!["refused".to_owned()]));
}

/// Records its peer's address.
struct PeerAddressRecorder;

impl Protocol for PeerAddressRecorder {
    type Context = Vec<Option<std::net::SocketAddr>>;
    type Seed = ();

    fn create(
        _: (),
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Intent<Self> {
        scope.push(transport.peer_address());
        Intent::of(PeerAddressRecorder).bytes(1).no_deadline()
    }

    fn bytes_read(
        self,
        _: Matched,
        _: &mut Transport<'_>,
        _: &mut Scope<'_, Self::Context>,
    ) -> Intent<Self> {
        Intent::done()
    }
}

#[test]
fn connect_from_sets_the_peer_address() {
    type Server = Accept<Stream<PeerAddressRecorder, ScriptedSocket>, ScriptedListener>;
    let mut test = TestLoop::<Server>::new(Vec::new());
    let (listener, door) = listener(test.world());
    test.add(|scope| Accept::listen(listener, (), AcceptConfig::new(), scope));
    let address = std::net::SocketAddr::from(([192, 0, 2, 1], 40_000));
    let _peers = [door.connect_from(address), door.connect()];
    test.settle();
    assert_eq!(*test.context(), [Some(address), None]);
}
