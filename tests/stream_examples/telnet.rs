//! The client on standard input. Here its input is a channel and its output a vector.

#[path = "../../examples/telnet/machine.rs"]
mod machine;

use std::io::{self, ErrorKind};
use std::sync::mpsc::{Receiver, Sender, channel};

use machine::{Telnet, Terminal};
use rotor::Notifier;
use rotor::stream::testing::Driver;

use crate::cuts;

struct Console {
    typed: Receiver<Vec<u8>>,
    shown: Vec<u8>,
    is_closed: bool,
    failure: Option<String>,
}

impl Terminal for Console {
    fn typed(&mut self) -> &mut Receiver<Vec<u8>> {
        &mut self.typed
    }

    fn show(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_closed {
            return Err(ErrorKind::BrokenPipe.into());
        }
        self.shown.extend_from_slice(bytes);
        Ok(())
    }

    fn failed(&mut self, why: String) {
        self.failure = Some(why);
    }

    fn connected(&mut self, _: Notifier) {}
}

fn telnet() -> (Driver<Telnet<Console>>, Sender<Vec<u8>>) {
    let (typing, typed) = channel();
    let console = Console { typed, shown: Vec::new(), is_closed: false, failure: None };
    (Driver::new((), console), typing)
}

#[test]
fn input_and_output_do_not_depend_on_how_they_are_split() {
    let (typed, said): (&[u8], &[u8]) = (b"one\ntwo\nhalf", b"welcome\n\xff\0anything");
    for write_max in cuts::WRITES {
        for (pieces_typed, pieces_said) in cuts::splits(typed).zip(cuts::splits(said)) {
            let (mut driver, typing) = telnet();
            driver.limit_writes(write_max);
            for at in 0..pieces_typed.len().max(pieces_said.len()) {
                if let Some(piece) = pieces_typed.get(at) {
                    typing.send(piece.to_vec()).expect("it is there");
                    driver.wakeup();
                }
                if let Some(piece) = pieces_said.get(at) {
                    driver.send(piece);
                }
            }
            assert_eq!(driver.take_received(), typed);
            assert!(!driver.peer().is_ended());
            drop(typing);
            driver.wakeup();
            assert!(driver.peer().is_ended() && driver.is_alive(), "the server may still speak");
            driver.send(b" and bye");
            driver.end();
            assert_eq!(driver.context().shown, [said, b" and bye"].concat());
            assert!(!driver.is_alive() && driver.failures().is_empty());
            assert_eq!(driver.context().failure, None);
        }
    }
}

#[test]
fn a_large_input_is_sent_whole_and_then_its_end() {
    // Around the number of lines that one event passes on.
    for lines in [63, 64, 65, 128, 1000] {
        let (mut driver, typing) = telnet();
        driver.limit_room(10);
        let text: Vec<String> = (0..lines).map(|number| format!("line {number}\n")).collect();
        for line in &text {
            typing.send(line.clone().into_bytes()).expect("it is there");
        }
        drop(typing);
        driver.wakeup();
        let mut received = driver.take_received();
        while !driver.peer().is_ended() {
            driver.make_room(1000);
            let taken = driver.take_received();
            assert!(!taken.is_empty() || driver.peer().is_ended(), "it stands still");
            received.extend(taken);
        }
        assert!(received == text.concat().into_bytes(), "{lines} lines");
    }
}

#[test]
fn a_broken_connection_is_a_failure_and_an_ended_one_is_not() {
    let (mut driver, _typing) = telnet();
    driver.peer().send(b"last words");
    driver.reset();
    assert_eq!(driver.context().shown, b"last words");
    assert!(driver.context().failure.as_deref().is_some_and(|why| why.contains("reset")));
    let (mut driver, _typing) = telnet();
    driver.end();
    assert_eq!((driver.is_alive(), &driver.context().failure), (false, &None));
}

#[test]
fn the_connection_ends_when_output_is_closed() {
    let (mut driver, _typing) = telnet();
    driver.context_mut().is_closed = true;
    driver.send(b"who reads this?");
    assert!(driver.peer().is_ended());
}
