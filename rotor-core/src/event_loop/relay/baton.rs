//! `Baton`: the parts of a loop that move from thread to thread.

use crate::backend::Backend;
use crate::blocking::{SectionTimes, Suspects};
use crate::event_loop::closures::RepeatedClosures;
use crate::event_loop::core::{Core, TurnProgress};
use crate::machine::Machine;
use crate::token::Token;

/// Everything of a loop that moves from thread to thread.
pub(in crate::event_loop) struct Baton<M: Machine, B: Backend> {
    pub(in crate::event_loop) loop_state: Box<LoopState<M, B>>,
    pub(in crate::event_loop) context: Box<M::Context>,
}

impl<M: Machine, B: Backend> Baton<M, B> {
    /// Runs the functions of `ReturnOnDrop` values that were dropped since closures were run.
    pub(in crate::event_loop) fn run_end_functions(&mut self) {
        self.loop_state.core.posts().run_end_functions(&mut self.context);
    }

    /// Drops the machines, and everything but the context.
    pub(in crate::event_loop) fn into_context(self) -> Box<M::Context> {
        let Baton { loop_state, mut context } = self;
        let posts = loop_state.core.posts().clone();
        drop(loop_state);
        posts.run_end_functions(&mut context);
        posts.close_end_functions();
        context
    }
}

/// Everything but the context, which is lent to handlers.
pub(in crate::event_loop) struct LoopState<M: Machine, B: Backend> {
    // The first field, so that the machines are dropped while everything else still exists.
    pub(in crate::event_loop) core: Core<M, B>,
    pub(in crate::event_loop) repeated: RepeatedClosures<M>,
    pub(in crate::event_loop) progress: TurnProgress,
    pub(in crate::event_loop) sections: SectionTimes,
    /// Whether the watchdog takes a baton that is lent for too long.
    pub(in crate::event_loop) is_watched: bool,
    /// The machine whose section has lent the baton, until another thread takes it.
    pub(in crate::event_loop) lender: Option<Token>,
    /// If the loop was taken from a handler: the type of its machine, until another thread has the
    /// loop, and counts that.
    pub(in crate::event_loop) taken_from: Option<&'static str>,
    /// Whether the watchdog found no thread for a lent baton, so that a section blocks the loop.
    pub(in crate::event_loop) was_refused: bool,
    /// If the loop can be taken: the types of the handlers from which it was taken.
    pub(in crate::event_loop) suspects: Suspects,
    /// If the loop can be taken: the context for the next thread.
    pub(in crate::event_loop) next_context: Option<Box<M::Context>>,
    /// Whether to take only one turn.
    #[cfg(rotor_handed)]
    pub(in crate::event_loop) is_one_turn: bool,
}

impl<M: Machine, B: Backend> LoopState<M, B> {
    pub(in crate::event_loop) fn new(core: Core<M, B>) -> LoopState<M, B> {
        let (progress, sections) = (TurnProgress::default(), SectionTimes::default());
        let (repeated, is_watched) = (RepeatedClosures::new(), false);
        LoopState {
            core,
            repeated,
            progress,
            sections,
            is_watched,
            lender: None,
            taken_from: None,
            was_refused: false,
            suspects: Suspects::default(),
            next_context: None,
            #[cfg(rotor_handed)]
            is_one_turn: false,
        }
    }
}
