//! The threads of a loop that is handed over, and what each does.

use std::sync::Arc;

use super::Relay;
use super::state_cell::StateCell;
use super::thread_work::ThreadWork;
use super::worker::{ThreadLifetime, Worker};
use crate::backend::{Backend, BackendHandle};
use crate::blocking::Parker;
use crate::guard::log_guarded;
use crate::machine::Machine;
use crate::sync::thread::Builder;

/// Systems show at most 15 bytes of a thread's name.
const THREAD_NAME: &str = "rotor-spare";

impl<M, B> Relay<M, B>
where
    M: Machine<Seed: Send, Context: Send> + Send + 'static,
    B: Backend<Handle: Send + Sync> + Send + 'static,
{
    /// Starts a thread that goes on with the loop, or makes a call for it.
    pub(super) fn start_thread<W: Into<ThreadWork<M, B>>>(
        self: &Arc<Self>,
        work: W,
    ) -> Result<(), W> {
        if !self.threads.try_add() {
            return Err(work);
        }
        let work_parker = Parker::new();
        let run = {
            let (relay, work_parker) = (self.clone(), work_parker.clone());
            move || (relay.thread_main)(&relay, work_parker, ThreadLifetime::WhileUsed)
        };
        // The work is given after the start: a thread that could not be started would drop it.
        match Builder::new().name(THREAD_NAME.to_owned()).spawn(run) {
            Ok(_) => {
                work_parker.give(work.into());
                Ok(())
            }
            Err(error) => {
                self.threads.remove();
                if let Some(suppressed) =
                    self.start_failures.try_pass(self.environment.handle.now())
                {
                    log_guarded!(
                        warn,
                        "no thread to go on with a loop, which blocks: {error} ({suppressed} such \
                         messages were suppressed)"
                    );
                }
                Err(work)
            }
        }
    }

    /// The main function of a thread: it does the work that it is given at this seat.
    pub(super) fn thread_main<P: StateCell<M, B>>(
        self: &Arc<Self>,
        work_parker: Arc<Parker<ThreadWork<M, B>>>,
        lifetime: ThreadLifetime,
    ) {
        let worker = &Worker::<M, B, P>::new(work_parker, lifetime);
        let mut next = worker.work_parker.wait();
        while let Some(work) = next {
            match work {
                ThreadWork::Loop(baton) => self.drive(baton, worker),
                ThreadWork::Call(call) => self.run_detached_call(*call, worker),
            }
            if lifetime == ThreadLifetime::CallerOwned {
                return;
            }
            next = self.thread_queue.park(&worker.work_parker, self.blocking.idle_time());
        }
        self.threads.remove();
    }
}
