//! With `--cfg rotor_handed`, every loop changes its thread all the time: see
//! `relay/thread_rotation.rs`.

use std::io;

use super::LoopInstance;
use super::handle::Exit;
use super::relay::{OneTurnError, Relay, RelayGuard};
use super::run_queue::WaitMode;
use crate::backend::Backend;
use crate::machine::Machine;

impl<M, B> LoopInstance<M, B>
where
    M: Machine<Seed: Send, Context: Send> + Send + 'static,
    B: Backend<Handle: Send + Sync> + Send + 'static,
{
    pub(super) fn rotating_threads(mut self) -> LoopInstance<M, B> {
        // Watched only if the config says so, as on one thread.
        let blocking = self.core().blocking();
        let relay = Relay::new(self.environment.clone(), self.control.clone(), blocking);
        self.relay = Some(RelayGuard(relay));
        self.run = Some(LoopInstance::run_on_threads);
        self.turn = Some(LoopInstance::turn_on_threads);
        self
    }

    fn turn_on_threads(&mut self, wait: WaitMode) -> io::Result<Option<Exit>> {
        self.set_one_turn(Some(wait));
        let ended = self.run_on_threads();
        self.set_one_turn(None);
        match ended {
            Ok(exit) => Ok(Some(exit)),
            Err(error) if error.get_ref().is_some_and(|error| error.is::<OneTurnError>()) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn set_one_turn(&mut self, wait: Option<WaitMode>) {
        if let Some(baton) = &mut self.baton {
            baton.loop_state.is_one_turn = wait.is_some();
            baton.loop_state.progress.set_wait(wait.unwrap_or(WaitMode::AtPace));
        }
    }
}
