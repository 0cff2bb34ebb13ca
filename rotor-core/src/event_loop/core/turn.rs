//! One turn of the loop: what is done, in which order, and how much of it.
//!
//! ```text
//!   drain? ─▶ poll ─▶ events ─▶ pending calls ─▶ deferred spawns ─▶ wake-ups
//!     ─▶ deadlines, perhaps after another poll and its events ─▶ overdue
//!     ─▶ posted, every ─▶ verdicts ─▶ drain ─▶ room ─▶ free slots ─▶ stop? ─▶ end?
//! ```
//!
//! Each step has a bound; what is left waits in its queue for the next turn, behind what comes
//! first there. So machines that wake themselves for ever, spawn for ever, or have deadlines that
//! have always passed leave any other machine at least one event a turn. Turns that do not poll
//! the backend are bounded as well: see `run_queue/pace.rs`.

use std::io;

use super::Core;
use crate::backend::Backend;
use crate::config::TICK;
use crate::event_loop::closures::Repeated;
use crate::event_loop::dispatch::{Dispatch, Refs};
use crate::event_loop::handle::{Control, Exit};
use crate::event_loop::run_queue::{NextWoken, Wait, polls_for};
use crate::guard::guard;
use crate::machine::Machine;
use crate::scope::AnyEnvironment;
use crate::time::Time;

impl<M: Machine, B: Backend> Core<M, B> {
    /// Takes one turn. Returns why the loop has ended, once it has.
    ///
    /// # Errors
    ///
    /// When the backend cannot wait any more, or panics.
    pub(in crate::event_loop) fn turn(
        &mut self,
        context: &mut M::Context,
        environment: &AnyEnvironment,
        repeated: &mut Repeated<M>,
        control: &Control,
        wait: Wait,
    ) -> io::Result<Option<Exit>> {
        self.take_drain(environment, control);
        if let Some(exit) = self.reason_to_end(environment, control) {
            self.dispatch.publish();
            return Ok(Some(exit));
        }
        let polled = self.wait_or_poll(environment, repeated, control, wait)?;
        let begun = environment.refresh_now();
        self.begin(begun, polled);
        // One guard for all handlers: a machine is with its handler by value, or alone in its slot,
        // so that only one that panicked is gone, and all else waits in queues. Under
        // `OnPanic::StopLoop` what is left of the turn waits there for the next one; a `create`
        // that panics has its own guard, and the turn goes on to its end.
        loop {
            match guard(|| self.do_due_work(context, environment, repeated)) {
                Ok(done) => break done?,
                Err(panicked) => {
                    self.dispatch.handler_panicked(environment, &self.config, &panicked)?;
                }
            }
            if self.dispatch.stop_reason().is_some() {
                break;
            }
        }
        if environment.waiters.are_any() {
            self.serve_waiters(context, environment)?;
        }
        // Behind all that calls machines: any of them may ask for it.
        self.take_stop_request(environment, control);
        self.finish(environment, begun);
        let ended = self.reason_to_end(environment, control);
        self.dispatch.publish();
        Ok(ended)
    }

    /// The steps of a turn. Each takes its work from a queue, so after a panic it is simply called
    /// again.
    fn do_due_work(
        &mut self,
        context: &mut M::Context,
        environment: &AnyEnvironment,
        repeated: &mut Repeated<M>,
    ) -> io::Result<()> {
        let Core { backend, config, dispatch, .. } = self;
        let refs = &mut Refs { context, environment, backend, config };
        hand_out_events(refs, dispatch);
        while let Some(token) = dispatch.queue().next_runnable() {
            dispatch.resume(refs, token);
        }
        while let Some((token, seed)) = dispatch.queue().next_deferred_spawn() {
            dispatch.resume_spawn(refs, token, seed);
        }
        while let Some(next) = dispatch.queue().next_woken() {
            match next {
                NextWoken::Slot(index) => dispatch.wake_slot(refs, index),
                NextWoken::Fresh(token) => dispatch.resume(refs, token),
            }
        }
        if expire_deadlines(refs, dispatch)? {
            while let Some(index) = dispatch.queue().next_expired() {
                dispatch.fire(refs, index);
            }
            // Those left over wait for a turn that has polled: input comes before deadlines.
            dispatch.queue().poll_before_expired();
        }
        // Also where other deadlines wait for input: these machines were called in this turn, and
        // said so knowing the time.
        while let Some(token) = dispatch.queue().next_overdue(refs.config.timeouts_per_turn) {
            dispatch.fire_overdue(refs, token);
        }
        self.posts.run(refs, dispatch, &mut self.verdicts);
        repeated.run(refs, dispatch, &mut self.verdicts);
        self.verdicts.apply(environment, dispatch);
        self.drain.tell(refs, dispatch);
        Ok(())
    }

    /// Marks off what belongs to this turn.
    pub(super) fn begin(&mut self, begun: Time, polled: bool) {
        self.dispatch.clock().was_read(begun);
        let counters = self.dispatch.counters();
        counters.stats.turns += 1;
        counters.times().turn_begins(begun);
        let is_sampled = counters.is_sampled(self.config.sample_mask);
        self.config.notes_calls = self.config.notes_all_calls | is_sampled;
        self.verdicts.begin_turn(self.config.scan_budget);
        let machines = self.dispatch.slots().len();
        let queue = self.dispatch.queue();
        if polled {
            let is_full = self.backend.may_have_more();
            let round = is_full.then(|| polls_for(machines, &self.config));
            let is_any = queue.has_events() || !queue.wakes().is_empty();
            queue.pace().begins(begun, is_any, round);
            self.drain.polled(is_full);
        }
        queue.begin_turn(&self.config);
    }

