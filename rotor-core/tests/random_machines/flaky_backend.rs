//! `FlakyBackend`: a backend that fails now and then.

use std::io;
use std::sync::Arc;

use rotor_core::backend::Wake;
use rotor_core::{Backend, EventSet, Mio, MioHandle, Time, Token};

use crate::Random;

pub(crate) struct FlakyBackend {
    inner: Mio,
    random: Random,
    /// One wait in this many fails.
    waits_per_failure: u64,
    /// Whether some of them panic.
    panics: bool,
}

impl FlakyBackend {
    pub(crate) fn new(random: Random, waits_per_failure: u64, panics: bool) -> FlakyBackend {
        let inner = Mio::new(1_024).expect("descriptors are left");
        FlakyBackend { inner, random, waits_per_failure, panics }
    }
}

impl Backend for FlakyBackend {
    type Handle = MioHandle;

    fn handle(&self) -> io::Result<MioHandle> {
        self.inner.handle()
    }

    fn waker(&self) -> io::Result<Arc<dyn Wake>> {
        self.inner.waker()
    }

    fn wait(&mut self, until: Option<Time>, ready: &mut Vec<(Token, EventSet)>) -> io::Result<()> {
        if self.random.once_in(self.waits_per_failure) {
            assert!(!self.panics || self.random.once_in(2), "in the backend");
            return Err(io::Error::other("a wait that fails"));
        }
        self.inner.wait(until, ready)
    }

    fn may_have_more(&self) -> bool {
        self.inner.may_have_more()
    }

    fn coarse_now(&self) -> Time {
        self.inner.coarse_now()
    }
}
