//! The pool of connections: who gets which answer, whatever the server does.

#[path = "../../examples/backend_pool/machine.rs"]
mod machine;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use machine::wire::{self, MESSAGE_BYTES_MAX};
use machine::{ANSWER_TIME_MAX, Answer, Connection, HasPool, NoAnswer, Pool, WAITING_MAX};
use rotor::stream::testing::{Peer, ScriptedSocket, Target, TestLoop};
use rotor::stream::{Persistent, PersistentConfig, PersistentSeed};
use rotor::{Config, Future, Infallible, Machine, Outcome, Response, Scope, rotor_compose};

use crate::cuts;

/// The context: the pool, and what came of the questions.
#[derive(Default)]
struct Site {
    pool: Pool,
    answers: Vec<(String, Answer)>,
    refused: usize,
}

impl HasPool for Site {
    fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }
}

/// Asks one question, and gives up at its deadline.
struct Asker {
    question: String,
    answer: Future<Answer>,
}

impl Machine for Asker {
    type Context = Site;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, Site>) -> Response<Self> {
        let Asker { question, answer } = self;
        let answer = match answer.take() {
            Outcome::Pending(answer) => return Response::keep(Asker { question, answer }),
            Outcome::Value(answer) => answer,
            Outcome::Lost(lost) => Err(NoAnswer::Lost(lost.to_string())),
        };
        scope.answers.push((question, answer));
        Response::done()
    }

    fn timeout(self, _: &mut Scope<'_, Site>) -> Response<Self> {
        Response::done()
    }
}

rotor_compose! {
    enum Parts <Site> {
        Asker(Asker),
        Connection(Persistent<Connection<Site>, ScriptedSocket>),
    }
}

const SERVER: ([u8; 4], u16) = ([10, 0, 0, 1], 7000);
const BACKOFF: Duration = Duration::from_millis(100);

/// How long an asker waits.
const PATIENCE: Duration = Duration::from_secs(10);

struct Test(TestLoop<Parts>);

impl Test {
    fn new(connections: usize) -> (Test, Vec<Peer>) {
        // A slot for each asker of a full queue.
        let config = Config::new().machines_max(2 * WAITING_MAX);
        let mut test = TestLoop::with_config(Site::default(), config);
        let server = SocketAddr::from(SERVER);
        test.world().target(server, Target::Accepts);
        for _ in 0..connections {
            let config = PersistentConfig::new().backoff_max(BACKOFF);
            let seed = PersistentSeed::new(server, ()).config(config);
            test.add(|scope| Persistent::new(seed, scope).wrap(Parts::Connection));
        }
        test.settle();
        let peers = test.world().take_connections();
        assert_eq!(peers.len(), connections);
        (Test(test), peers)
    }

    fn ask(&mut self, question: &str) {
        let refused_before = self.0.context().refused;
        let asking = self.0.instance().add_machine_with(|scope| {
            let Some(answer) = Pool::ask(question.into(), scope) else {
                scope.refused += 1;
                return Response::done();
            };
            let asker = Asker { question: question.into(), answer };
            Response::ok(Parts::Asker(asker)).deadline(scope.now() + PATIENCE)
        });
        assert_eq!(asking.is_err(), self.0.context().refused > refused_before);
        self.0.settle();
    }

    fn send(&mut self, peer: &Peer, bytes: &[u8]) {
        peer.send(bytes);
        self.0.settle();
    }

    /// Returns what was answered since the last call.
    fn answers(&mut self) -> Vec<(String, Answer)> {
        std::mem::take(&mut self.0.context_mut().answers)
    }

    /// Waits until lost connections are back.
    fn reconnected(&mut self) -> Vec<Peer> {
        self.0.advance(BACKOFF);
        self.0.world().take_connections()
    }
}

fn message(text: &str) -> Vec<u8> {
    let mut message = Vec::new();
    wire::write(&mut message, text.as_bytes()).expect("memory takes it");
    message
}

