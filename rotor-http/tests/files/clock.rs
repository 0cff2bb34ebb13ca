//! A backend whose wall clock is ahead: nobody can make files that were changed long ago.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rotor_core::backend::{Backend, BackendHandle, JobOrder, OffloadJob, Wake};
use rotor_core::{EventSet, Time, Token};

/// A backend or its handle, with a wall clock that is ahead by this time.
pub(crate) struct Ahead<T> {
    pub(crate) inner: T,
    pub(crate) by: Duration,
}

impl<B: Backend> Backend for Ahead<B> {
    type Handle = Ahead<B::Handle>;

    fn handle(&self) -> io::Result<Self::Handle> {
        Ok(Ahead { inner: self.inner.handle()?, by: self.by })
    }

    fn waker(&self) -> io::Result<Arc<dyn Wake>> {
        self.inner.waker()
    }

    fn wait(&mut self, until: Option<Time>, ready: &mut Vec<(Token, EventSet)>) -> io::Result<()> {
        self.inner.wait(until, ready)
    }

    fn may_have_more(&self) -> bool {
        self.inner.may_have_more()
    }

    fn coarse_now(&self) -> Time {
        self.inner.coarse_now()
    }
}

impl<H: BackendHandle> BackendHandle for Ahead<H> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn now(&self) -> Time {
        self.inner.now()
    }

    fn wall_time(&self) -> SystemTime {
        self.inner.wall_time() + self.by
    }

    fn offload(&self, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        self.inner.offload(make)
    }

    fn within(&self) -> Option<&dyn BackendHandle> {
        Some(&self.inner)
    }

    fn offload_job(&self, order: &JobOrder<'_>, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        self.inner.offload_job(order, make)
    }
}
