//! What a handler answers: how its request goes on.

use std::fmt;

use rotor_core::{Deadline, Time};
use rotor_stream::Protocol;

use super::{Client, ClientError};
use crate::recv_mode::RecvMode;

/// How a request goes on: the handler's next state, how much of the answer it wants to see, and its
/// deadline.
///
/// Begin with [`recv`](Next::recv), [`hold`](Next::hold) or [`go_on`](Next::go_on) and say the
/// deadline: the builder is not a `Next` before. The others need none.
#[must_use = "a handler whose answer is dropped is forgotten: return it"]
pub struct Next<K: Client> {
    pub(super) step: Step<K>,
    pub(super) deadline: Deadline,
}

/// What the connection is to do.
pub(super) enum Step<K: Client> {
    Receive(K, RecvMode),
    Hold(K),
    GoOn(K),
    Finished(K::Output),
    Upgrade(<K::Upgrade as Protocol>::Seed, K::Output),
    Error(ClientError),
}

/// A [`Next`] whose deadline is still to be said.
#[must_use = "say the deadline: .deadline(time), .keep_deadline() or .no_deadline()"]
pub struct NextBuilder<K: Client> {
    step: Step<K>,
}

impl<K: Client> Next<K> {
    /// Go on as `state`, and see the body of the answer as `mode` says. After [`hold`](Next::hold):
    /// see more of it; the mode is what was said first.
    ///
    /// Before the head of the answer it means [`go_on`](Next::go_on).
    pub fn recv(state: K, mode: RecvMode) -> NextBuilder<K> {
        NextBuilder { step: Step::Receive(state, mode) }
    }

    /// Go on as `state`, and be handed no more of the body until the handler says
    /// [`recv`](Next::recv): what comes stays in the socket, and the server has to wait. How long
    /// that lasts is the handler's to say; the server is not timed.
    ///
    /// That the body has ended is told all the same: [`response_end`](super::Client::response_end),
    /// which hands nothing over, follows the last piece at once.
    pub fn hold(state: K) -> NextBuilder<K> {
        NextBuilder { step: Step::Hold(state) }
    }

    /// Go on as `state`: the handler waits for what it asked for, for room to write, for a wake-up
    /// or its deadline.
    pub fn go_on(state: K) -> NextBuilder<K> {
        NextBuilder { step: Step::GoOn(state) }
    }

    /// The exchange is over, and this is what came of it: whoever made the request is given it.
    ///
    /// If the request was sent whole and the answer has ended, the connection is used again.
    /// Otherwise it is closed.
    pub fn finished(output: K::Output) -> Next<K> {
        Next { step: Step::Finished(output), deadline: Deadline::Never }
    }

    /// The server has agreed to switch (101, or 2xx to CONNECT): from here on the connection speaks
    /// the protocol that is made from `seed`, beginning with what was read already. Whoever made
    /// the request is given the output now.
    ///
    /// Where the server has not, it means [`finished`](Next::finished), and is logged.
    pub fn upgrade(seed: <K::Upgrade as Protocol>::Seed, output: K::Output) -> Next<K> {
        Next { step: Step::Upgrade(seed, output), deadline: Deadline::Never }
    }

    /// The handler gives up: whoever made the request is given the error, and the connection is
    /// closed, unless nothing of the request was written.
    pub fn error(error: impl Into<ClientError>) -> Next<K> {
        Next { step: Step::Error(error.into()), deadline: Deadline::Never }
    }
}

impl<K: Client> NextBuilder<K> {
    /// [`timeout`](Client::timeout) is called once the loop's time has reached this. The request's
    /// own deadline, and those of the connection, stay in force.
    pub fn deadline(self, time: Time) -> Next<K> {
        self.with(Deadline::At(time))
    }

    /// The same with a time, or as [`no_deadline`](NextBuilder::no_deadline) without one.
    pub fn deadline_opt(self, time: Option<Time>) -> Next<K> {
        self.with(time.map_or(Deadline::Never, Deadline::At))
    }

    /// The handler's deadline stays as it was; at first it has none.
    pub fn keep_deadline(self) -> Next<K> {
        self.with(Deadline::Keep)
    }

    /// The handler has no deadline of its own any more.
    pub fn no_deadline(self) -> Next<K> {
        self.with(Deadline::Never)
    }

    /// The deadline is what was decided elsewhere.
    pub fn with(self, deadline: Deadline) -> Next<K> {
        Next { step: self.step, deadline }
    }
}

impl<K: Client> fmt::Debug for Step<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Receive(_, mode) => write!(f, "Receive({mode:?})"),
            Step::Hold(_) => f.write_str("Hold"),
            Step::GoOn(_) => f.write_str("GoOn"),
            Step::Finished(_) => f.write_str("Finished"),
            Step::Upgrade(..) => f.write_str("Upgrade"),
            Step::Error(error) => write!(f, "Error({error})"),
        }
    }
}

impl<K: Client> fmt::Debug for Next<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("step", &self.step).field("deadline", &self.deadline).finish()
    }
}

impl<K: Client> fmt::Debug for NextBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NextBuilder").field(&self.step).finish()
    }
}
