//! The threads of a loop that is handed over, and what each does.

use std::sync::Arc;

use super::Relay;
use super::berth::Berth;
use super::given::Given;
use super::worker::{Stays, Worker};
use crate::backend::Backend;
use crate::blocking::Parker;
use crate::guard::log_guarded;
use crate::machine::Machine;
use crate::sync::thread::Builder;

/// Systems show at most 15 bytes of a thread's name.
const NAME: &str = "rotor-spare";

impl<M, B> Relay<M, B>
where
    M: Machine<Seed: Send, Context: Send> + Send + 'static,
    B: Backend<Handle: Send + Sync> + Send + 'static,
{
    /// Starts a thread that goes on with the loop, or makes a call for it.
    pub(super) fn start<W: Into<Given<M, B>>>(self: &Arc<Self>, work: W) -> Result<(), W> {
        if !self.threads.begin() {
            return Err(work);
        }
        let seat = Parker::new();
        let run = {
            let (relay, seat) = (self.clone(), seat.clone());
            move || (relay.live)(&relay, seat, Stays::WhileOfUse)
        };
        // The work is given after the start: a thread that could not be started would drop it.
        match Builder::new().name(NAME.to_owned()).spawn(run) {
            Ok(_) => {
                seat.give(work.into());
                Ok(())
            }
            Err(error) => {
                self.threads.end();
                log_guarded!(warn, "no thread to go on with a loop, which blocks: {error}");
                Err(work)
            }
        }
    }

    /// The main function of a thread: it does the work that it is given at this seat.
    pub(super) fn live<P: Berth<M, B>>(
        self: &Arc<Self>,
        seat: Arc<Parker<Given<M, B>>>,
        stays: Stays,
    ) {
        let worker = &Worker::<M, B, P>::new(seat);
        let mut next = worker.parked.wait();
        while let Some(given) = next {
            match given {
                Given::Loop(baton) => self.drive(baton, worker),
                Given::Call(call) => self.make_detached(*call, worker),
            }
            if stays == Stays::ForThis {
                return;
            }
            next = self.line.park(&worker.parked, self.blocking.idle_time());
        }
        self.threads.end();
    }
}