    /// Has machines make room for those that asked for it, and gives free slots to those who wait
    /// for one. A machine that panics instead leaves room, and is not counted as having made it.
    #[cold]
    pub(super) fn serve_waiters(
        &mut self,
        context: &mut M::Context,
        environment: &AnyEnvironment,
    ) -> io::Result<()> {
        // The search may take a while, and is part of the turn.
        self.dispatch.clock().forget_reading();
        while self.dispatch.stop_reason().is_none()
            && let Err(panicked) = guard(|| {
                let Core { backend, config, dispatch, room, .. } = self;
                room.serve(&mut Refs { context, environment, backend, config }, dispatch);
            })
        {
            self.dispatch.handler_panicked(environment, &self.config, &panicked)?;
        }
        environment.waiters.grant(self.dispatch.slots().vacant());
        Ok(())
    }

    /// The turn is over: notes how long it took, for the statistics and for the pace.
    pub(super) fn finish(&mut self, environment: &AnyEnvironment, begun: Time) {
        self.dispatch.queue().give_back();
        let end = self.dispatch.clock().take_fresh().unwrap_or_else(|| environment.handle.now());
        self.dispatch.counters().times().turn_ends(begun, end);
        self.dispatch.queue().pace().turn_ended(end);
    }
}

#[inline(always)]
fn hand_out_events<M: Machine, B: Backend>(refs: &mut Refs<'_, M, B>, dispatch: &mut Dispatch<M>) {
    while let Some((token, events)) = dispatch.queue().next_event() {
        dispatch.ready(refs, token, events);
    }
}

/// How a turn goes on to its deadlines.
pub(super) enum Expiring {
    /// No deadline that was set for a time to come fires in this turn: the backend may still have
    /// input that came before.
    Hold,
    /// Those that were collected fire.
    Expired,
    /// The same after the events of a poll that this turn has just made, and after those until then
    /// were collected.
    EventsBefore(Time),
}

/// Collects the deadlines that have passed, and fires nothing yet. Returns whether they may fire.
#[inline(always)]
fn expire_deadlines<M: Machine, B: Backend>(
    refs: &mut Refs<'_, M, B>,
    dispatch: &mut Dispatch<M>,
) -> io::Result<bool> {
    match begin_expiring(refs, dispatch)? {
        Expiring::Hold => Ok(false),
        Expiring::Expired => Ok(true),
        Expiring::EventsBefore(now) => Ok(hand_out_before_deadlines(refs, dispatch, now)),
    }
}

/// Hands out what the poll before the deadlines has brought.
#[cold]
#[inline(never)]
fn hand_out_before_deadlines<M: Machine, B: Backend>(
    refs: &mut Refs<'_, M, B>,
    dispatch: &mut Dispatch<M>,
    now: Time,
) -> bool {
    hand_out_events(refs, dispatch);
    let may_fire = !dispatch.queue().pace().may_have_missed();
    if may_fire {
        collect_expired(refs, dispatch, now);
    }
    may_fire
}

/// Reads the clock once more, and collects the deadlines that had passed when the backend was
/// polled.
///
/// Input that came in time comes before a deadline. So one that has passed since the last poll
/// fires only after another poll, and after what that reports. As long as polls are full, what came
/// in time may lie behind what was reported: then no deadline fires until a poll is not full, or a
/// round of polls has shown each source once. So a loop that never gets to the end of its events has
/// deadlines all the same.
#[inline(always)]
pub(super) fn begin_expiring<M: Machine, B: Backend>(
    refs: &mut Refs<'_, M, B>,
    dispatch: &mut Dispatch<M>,
) -> io::Result<Expiring> {
    let now = refs.environment.handle.now();
    dispatch.clock().was_read(now);
    // Handlers of one turn see one time, but where it would show: deadlines have this grain.
    if now - refs.environment.now() >= TICK {
        refs.environment.set_now(now);
    }
    let now = refs.environment.now();
    if dispatch.queue().pace().may_have_missed() {
        return Ok(Expiring::Hold);
    }
    // As in most turns. Never later than the first: so there is none to be collected.
    if dispatch.slots().next_deadline().is_none_or(|next| next > now) {
        return Ok(Expiring::Expired);
    }
    let reported_until = dispatch.queue().pace().reported_until();
    collect_expired(refs, dispatch, reported_until);
    if dispatch.slots().next_deadline().is_none_or(|next| next > now) {
        return Ok(Expiring::Expired);
    }
    poll_once_more(refs, dispatch)?;
    Ok(Expiring::EventsBefore(now))
}

/// Polls once more in a turn in which a deadline has passed.
#[cold]
#[inline(never)]
fn poll_once_more<M: Machine, B: Backend>(
    refs: &mut Refs<'_, M, B>,
    dispatch: &mut Dispatch<M>,
) -> io::Result<()> {
    let machines = dispatch.slots().len();
    let queue = dispatch.queue();
    refs.backend.wait(Some(Time::ZERO), queue.events())?;
    let round = refs.backend.may_have_more().then(|| polls_for(machines, refs.config));
    queue.pace().polled(refs.environment.now(), round);
    if let Some(pulse) = dispatch.pulse() {
        pulse.has_polled();
    }
    Ok(())
}

pub(super) fn collect_expired<M: Machine, B: Backend>(
    refs: &mut Refs<'_, M, B>,
    dispatch: &mut Dispatch<M>,
    until: Time,
) {
    dispatch.scheduler().collect_expired(until, |tokens| refs.backend.order(tokens));
}
