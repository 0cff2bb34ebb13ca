//! `Core`: everything of a loop except the environment and the context, in one value that can be
//! moved to another thread while a handler blocks.
//!
//! `doc/architecture.md` shows which part contains what ("A loop has three owners").

mod exit;
mod pulled;
mod turn;
mod waiting;

pub(in crate::event_loop) use self::pulled::{NextAction, TurnProgress};
use std::collections::TryReserveError;
use std::convert::Infallible;
use std::sync::Arc;

use crate::blocking::{Blocking, WatchGuard};
use crate::config::Config;
use crate::event_loop::broadcast::PostQueue;
use crate::event_loop::dispatch::Dispatch;
use crate::event_loop::drain::DrainProgress;
use crate::event_loop::drop_on_drain::DropOnDrain;
use crate::event_loop::machines::{Machines, Verdicts};
use crate::event_loop::room_search::RoomSearch;
use crate::event_loop::run_queue::RunQueue;
use crate::event_loop::scheduler::Scheduler;
use crate::event_loop::slots::Slots;
use crate::log_limit::LogLimit;
use crate::machine::Machine;
use crate::response::Response;
use crate::scope::AnyEnvironment;
use crate::spawn_error::SpawnError;
use crate::stats::Counters;
use crate::sync::mpsc;
use crate::time::Time;
use crate::token::Token;
use crate::wake_queue::{PartWake, WakeQueue};

pub(in crate::event_loop) struct Core<M: Machine, B> {
    // The first field, so that it is dropped first: machines deregister their sources with the
    // backend, and their failures are reported to the observer in the config.
    dispatch: Dispatch<M>,
    backend: B,
    config: Config,
    drain: DrainProgress,
    room: RoomSearch,
    posts: Arc<PostQueue<M>>,
    verdicts: Verdicts,
    drop_on_drain: Arc<DropOnDrain>,
    /// Of the message that a machine's request to stop is refused, which each event may repeat.
    refused_stops: LogLimit,
}

impl<M: Machine, B> Core<M, B> {
    /// Creates the core of a new loop. Fails if there is not enough memory for its slots.
    pub(in crate::event_loop) fn new(
        backend: B,
        config: Config,
        wakes: Arc<WakeQueue>,
        drop_on_drain: Arc<DropOnDrain>,
        parts: mpsc::Receiver<PartWake>,
        counters: Counters,
        now: Time,
    ) -> Result<Core<M, B>, TryReserveError> {
        counters.record_creation(now, config.machines_max);
        let mut slots = Slots::new(config.machines_max, wakes.clone(), now)?;
        if config.keep_ages {
            slots.keep_ages();
        }
        Ok(Core {
            backend,
            dispatch: Dispatch::new(
                Scheduler::new(slots, RunQueue::new(wakes.clone(), parts, now)),
                counters,
            ),
            drain: DrainProgress::default(),
            room: RoomSearch::default(),
            posts: Arc::new(PostQueue::new(config.posts_max, wakes)),
            verdicts: Verdicts::new(config.scan_budget),
            drop_on_drain,
            refused_stops: LogLimit::default(),
            config,
        })
    }

    /// Makes a machine by a closure that gets its token.
    pub(in crate::event_loop) fn create_with(
        &mut self,
        environment: &AnyEnvironment,
        make: impl FnOnce(Token) -> Response<M>,
    ) -> Result<Token, SpawnError<Infallible>> {
        let created =
            self.dispatch.create_with(environment, &self.config, None, (), |token, ()| make(token));
        created.map_err(|SpawnError { cause, .. }| SpawnError { cause, seed: None })
    }

    /// Makes a machine from a seed that comes from outside the loop.
    pub(in crate::event_loop) fn create_from_seed(
        &mut self,
        context: &mut M::Context,
        environment: &AnyEnvironment,
        seed: M::Seed,
    ) -> Result<Token, SpawnError<M::Seed>> {
        self.dispatch.create_from_seed(context, environment, &self.config, None, seed)
    }

    /// Starts watching the loop, if so configured, while it runs on this thread.
    pub(in crate::event_loop) fn watch(&mut self) -> Option<WatchGuard> {
        if cfg!(rotor_loom) {
            // A watchdog lives in real time, which the models do not have.
            return None;
        }
        let (watch, watchdog) = self.config.blocking.as_ref()?.watch();
        let wakes = self.dispatch.queue().wakes().clone();
        let (heartbeat, watched) =
            watch.start(watchdog, self.dispatch.monitor().counters().lag_counters(), wakes)?;
        self.dispatch.monitor_mut().set_heartbeat(heartbeat);
        Some(watched)
    }

    /// Returns the settings for handlers that block: those of the config, or else the defaults.
    pub(in crate::event_loop) fn enable_blocking(&mut self) -> Blocking {
        self.config.blocking.get_or_insert_default().clone()
    }

    #[cfg(rotor_handed)]
    pub(in crate::event_loop) fn blocking(&self) -> Blocking {
        self.config.blocking.clone().unwrap_or_default()
    }

    pub(in crate::event_loop) fn backend(&self) -> &B {
        &self.backend
    }

    /// Returns the queue of posts from other threads.
    pub(in crate::event_loop) fn posts(&self) -> &Arc<PostQueue<M>> {
        &self.posts
    }

    /// Returns the machines, to be changed between calls.
    pub(in crate::event_loop) fn dispatch_mut(&mut self) -> &mut Dispatch<M> {
        &mut self.dispatch
    }

    pub(in crate::event_loop) fn dispatch(&self) -> &Dispatch<M> {
        &self.dispatch
    }

    /// Returns all machines, for closures between handlers.
    pub(in crate::event_loop) fn machines(&mut self) -> Machines<'_, M> {
        self.verdicts.machines(self.dispatch.slots())
    }
}

impl<M: Machine, B> Drop for Core<M, B> {
    fn drop(&mut self) {
        // First, so that nothing that is dropped from here on wakes the loop.
        self.dispatch.queue().wakes().close();
        self.posts.close();
        self.drop_on_drain.drop_all();
    }
}

/// Asserts at compile time that the core is `Send` if the machines, seeds and backend are. The
/// threads of `relay` require the same of the rest of a loop.
const fn _is_send_where_its_parts_are<M: Machine<Seed: Send> + Send, B: Send>() {
    const fn is_send<T: Send>() {}
    is_send::<Core<M, B>>();
}
