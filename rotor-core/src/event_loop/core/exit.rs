//! Requests to a loop from outside, and why it ends.

use std::sync::atomic::Ordering::SeqCst;

use super::Core;
use crate::backend::Backend;
use crate::config::ExitPolicy;
use crate::event_loop::handle::{Control, Exit, take_flag};
use crate::event_loop::run_queue::polls_for;
use crate::guard::log_guarded;
use crate::machine::Machine;
use crate::scope::AnyEnvironment;

impl<M: Machine, B: Backend> Core<M, B> {
    /// Takes the request for a drain, before the poll of this turn, so that the handlers of its
    /// events know about the drain.
    pub(super) fn take_drain_request(&mut self, environment: &AnyEnvironment, control: &Control) {
        if let Some(requested) = control.take_drain() {
            self.drain.request(environment, self.polls_before_drain(), requested);
        }
        if self.drain.is_requested() {
            self.advance_drain(environment);
        }
    }

    /// Begins a drain whose announcement is over, and requests a poll before machines are told.
    #[cold]
    fn advance_drain(&mut self, environment: &AnyEnvironment) {
        self.drain.begin_if_due(environment, self.polls_before_drain());
        self.drain.begin_turn(self.config.scan_budget);
        if self.drain.has_begun() {
            self.drop_on_drain.drop_all();
        }
        if self.drain.needs_poll() {
            self.dispatch.queue().pace().request_poll();
        }
    }

    /// Returns how many polls, if all of them are full, show everything that is ready now.
    fn polls_before_drain(&self) -> usize {
        // One source more for the backend's waker, which may take up an event. A drain that misses
        // input loses it, while a deadline that misses input merely comes before input that is as
        // late as itself.
        let sources = self.dispatch.slots().len() + 1;
        polls_for(sources, &self.config, self.backend.full_waits())
    }

    /// Takes a machine's request to stop the loop, and passes it on unless the config refuses it.
    pub(super) fn take_stop_request(&mut self, environment: &AnyEnvironment, control: &Control) {
        if !take_flag(&environment.stop) {
            return;
        }
        if self.config.exit == ExitPolicy::Never {
            self.log_refused_stop(environment);
        } else {
            control.stop.store(true, SeqCst);
        }
    }

    #[cold]
    fn log_refused_stop(&self, environment: &AnyEnvironment) {
        if let Some(suppressed) = self.refused_stops.try_pass(environment.now()) {
            log_guarded!(
                warn,
                "a machine asked the loop to stop, which ExitPolicy::Never refuses ({suppressed} \
                 such messages were suppressed)"
            );
        }
    }

    /// Returns why the loop must end now, if it must.
    pub(super) fn exit_reason(
        &mut self,
        environment: &AnyEnvironment,
        control: &Control,
    ) -> Option<Exit> {
        // In a loop that is handed over, a handler that comes back may panic between two turns.
        if let Some(exit) = self.dispatch.stop_reason().take() {
            return Some(exit);
        }
        // Before the drain: a stop ends a drain.
        if take_flag(&control.stop) {
            return Some(Exit::Stopped);
        }
        if self.drain.has_begun() {
            let has_unsent = || self.backend.has_unsent();
            let is_complete = self.drain.is_complete(environment, &mut self.dispatch, has_unsent);
            return is_complete.then(|| self.end_drain(environment));
        }
        let is_empty = self.dispatch.slots().len() == 0
            && self.config.exit == ExitPolicy::WhenEmpty
            // A requested drain ends as `Drained`, not as `Empty`.
            && !control.has_request()
            // `Broadcast::post` promises that these closures run.
            && self.posts.is_empty()
            && !self.backend.has_unsent();
        if !is_empty {
            return None;
        }
        if !self.drain.is_requested() {
            return Some(Exit::Empty);
        }
        // Without machines, an announcement would make no difference.
        self.drop_on_drain.drop_all();
        Some(self.end_drain(environment))
    }

    #[cold]
    #[inline(never)]
    fn end_drain(&mut self, environment: &AnyEnvironment) -> Exit {
        let dropped = self.drain.end(environment, &self.config, &mut self.dispatch);
        Exit::Drained { dropped }
    }
}
