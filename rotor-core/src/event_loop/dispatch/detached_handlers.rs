//! `DetachedHandlers`: the machines whose handlers have given the loop away, or from which it was
//! taken, and which have not returned.

use crate::token::Token;

#[derive(Default)]
pub(super) struct DetachedHandlers(Vec<DetachedHandler>);

struct DetachedHandler {
    token: Token,
    /// Its deadline has passed meanwhile.
    is_timed_out: bool,
}

impl DetachedHandlers {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn contains(&self, token: Token) -> bool {
        self.tokens().any(|detached| detached == token)
    }

    pub(super) fn tokens(&self) -> impl Iterator<Item = Token> {
        self.0.iter().map(|detached| detached.token)
    }

    /// Adds a machine, unless its handler is detached already.
    pub(super) fn add(&mut self, token: Token) {
        if !self.contains(token) {
            self.0.push(DetachedHandler { token, is_timed_out: false });
        }
    }

    /// Notes that the deadline of a machine has passed. Returns whether its handler is detached.
    pub(super) fn record_timeout(&mut self, token: Token) -> bool {
        let found = self.0.iter_mut().find(|detached| detached.token == token);
        found.is_some_and(|detached| {
            detached.is_timed_out = true;
            true
        })
    }

    /// Removes a machine: its handler has returned, or the machine is gone. Returns whether its
    /// deadline has passed meanwhile.
    pub(super) fn remove(&mut self, token: Token) -> bool {
        let position = self.0.iter().position(|detached| detached.token == token);
        position.is_some_and(|position| self.0.swap_remove(position).is_timed_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passed_deadline_is_reported_once_when_its_handler_returns() {
        let (first, second) = (Token::new(1, 0), Token::new(2, 0));
        let mut detached = DetachedHandlers::default();
        assert!(detached.is_empty() && !detached.record_timeout(first));
        for token in [first, second, first] {
            detached.add(token);
        }
        assert!(detached.record_timeout(second) && detached.contains(first));
        assert!(detached.remove(second) && !detached.remove(second));
        assert_eq!(detached.tokens().collect::<Vec<_>>(), [first]);
        assert!(!detached.remove(first) && detached.is_empty());
    }
}
