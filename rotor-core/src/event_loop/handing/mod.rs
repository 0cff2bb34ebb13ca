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
//! [`ThreadQueue`](crate::blocking::ThreadQueue): to the thread that has waited for it longest, or else to
//! a parked thread, or else to a new one.
//!
//! The thread that calls `run` has no handler on its stack. It waits until the loop has ended, so
//! it can return even if handlers are still away. `drive` is what the other threads do, and `hand`
//! what a handler's scope sees of it. `taking` and `detached` are for handlers that do not declare
//! that they block.

mod baton;
mod berth;
mod call;
mod detached;
mod drive;
mod given;
#[cfg(rotor_handed)]
mod going_round;
mod hand;
mod late;
mod pulled_turn;
mod taking;
mod thread_count;
mod threads;
mod worker;

use std::io;
use std::sync::{Arc, PoisonError, Weak};

pub(super) use self::baton::{Baton, Rest};
use self::berth::Berth;
use self::berth::OpenPlace;
pub(super) use self::berth::{Open, Own};
use self::given::Given;
#[cfg(rotor_handed)]
pub(super) use self::going_round::OneTurn;
use self::late::LateAnswers;
pub(super) use self::pulled_turn::pulled_turn;
use self::thread_count::ThreadCount;
use self::worker::{Stays, Worker};
use super::handle::{Control, Exit};
use crate::backend::Backend;
use crate::blocking::{
    Blocking, Parker, RunnerHandle, Sections, TakeoverResult, ThreadQueue, WatchGuard,
};
use crate::environment::Environment;
use crate::machine::Machine;
use crate::sync::{Condvar, Mutex};

/// A loop that has ended, and the result.
type Ended<M, B> = (Baton<M, B>, io::Result<Exit>);

/// The state that the threads of one loop share.
pub(super) struct Relay<M: Machine, B: Backend> {
    line: ThreadQueue<Baton<M, B>, Given<M, B>>,
    environment: Arc<Environment<B::Handle>>,
    control: Arc<Control>,
    blocking: Blocking,
    threads: ThreadCount,
    sections: Arc<Sections>,
    /// The watchdog's view of the thread that runs the loop, while the loop is watched.
    runner: Mutex<Option<RunnerHandle>>,
    over: Mutex<Option<Ended<M, B>>>,
    is_over: Condvar,
    /// The main function of its threads, compiled for the way in which the loop moves between them.
    live: Live<M, B>,
    /// If the loop can be taken: makes another handle to the same context.
    share: Option<Share<M>>,
    /// The place from which the loop can be taken now.
    open: Mutex<Option<Weak<OpenPlace<M, B>>>>,
    late: LateAnswers<M>,
}

type Live<M, B> = fn(&Arc<Relay<M, B>>, Arc<Parker<Given<M, B>>>, Stays);

