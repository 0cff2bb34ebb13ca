//! `Given`: the work for a parked thread.

use super::baton::Baton;
use crate::backend::Backend;
use crate::event_loop::dispatch::Terms;
use crate::event_loop::slots::LiftedMachine;
use crate::machine::Machine;
use crate::time::Time;

/// The loop, or a call to make for it.
pub(super) enum Given<M: Machine, B: Backend> {
    Loop(Baton<M, B>),
    Call(Box<Detached<M>>),
}

impl<M: Machine, B: Backend> From<Baton<M, B>> for Given<M, B> {
    fn from(baton: Baton<M, B>) -> Given<M, B> {
        Given::Loop(baton)
    }
}

impl<M: Machine, B: Backend> From<Box<Detached<M>>> for Given<M, B> {
    fn from(call: Box<Detached<M>>) -> Given<M, B> {
        Given::Call(call)
    }
}

/// A call to be made by another thread.
pub(super) struct Detached<M: Machine> {
    pub(super) lifted: LiftedMachine<M>,
    pub(super) terms: Terms<M>,
    pub(super) context: Box<M::Context>,
    /// When it was given away.
    pub(super) since: Time,
}
