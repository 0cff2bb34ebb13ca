//! A value registered with `at_end` returns to the context exactly once, at every end that a
//! protocol can have, and holds what its owner last wrote to it.

use std::time::Duration;

use rotor_core::{Config, Infallible, Loop, Machine, Response, ReturnOnDrop, Scope, Time};
use rotor_stream::testing::{
    Driver, Memory, Peer, ScriptedListener, ScriptedSocket, TestLoop, World, listener, pair,
};
use rotor_stream::{
    Accept, AcceptConfig, Exception, Fatal, Intent, Matched, Protocol, Stream, Transport,
};

const MINUTE: Duration = Duration::from_secs(60);

/// The last reason written by each protocol that has ended, in order.
type EndReasons = Vec<&'static str>;

/// Does what the letter that it reads says.
struct LetterProtocol(ReturnOnDrop<&'static str, EndReasons>);

impl Protocol for LetterProtocol {
    type Context = EndReasons;
    type Seed = ();

    fn create(_: (), _: &mut Transport<'_>, scope: &mut Scope<'_, EndReasons>) -> Intent<Self> {
        let why = scope.at_end("nothing said", EndReasons::push);
        Intent::of(LetterProtocol(why)).bytes(1).deadline(scope.now() + MINUTE)
    }

    fn bytes_read(
        mut self,
        matched: Matched,
        transport: &mut Transport<'_>,
        _: &mut Scope<'_, EndReasons>,
    ) -> Intent<Self> {
        let letter = transport.input[0];
        matched.consume(transport.input);
        match letter {
            b'd' => {
                *self.0 = "done";
                Intent::done()
            }
            b'f' => {
                *self.0 = "failed";
                Intent::error("as it was asked to")
            }
            b'p' => panic!("as it was asked to"),
            b't' => {
                self.0.into_inner();
                Intent::done()
            }
            _ => Intent::of(self).keep().keep_deadline(),
        }
    }

    fn timeout(mut self, _: &mut Transport<'_>, _: &mut Scope<'_, EndReasons>) -> Intent<Self> {
        *self.0 = "timeout";
        Intent::done()
    }

    fn exception(
        mut self,
        exception: Exception,
        _: &mut Transport<'_>,
        _: &mut Scope<'_, EndReasons>,
    ) -> Intent<Self> {
        *self.0 = match exception {
            Exception::EndOfStream => "end of stream",
            _ => "exception",
        };
        Intent::done()
    }

    fn fatal(mut self, _: Fatal, _: &mut Scope<'_, EndReasons>) {
        *self.0 = "fatal";
    }

    fn draining(
        mut self,
        _: Time,
        _: &mut Transport<'_>,
        _: &mut Scope<'_, EndReasons>,
    ) -> Intent<Self> {
        *self.0 = "draining";
        Intent::done()
    }

    fn idle(&self, input: &[u8]) -> Option<Time> {
        input.is_empty().then_some(Time::ZERO)
    }
}

/// Causes one kind of end.
type Trigger = fn(&mut Driver<LetterProtocol>);

#[test]
fn an_at_end_value_is_returned_once_at_every_end() {
    let table: [(&str, Trigger, &[&str]); 10] = [
        ("done", |driver| driver.send(b"d"), &["done"]),
        ("an error", |driver| driver.send(b"f"), &["failed"]),
        ("a panic", |driver| driver.send(b"p"), &["nothing said"]),
        ("its deadline", |driver| driver.advance(MINUTE), &["timeout"]),
        ("the peer's end", |driver| driver.end(), &["end of stream"]),
        ("a reset", |driver| driver.reset(), &["fatal"]),
        ("a drain", |driver| driver.drain(MINUTE), &["draining"]),
        (
            "a drain without time",
            |driver| {
                driver.send(b".");
                driver.drain(Duration::ZERO);
            },
            &["draining"],
        ),
        ("nothing at all", |driver| driver.send(b"."), &[]),
        ("an end without what was taken back", |driver| driver.send(b"t"), &[]),
    ];
    for (end, trigger, expected) in table {
        let mut driver = Driver::<LetterProtocol>::new((), EndReasons::new());
        trigger(&mut driver);
        assert_eq!(driver.context(), expected, "by {end}");
    }
}

type Server = Accept<Stream<LetterProtocol, ScriptedSocket>, ScriptedListener>;

fn serve(machines_max: usize) -> (TestLoop<Server>, impl Fn() -> Peer) {
    let config = Config::new().machines_max(machines_max);
    let mut test = TestLoop::with_config(EndReasons::new(), config);
    let (listener, door) = listener(test.world());
    test.add(|scope| Accept::listen(listener, (), AcceptConfig::new(), scope));
    (test, move || door.connect())
}

#[test]
fn a_connection_closed_to_make_room_returns_its_value() {
    let (mut test, connect) = serve(2);
    let _first = connect();
    test.settle();
    test.advance(MINUTE / 2);
    let _second = connect();
    test.settle();
    assert_eq!(test.context(), &["fatal"]);
}

#[test]
fn values_of_machines_dropped_with_their_loop_reach_its_context() {
    let creator = Loop::with_backend(Memory::new(&World::new()), &Config::new());
    let creator: Loop<Holder, Memory> = creator.expect("a loop in memory can be made");
    let mut instance = creator.instantiate(EndReasons::new());
    for why in ["first", "second"] {
        let made = instance.add_machine_with(|scope: &mut Scope<'_, EndReasons>| {
            Response::ok(Holder(scope.at_end(why, EndReasons::push)))
        });
        made.expect("there is room");
    }
    assert_eq!(instance.into_context(), ["first", "second"]);
}

/// Holds its value and nothing else.
struct Holder(
    #[expect(dead_code, reason = "it is dropped")] ReturnOnDrop<&'static str, EndReasons>,
);

impl Machine for Holder {
    type Context = EndReasons;
    type Seed = Infallible;
}

#[test]
fn a_finished_drain_has_returned_every_value() {
    let mut test = TestLoop::<Stream<LetterProtocol, ScriptedSocket>>::new(EndReasons::new());
    for _ in 0..3 {
        let (socket, _gone) = pair(test.world());
        test.add(|scope| Stream::connected(socket, (), scope));
    }
    test.drain(Duration::ZERO);
    assert_eq!(test.context().len(), 3);
}

#[test]
fn a_panic_in_the_function_affects_no_other_value() {
    let mut test = TestLoop::<Holder>::new(EndReasons::new());
    for end in
        [(|_, _| panic!("in the function")) as fn(&mut EndReasons, &'static str), EndReasons::push]
    {
        let made = test.instance().add_machine_with(|scope: &mut Scope<'_, EndReasons>| {
            drop(scope.at_end("well", end));
            Response::<Holder>::done()
        });
        assert!(made.is_err(), "it ended at once");
    }
    test.settle();
    assert_eq!(test.context(), &["well"]);
}
