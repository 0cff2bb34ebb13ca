//! A pool of connections that stay open, for a protocol in which a connection answers one question
//! at a time.
//!
//! The pool is a value in the context, not a machine: within a loop, handlers never run at the same
//! time, so a list of questions and a list of free connections are enough.
//!
//! ```text
//!   asker ──ask──▶ Pool: questions, free connections ◀──take── Connection ──message──▶ server
//!     ◀───────────────────────── a future ────────────────────────┘
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::fmt;
use std::time::Duration;

use rotor::stream::{
    Exception, Fatal, Intent, Matched, NeedsDeadline, Protocol, StreamError, Transport,
};
use rotor::{Future, Notifier, Port, ReturnOnDrop, Scope, Time, Token, with_causes};

#[path = "wire.rs"]
pub(crate) mod wire;

/// How many questions may wait for a free connection. More are refused, so that a server that is
/// too slow, or gone, costs no more memory than this.
pub(crate) const WAITING_MAX: usize = 1_000;

/// How long the server may take for an answer.
pub(crate) const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);

/// The answer to a question, or why there is none.
pub(crate) type Answer = Result<Vec<u8>, NoAnswer>;

/// Why a question that was asked has no answer.
#[derive(Debug, PartialEq)]
pub(crate) enum NoAnswer {
    /// None came in [`ANSWER_TIME_MAX`].
    TooLate,
    /// The connections that asked were lost, the last one for this reason.
    Lost(String),
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoAnswer::TooLate => f.write_str("the server does not answer"),
            NoAnswer::Lost(why) => f.write_str(why),
        }
    }
}

/// Required of the context.
pub(crate) trait HasPool: 'static {
    fn pool(&mut self) -> &mut Pool;
}

/// Questions that wait for a connection, and connections that wait for a question. There are never
/// both for long, because whoever adds one of either wakes a connection.
#[derive(Default)]
pub(crate) struct Pool {
    waiting: VecDeque<Question>,
    free: BTreeMap<Token, Notifier>,
}

struct Question {
    text: Vec<u8>,
    /// Whether a connection that had taken it was lost.
    was_lost: bool,
    port: Port<Answer>,
}

impl Pool {
    /// Asks a question. The future is that of the calling machine; dropping it takes the question
    /// back. `None` if too many are waiting.
    ///
    /// A question waits until a connection is free, however long that takes: the asker sets a
    /// deadline.
    pub(crate) fn ask<C: HasPool>(
        text: Vec<u8>,
        scope: &mut Scope<'_, C>,
    ) -> Option<Future<Answer>> {
        let (context, early) = scope.split();
        let pool = context.pool();
        if pool.waiting.len() >= WAITING_MAX {
            pool.waiting.retain(|question| !question.port.is_cancelled());
        }
        if pool.waiting.len() >= WAITING_MAX {
            return None;
        }
        let (port, answer) = early.create_future();
        pool.waiting.push_back(Question { text, was_lost: false, port });
        pool.wake_free();
        Some(answer)
    }

    /// Takes the question that has waited longest.
    fn take(&mut self) -> Option<Question> {
        std::iter::from_fn(|| self.waiting.pop_front())
            .find(|question| !question.port.is_cancelled())
    }

    /// Wakes as many free connections as there are questions. Waking one twice does no harm.
    fn wake_free(&self) {
        for connection in self.free.values().take(self.waiting.len()) {
            connection.wakeup();
        }
    }
}

/// One connection to the server. `Persistent` makes it again when it has ended.
///
/// ```text
///         wakeup, a question            an answer
///   (free) ──────────────▶ (asked) ──────────────▶ (free)
///     └──── the server ends it ────┴── too late, lost, malformed ──▶ end
/// ```
pub(crate) struct Connection<C: HasPool> {
    /// The question that the server is answering.
    asked: Option<Question>,
    /// Takes the connection off the list of free ones, however it ends.
    _listed: ReturnOnDrop<Token, C>,
}

