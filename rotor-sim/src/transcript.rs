//! `Transcript`: the result of a script.

use std::sync::{Arc, Mutex, PoisonError};

/// The result of a script, so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Transcript {
    /// The bytes that the last attempt received.
    pub received: Vec<u8>,
    /// How many attempts have begun.
    pub attempts: u32,
    /// How the script ended; `None` until then.
    pub outcome: Option<Result<(), String>>,
}

/// Reads the transcript of a client from outside its loop.
#[derive(Clone, Debug, Default)]
pub struct TranscriptHandle(Arc<Mutex<Transcript>>);

impl TranscriptHandle {
    /// Returns the transcript as it is now.
    pub fn read(&self) -> Transcript {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether the script was played to its end. If the client has
    /// [ended](TranscriptHandle::has_ended) otherwise, this stays false;
    /// [`read`](TranscriptHandle::read) then returns the reason.
    pub fn is_done(&self) -> bool {
        matches!(self.0.lock().unwrap_or_else(PoisonError::into_inner).outcome, Some(Ok(())))
    }

    /// Returns whether the client has ended, successfully or not.
    pub fn has_ended(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).outcome.is_some()
    }

    pub(crate) fn update(&self, f: impl FnOnce(&mut Transcript)) {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
