//! Handing over: other threads go on with a loop while one of its handlers blocks.
//!
//! ```text
//!   thread 1: handler ── blocking(f) ──┬── f ───────────┬── takes the loop back ── rest of the handler ──▶
//!                                      │ gives the loop │ waits in line, and has the runner look
//!   thread 2: (parked) ────────────────┴── all others ──┴── gives it back, parks
//! ```
//!
//! The value that moves between threads is a [`Baton`]: core and context. There is only one, so
//! handlers never overlap, except in the sections that block. It is passed through a
//! [`ThreadQueue`](crate::blocking::ThreadQueue): to the thread that has waited for it longest, or
//! else to a parked thread, or else to a new one.
//!
//! The thread that calls `run` has no handler on its stack. It waits until the loop has ended, so
//! it can return even if handlers are still detached. `drive` is what the other threads do, and
//! `loop_hand_over` what a handler's scope sees of it. `takeover` and `detached_call` are for
//! handlers that do not declare that they block.

mod baton;
mod call;
mod detached_call;
mod drive;
mod late_answers;
mod loop_hand_over;
mod pulled_turn;
mod state_cell;
mod takeover;
mod thread_count;
#[cfg(rotor_handed)]
mod thread_rotation;
mod thread_work;
mod threads;
mod worker;

use std::io;
use std::sync::{Arc, PoisonError, Weak};

pub(super) use self::baton::{Baton, LoopState};
use self::late_answers::LateAnswers;
pub(super) use self::pulled_turn::take_pulled_turn;
use self::state_cell::SharedState;
use self::state_cell::StateCell;
pub(super) use self::state_cell::{LocalCell, SharedCell};
use self::thread_count::ThreadCount;
#[cfg(rotor_handed)]
pub(super) use self::thread_rotation::OneTurnError;
use self::thread_work::ThreadWork;
use self::worker::{ThreadLifetime, Worker};
use super::handle::{Control, Exit};
use crate::backend::Backend;
use crate::blocking::{
    Blocking, Parker, RunnerHandle, Sections, TakeoverResult, ThreadQueue, WatchGuard,
};
use crate::environment::Environment;
use crate::log_limit::LogLimit;
use crate::machine::Machine;
use crate::sync::{Condvar, Mutex};

/// A loop that has ended, and the result.
type EndedLoop<M, B> = (Baton<M, B>, io::Result<Exit>);

/// The state that the threads of one loop share.
pub(super) struct Relay<M: Machine, B: Backend> {
    thread_queue: ThreadQueue<Baton<M, B>, ThreadWork<M, B>>,
    environment: Arc<Environment<B::Handle>>,
    control: Arc<Control>,
    blocking: Blocking,
    threads: ThreadCount,
    sections: Arc<Sections>,
    /// The watchdog's view of the thread that runs the loop, while the loop is watched.
    runner: Mutex<Option<RunnerHandle>>,
    ended: Mutex<Option<EndedLoop<M, B>>>,
    ended_condvar: Condvar,
    /// The main function of its threads, compiled for the way in which the loop moves between them.
    thread_main: ThreadMain<M, B>,
    /// If the loop can be taken: makes another handle to the same context.
    share_context: Option<ShareContext<M>>,
    /// The place from which the loop can be taken now.
    shared_state: Mutex<Option<Weak<SharedState<M, B>>>>,
    late: LateAnswers<M>,
    /// Of the message that no thread can be started, which each section may repeat.
    start_failures: LogLimit,
}

type ThreadMain<M, B> = fn(&Arc<Relay<M, B>>, Arc<Parker<ThreadWork<M, B>>>, ThreadLifetime);

type ShareContext<M> = fn(&<M as Machine>::Context) -> <M as Machine>::Context;