impl<C: HasPool> Connection<C> {
    /// Waits for a question. If one is waiting already, the connection takes it in its next turn: an
    /// end that the server has sent behind its answer is seen before that. So a server that answers
    /// and then closes loses no question.
    fn free(self, transport: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        if !transport.input.is_empty() {
            return unasked();
        }
        let (token, notifier) = (scope.token(), scope.notifier());
        let pool = scope.pool();
        pool.free.insert(token, notifier);
        pool.wake_free();
        // Not `sleep`: the end of the stream is noticed, and so is what nobody has asked for.
        self.wait().no_deadline()
    }

    /// Sends the next question, if there is one. What is in the input at this point is the answer to
    /// no question, and must not be taken for that to the next one.
    fn next(mut self, transport: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        if !transport.input.is_empty() {
            return unasked();
        }
        let token = scope.token();
        let pool = scope.pool();
        let Some(question) = pool.take() else {
            return self.wait().no_deadline();
        };
        pool.free.remove(&token);
        let written = wire::write(transport.output, &question.text);
        self.asked = Some(question);
        match written {
            Ok(()) => self.wait().deadline(scope.now() + ANSWER_TIME_MAX),
            Err(error) => {
                self.lose(&error, scope);
                Intent::error(error)
            }
        }
    }

    fn wait(self) -> NeedsDeadline<Self> {
        Intent::of(self).frame(wire::message_length, wire::MESSAGE_BYTES_MAX)
    }

    /// Called when the connection is lost. If a question was under way, another connection asks it
    /// once more, which is right only if asking twice does no harm. A server may close a connection
    /// that it finds idle just when a question is sent, so this happens in ordinary operation.
    fn lose(self, why: &(dyn Error + 'static), scope: &mut Scope<'_, C>) {
        let Some(mut question) = self.asked else { return };
        if question.was_lost {
            let _nobody_waits =
                question.port.set(Err(NoAnswer::Lost(with_causes(why).to_string())));
            return;
        }
        question.was_lost = true;
        let pool = scope.pool();
        pool.waiting.push_front(question);
        pool.wake_free();
    }
}

impl<C: HasPool> Protocol for Connection<C> {
    type Context = C;
    type Seed = ();

    fn create((): (), transport: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        let listed = scope.at_end(scope.token(), |context: &mut C, token| {
            let pool = context.pool();
            pool.free.remove(&token);
            // It may have been woken for a question after it had ended.
            pool.wake_free();
        });
        Connection { asked: None, _listed: listed }.free(transport, scope)
    }

    fn bytes_read(
        mut self,
        message: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Intent<Self> {
        let Some(question) = self.asked.take() else {
            return unasked();
        };
        let text = wire::text(message.content(transport.input)).to_vec();
        message.consume(transport.input);
        let _nobody_waits = question.port.set(Ok(text));
        self.free(transport, scope)
    }

    fn wakeup(self, transport: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        match self.asked {
            Some(_) => Intent::of(self).keep().keep_deadline(),
            None => self.next(transport, scope),
        }
    }

    /// The answer could still come, and would be taken for that to the next question: so this
    /// connection asks no other.
    fn timeout(self, _: &mut Transport<'_>, _: &mut Scope<'_, C>) -> Intent<Self> {
        if let Some(question) = self.asked {
            let _nobody_waits = question.port.set(Err(NoAnswer::TooLate));
        }
        Intent::reset()
    }

    fn exception(
        self,
        exception: Exception,
        _: &mut Transport<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Intent<Self> {
        let is_free = self.asked.is_none();
        self.lose(&exception, scope);
        match exception {
            Exception::EndOfStream if is_free => Intent::done(),
            exception => Intent::error(StreamError::Exception(exception)), // logged by `Persistent`
        }
    }

    fn fatal(self, error: Fatal, scope: &mut Scope<'_, C>) {
        self.lose(&error, scope);
    }

    fn not_connected((): (), error: Fatal, _: &mut Scope<'_, C>) {
        log::warn!("a connection to the server cannot be made: {}", with_causes(&error));
    }

    /// Others may ask until they have ended.
    fn draining(self, _: Time, _: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        match scope.wait_for_others() {
            true => Intent::of(self).keep().keep_deadline(),
            false => Intent::done(),
        }
    }
}

fn unasked<C: HasPool>() -> Intent<Connection<C>> {
    Intent::error("the server sends what it was not asked for")
}