fn answered(question: &str, answer: &str) -> (String, Answer) {
    (question.into(), Ok(answer.into()))
}

#[test]
fn each_question_gets_its_answer_however_messages_are_split() {
    let answers = [message("ONE"), message(""), message("THREE")];
    for write_max in cuts::WRITES {
        for at in 0..3 {
            for pieces in cuts::splits(&answers[at]) {
                let (mut test, peers) = Test::new(1);
                peers[0].limit_writes(write_max);
                for (number, question) in ["one", "", "three"].into_iter().enumerate() {
                    test.ask(question);
                    assert_eq!(peers[0].take_received(), message(question));
                    match number == at {
                        true => pieces.iter().for_each(|piece| test.send(&peers[0], piece)),
                        false => test.send(&peers[0], &answers[number]),
                    }
                }
                let expected = [("one", "ONE"), ("", ""), ("three", "THREE")];
                assert_eq!(test.answers(), expected.map(|(asked, got)| answered(asked, got)));
                assert!(test.0.failures().is_empty());
            }
        }
    }
}

#[test]
fn a_connection_asks_one_question_at_a_time_and_the_oldest_first() {
    let (mut test, peers) = Test::new(2);
    for question in ["a", "b", "c", "d"] {
        test.ask(question);
    }
    let asked: Vec<_> = peers.iter().map(Peer::take_received).collect();
    assert_eq!(asked, [message("a"), message("b")]);
    test.send(&peers[1], &message("B"));
    assert_eq!(peers[1].take_received(), message("c"));
    assert_eq!(peers[0].take_received(), b"");
    test.send(&peers[0], &message("A"));
    assert_eq!(peers[0].take_received(), message("d"));
    assert_eq!(test.answers(), [answered("b", "B"), answered("a", "A")]);
}

#[test]
fn a_question_of_a_lost_connection_is_asked_once_more_and_not_a_third_time() {
    for loses in [Peer::reset, Peer::end] {
        let (mut test, peers) = Test::new(2);
        test.ask("a");
        assert_eq!(peers[0].take_received(), message("a"));
        // Half an answer changes nothing.
        test.send(&peers[0], b"\0\0");
        loses(&peers[0]);
        test.0.settle();
        assert_eq!(peers[1].take_received(), message("a"));
        assert_eq!(test.answers(), []);
        loses(&peers[1]);
        test.0.settle();
        let [(_, Err(NoAnswer::Lost(_)))] = &test.answers()[..] else { panic!("one failure") };
        assert_eq!(test.reconnected().len(), 2);
    }
}

#[test]
fn a_question_waits_until_a_connection_is_back() {
    let (mut test, peers) = Test::new(1);
    peers[0].end(); // while nothing is asked
    test.0.settle();
    assert!(test.0.failures().is_empty(), "{:?}", test.0.failures());
    test.ask("a");
    let peers = test.reconnected();
    assert_eq!(peers[0].take_received(), message("a"));
    test.send(&peers[0], &message("A"));
    assert_eq!(test.answers(), [answered("a", "A")]);
}

#[test]
fn a_question_that_wakes_a_connection_at_its_end_goes_to_another_one() {
    let (mut test, peers) = Test::new(2);
    // Both come in the same turn: the end, and the question.
    peers[0].end();
    test.ask("a");
    assert_eq!(peers[1].take_received(), message("a"));
}

#[test]
fn a_server_that_answers_and_then_closes_loses_no_question() {
    let (mut test, mut peers) = Test::new(2);
    for question in ["a", "b", "c", "d"] {
        test.ask(question);
    }
    for expected in [["a", "b"], ["c", "d"]] {
        for (peer, text) in peers.iter().zip(expected) {
            assert_eq!(peer.take_received(), message(text));
            peer.send(&message(text));
            peer.end();
        }
        test.0.settle();
        assert_eq!(test.answers(), expected.map(|text| answered(text, text)));
        for peer in &peers {
            assert_eq!(peer.take_received(), b"", "it has ended");
        }
        peers = test.reconnected();
    }
    assert!(test.0.failures().is_empty(), "{:?}", test.0.failures());
}

