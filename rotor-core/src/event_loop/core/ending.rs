//! What a loop is told from outside, and why it ends.

use std::sync::atomic::Ordering::SeqCst;

use super::Core;
use crate::backend::Backend;
use crate::config::ExitPolicy;
use crate::event_loop::handle::{Control, Exit, take_flag};
use crate::guard::log_guarded;
use crate::machine::Machine;
use crate::scope::AnyEnvironment;

impl<M: Machine, B: Backend> Core<M, B> {
    /// Begins a drain that was asked for, before the poll of this turn: who handles what that
    /// brings knows of it.
    pub(super) fn take_drain(&mut self, environment: &AnyEnvironment, control: &Control) {
        if let Some(asked) = control.take_drain() {
            self.drain.ask(environment, &self.config, &self.dispatch, asked);
        }
        if self.drain.is_asked_for() {
            self.go_on_ending(environment);
        }
    }

    /// Begins a drain that was announced, and has it polled before machines are told.
    #[cold]
    fn go_on_ending(&mut self, environment: &AnyEnvironment) {
        self.drain.begin_if_due(environment, &self.config, &self.dispatch);
        self.drain.begin_turn(self.config.scan_budget);
        if self.drain.is_under_way() {
            self.kept.drop_all();
        }
        if self.drain.wants_poll() {
            self.dispatch.queue().pace().poll_next();
        }
    }

    /// Takes a machine's request to stop the loop, and passes it on unless that is refused.
    pub(super) fn take_stop_request(&mut self, environment: &AnyEnvironment, control: &Control) {
        if !take_flag(&environment.stop) {
            return;
        }
        if self.config.exit == ExitPolicy::Never {
            log_guarded!(warn, "a machine asked the loop to stop, which ExitPolicy::Never refuses");
        } else {
            control.stop.store(true, SeqCst);
        }
    }

    /// Why the loop is to end now, if it is.
    pub(super) fn reason_to_end(
        &mut self,
        environment: &AnyEnvironment,
        control: &Control,
    ) -> Option<Exit> {
        // A handler that comes back to a loop that is handed over may panic between two turns.
        if let Some(exit) = self.dispatch.stop_reason().take() {
            return Some(exit);
        }
        // Before a drain: a stop is to end that.
        if take_flag(&control.stop) {
            return Some(Exit::Stopped);
        }
        if self.drain.is_under_way() {
            return self.drain.is_over(environment, &mut self.dispatch).then(|| {
                let dropped = self.drain.end(environment, &self.config, &mut self.dispatch);
                Exit::Drained { dropped }
            });
        }
        let is_empty = self.dispatch.slots().len() == 0
            && self.config.exit == ExitPolicy::WhenEmpty
            // A drain that was asked for ends as `Drained`, not as `Empty`.
            && !control.is_asked()
            // `Broadcast::post` has promised that they run.
            && self.posts.is_empty();
        // Nobody is left to whom an announcement would make a difference.
        let exit =
            if self.drain.is_asked_for() { Exit::Drained { dropped: 0 } } else { Exit::Empty };
        is_empty.then_some(exit)
    }
}
