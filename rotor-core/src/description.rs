//! `Description`: what a machine says of itself; `Details`: what its loop knows of it.

use std::net::SocketAddr;

use crate::time::Time;

/// What a machine says of itself, for people: [`Machine::describe`](crate::Machine::describe) fills
/// it, each layer its own part. Nothing of it is allocated.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Description {
    state: &'static str,
    peer: Option<SocketAddr>,
    held: usize,
    messages: u64,
}

impl Description {
    /// Nothing yet.
    pub fn new() -> Description {
        Description::default()
    }

    /// Says in a word what the machine is at. Layers are asked from the outside in: the innermost
    /// that has a word for it is heard.
    pub fn set_state(&mut self, state: &'static str) {
        self.state = state;
    }

    /// Says who is at the other end.
    pub fn set_peer(&mut self, peer: Option<SocketAddr>) {
        self.peer = peer;
    }

    /// Adds bytes of memory that it holds beside its slot: buffers, above all.
    pub fn add_held(&mut self, bytes: usize) {
        self.held = self.held.saturating_add(bytes);
    }

    /// Adds messages (requests, jobs) that it has dealt with.
    pub fn add_messages(&mut self, count: u64) {
        self.messages = self.messages.saturating_add(count);
    }

    /// Returns what it is at; empty if it has not said.
    pub fn state(&self) -> &'static str {
        self.state
    }

    /// Returns who is at the other end.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Returns how many bytes of memory it holds beside its slot.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Returns how many messages it has dealt with.
    pub fn messages(&self) -> u64 {
        self.messages
    }
}

/// What a loop knows of a machine: [`Machines::details`](crate::Machines::details).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Details {
    /// When its `timeout` is called.
    pub deadline: Option<Time>,
    /// When it was made, to the second: only under
    /// [`Config::keep_ages`](crate::Config::keep_ages).
    pub made: Option<Time>,
    /// Calls are pending for it: it is called in the next turn.
    pub is_due: bool,
    /// It is with a handler that blocks elsewhere.
    pub is_busy: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_add_what_they_hold_and_the_last_word_counts() {
        let mut description = Description::new();
        for state in ["open", "reading"] {
            description.set_state(state);
            description.add_held(10);
            description.add_messages(1);
        }
        assert_eq!((description.state(), description.held()), ("reading", 20));
        assert_eq!((description.messages(), description.peer()), (2, None));
        description.add_held(usize::MAX);
        assert_eq!(description.held(), usize::MAX);
    }
}
