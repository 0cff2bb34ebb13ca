//! The threads of a loop that is handed over: how many, and what each does.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::{Baton, Relay};
use crate::backend::Backend;
use crate::blocking::{BlockCounts, Seat, ThreadBudget};
use crate::guard::log_guarded;
use crate::machine::Machine;
use crate::sync::thread::Builder;

/// What systems show of a thread is 15 bytes.
const NAME: &str = "rotor-spare";

/// How many threads there are. The first of a loop is free: without it nothing runs. All others are
/// of one budget with those of the other loops.
pub(in crate::event_loop) struct Threads {
    now: AtomicUsize,
    counts: Arc<BlockCounts>,
    budget: Arc<ThreadBudget>,
}

impl Threads {
    pub(super) fn new(counts: Arc<BlockCounts>, budget: Arc<ThreadBudget>) -> Threads {
        Threads { now: AtomicUsize::new(0), counts, budget }
    }

    /// Notes one more, if that may be.
    fn begin(&self) -> bool {
        if self.now.fetch_add(1, Relaxed) > 0 && !self.budget.take() {
            self.now.fetch_sub(1, Relaxed);
            return false;
        }
        self.counts.thread_began();
        true
    }

    fn end(&self) {
        self.counts.thread_ended();
        if self.now.fetch_sub(1, Relaxed) > 1 {
            self.budget.give_back();
        }
    }
}

impl<M, B> Relay<M, B>
where
    M: Machine<Seed: Send, Context: Send> + Send + 'static,
    B: Backend<Handle: Send + Sync> + Send + 'static,
{
    /// Starts a thread that goes on with the loop.
    pub(super) fn start(self: &Arc<Self>, baton: Baton<M, B>) -> Result<(), Baton<M, B>> {
        if !self.threads.begin() {
            return Err(baton);
        }
        let seat = Seat::new();
        let run = {
            let (relay, seat) = (self.clone(), seat.clone());
            move || relay.live(&seat)
        };
        // Before it is given anything: a thread that is not started drops what it was to do.
        match Builder::new().name(NAME.to_owned()).spawn(run) {
            Ok(_) => {
                seat.give(baton);
                Ok(())
            }
            Err(error) => {
                self.threads.end();
                log_guarded!(warn, "no thread to go on with a loop, which blocks: {error}");
                Err(baton)
            }
        }
    }

    /// What such a thread does, until it has been of no use for a while.
    fn live(self: &Arc<Self>, seat: &Arc<Seat<Baton<M, B>>>) {
        let mut next = seat.wait();
        while let Some(baton) = next {
            self.drive_on(baton, seat);
            next = self.line.park(seat, self.blocking.idle_time());
        }
        self.threads.end();
    }
}
