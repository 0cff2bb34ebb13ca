//! A turn that gives out what is to be called, instead of calling it: for a loop that may be handed
//! to another thread meanwhile.
//!
//! The steps are those of `turn.rs`, in the same order and within the same bounds. Where a turn
//! stands is a value, [`Progress`], that goes with the core: any thread goes on with it.

use std::io;

use super::Core;
use super::turn::{collect_expired, poll_once_more};
use crate::backend::Backend;
use crate::config::TICK;
use crate::event_loop::closures::Repeated;
use crate::event_loop::dispatch::{Answered, Call, Dispatch, Refs, Terms};
use crate::event_loop::handle::{Control, Exit};
use crate::event_loop::run_queue::{NextWoken, Pending, Wait};
use crate::event_loop::slots::Lifted;
use crate::guard::Panicked;
use crate::machine::Machine;
use crate::scope::AnyEnvironment;
use crate::time::Time;
use crate::token::Token;

/// Where a turn stands.
#[derive(Default)]
pub(in crate::event_loop) struct Progress {
    step: Step,
    begun: Option<Time>,
    /// The machine of the run queue whose pending calls are made, and what is left of them.
    resumed: Option<(Token, Pending)>,
    /// How many slots a drain may still look at.
    drain_left: usize,
    wait: Option<Wait>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Step {
    /// No turn is under way.
    #[default]
    Between,
    Events,
    Runnable,
    Spawns,
    Woken,
    Expire,
    /// Events of the poll before the deadlines until then.
    EventsBefore(Time),
    Expired,
    Overdue,
    Closures,
    Drain,
    End,
}

impl Progress {
    /// Sets how the turns wait: by themselves as those of `run`.
    pub(in crate::event_loop) fn set_wait(&mut self, wait: Wait) {
        self.wait = Some(wait);
    }

    fn wait(&self) -> Wait {
        self.wait.unwrap_or(Wait::AtPace)
    }
}

/// What comes next.
pub(in crate::event_loop) enum Next<M: Machine> {
    Call(Call<M>),
    /// A turn is over.
    Turn,
    Ended(Exit),
}

impl<M: Machine, B: Backend> Core<M, B> {
    /// Goes on with a turn, or begins one, until a machine is to be called, which is put into `lifted`.
    ///
    /// # Errors
    ///
    /// As for [`turn`](Core::turn).
    pub(in crate::event_loop) fn next(
        &mut self,
        lifted: &mut Lifted<M>,
        progress: &mut Progress,
        context: &mut M::Context,
        environment: &AnyEnvironment,
        repeated: &mut Repeated<M>,
        control: &Control,
    ) -> io::Result<Next<M>> {
        if progress.step == Step::Between {
            *self.dispatch.stop_reason() = None;
            self.take_drain(environment, control);
            if let Some(exit) = self.reason_to_end(environment, control) {
                self.dispatch.publish();
                return Ok(Next::Ended(exit));
            }
            let polled = self.wait_or_poll(environment, repeated, control, progress.wait())?;
            let begun = environment.refresh_now();
            self.begin(begun, polled);
            progress.begun = Some(begun);
            progress.step = Step::Events;
        }
        if progress.step != Step::End
            && let Some(call) = self.next_call(lifted, progress, context, environment, repeated)?
        {
            return Ok(Next::Call(call));
        }
        progress.step = Step::Between;
        let begun = progress.begun.take().unwrap_or_else(|| environment.now());
        if environment.waiters.are_any() {
            self.serve_waiters(context, environment);
        }
        self.take_stop_request(environment, control);
        self.finish(environment, begun);
        let ended = self.dispatch.stop_reason().take();
        let ended = ended.or_else(|| self.reason_to_end(environment, control));
        self.dispatch.publish();
        Ok(ended.map_or(Next::Turn, Next::Ended))
    }

