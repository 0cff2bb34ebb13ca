//! `LastMachines`: the machines that end last in a drain, because other machines need them.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::token::Token;

/// The machines that end last in a drain. Each of them waits for all machines that are not in this
/// set.
#[derive(Default)]
pub(crate) struct LastMachines {
    tokens: Mutex<BTreeSet<Token>>,
}

impl LastMachines {
    /// Adds a machine, and returns how many there are.
    pub(crate) fn add(&self, token: Token) -> usize {
        let mut tokens = self.lock();
        tokens.insert(token);
        tokens.len()
    }

    pub(crate) fn remove(&self, token: Token) {
        self.lock().remove(&token);
    }

    pub(crate) fn contains(&self, token: Token) -> bool {
        self.lock().contains(&token)
    }

    /// Returns all of them, if there are exactly `count`.
    pub(crate) fn all(&self, count: usize) -> Option<Vec<Token>> {
        let tokens = self.lock();
        // Each is removed when it ends, so equal numbers mean that no other machine is left.
        (tokens.len() == count).then(|| tokens.iter().copied().collect())
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Token>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