type Share<M> = fn(&<M as Machine>::Context) -> <M as Machine>::Context;

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
        Self::with(
            environment,
            control,
            blocking,
            |relay, seat, stays| relay.live::<Own<M, B>>(seat, stays),
            None,
        )
    }

    /// Creates it for a loop that can also be taken from handlers; `share` makes another handle to
    /// the same context.
    pub(super) fn taking(
        environment: Arc<Environment<B::Handle>>,
        control: Arc<Control>,
        blocking: Blocking,
        share: Share<M>,
    ) -> Arc<Relay<M, B>> {
        let live: Live<M, B> = |relay, seat, stays| relay.live::<Open<M, B>>(seat, stays);
        Self::with(environment, control, blocking, live, Some(share))
    }

    fn with(
        environment: Arc<Environment<B::Handle>>,
        control: Arc<Control>,
        blocking: Blocking,
        live: Live<M, B>,
        share: Option<Share<M>>,
    ) -> Arc<Relay<M, B>> {
        Arc::new(Relay {
            late: LateAnswers::new({
                let control = control.clone();
                move |are_any| control.set_late(are_any)
            }),
            live,
            share,
            open: Mutex::new(None),
            line: ThreadQueue::new({
                let control = control.clone();
                move |is_wanted| control.set_wanted(is_wanted)
            }),
            threads: ThreadCount::new(environment.blocks.clone(), blocking.thread_budget()),
            sections: Arc::default(),
            environment,
            control,
            blocking,
            runner: Mutex::new(None),
            over: Mutex::new(None),
            is_over: Condvar::new(),
        })
    }

    /// Lets other threads run the loop until it ends.
    pub(super) fn run(self: &Arc<Self>, mut baton: Baton<M, B>) -> Ended<M, B> {
        let watched = baton.rest.core.watch();
        self.show_runner(watched.as_ref());
        baton.rest.is_watched = watched.is_some();
        self.line.set_running(true);
        self.late.set_run(true);
        // Without another thread it runs here, and blocks when its handlers do.
        if let Err(baton) = self.pass(baton) {
            let seat = Parker::new();
            seat.give(Given::Loop(baton));
            (self.live)(self, seat, Stays::ForThis);
        }
        let mut over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = loop {
            match over.take() {
                Some(ended) => break ended,
                None => over = self.is_over.wait(over).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(over);
        self.line.set_running(false);
        self.late.set_run(false);
        self.show_runner(None);
        ended
    }

    /// Lets the watchdog take a baton that is lent for too long, and see which thread runs the
    /// loop.
    fn show_runner(self: &Arc<Self>, watched: Option<&WatchGuard>) {
        let runner = watched.map(|watched| {
            let relay: Weak<Self> = Arc::downgrade(self);
            let of_section = relay.clone();
            let rescue = move |seen| of_section.upgrade().map_or(0, |relay| relay.rescue(seen));
            let take = self.share.map(|_| {
                let take = move |call| match relay.upgrade() {
                    Some(relay) => relay.take_over(Some(call)),
                    None => TakeoverResult::NotTaken,
                };
                Box::new(take) as Box<dyn Fn(u64) -> TakeoverResult + Send + Sync>
            });
            watched.runner(self.sections.clone(), rescue, take)
        });
        *self.runner.lock().unwrap_or_else(PoisonError::into_inner) = runner;
    }

    /// Notes that this thread runs the loop from now on.
    fn runs_here<P: Berth<M, B>>(&self, worker: &Worker<M, B, P>) {
        if let Some(open) = worker.berth.open() {
            let open = Some(Arc::downgrade(open));
            *self.open.lock().unwrap_or_else(PoisonError::into_inner) = open;
        }
        if let Some(runner) = &*self.runner.lock().unwrap_or_else(PoisonError::into_inner) {
            runner.set_running_thread(worker.probe());
        }
    }

    /// Passes on a lent baton whose section turned out not to be short. Returns the value for the
    /// next call.
    fn rescue(self: &Arc<Self>, seen: u64) -> u64 {
        let (seen, lent) = self.line.take_lent(seen);
        if let Some(baton) = lent
            && let Err(baton) = self.pass(baton)
        {
            self.line.lend(baton);
        }
        seen
    }

    /// Gives the loop to a thread that waits for it, to a parked thread, or to a new one.
    fn pass(self: &Arc<Self>, baton: Baton<M, B>) -> Result<(), Baton<M, B>> {
        match self.line.give(baton) {
            Ok(()) => Ok(()),
            Err(baton) => self.start(baton),
        }
    }

    /// Notes that the loop has ended.
    fn end(&self, baton: Baton<M, B>, ended: io::Result<Exit>) {
        *self.over.lock().unwrap_or_else(PoisonError::into_inner) = Some((baton, ended));
        self.is_over.notify_one();
    }
}

impl<M: Machine, B: Backend> Relay<M, B> {
    /// Drops late answers with their machines, including those that arrive from now on.
    pub(super) fn close_late(&self) {
        self.late.close();
    }
}

/// Closes the relay on drop: handlers that are away when the loop is dropped do not come back to
/// it.
pub(super) struct Closes<M: Machine, B: Backend>(pub(super) Arc<Relay<M, B>>);

impl<M: Machine, B: Backend> Drop for Closes<M, B> {
    fn drop(&mut self) {
        self.0.line.close();
        self.0.close_late();
    }
}
