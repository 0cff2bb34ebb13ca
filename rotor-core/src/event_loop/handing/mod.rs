//! Handing over: a loop that other threads go on with while one of its handlers blocks.
//!
//! ```text
//!   thread 1: handler ── blocking(f) ──┬── f ───────────┬── takes the loop back ── rest of the handler ──▶
//!                                      │ gives the loop │ waits in line, and has the runner look
//!   thread 2: (parked) ────────────────┴── all others ──┴── gives it back, parks
//! ```
//!
//! What is given is a [`Baton`]: core and context. There is one, so handlers never overlap, but for
//! the sections that block. It goes through a [`Line`](crate::blocking::Line): to who waits for it,
//! first come first served, else to a parked thread, else to a new one.
//!
//! The thread that calls `run` has no handler on its stack: it waits until the loop has ended, so it
//! is free to say so whoever is still away. `drive` is what the others do, `hand` what a handler's
//! scope sees of it.

mod drive;
mod hand;
mod pulled_turn;
mod thread_count;
mod threads;
mod worker;

use std::io;
use std::sync::{Arc, PoisonError, Weak};

pub(super) use self::pulled_turn::pulled_turn;
use self::thread_count::ThreadCount;
use self::worker::Worker;
use super::closures::Repeated;
use super::core::{Core, Progress};
use super::handle::{Control, Exit};
use crate::backend::Backend;
use crate::blocking::{Blocking, Line, Runner, SectionTimes, Sections, Watched};
use crate::environment::Environment;
use crate::machine::Machine;
use crate::sync::{Condvar, Mutex};

/// All of a loop that goes from thread to thread.
pub(super) struct Baton<M: Machine, B: Backend> {
    pub(super) rest: Box<Rest<M, B>>,
    pub(super) context: Box<M::Context>,
}

/// All but the context, which handlers have.
pub(super) struct Rest<M: Machine, B: Backend> {
    // First, so that the machines are dropped while all else still lives.
    pub(super) core: Core<M, B>,
    pub(super) repeated: Repeated<M>,
    pub(super) progress: Progress,
    pub(super) sections: SectionTimes,
    /// Somebody takes what is lent for too long.
    pub(super) is_watched: bool,
}

impl<M: Machine, B: Backend> Rest<M, B> {
    pub(super) fn new(core: Core<M, B>) -> Rest<M, B> {
        let (progress, sections) = (Progress::default(), SectionTimes::default());
        Rest { core, repeated: Repeated::new(), progress, sections, is_watched: false }
    }
}

/// A loop that has ended, and how.
type Ended<M, B> = (Baton<M, B>, io::Result<Exit>);

/// What the threads of one loop share.
pub(super) struct Relay<M: Machine, B: Backend> {
    line: Line<Baton<M, B>>,
    environment: Arc<Environment<B::Handle>>,
    control: Arc<Control>,
    blocking: Blocking,
    threads: ThreadCount,
    sections: Arc<Sections>,
    /// Who is told which thread runs the loop, while that is watched.
    runner: Mutex<Option<Runner>>,
    over: Mutex<Option<Ended<M, B>>>,
    is_over: Condvar,
}

impl<M, B> Relay<M, B>
where
    M: Machine<Seed: Send, Context: Send> + Send + 'static,
    B: Backend<Handle: Send + Sync> + Send + 'static,
{
    pub(super) fn new(
        environment: Arc<Environment<B::Handle>>,
        control: Arc<Control>,
        blocking: Blocking,
    ) -> Arc<Relay<M, B>> {
        Arc::new(Relay {
            line: Line::new({
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

    /// Has other threads run the loop until it ends.
    pub(super) fn run(self: &Arc<Self>, mut baton: Baton<M, B>) -> Ended<M, B> {
        let watched = baton.rest.core.watch();
        self.show_runner(watched.as_ref());
        baton.rest.is_watched = watched.is_some();
        self.line.set_run(true);
        // Without a thread it goes on here, and blocks where its handlers do.
        if let Err(baton) = self.pass(baton) {
            self.drive(baton);
        }
        let mut over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = loop {
            match over.take() {
                Some(ended) => break ended,
                None => over = self.is_over.wait(over).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(over);
        self.line.set_run(false);
        self.show_runner(None);
        ended
    }

    /// Has the watchdog take what is lent for too long, and see who runs the loop.
    fn show_runner(self: &Arc<Self>, watched: Option<&Watched>) {
        let runner = watched.map(|watched| {
            let relay: Weak<Self> = Arc::downgrade(self);
            watched.runner(self.sections.clone(), move |seen| {
                relay.upgrade().map_or(0, |relay| relay.rescue(seen))
            })
        });
        *self.runner.lock().unwrap_or_else(PoisonError::into_inner) = runner;
    }

    /// This thread runs the loop from now on.
    fn runs_here(&self, worker: &Worker<Baton<M, B>>) {
        if let Some(runner) = &*self.runner.lock().unwrap_or_else(PoisonError::into_inner) {
            runner.is_here(worker.probe());
        }
    }

    /// A section that was to be short is not: another thread goes on. Returns what to ask with the
    /// next time.
    fn rescue(self: &Arc<Self>, seen: u64) -> u64 {
        let (seen, lent) = self.line.take_lent(seen);
        if let Some(baton) = lent
            && let Err(baton) = self.pass(baton)
        {
            self.line.lend(baton);
        }
        seen
    }

    /// Gives the loop to who waits for it, to a parked thread, or to a new one.
    fn pass(self: &Arc<Self>, baton: Baton<M, B>) -> Result<(), Baton<M, B>> {
        match self.line.give(baton) {
            Ok(()) => Ok(()),
            Err(baton) => self.start(baton),
        }
    }

    /// The loop has ended.
    fn end(&self, baton: Baton<M, B>, ended: io::Result<Exit>) {
        *self.over.lock().unwrap_or_else(PoisonError::into_inner) = Some((baton, ended));
        self.is_over.notify_one();
    }
}

/// The handlers that are away when the loop is dropped do not come back to it.
pub(super) struct Closes<M: Machine, B: Backend>(pub(super) Arc<Relay<M, B>>);

impl<M: Machine, B: Backend> Drop for Closes<M, B> {
    fn drop(&mut self) {
        self.0.line.close();
    }
}
