//! `Transcript`: what became of a script.

use std::sync::{Arc, Mutex, PoisonError};

/// What became of a script.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Transcript {
    /// What the last attempt received.
    pub received: Vec<u8>,
    /// How many attempts were begun.
    pub attempts: u32,
    /// How it ended; `None` while it goes on.
    pub outcome: Option<Result<(), String>>,
}

/// Where the transcript of a client is read, from outside of its loop.
#[derive(Clone, Debug, Default)]
pub struct TranscriptHandle(Arc<Mutex<Transcript>>);

impl TranscriptHandle {
    /// The transcript as it is now.
    pub fn read(&self) -> Transcript {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the script was played to its end. It never is once the client has
    /// [ended](TranscriptHandle::has_ended) otherwise; [`read`](TranscriptHandle::read) says how it did.
    pub fn is_done(&self) -> bool {
        matches!(self.0.lock().unwrap_or_else(PoisonError::into_inner).outcome, Some(Ok(())))
    }

    /// Whether the client has ended, well or not.
    pub fn has_ended(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).outcome.is_some()
    }

    pub(crate) fn change(&self, f: impl FnOnce(&mut Transcript)) {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
