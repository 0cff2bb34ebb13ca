//! One thread that goes from pipe to pipe: the cost of a brigade's reads and writes alone, without
//! events or wake-ups.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};

use super::Brigade;

pub(crate) struct Pipes {
    members: Vec<(PipeReader, PipeWriter)>,
    /// The index of the next pipe.
    at: usize,
}

impl Pipes {
    pub(crate) fn new(members: usize) -> Pipes {
        let (mut inputs, outputs): (Vec<_>, Vec<_>) =
            (0..members).map(|_| pipe().expect("there are descriptors")).unzip();
        inputs.rotate_right(1);
        Pipes { members: inputs.into_iter().zip(outputs).collect(), at: 0 }
    }
}

impl Brigade for Pipes {
    fn hops(&mut self, hops: u64) {
        for _ in 0..hops {
            self.members[self.at].1.write_all(&[1]).expect("there is room");
            self.at = (self.at + 1) % self.members.len();
            // The same buffer size as in the others.
            let mut bytes = [0; 8];
            let count = self.members[self.at].0.read(&mut bytes).expect("it is a pipe");
            assert_eq!(count, 1, "the byte is there");
        }
    }
}
