//! The Redis client, and how it shows replies.

#[path = "../../examples/redis_client/machine.rs"]
mod machine;

use std::collections::VecDeque;
use std::time::Duration;

use machine::{ANSWER_TIME_MAX, Command, CommandSource, PIPELINE_MAX, Redis};
use rotor::Notifier;
use rotor::stream::testing::Driver;

use crate::cuts;
use crate::resp::{LENGTH_MAX, Parsed, REPLY_BYTES_MAX, Reader, Reply, write_command};

#[derive(Default)]
struct Console {
    commands: VecDeque<&'static str>,
    is_over: bool,
    waiting: usize,
    replies: Vec<String>,
    lost: Vec<String>,
}

impl CommandSource for Console {
    fn connected(&mut self, _: Notifier) {}

    fn command(&mut self) -> Command {
        let Some(command) = self.commands.pop_front() else {
            return if self.is_over { Command::End } else { Command::NoneYet };
        };
        self.waiting += 1;
        Command::Words(command.split(' ').map(|word| word.as_bytes().to_vec()).collect())
    }

    fn answered(&mut self, reply: Reply) {
        self.waiting -= 1;
        self.replies.push(reply.to_string());
    }

    fn lost(&mut self, why: String) {
        self.waiting = 0;
        self.lost.push(why);
    }

    fn unanswered_count(&self) -> usize {
        self.waiting
    }
}

fn asking(commands: impl IntoIterator<Item = &'static str>) -> Driver<Redis<Console>> {
    Driver::new((), Console { commands: commands.into_iter().collect(), ..Console::default() })
}

const ANSWERS: &[u8] =
    b"+OK\r\n-ERR no\r\n:-42\r\n$5\r\na\r\n\0b\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n*3\r\n:1\r\n*2\r\n+a\r\n$-1\r\n$1\r\nz\r\n";

const SHOWN: [&str; 9] = [
    "OK",
    "(error) ERR no",
    "(integer) -42",
    "\"a\\r\\n\\x00b\"",
    "\"\"",
    "(nil)",
    "(nil)",
    "[]",
    "[(integer) 1, [a, (nil)], \"z\"]",
];

#[test]
fn answers_do_not_depend_on_how_reads_split_them() {
    for write_max in cuts::WRITES {
        for pieces in cuts::splits(ANSWERS) {
            let mut driver = asking(["GET a"; SHOWN.len()]);
            driver.limit_writes(write_max);
            for piece in &pieces {
                driver.send(piece);
            }
            assert_eq!(driver.context().replies, SHOWN, "{pieces:?}");
            assert!(driver.is_alive() && driver.failures().is_empty());
            driver.end();
            assert_eq!(driver.context().lost, ["the peer has ended the stream"]);
        }
    }
}

#[test]
fn commands_do_not_depend_on_how_writes_split_them() {
    for write_max in cuts::WRITES {
        let mut driver = asking([]);
        driver.limit_writes(write_max);
        driver.context_mut().commands.extend(["SET key value", "PING"]);
        driver.wakeup();
        let expected = b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n*1\r\n$4\r\nPING\r\n";
        assert_eq!(driver.take_received(), expected);
    }
    let mut bytes = Vec::new();
    write_command(&mut bytes, &[b"a\r\n", b"", &[0xff]]);
    assert_eq!(bytes, b"*3\r\n$3\r\na\r\n\r\n$0\r\n\r\n$1\r\n\xff\r\n");
}

#[test]
fn no_more_commands_are_in_flight_than_the_pipeline_holds() {
    let one = b"*1\r\n$4\r\nPING\r\n";
    let mut driver = asking(["PING"; PIPELINE_MAX + 10]);
    assert_eq!(driver.take_received().len(), PIPELINE_MAX * one.len());
    driver.wakeup();
    assert_eq!(driver.take_received(), b"");
    driver.send(b"+PONG\r\n+PONG\r\n");
    assert_eq!(driver.take_received(), one.repeat(2));
    assert_eq!(driver.context().waiting, PIPELINE_MAX);
}

#[test]
fn the_connection_ends_with_the_last_answer_when_input_is_over() {
    let mut driver = asking(["PING", "PING"]);
    driver.context_mut().is_over = true;
    driver.send(b"+PONG\r\n");
    assert!(driver.is_alive());
    driver.send(b"+PONG\r\n");
    assert!(driver.peer().is_ended());
    assert!(driver.context().lost.is_empty() && driver.failures().is_empty());
}

