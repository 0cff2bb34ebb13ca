//! The bare loop: mio and a vector.

use std::io::{ErrorKind, Read, Write};

use mio::event::Source;
use mio::unix::pipe::{self, Receiver, Sender};
use mio::{Events, Interest, Poll, Token};

use super::Brigade;

/// As many events as rotor's loop takes in one wait.
const EVENTS_MAX: usize = 1_024;

/// Members that are joined by pipes.
pub(crate) type Pipes = Joined<Receiver, Sender>;

/// The members, each with something to read from and to write to.
pub(crate) struct Joined<R, W> {
    poll: Poll,
    events: Events,
    members: Vec<(R, W)>,
}

impl Pipes {
    pub(crate) fn new(members: usize) -> Pipes {
        Joined::of(ring(members))
    }
}

impl<R: Source + Read, W: Write> Joined<R, W> {
    pub(crate) fn of(ends: Vec<(R, W)>) -> Joined<R, W> {
        let poll = Poll::new().expect("a poll");
        let members: Vec<_> = ends
            .into_iter()
            .enumerate()
            .map(|(index, (mut input, output))| {
                let registered =
                    poll.registry().register(&mut input, Token(index), Interest::READABLE);
                registered.expect("it can be waited for");
                (input, output)
            })
            .collect();
        Joined { poll, events: Events::with_capacity(EVENTS_MAX), members }
    }
}

impl<R: Source + Read, W: Write> Brigade for Joined<R, W> {
    fn hops(&mut self, hops: u64) {
        let mut left = hops;
        self.members[0].1.write_all(&[1]).expect("there is room");
        loop {
            self.poll.poll(&mut self.events, None).expect("it waits");
            for event in &self.events {
                let (input, output) = &mut self.members[event.token().0];
                // Read with one call: a short read has emptied it.
                let mut bytes = [0; 8];
                match input.read(&mut bytes) {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                    Err(error) => panic!("a pipe broke: {error}"),
                }
                left -= 1;
                if left == 0 {
                    return;
                }
                output.write_all(&[1]).expect("there is room");
            }
        }
    }
}

/// Makes the pipes: the first member writes to the second one, the last to the first.
pub(crate) fn ring(members: usize) -> Vec<(Receiver, Sender)> {
    let (outputs, mut inputs): (Vec<Sender>, Vec<Receiver>) =
        (0..members).map(|_| pipe::new().expect("there are descriptors")).unzip();
    inputs.rotate_right(1);
    inputs.into_iter().zip(outputs).collect()
}
