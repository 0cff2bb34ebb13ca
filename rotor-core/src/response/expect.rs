//! Assertions on a machine's answer, for tests.

use super::{Answer, BoxError, Response};

/// Assertions for tests of machines. Each of them panics if the answer is a different one, and
/// prints that answer.
impl<M, N> Response<M, N> {
    /// Returns the machine that goes on.
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

    /// Returns the machine that goes on, and the seed that it spawns.
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

    /// Checks that the machine has ended normally.
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

    /// Returns the error that ended the machine.
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
