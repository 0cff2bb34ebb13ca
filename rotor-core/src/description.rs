//! `Description`: what a machine reports about itself. `Details`: what its loop knows about it.

use std::net::SocketAddr;

use crate::time::Time;

/// What a machine reports about itself, for people. [`Machine::describe`](crate::Machine::describe)
/// fills it; each layer adds its own part. It needs no allocation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Description {
    state: &'static str,
    peer: Option<SocketAddr>,
    held: usize,
    messages: u64,
}

impl Description {
    /// Makes an empty description.
    pub fn new() -> Description {
        Description::default()
    }

    /// Sets the state of the machine, in a word. Layers are called from the outside in, so the
    /// innermost one that sets a state wins.
    pub fn set_state(&mut self, state: &'static str) {
        self.state = state;
    }

    /// Sets the address of the peer.
    pub fn set_peer(&mut self, peer: Option<SocketAddr>) {
        self.peer = peer;
    }

    /// Adds to the number of bytes of memory that the machine holds besides its slot, mainly
    /// buffers.
    pub fn add_held(&mut self, bytes: usize) {
        self.held = self.held.saturating_add(bytes);
    }

    /// Adds to the number of messages (requests, jobs) that the machine has handled.
    pub fn add_messages(&mut self, count: u64) {
        self.messages = self.messages.saturating_add(count);
    }

    /// Returns the state; empty if none was set.
    pub fn state(&self) -> &'static str {
        self.state
    }

    /// Returns the address of the peer.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Returns how many bytes of memory the machine holds besides its slot.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Returns how many messages the machine has handled.
    pub fn messages(&self) -> u64 {
        self.messages
    }
}

/// What a loop knows about a machine: [`Machines::details`](crate::Machines::details).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Details {
    /// When `timeout` of the machine will be called.
    pub deadline: Option<Time>,
    /// When the machine was made, to the second. Only known with
    /// [`Config::keep_ages`](crate::Config::keep_ages).
    pub made: Option<Time>,
    /// Whether calls are pending for the machine, so that it will be called in the next turn.
    pub is_due: bool,
    /// Whether the machine is with a handler that blocks on another thread.
    pub is_busy: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_bytes_add_up_and_the_last_state_counts() {
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
