//! What tests of machines ask of an answer.

use super::{Answer, BoxError, Response};

/// For tests of machines: each panics, with the answer that was given instead, if it is another
/// one.
impl<M, N> Response<M, N> {
    /// The machine that goes on.
    ///
    /// # Panics
    ///
    /// If the machine does not go on, or spawns.
    #[track_caller]
    pub fn expect_machine(self) -> M {
        match self.answer {
            Answer::Continue(machine) | Answer::Again(machine) => machine,
            other => panic!("expected a machine that goes on, got {other:?}"),
        }
    }

    /// The machine that goes on, and the seed that it spawns.
    ///
    /// # Panics
    ///
    /// If the answer is not `spawn`.
    #[track_caller]
    pub fn expect_spawn(self) -> (M, N) {
        match self.answer {
            Answer::Spawn(machine, seed) => (machine, seed),
            other => panic!("expected a spawn, got {other:?}"),
        }
    }

    /// Nothing, when the machine has ended well.
    ///
    /// # Panics
    ///
    /// If the answer is not `done`.
    #[track_caller]
    pub fn expect_done(self) {
        match self.answer {
            Answer::Done => {}
            other => panic!("expected the end, got {other:?}"),
        }
    }

    /// The error that ended the machine.
    ///
    /// # Panics
    ///
    /// If the answer is not `error`.
    #[track_caller]
    pub fn expect_error(self) -> BoxError {
        match self.answer {
            Answer::Error(error) => error,
            other => panic!("expected an error, got {other:?}"),
        }
    }
}
