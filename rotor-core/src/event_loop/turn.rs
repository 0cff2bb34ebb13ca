//! One turn of the loop: what is done, in which order, and how much of it.
//!
//! ```text
//!   drain? ─▶ wait ─▶ events ─▶ again ─▶ wake-ups ─▶ deadlines ─▶ overdue ─▶ posted ─▶ drain ─▶ room ─▶ free slots ─▶ end?
//! ```
//!
//! Each step has a bound; what is left waits in its queue for the next turn, behind what comes
//! first there. So a machine that wakes itself for ever, one that spawns for ever and one whose
//! deadlines have always passed leave a fourth at least one event a turn. Turns without a look at
//! the backend are bounded as well: see `pace.rs`.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use super::broadcast::Post;
use super::due::Drain;
use super::handle::{Control, Exit, take_flag};
use super::machines::{Machines, Verdict};
use super::pace::Wait;
use super::rest::{Lent, Rest};
use crate::backend::Backend;
use crate::config::TICK;
use crate::environment::Environment;
use crate::guard::{guard, log_guarded};
use crate::scope::AnyEnvironment;
use crate::slab::Gathered;
use crate::{ExitPolicy, GlobalScope, Machine, Time, Token};

impl<M: Machine, B: Backend> Rest<M, B> {
    pub(super) fn turn(
        &mut self,
        lent: &mut Lent<'_, M::Context>,
        control: &Control,
        wait: Wait,
    ) -> std::io::Result<Option<Exit>> {
        self.ended = None;
        self.take_drain(lent.environment, control);
        if let Some(exit) = self.reason_to_end(lent.environment, control) {
            self.counters.publish(self.slab.len());
            return Ok(Some(exit));
        }
        let looked = self.wait(lent.environment, control, wait)?;
        let begun = lent.environment.refresh_now();
        self.looked = Some(begun);
        if looked {
            self.pace.looked(begun, self.backend.may_have_more());
            self.note_look_of_drain();
        }
        self.begin();
        while let Err(panicked) = guard(|| self.do_due_work(lent)) {
            self.running_panicked(lent.environment, &panicked);
            if self.ended.is_some() {
                break;
            }
        }
        self.obey(lent.environment, control);
        if lent.environment.waiters.are_any() {
            self.serve_waiters(lent);
        }
        self.due.give_back();
        let end = self.looked.take().unwrap_or_else(|| lent.environment.handle.now());
        self.counters.stats.longest_turn = self.counters.stats.longest_turn.max(end - begun);
        self.pace.turn_ended(end);
        let ended = self.ended.take().or_else(|| self.reason_to_end(lent.environment, control));
        self.counters.publish(self.slab.len());
        Ok(ended)
    }

    /// Has machines make room for those that asked for it, and gives free slots to those who wait
    /// for one.
    #[cold]
    fn serve_waiters(&mut self, lent: &mut Lent<'_, M::Context>) {
        // The search may take a while, and is part of the turn.
        self.looked = None;
        while self.ended.is_none()
            && let Err(panicked) = guard(|| self.make_room(lent))
        {
            self.running_panicked(lent.environment, &panicked);
        }
        lent.environment.waiters.grant(self.slab.vacant());
    }

    /// Waits, unless there is something to do; then it looks, or leaves that to a later turn.
    /// Answers whether it looked.
    fn wait(
        &mut self,
        environment: &AnyEnvironment,
        control: &Control,
        wait: Wait,
    ) -> std::io::Result<bool> {
        let until = self.next_deadline(environment, control);
        let until = match wait {
            // Only a look: no clock is needed for that.
            Wait::AtMost(Some(Duration::ZERO)) => Some(environment.now()),
            // From now, not from the last turn: whoever embeds the loop may have been busy in
            // between.
            Wait::AtMost(Some(time)) => {
                Some(until.unwrap_or(Time::NEVER).min(environment.handle.now() + time))
            }
            Wait::AtMost(None) | Wait::AtPace => until,
        };
        let looks_only = until.is_some_and(|until| until <= environment.now());
        if looks_only && wait == Wait::AtPace && self.pace.allows_a_turn() {
            return Ok(false);
        }
        // A wake-up or a command between the look above and the sleep is seen here or else wakes
        // the backend.
        let until =
            if looks_only || !self.queue.sleep() || control.is_asked() || !self.posts.is_empty() {
                Some(Time::ZERO)
            } else {
                until
            };
        self.backend.wait(until, &mut self.due.ready)?;
        Ok(true)
    }