    /// The next call of this turn.
    #[inline(always)]
    fn next_call(
        &mut self,
        lifted: &mut Lifted<M>,
        progress: &mut Progress,
        context: &mut M::Context,
        environment: &AnyEnvironment,
        repeated: &mut Repeated<M>,
    ) -> io::Result<Option<Call<M>>> {
        let Core { backend, config, dispatch, .. } = self;
        let refs = &mut Refs { context, environment, backend, config };
        loop {
            if let Some((token, pending)) = &mut progress.resumed {
                let call = dispatch.pending_call(refs, lifted, *token, pending);
                if call.is_some() {
                    return Ok(call);
                }
                progress.resumed = None;
            }
            let (call, step) = match progress.step {
                Step::Between | Step::Events => match dispatch.queue().next_event() {
                    Some((token, events)) => {
                        (dispatch.ready_call(refs, lifted, token, events), Step::Events)
                    }
                    None => (None, Step::Runnable),
                },
                Step::Runnable => match dispatch.queue().next_runnable() {
                    Some(token) => {
                        let pending = dispatch.pending(refs, token);
                        progress.resumed = pending.map(|pending| (token, pending));
                        (None, Step::Runnable)
                    }
                    None => (None, Step::Spawns),
                },
                Step::Spawns => match dispatch.queue().next_deferred_spawn() {
                    Some((token, seed)) => {
                        (dispatch.spawn_call(refs, lifted, token, seed), Step::Spawns)
                    }
                    None => (None, Step::Woken),
                },
                Step::Woken => match dispatch.queue().next_woken() {
                    Some(NextWoken::Slot(index)) => {
                        (dispatch.wake_call(refs, lifted, index), Step::Woken)
                    }
                    Some(NextWoken::Fresh(token)) => {
                        let pending = dispatch.pending(refs, token);
                        progress.resumed = pending.map(|pending| (token, pending));
                        (None, Step::Woken)
                    }
                    None => (None, Step::Expire),
                },
                Step::Expire => (None, begin_expiring(refs, dispatch)?),
                Step::EventsBefore(now) => match dispatch.queue().next_event() {
                    Some((token, events)) => {
                        (dispatch.ready_call(refs, lifted, token, events), Step::EventsBefore(now))
                    }
                    None if dispatch.queue().pace().may_have_missed() => (None, Step::Overdue),
                    None => {
                        collect_expired(refs, dispatch, now);
                        (None, Step::Expired)
                    }
                },
                Step::Expired => match dispatch.queue().next_expired() {
                    Some(index) => {
                        let token = dispatch.next_to_fire(index);
                        let call =
                            token.and_then(|token| dispatch.timeout_call(refs, lifted, token));
                        (call, Step::Expired)
                    }
                    None => {
                        dispatch.queue().poll_before_expired();
                        (None, Step::Overdue)
                    }
                },
                Step::Overdue => match dispatch.queue().next_overdue(config.timeouts_per_turn) {
                    Some(token) => {
                        let is_due = dispatch.is_to_fire(environment.now(), token);
                        let call =
                            if is_due { dispatch.timeout_call(refs, lifted, token) } else { None };
                        (call, Step::Overdue)
                    }
                    None => (None, Step::Closures),
                },
                Step::Closures => {
                    self.posts.run(refs, dispatch, &mut self.verdicts);
                    repeated.run(refs, dispatch, &mut self.verdicts);
                    self.verdicts.apply(environment, dispatch);
                    progress.drain_left = config.scan_budget;
                    (None, Step::Drain)
                }
                Step::Drain => match self.drain.next_to_tell(dispatch, &mut progress.drain_left) {
                    Some(token) => (dispatch.draining_call(refs, lifted, token), Step::Drain),
                    None => {
                        self.drain.tell_last(environment, dispatch);
                        (None, Step::End)
                    }
                },
                Step::End => return Ok(None),
            };
            progress.step = step;
            if call.is_some() {
                return Ok(call);
            }
        }
    }

    /// Applies the answer to a call. Returns the next one, where the machine is to hear of its
    /// spawn.
    pub(in crate::event_loop) fn answered(
        &mut self,
        lifted: &mut Lifted<M>,
        context: &mut M::Context,
        environment: &AnyEnvironment,
        terms: Terms,
        answered: Answered<M>,
    ) -> Option<Call<M>> {
        let Core { backend, config, dispatch, .. } = self;
        let refs = &mut Refs { context, environment, backend, config };
        dispatch.answered(refs, lifted, terms, answered)
    }

    /// A handler has panicked, wherever it was: its machine is gone.
    pub(in crate::event_loop) fn handler_panicked(
        &mut self,
        environment: &AnyEnvironment,
        progress: &mut Progress,
        panicked: &Panicked,
    ) {
        if let Some(token) = self.dispatch.forget_callee_if_gone() {
            progress.resumed.take_if(|(resumed, _)| *resumed == token);
        }
        self.dispatch.handler_panicked(environment, &self.config, panicked);
        if self.dispatch.stop_reason().is_some() && progress.step != Step::Between {
            // What is left of the turn waits in its queues for the next one.
            progress.step = Step::End;
        }
    }
}

/// `expire_deadlines` of `turn.rs`, up to the events of its poll. Returns how the turn goes on.
fn begin_expiring<M: Machine, B: Backend>(
    refs: &mut Refs<'_, M, B>,
    dispatch: &mut Dispatch<M>,
) -> io::Result<Step> {
    let now = refs.environment.handle.now();
    dispatch.clock().was_read(now);
    if now - refs.environment.now() >= TICK {
        refs.environment.set_now(now);
    }
    let now = refs.environment.now();
    if dispatch.queue().pace().may_have_missed() {
        return Ok(Step::Overdue);
    }
    if dispatch.slots().next_deadline().is_none_or(|next| next > now) {
        return Ok(Step::Expired);
    }
    let polled_at = dispatch.queue().pace().polled_at();
    collect_expired(refs, dispatch, polled_at);
    if dispatch.slots().next_deadline().is_some_and(|next| next <= now) {
        poll_once_more(refs, dispatch)?;
        return Ok(Step::EventsBefore(now));
    }
    Ok(Step::Expired)
}