#[test]
fn a_drain_sends_no_more_commands_and_waits_for_pending_answers() {
    let mut driver = asking(["PING", "PING"]);
    driver.take_received();
    driver.context_mut().commands.extend(["PING"]);
    driver.drain(Duration::from_secs(10));
    driver.send(b"+PONG\r\n");
    assert!(driver.is_alive());
    driver.send(b"+PONG\r\n");
    assert_eq!((driver.take_received(), driver.context().replies.len()), (Vec::new(), 2));
    assert!(driver.peer().is_ended() && driver.failures().is_empty());
}

#[test]
fn an_answer_has_a_deadline_and_an_idle_connection_has_none() {
    let mut driver = asking(["PING"]);
    driver.advance(ANSWER_TIME_MAX - Duration::from_millis(1));
    driver.send(b"+PO");
    driver.advance(Duration::from_millis(1));
    assert_eq!(driver.context().lost, ["the server does not answer"]);
    assert!(!driver.is_alive());
    let mut driver = asking(["PING"]);
    driver.send(b"+PONG\r\n");
    driver.advance(Duration::from_secs(100_000));
    assert!(driver.is_alive());
}

#[test]
fn a_malformed_answer_ends_the_connection_and_loses_pending_commands() {
    for malformed in
        ["HTTP/1.1 400\r\n", "\r\n", ":x\r\n", "$+1\r\n", "$-2\r\n", "*x\r\n", "$1\r\nab\r\n"]
    {
        let mut driver = asking(["PING", "PING"]);
        driver.send(b"+PONG\r\n");
        driver.send(malformed.as_bytes());
        assert_eq!(driver.context().replies, ["PONG"]);
        assert!(
            driver.context().lost[0].starts_with("the server does not speak RESP: "),
            "{malformed:?}"
        );
        assert_eq!((driver.is_alive(), driver.context().waiting), (false, 0));
        assert_eq!(driver.failures().len(), 1);
    }
    let mut driver = asking([]);
    driver.send(b"+I was not asked\r\n");
    assert_eq!(driver.failures(), ["the server answers what it was not asked"]);
}

/// What a reader returns for bytes that arrive in one piece.
fn parse(input: &[u8]) -> Parsed {
    Reader::default().read(input).1
}

#[test]
fn limits_are_exact_to_the_byte() {
    let bulk = |length: usize| format!("${length}\r\n").into_bytes();
    assert_eq!(parse(&bulk(LENGTH_MAX)), Parsed::Needs(bulk(LENGTH_MAX).len() + LENGTH_MAX + 2));
    assert!(matches!(parse(&bulk(LENGTH_MAX + 1)), Parsed::Malformed(_)));
    let array = |count: usize| format!("*{count}\r\n").into_bytes();
    assert!(matches!(parse(&array(LENGTH_MAX)), Parsed::Needs(_)));
    assert!(matches!(parse(&array(LENGTH_MAX + 1)), Parsed::Malformed(_)));
    let line = |length: usize| [b"+".to_vec(), vec![b'x'; length - 1]].concat();
    assert!(matches!(parse(&line(64 * 1024 - 1)), Parsed::Needs(_)));
    assert!(matches!(parse(&line(64 * 1024)), Parsed::Malformed(_)));
    let nested = |depth: usize| ["*1\r\n".repeat(depth), ":1\r\n".into()].concat().into_bytes();
    assert!(matches!(parse(&nested(8)), Parsed::Reply(..)));
    assert!(matches!(parse(&nested(9)), Parsed::Malformed(_)));
    // Two strings of the maximum length do not fit into one reply, because of the bytes around
    // them.
    let (mut input, half) =
        (array(2), [bulk(LENGTH_MAX), vec![b'x'; LENGTH_MAX], b"\r\n".to_vec()].concat());
    input.extend_from_slice(&half);
    input.extend_from_slice(&half);
    assert!(input.len() > REPLY_BYTES_MAX && matches!(parse(&input), Parsed::Malformed(_)));
}

/// An array of many elements, one byte at a time: parsed elements are not parsed again.
#[test]
fn a_dripped_array_is_consumed_from_the_input_as_it_arrives() {
    let array = ["*1000\r\n".to_owned(), ":7\r\n".repeat(1000)].concat().into_bytes();
    let (mut reader, mut unread, mut longest) = (Reader::default(), Vec::new(), 0);
    for (at, byte) in array.iter().enumerate() {
        unread.push(*byte);
        longest = longest.max(unread.len());
        let (taken, parsed) = reader.read(&unread);
        unread.drain(..taken);
        match parsed {
            Parsed::Needs(_) => assert!(at + 1 < array.len()),
            Parsed::Reply(reply) => {
                assert_eq!(
                    (at + 1, reply),
                    (array.len(), Reply::Array(vec![Reply::Integer(7); 1000]))
                );
            }
            Parsed::Malformed(why) => panic!("{why}"),
        }
    }
    assert!(unread.is_empty() && longest <= 7, "{longest}");
}