    /// When the next turn is wanted: now, if there is work.
    pub(super) fn next_deadline<H: crate::BackendHandle + ?Sized>(
        &self,
        environment: &Environment<H>,
        control: &Control,
    ) -> Option<Time> {
        let due = &self.due;
        let is_due = due.ready_done < due.ready.len()
            || due.woken_done < due.woken.len()
            || !due.again.is_empty()
            || !due.parked.is_empty()
            || !due.timers.is_empty()
            || !due.overdue.is_empty()
            || !due.verdicts.is_empty()
            || !self.queue.is_empty()
            || !self.posts.is_empty()
            || control.is_asked()
            || environment.stop.load(SeqCst)
            || self.backend.may_have_more()
            || environment.waiters.is_due(self.slab.vacant())
            || self.drain.as_ref().is_some_and(|drain| drain.next < self.slab.high_water());
        if is_due {
            return Some(environment.now());
        }
        let every = self.every.iter().map(|every| every.next).min();
        let drain = self.drain.as_ref().map(|drain| drain.until);
        [self.timers.next_wake(), every, drain].into_iter().flatten().min()
    }

    /// Marks off what belongs to this turn; what is queued from now on belongs to the next.
    fn begin(&mut self) {
        self.turn = self.turn % u8::MAX + 1;
        self.counters.stats.turns += 1;
        let due = &mut self.due;
        due.again_left = due.again.len();
        due.parked_left = due.parked.len();
        due.wakeups_left = self.config.wakeups_per_turn;
        due.timeouts_left = self.config.timeouts_per_turn;
        due.scan_left = self.config.scan_budget;
        due.overdue_left = None;
        self.queue.rise();
    }

    /// The steps of a turn. Each takes its work from a queue, so after a panic it is simply called
    /// again.
    fn do_due_work(&mut self, lent: &mut Lent<'_, M::Context>) {
        while let Some(&(token, events)) = self.due.ready.get(self.due.ready_done) {
            self.due.ready_done += 1;
            self.ready(lent, token, events);
        }
        self.due.ready.clear();
        self.due.ready_done = 0;
        self.go_on(lent);
        self.wake_machines(lent);
        self.fire_deadlines(lent);
        self.call_overdue(lent);
        self.run_posted(lent);
        self.apply_verdicts(lent.environment);
        self.drain_some(lent);
        self.drain_last(lent.environment);
    }

    /// What earlier turns left: machines to be called again, and spawns.
    fn go_on(&mut self, lent: &mut Lent<'_, M::Context>) {
        while self.due.again_left > 0 {
            self.due.again_left -= 1;
            if let Some(token) = self.due.again.pop_front() {
                self.resume(lent, token);
            }
        }
        while self.due.parked_left > 0 {
            self.due.parked_left -= 1;
            if let Some((token, seed)) = self.due.parked.pop_front() {
                self.unpark(lent, token, seed);
            }
        }
    }

    /// Delivers wake-ups, those that the woken machines cause included, until none is left or the
    /// budget is spent.
    fn wake_machines(&mut self, lent: &mut Lent<'_, M::Context>) {
        loop {
            while let Some(&index) = self.due.woken.get(self.due.woken_done) {
                if self.due.wakeups_left == 0 {
                    return;
                }
                self.due.wakeups_left -= 1;
                self.due.woken_done += 1;
                self.wake_slot(lent, index);
            }
            self.due.woken.clear();
            self.due.woken_done = 0;
            self.queue.take_all(&mut self.due.woken);
            if self.due.woken.is_empty() {
                return;
            }
        }
    }

