//! The threads of a loop that is handed over, and what each does.

use std::sync::Arc;

use super::berth::Berth;
use super::worker::{Stays, Worker};
use super::{Baton, Relay};
use crate::backend::Backend;
use crate::blocking::Seat;
use crate::guard::log_guarded;
use crate::machine::Machine;
use crate::sync::thread::Builder;

/// What systems show of a thread is 15 bytes.
const NAME: &str = "rotor-spare";

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
            move || (relay.live)(&relay, seat, Stays::WhileOfUse)
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

    /// What a thread does with what it is given at this seat.
    pub(super) fn live<P: Berth<M, B>>(
        self: &Arc<Self>,
        seat: Arc<Seat<Baton<M, B>>>,
        stays: Stays,
    ) {
        let worker = &Worker::<M, B, P>::new(seat);
        let mut next = worker.seat.wait();
        while let Some(baton) = next {
            self.drive(baton, worker);
            if stays == Stays::ForThis {
                return;
            }
            next = self.line.park(&worker.seat, self.blocking.idle_time());
        }
        self.threads.end();
    }
}