impl<M, B> Relay<M, B>
where
    M: Machine<Seed: Send, Context: Send> + Send + 'static,
    B: Backend<Handle: Send + Sync> + Send + 'static,
{
    /// Creates it for a loop that handlers give away.
    pub(super) fn new(
        environment: Arc<Environment<B::Handle>>,
        control: Arc<Control>,
        blocking: Blocking,
    ) -> Arc<Relay<M, B>> {
        Self::build(
            environment,
            control,
            blocking,
            |relay, work_parker, lifetime| {
                relay.thread_main::<LocalCell<M, B>>(work_parker, lifetime)
            },
            None,
        )
    }

    /// Creates it for a loop that can also be taken from handlers; `share_context` makes another
    /// handle to the same context.
    pub(super) fn with_takeover(
        environment: Arc<Environment<B::Handle>>,
        control: Arc<Control>,
        blocking: Blocking,
        share_context: ShareContext<M>,
    ) -> Arc<Relay<M, B>> {
        let thread_main: ThreadMain<M, B> = |relay, work_parker, lifetime| {
            relay.thread_main::<SharedCell<M, B>>(work_parker, lifetime)
        };
        Self::build(environment, control, blocking, thread_main, Some(share_context))
    }

    fn build(
        environment: Arc<Environment<B::Handle>>,
        control: Arc<Control>,
        blocking: Blocking,
        thread_main: ThreadMain<M, B>,
        share_context: Option<ShareContext<M>>,
    ) -> Arc<Relay<M, B>> {
        Arc::new(Relay {
            late: LateAnswers::new({
                let control = control.clone();
                move |has_any| control.set_late_answers(has_any)
            }),
            thread_main,
            share_context,
            shared_state: Mutex::new(None),
            thread_queue: ThreadQueue::new({
                let control = control.clone();
                move |is_wanted| control.set_loop_wanted(is_wanted)
            }),
            threads: ThreadCount::new(environment.blocks.clone(), blocking.thread_budget()),
            sections: Arc::default(),
            environment,
            control,
            blocking,
            runner: Mutex::new(None),
            ended: Mutex::new(None),
            ended_condvar: Condvar::new(),
            start_failures: LogLimit::default(),
        })
    }

    /// Lets other threads run the loop until it ends.
    pub(super) fn run(self: &Arc<Self>, mut baton: Baton<M, B>) -> EndedLoop<M, B> {
        let watched = baton.loop_state.core.watch();
        self.publish_runner(watched.as_ref());
        // In the models there is no watchdog, and `LoopInstance::rescuer` decides.
        if !cfg!(rotor_loom) {
            baton.loop_state.is_watched = watched.is_some();
        }
        self.thread_queue.set_running(true);
        self.late.set_running(true);
        // Without another thread it runs here, and blocks when its handlers do.
        if let Err(baton) = self.pass_on(baton) {
            let work_parker = Parker::new();
            work_parker.give(ThreadWork::Loop(baton));
            (self.thread_main)(self, work_parker, ThreadLifetime::CallerOwned);
        }
        let mut ended_loop = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = loop {
            match ended_loop.take() {
                Some(ended) => break ended,
                None => {
                    ended_loop =
                        self.ended_condvar.wait(ended_loop).unwrap_or_else(PoisonError::into_inner)
                }
            }
        };
        drop(ended_loop);
        self.thread_queue.set_running(false);
        self.late.set_running(false);
        self.publish_runner(None);
        ended
    }

    /// Lets the watchdog take a baton that is lent for too long, and see which thread runs the
    /// loop.
    fn publish_runner(self: &Arc<Self>, watched: Option<&WatchGuard>) {
        let runner = watched.map(|watched| {
            let relay: Weak<Self> = Arc::downgrade(self);
            let of_section = relay.clone();
            let pass_on_lent =
                move |seen| of_section.upgrade().map_or(0, |relay| relay.pass_on_lent(seen));
            let take = self.share_context.map(|_| {
                let take = move |call| match relay.upgrade() {
                    Some(relay) => relay.take_over(Some(call)),
                    None => TakeoverResult::NotTaken,
                };
                Box::new(take) as Box<dyn Fn(u64) -> TakeoverResult + Send + Sync>
            });
            watched.runner(self.sections.clone(), pass_on_lent, take)
        });
        *self.runner.lock().unwrap_or_else(PoisonError::into_inner) = runner;
    }

    /// Notes that this thread runs the loop from now on.
    fn set_running_thread<P: StateCell<M, B>>(&self, worker: &Worker<M, B, P>) {
        if let Some(shared_state) = worker.state_cell.shared() {
            let shared_state = Some(Arc::downgrade(shared_state));
            *self.shared_state.lock().unwrap_or_else(PoisonError::into_inner) = shared_state;
        }
        if let Some(runner) = &*self.runner.lock().unwrap_or_else(PoisonError::into_inner) {
            runner.set_running_thread(worker.probe());
        }
    }

    /// Passes on a lent baton whose section turned out not to be short. Returns the value for the
    /// next call.
    pub(in crate::event_loop) fn pass_on_lent(self: &Arc<Self>, seen: u64) -> u64 {
        let (seen, lent) = self.thread_queue.take_lent(seen);
        if let Some(mut baton) = lent {
            baton.loop_state.was_refused = false;
            if let Err(mut baton) = self.pass_on(baton) {
                baton.loop_state.was_refused = true;
                self.thread_queue.lend(baton);
            }
        }
        seen
    }

    /// Gives the loop to a thread that waits for it, to a parked thread, or to a new one.
    fn pass_on(self: &Arc<Self>, baton: Baton<M, B>) -> Result<(), Baton<M, B>> {
        match self.thread_queue.give(baton) {
            Ok(()) => Ok(()),
            Err(baton) => self.start_thread(baton),
        }
    }

    /// Notes that the loop has ended.
    fn record_end(&self, baton: Baton<M, B>, ended: io::Result<Exit>) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some((baton, ended));
        self.ended_condvar.notify_one();
    }
}

impl<M: Machine, B: Backend> Relay<M, B> {
    /// Drops late answers with their machines, including those that arrive from now on.
    pub(super) fn close_late_answers(&self) {
        self.late.close();
    }
}

/// Closes the relay on drop: handlers that are detached when the loop is dropped do not come back
/// to it.
pub(super) struct RelayGuard<M: Machine, B: Backend>(pub(super) Arc<Relay<M, B>>);

impl<M: Machine, B: Backend> Drop for RelayGuard<M, B> {
    fn drop(&mut self) {
        self.0.thread_queue.close();
        self.0.close_late_answers();
    }
}
