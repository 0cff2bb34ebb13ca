//! `ReportingBackend`: a backend that reports when it sleeps and when it is woken.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use rotor_core::backend::Wake;
use rotor_core::{Backend, EventSet, Mio, MioHandle, Time, Token};

#[derive(Debug, PartialEq)]
pub(crate) enum BackendReport {
    /// From now on only the waker ends the wait. Anything that the loop checks before it waits has
    /// been checked.
    Sleeping,
    Woken,
}

pub(crate) struct ReportingBackend {
    inner: Mio,
    reports: Sender<BackendReport>,
}

struct ReportingWaker {
    inner: Arc<dyn Wake>,
    reports: Sender<BackendReport>,
}

impl ReportingBackend {
    pub(crate) fn new() -> (ReportingBackend, Receiver<BackendReport>) {
        let (reports, received) = mpsc::channel();
        (ReportingBackend { inner: Mio::new(1).expect("descriptors are left"), reports }, received)
    }
}

impl Backend for ReportingBackend {
    type Handle = MioHandle;

    fn handle(&self) -> io::Result<MioHandle> {
        self.inner.handle()
    }

    fn waker(&self) -> io::Result<Arc<dyn Wake>> {
        Ok(Arc::new(ReportingWaker { inner: self.inner.waker()?, reports: self.reports.clone() }))
    }

    fn wait(&mut self, until: Option<Time>, ready: &mut Vec<(Token, EventSet)>) -> io::Result<()> {
        if until.is_none() {
            let _ = self.reports.send(BackendReport::Sleeping);
        }
        self.inner.wait(until, ready)
    }
}

impl Wake for ReportingWaker {
    fn wake(&self) -> io::Result<()> {
        let _ = self.reports.send(BackendReport::Woken);
        self.inner.wake()
    }
}
