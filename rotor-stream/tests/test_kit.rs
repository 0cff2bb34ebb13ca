//! The test kit works as documented.

use std::time::Duration;

use rotor_core::{Config, EventSet, Infallible, Machine, Response, Scope};
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
