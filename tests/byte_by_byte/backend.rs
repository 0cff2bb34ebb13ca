//! A loop that delivers input byte by byte. Its backend wraps another one and notifies each socket
//! of each byte by a separate event.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

use rotor_core::backend::{BackendHandle, JobOrder, OffloadJob, Wake};
use rotor_core::{Backend, EventSet, Time, Token};

/// The maximum number of turns without polling the inner backend while bytes are available. A poll
/// is a system call, which costs more than everything else about a byte.
const LOOKS_EVERY: u64 = 64;

/// A backend that wraps `B`. Its sockets are [`OneByOne`](super::socket::OneByOne); sockets of `B`
/// work on it as well.
pub(crate) struct ByteByByte<B> {
    inner: B,
    bytes: Rc<Bytes>,
}

/// The state that the sockets of a loop share with its backend.
#[derive(Default)]
pub(crate) struct Bytes {
    /// How many times the backend was polled.
    wait: Cell<u64>,
    /// The machines that have taken a byte since the last poll. They are notified of the next one.
    told_next: RefCell<Vec<Token>>,
    /// The total number of bytes taken from sockets.
    taken: Cell<u64>,
}

/// The handle. It wraps that of the inner backend.
pub(crate) struct Handle {
    inner: Box<dyn BackendHandle>,
    bytes: Rc<Bytes>,
}

impl<B> ByteByByte<B> {
    pub(crate) fn around(inner: B) -> ByteByByte<B> {
        ByteByByte { inner, bytes: Rc::default() }
    }

    /// The byte counter, to be read while the loop runs.
    #[allow(dead_code, reason = "a program does not count")]
    pub(crate) fn bytes(&self) -> Rc<Bytes> {
        self.bytes.clone()
    }
}

impl Bytes {
    /// How many bytes were taken from sockets.
    #[allow(dead_code, reason = "a program does not count")]
    pub(crate) fn taken(&self) -> u64 {
        self.taken.get()
    }

    /// The number of the poll whose events are being handled.
    pub(super) fn wait(&self) -> u64 {
        self.wait.get()
    }

    /// A machine has taken a byte from its socket. The next poll notifies it, whether or not there
    /// is another byte.
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
        // A second event of a machine in one poll would be spurious: its socket gives no more.
        ready.extend(told_next.drain(..).map(|machine| (machine, EventSet::READABLE)));
        Ok(())
    }

    fn may_have_more(&self) -> bool {
        self.inner.may_have_more()
    }

    fn full_waits(&self) -> usize {
        self.inner.full_waits()
    }

    fn has_unsent(&self) -> bool {
        self.inner.has_unsent()
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
