//! `Baton`: what goes from thread to thread.

use crate::backend::Backend;
use crate::blocking::{SectionTimes, Suspects};
use crate::event_loop::closures::Repeated;
use crate::event_loop::core::{Core, Progress};
use crate::machine::Machine;

/// All of a loop that goes from thread to thread.
pub(in crate::event_loop) struct Baton<M: Machine, B: Backend> {
    pub(in crate::event_loop) rest: Box<Rest<M, B>>,
    pub(in crate::event_loop) context: Box<M::Context>,
}

impl<M: Machine, B: Backend> Baton<M, B> {
    /// Does what is to be done for owners that have ended since closures were run.
    pub(in crate::event_loop) fn run_ends(&mut self) {
        self.rest.core.posts().run_ends(&mut self.context);
    }

    /// Drops the machines, and all but the context.
    pub(in crate::event_loop) fn into_context(self) -> Box<M::Context> {
        let Baton { rest, mut context } = self;
        let posts = rest.core.posts().clone();
        drop(rest);
        posts.run_ends(&mut context);
        posts.close_ends();
        context
    }
}

/// All but the context, which handlers have.
pub(in crate::event_loop) struct Rest<M: Machine, B: Backend> {
    // First, so that the machines are dropped while all else still lives.
    pub(in crate::event_loop) core: Core<M, B>,
    pub(in crate::event_loop) repeated: Repeated<M>,
    pub(in crate::event_loop) progress: Progress,
    pub(in crate::event_loop) sections: SectionTimes,
    /// Somebody takes what is lent for too long.
    pub(in crate::event_loop) is_watched: bool,
    /// Where the loop may be taken: those from which it was.
    pub(in crate::event_loop) suspects: Suspects,
    /// The same: what the next thread has for its context.
    pub(in crate::event_loop) next_context: Option<Box<M::Context>>,
    /// It is to take one turn.
    #[cfg(rotor_handed)]
    pub(in crate::event_loop) is_one_turn: bool,
}

impl<M: Machine, B: Backend> Rest<M, B> {
    pub(in crate::event_loop) fn new(core: Core<M, B>) -> Rest<M, B> {
        let (progress, sections) = (Progress::default(), SectionTimes::default());
        let (repeated, is_watched) = (Repeated::new(), false);
        Rest {
            core,
            repeated,
            progress,
            sections,
            is_watched,
            suspects: Suspects::default(),
            next_context: None,
            #[cfg(rotor_handed)]
            is_one_turn: false,
        }
    }
}
