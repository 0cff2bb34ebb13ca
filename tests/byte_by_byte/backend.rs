//! The loop on which bytes come one by one: a backend around another, which tells each socket of
//! each byte by an event of its own.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

use rotor_core::backend::{BackendHandle, JobOrder, OffloadJob, Wake};
use rotor_core::{Backend, EventSet, Time, Token};

/// How many turns are taken without a look at the backend inside, at most, while bytes are at hand:
/// a look is a system call, which costs more than all else that a byte does.
const LOOKS_EVERY: u64 = 64;

/// A backend around `B`. Its sockets are [`OneByOne`](super::socket::OneByOne); those of `B` work
/// on it as well.
pub(crate) struct ByteByByte<B> {
    inner: B,
    bytes: Rc<Bytes>,
}

/// What the sockets of a loop and its backend share.
#[derive(Default)]
pub(crate) struct Bytes {
    /// How many times the backend was asked what is ready.
    wait: Cell<u64>,
    /// Whose byte was taken, since then: they are told of the next one.
    told_next: RefCell<Vec<Token>>,
    /// How many were taken of sockets in all.
    taken: Cell<u64>,
}

/// The handle, around that of the backend inside.
pub(crate) struct Handle {
    inner: Box<dyn BackendHandle>,
    bytes: Rc<Bytes>,
}

impl<B> ByteByByte<B> {
    pub(crate) fn around(inner: B) -> ByteByByte<B> {
        ByteByByte { inner, bytes: Rc::default() }
    }

    /// What counts the bytes, to be read while the loop runs.
    #[allow(dead_code, reason = "a program does not count")]
    pub(crate) fn bytes(&self) -> Rc<Bytes> {
        self.bytes.clone()
    }
}

impl Bytes {
    /// How many bytes were taken of sockets.
    #[allow(dead_code, reason = "a program does not count")]
    pub(crate) fn taken(&self) -> u64 {
        self.taken.get()
    }

    /// The wait in whose events the machines now are.
    pub(super) fn wait(&self) -> u64 {
        self.wait.get()
    }

    /// A machine has taken a byte of its socket: it is told of the next one, or of nothing, by the
    /// next wait.
    pub(super) fn take(&self, machine: Token) {
        self.taken.set(self.taken.get() + 1);
        self.told_next.borrow_mut().push(machine);
    }
}

impl<B: Backend> Backend for ByteByByte<B> {
    type Handle = Handle;

    fn handle(&self) -> io::Result<Handle> {
        Ok(Handle { inner: Box::new(self.inner.handle()?), bytes: self.bytes.clone() })
    }

    fn waker(&self) -> io::Result<Arc<dyn Wake>> {
        self.inner.waker()
    }

    fn wait(&mut self, until: Option<Time>, ready: &mut Vec<(Token, EventSet)>) -> io::Result<()> {
        let wait = self.bytes.wait.get() + 1;
        self.bytes.wait.set(wait);
        let mut told_next = self.bytes.told_next.borrow_mut();
        if told_next.is_empty() {
            return self.inner.wait(until, ready);
        }
        if wait.is_multiple_of(LOOKS_EVERY) || self.inner.may_have_more() {
            self.inner.wait(Some(Time::ZERO), ready)?;
        }
        // The second event of a machine in one wait would be spurious: its socket gives no more.
        ready.extend(told_next.drain(..).map(|machine| (machine, EventSet::READABLE)));
        Ok(())
    }

    fn may_have_more(&self) -> bool {
        self.inner.may_have_more()
    }

    fn coarse_now(&self) -> Time {
        self.inner.coarse_now()
    }

    fn order(&mut self, same_tick: &mut [Token]) {
        self.inner.order(same_tick);
    }
}

impl BackendHandle for Handle {
    fn name(&self) -> &str {
        "byte by byte"
    }

    fn now(&self) -> Time {
        self.inner.now()
    }

    fn wall_time(&self) -> SystemTime {
        self.inner.wall_time()
    }

    fn entropy(&self, bytes: &mut [u8]) -> io::Result<()> {
        self.inner.entropy(bytes)
    }

    fn offload(&self, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        self.inner.offload(make)
    }

    fn within(&self) -> Option<&dyn BackendHandle> {
        Some(&*self.inner)
    }

    fn offload_job(&self, order: &JobOrder<'_>, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        self.inner.offload_job(order, make)
    }

    fn note(&self, machine: Token, what: fmt::Arguments<'_>) {
        self.inner.note(machine, what);
    }
}

impl Handle {
    pub(super) fn bytes(&self) -> Rc<Bytes> {
        self.bytes.clone()
    }
}
