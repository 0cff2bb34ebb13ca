//! `Teller`: a backend that says when it sleeps, and who wakes it.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use rotor_core::backend::Wake;
use rotor_core::{Backend, EventSet, Mio, MioHandle, Time, Token};

#[derive(Debug, PartialEq)]
pub(crate) enum Said {
    /// From now on only the waker ends the wait. What the loop looks at before, it has seen.
    Sleeps,
    IsWoken,
}

pub(crate) struct Teller {
    inner: Mio,
    says: Sender<Said>,
}

struct TellingWaker {
    inner: Arc<dyn Wake>,
    says: Sender<Said>,
}

impl Teller {
    pub(crate) fn new() -> (Teller, Receiver<Said>) {
        let (says, said) = mpsc::channel();
        (Teller { inner: Mio::new(1).expect("descriptors are left"), says }, said)
    }
}

impl Backend for Teller {
    type Handle = MioHandle;

    fn handle(&self) -> io::Result<MioHandle> {
        self.inner.handle()
    }

    fn waker(&self) -> io::Result<Arc<dyn Wake>> {
        Ok(Arc::new(TellingWaker { inner: self.inner.waker()?, says: self.says.clone() }))
    }

    fn wait(&mut self, until: Option<Time>, ready: &mut Vec<(Token, EventSet)>) -> io::Result<()> {
        if until.is_none() {
            let _ = self.says.send(Said::Sleeps);
        }
        self.inner.wait(until, ready)
    }
}

impl Wake for TellingWaker {
    fn wake(&self) -> io::Result<()> {
        let _ = self.says.send(Said::IsWoken);
        self.inner.wake()
    }
}
