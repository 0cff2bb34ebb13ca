//! `ThreadWork`: the work for a parked thread.

use super::baton::Baton;
use crate::backend::Backend;
use crate::event_loop::dispatch::IssuedCall;
use crate::machine::Machine;
use crate::time::Time;

/// The loop, or a call to make for it.
pub(super) enum ThreadWork<M: Machine, B: Backend> {
    Loop(Baton<M, B>),
    Call(Box<DetachedCall<M>>),
}

impl<M: Machine, B: Backend> From<Baton<M, B>> for ThreadWork<M, B> {
    fn from(baton: Baton<M, B>) -> ThreadWork<M, B> {
        ThreadWork::Loop(baton)
    }
}

impl<M: Machine, B: Backend> From<Box<DetachedCall<M>>> for ThreadWork<M, B> {
    fn from(call: Box<DetachedCall<M>>) -> ThreadWork<M, B> {
        ThreadWork::Call(call)
    }
}

/// A call to be made by another thread.
pub(super) struct DetachedCall<M: Machine> {
    pub(super) lifted: Option<M>,
    pub(super) issued: IssuedCall<M>,
    pub(super) context: Box<M::Context>,
    /// When it was given away.
    pub(super) since: Time,
}