    /// Fires the deadlines that have passed, as many as one turn may; the backend is looked at
    /// before the others.
    ///
    /// After a stall, what a peer sent in time may lie behind the first batch of events. So
    /// deadlines wait until there is no more, or every machine's source has had its place in a
    /// batch: a loop that never gets to the end of its events has deadlines all the same.
    fn fire_deadlines(&mut self, lent: &mut Lent<'_, M::Context>) {
        let now = lent.environment.handle.now();
        self.looked = Some(now);
        if now - lent.environment.now() >= TICK {
            lent.environment.set_now(now);
        }
        if self.pace.was_full()
            && self.pace.may_have_missed(self.slab.len().div_ceil(self.config.events_max))
        {
            return;
        }
        let collected = self.due.timers.len();
        self.timers.expire(lent.environment.now(), &mut self.due.timers);
        if self.due.timers.len() - collected > 1 {
            self.order_ticks(collected);
        }
        while self.due.timeouts_left > 0
            && let Some(due) = self.due.timers.pop_front()
        {
            let Some((token, _)) = self.slab.at(due.index) else { continue };
            // What is queued as overdue is called from there, or it would be called twice.
            let queued =
                self.slab.gathered(token).is_some_and(|gathered| gathered.has(Gathered::OVERDUE));
            if !queued && self.timers.take_expired(due.index) {
                self.due.timeouts_left -= 1;
                self.timeout(lent, token);
            }
        }
        if !self.due.timers.is_empty() {
            self.pace.look_next();
        }
    }

    /// Lets the backend order the deadlines that fire in one tick.
    fn order_ticks(&mut self, from: usize) {
        let due = self.due.timers.make_contiguous();
        let mut tokens: Vec<Token> = Vec::new();
        for group in
            due[from..].chunk_by_mut(|a, b| a.tick == b.tick).filter(|group| group.len() > 1)
        {
            tokens.clear();
            tokens.extend(group.iter().filter_map(|due| Some(self.slab.at(due.index)?.0)));
            self.backend.order(&mut tokens);
            for (due, token) in group.iter_mut().zip(&tokens) {
                due.index = token.index();
            }
        }
    }

    /// Machines whose answer was a deadline that had passed: once in this turn, and no more than
    /// one turn may; what they answer then is for the next.
    fn call_overdue(&mut self, lent: &mut Lent<'_, M::Context>) {
        let most = self.due.overdue.len().min(self.config.timeouts_per_turn as usize);
        while *self.due.overdue_left.get_or_insert(most) > 0
            && let Some(token) = self.due.overdue.pop_front()
        {
            self.due.overdue_left = self.due.overdue_left.map(|left| left - 1);
            if self.take_overdue(lent.environment, token) {
                self.timeout(lent, token);
            }
        }
    }

    fn run_posted(&mut self, lent: &mut Lent<'_, M::Context>) {
        if !self.posts.is_empty() {
            for post in self.posts.take() {
                self.run_post(lent, post);
            }
        }
        let now = lent.environment.now();
        for index in 0..self.every.len() {
            if self.every[index].next <= now {
                self.run_every(lent, index);
            }
        }
        self.every.retain(|every| every.next != Time::NEVER);
    }

    fn run_post(&mut self, lent: &mut Lent<'_, M::Context>, post: Post<M>) {
        self.note_time_passed(lent.environment);
        let mut scope = GlobalScope::new(lent.context, lent.environment);
        if let Err(panicked) = guard(|| post(self.machines(), &mut scope)) {
            log_guarded!(error, "a posted closure {panicked}");
        }
    }

    fn run_every(&mut self, lent: &mut Lent<'_, M::Context>, index: usize) {
        self.note_time_passed(lent.environment);
        let Rest { every, slab, due, .. } = self;
        let every = &mut every[index];
        let machines = Machines { slab, verdicts: &mut due.verdicts, budget: &mut due.scan_left };
        let mut scope = GlobalScope::new(lent.context, lent.environment);
        every.next = match guard(|| (every.f)(machines, &mut scope)) {
            Ok(()) => lent.environment.now() + every.period,
            Err(panicked) => {
                log_guarded!(error, "a repeated closure {panicked}, and is not called again");
                Time::NEVER
            }
        };
    }

