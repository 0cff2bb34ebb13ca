//! `Core`: everything of a loop but the environment and the context, in one value that could be
//! handed to another thread while a handler blocks.
//!
//! ```text
//!   Core ── backend
//!     ├──── dispatch ── slots, run queue      calls machines
//!     ├──── drain, room, posts, verdicts     what else a turn does
//! ```

use std::collections::TryReserveError;
use std::sync::Arc;

use super::broadcast::Posts;
use super::dispatch::Dispatch;
use super::drain::Drain;
use super::machines::{Machines, Verdicts};
use super::room_maker::RoomMaker;
use super::run_queue::RunQueue;
use super::slots::Slots;
use crate::backend::BackendHandle;
use crate::environment::Environment;
use crate::scope::AnyEnvironment;
use crate::stats::Counters;
use crate::sync::mpsc;
use crate::wake_queue::{PartWake, WakeQueue};
use crate::{Config, Infallible, Machine, Response, SpawnError, Time, Token};

pub(super) struct Core<M: Machine, B> {
    pub(super) backend: B,
    pub(super) config: Config,
    pub(super) dispatch: Dispatch<M>,
    pub(super) drain: Drain,
    pub(super) room: RoomMaker,
    pub(super) posts: Arc<Posts<M>>,
    pub(super) verdicts: Verdicts,
}

impl<M: Machine, B> Core<M, B> {
    /// What a loop begins with. Fails where there is no memory for its slots.
    pub(super) fn new(
        backend: B,
        config: Config,
        wakes: Arc<WakeQueue>,
        parts: mpsc::Receiver<PartWake>,
        counters: Counters,
        now: Time,
    ) -> Result<Core<M, B>, TryReserveError> {
        let slots = Slots::new(config.machines_max, wakes.clone(), now)?;
        Ok(Core {
            backend,
            dispatch: Dispatch::new(slots, RunQueue::new(wakes.clone(), parts), counters),
            drain: Drain::default(),
            room: RoomMaker::default(),
            posts: Arc::new(Posts::new(config.posts_max, wakes)),
            verdicts: Verdicts::new(config.scan_budget),
            config,
        })
    }

    /// Makes a machine by a closure that is given its token.
    pub(super) fn make<H: BackendHandle>(
        &mut self,
        environment: &Environment<H>,
        make: impl FnOnce(Token) -> Response<M>,
    ) -> Result<Token, SpawnError<Infallible>> {
        self.dispatch.make(environment, &self.config, make)
    }

    /// Makes a machine from a seed that comes from outside.
    pub(super) fn create(
        &mut self,
        context: &mut M::Context,
        environment: &AnyEnvironment,
        seed: M::Seed,
    ) -> Result<Token, SpawnError<M::Seed>> {
        self.dispatch.create(context, environment, &self.config, None, seed)
    }

    /// All machines, as they are shown to closures between handlers.
    pub(super) fn machines(&mut self) -> Machines<'_, M> {
        self.verdicts.machines(self.dispatch.slots())
    }
}

impl<M: Machine, B> Drop for Core<M, B> {
    fn drop(&mut self) {
        self.dispatch.queue().wakes().close();
        self.posts.close();
    }
}

/// The core may go to another thread, where machines, seeds and backend may.
const fn _is_send<M: Machine<Seed: Send> + Send, B: Send>() {
    const fn needs<T: Send>() {}
    needs::<Core<M, B>>();
}