#[test]
fn an_answer_that_is_too_late_is_nobodys() {
    let (mut test, peers) = Test::new(1);
    test.ask("a");
    test.ask("b");
    test.0.advance(ANSWER_TIME_MAX);
    assert_eq!(test.answers(), [("a".into(), Err(NoAnswer::TooLate))]);
    assert!(peers[0].is_dropped());
    let peers = test.reconnected();
    assert_eq!(peers[0].take_received(), message("b"));
    test.send(&peers[0], &message("B"));
    assert_eq!(test.answers(), [answered("b", "B")]);
}

#[test]
fn bytes_that_nobody_has_asked_for_end_the_connection() {
    let one_and_a_half = [message("A"), message("B")[..5].to_vec()].concat();
    for (too_much, before) in
        [(one_and_a_half, 1), (message("B"), 0), (message("B")[..2].to_vec(), 0)]
    {
        let (mut test, peers) = Test::new(1);
        (0..before).for_each(|_| test.ask("a"));
        test.send(&peers[0], &too_much);
        test.ask("b");
        assert!(peers[0].is_dropped());
        let peers = test.reconnected();
        test.send(&peers[0], &message("right"));
        assert_eq!(test.answers().last(), Some(&answered("b", "right")));
    }
}

#[test]
fn an_answer_that_is_too_long_is_refused_before_it_has_arrived() {
    let longest = u32::try_from(MESSAGE_BYTES_MAX - 4).expect("it is small");
    for length in [longest + 1, u32::MAX] {
        let (mut test, peers) = Test::new(1);
        test.ask("a");
        test.send(&peers[0], &length.to_be_bytes());
        assert!(peers[0].is_dropped());
        let peers = test.reconnected();
        test.send(&peers[0], &message(&"x".repeat(longest as usize)));
        assert_eq!(test.answers(), [answered("a", &"x".repeat(longest as usize))]);
    }
}

#[test]
fn questions_beyond_the_limit_are_refused_until_askers_give_up() {
    let (mut test, peers) = Test::new(1);
    // The server is away, so no connection takes any question.
    test.0.world().target(SERVER.into(), Target::Fails(ErrorKind::ConnectionRefused));
    peers[0].end();
    test.0.settle();
    for _ in 0..WAITING_MAX + 2 {
        test.ask("a");
    }
    assert_eq!(test.0.context().refused, 2);
    test.0.advance(PATIENCE);
    for _ in 0..WAITING_MAX + 3 {
        test.ask("b");
    }
    assert_eq!(test.0.context().refused, 2 + 3);
    test.0.world().target(SERVER.into(), Target::Accepts);
    let peers = test.reconnected();
    assert_eq!(peers[0].take_received(), message("b"));
}

#[test]
fn a_question_whose_asker_has_gone_is_not_asked() {
    let (mut test, peers) = Test::new(1);
    peers[0].end();
    test.0.world().target(SERVER.into(), Target::Fails(ErrorKind::ConnectionRefused));
    test.ask("a");
    test.0.advance(PATIENCE);
    test.ask("b");
    test.0.world().target(SERVER.into(), Target::Accepts);
    let peers = test.reconnected();
    assert_eq!(peers[0].take_received(), message("b"));
}

#[test]
fn connections_end_last_in_a_drain() {
    let (mut test, peers) = Test::new(1);
    test.ask("a");
    test.0.drain(PATIENCE);
    test.0.settle();
    assert_eq!(peers[0].take_received(), message("a"));
    test.send(&peers[0], &message("A"));
    assert_eq!(test.answers(), [answered("a", "A")]);
    assert!(peers[0].is_ended());
}
