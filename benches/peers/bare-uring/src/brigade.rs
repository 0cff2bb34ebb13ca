//! A bucket brigade: members in a ring of sockets, each of which sends on what it receives.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use crate::config::UringConfig;
use crate::inbox::Lender;
use crate::key::{Id, Kind};
use crate::ring::{Completion, Payload, Ring, Wait};
use crate::slots::Slots;

/// The members, each with a socket to read from and one to write to.
pub struct Joined {
    ring: Ring,
    members: Slots<(UnixStream, UnixStream)>,
    first: Option<Id>,
    /// Buffers that were sent and can be used again.
    spare: Vec<Vec<u8>>,
}

impl Joined {
    /// Makes the members from their sockets.
    ///
    /// # Errors
    ///
    /// The system has no io_uring, or refuses it.
    pub fn of(ends: Vec<(UnixStream, UnixStream)>) -> io::Result<Joined> {
        let ring = Ring::open(&UringConfig::new())?;
        let mut joined = Joined { ring, members: Slots::new(), first: None, spare: Vec::new() };
        for ends in ends {
            let id = joined.members.insert(ends);
            joined.first.get_or_insert(id);
            joined.receive(id);
        }
        Ok(joined)
    }

    /// Passes the byte on for this many hops.
    ///
    /// # Panics
    ///
    /// If a socket fails.
    pub fn hops(&mut self, hops: u64) {
        let mut left = hops;
        self.pass_on(self.first.expect("there are members"));
        while left > 0 {
            self.ring.enter(Wait::Forever).expect("it waits");
            while let Some(completion) = self.ring.next_completion() {
                let Some(Completion { key, result, is_last, payload }) = completion else {
                    continue;
                };
                match payload {
                    Payload::Piece(piece) => {
                        self.ring.release(piece);
                        left -= 1;
                        if left > 0 {
                            self.pass_on(key.id());
                        }
                    }
                    Payload::Memory(memory) => self.spare.push(memory),
                    Payload::Nothing => assert!(result >= 0, "a socket broke: {result}"),
                }
                if is_last && key.kind() == Kind::Receive {
                    self.receive(key.id());
                }
            }
        }
    }

    fn receive(&mut self, id: Id) {
        let Some((input, _)) = self.members.get_mut(id) else { return };
        self.ring.receive(input.as_fd(), id);
    }

    fn pass_on(&mut self, id: Id) {
        let Some((_, output)) = self.members.get_mut(id) else { return };
        let mut memory = self.spare.pop().unwrap_or_default();
        memory.clear();
        memory.push(1);
        self.ring.send(output.as_fd(), memory, id);
    }
}