    fn apply_verdicts(&mut self, environment: &AnyEnvironment) {
        while let Some((token, verdict)) = self.due.verdicts.pop_front() {
            match verdict {
                Verdict::Keep => {}
                Verdict::Wake => {
                    self.queue.wake(token);
                }
                Verdict::Drain => self.owe(token, Gathered::DRAINING),
                Verdict::End => self.owe(token, Gathered::END),
                Verdict::Expire => self.expire(environment, token),
            }
        }
    }

    /// What has come before a drain is delivered before machines hear of it: they would end, and
    /// lose it. So the backend is looked at first, until a look brings less than it may, or there
    /// were as many as it takes for all machines.
    fn note_look_of_drain(&mut self) {
        let Some(drain) = &mut self.drain else { return };
        // The waker of a backend may take one place.
        let is_full = self.due.ready.len() + 1 >= self.config.events_max;
        drain.looks_left = if is_full { drain.looks_left.saturating_sub(1) } else { 0 };
    }

    /// Tells machines that the loop drains, as many as one turn may look at.
    fn drain_some(&mut self, lent: &mut Lent<'_, M::Context>) {
        let mut left = self.config.scan_budget;
        while let Some(drain) = &mut self.drain
            && drain.looks_left == 0
            && drain.next < self.slab.high_water()
            && left > 0
        {
            let index = drain.next;
            drain.next += 1;
            left -= 1;
            if let Some((token, _)) = self.slab.at(index) {
                self.draining_after_ready(lent, token);
            }
        }
    }

    /// Tells the machines that wait for all others, once none of these is left; again if others
    /// came and went since.
    fn drain_last(&mut self, environment: &AnyEnvironment) {
        let machines = self.slab.len();
        let Some(drain) = &mut self.drain else { return };
        if machines == 0 || drain.next < self.slab.high_water() {
            return;
        }
        let made = Some(self.counters.stats.spawned);
        if drain.told_last == made {
            return;
        }
        let Some(last) = environment.last.all(machines) else { return };
        drain.told_last = made;
        last.into_iter().for_each(|token| self.owe(token, Gathered::DRAINING));
    }

    /// Begins a drain that was asked for, before the look of this turn: who handles what that
    /// brings knows of it.
    fn take_drain(&mut self, environment: &AnyEnvironment, control: &Control) {
        if let Some(time) = control.take_drain() {
            let until = environment.handle.now() + time;
            let looks_left = self.slab.len() / self.config.events_max + 1;
            let drain =
                self.drain.get_or_insert(Drain { until, looks_left, next: 0, told_last: None });
            drain.until = drain.until.min(until);
            environment.set_draining(drain.until);
        }
        if self.drain.as_ref().is_some_and(|drain| drain.looks_left > 0) {
            self.pace.look_next();
        }
    }

    /// Obeys a machine that asked the loop to stop.
    fn obey(&mut self, environment: &AnyEnvironment, control: &Control) {
        if take_flag(&environment.stop) {
            if self.config.exit == ExitPolicy::Never {
                log_guarded!(
                    warn,
                    "a machine asked the loop to stop, which ExitPolicy::Never refuses"
                );
            } else {
                control.stop.store(true, SeqCst);
            }
        }
    }

    fn reason_to_end(&mut self, environment: &AnyEnvironment, control: &Control) -> Option<Exit> {
        if take_flag(&control.stop) {
            return Some(Exit::Stopped);
        }
        if let Some(drain) = &self.drain {
            let over = drain.until <= environment.now() && drain.next >= self.slab.high_water();
            if self.slab.len() > 0 && !over {
                return None;
            }
            self.drain = None;
            environment.end_draining();
            return Some(Exit::Drained { dropped: self.drop_all(environment) });
        }
        (self.slab.len() == 0 && self.config.exit == ExitPolicy::WhenEmpty && !control.is_asked())
            .then_some(Exit::Empty)
    }

    fn drop_all(&mut self, environment: &AnyEnvironment) -> usize {
        let dropped = self.slab.len();
        for index in 0..self.slab.high_water() {
            if let Some((token, _)) = self.slab.at(index) {
                self.drop_machine(environment, token);
            }
        }
        self.drop_parked();
        dropped
    }
}
