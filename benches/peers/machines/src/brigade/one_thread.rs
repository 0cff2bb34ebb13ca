//! One thread that goes from pipe to pipe: what the reads and writes of a brigade cost alone, with
//! nobody to be told or woken.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};

use super::Brigade;

pub(crate) struct Pipes {
    members: Vec<(PipeReader, PipeWriter)>,
    /// Whose turn is next.
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
            // As much room as the others have.
            let mut bytes = [0; 8];
            let count = self.members[self.at].0.read(&mut bytes).expect("it is a pipe");
            assert_eq!(count, 1, "the byte is there");
        }
    }
}
