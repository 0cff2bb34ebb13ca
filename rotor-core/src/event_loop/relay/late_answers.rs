//! Late answers: those of handlers from which the loop was taken.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::time::Duration;

use crate::event_loop::dispatch::IssuedCall;
use crate::guard::{Panicked, drop_guarded};
use crate::machine::Machine;
use crate::response::Response;
use crate::sync::{Mutex, MutexGuard};

/// The outcome of a call whose loop was taken meanwhile.
pub(super) struct LateAnswer<M: Machine> {
    pub(super) issued: IssuedCall<M>,
    pub(super) woke_itself: bool,
    /// How long the handler took, if the call was detached.
    pub(super) elapsed: Option<Duration>,
    pub(super) outcome: HandlerOutcome<M>,
}

pub(super) enum HandlerOutcome<M: Machine> {
    Answered(Response<M, M::Seed>),
    Panicked(Panicked),
}

/// The late answers that wait to be applied by the thread that runs the loop.
pub(super) struct LateAnswers<M: Machine> {
    state: Mutex<LateQueue<M>>,
    /// Called with whether there are any, with the lock held.
    set_has_any: Box<dyn Fn(bool) + Send + Sync>,
}

struct LateQueue<M: Machine> {
    /// In the order in which they arrived.
    waiting: VecDeque<LateAnswer<M>>,
    /// Whether a thread runs the loop, and must be told.
    is_running: bool,
    is_closed: bool,
}

impl<M: Machine> LateAnswers<M> {
    pub(super) fn new(set_has_any: impl Fn(bool) + Send + Sync + 'static) -> LateAnswers<M> {
        let state = LateQueue { waiting: VecDeque::new(), is_running: false, is_closed: false };
        LateAnswers { state: Mutex::new(state), set_has_any: Box::new(set_has_any) }
    }

    /// Sets whether the loop runs from now on. While it does not, late answers wait without notice.
    pub(super) fn set_running(&self, is_running: bool) {
        let mut state = self.lock();
        state.is_running = is_running;
        (self.set_has_any)(is_running && !state.waiting.is_empty());
    }

    /// Adds one, or drops it if the loop is gone.
    pub(super) fn add(&self, late: LateAnswer<M>) {
        let refused = {
            let mut state = self.lock();
            if state.is_closed {
                Some(late)
            } else {
                state.waiting.push_back(late);
                if state.is_running {
                    (self.set_has_any)(true);
                }
                None
            }
        };
        drop_answers(refused);
    }

    pub(super) fn take_first(&self) -> Option<LateAnswer<M>> {
        let mut state = self.lock();
        let first = state.waiting.pop_front();
        if state.waiting.is_empty() {
            (self.set_has_any)(false);
        }
        first
    }

    /// Closes the queue: the loop is gone, so late answers are no longer applied.
    pub(super) fn close(&self) {
        let waiting = {
            let mut state = self.lock();
            state.is_closed = true;
            (self.set_has_any)(false);
            std::mem::take(&mut state.waiting)
        };
        drop_answers(waiting);
    }

    fn lock(&self) -> MutexGuard<'_, LateQueue<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn drop_answers<M: Machine>(late: impl IntoIterator<Item = LateAnswer<M>>) {
    for LateAnswer { outcome, .. } in late {
        drop_guarded(outcome, "an answer whose loop is gone");
    }
}
