//! `Uring`: the backend that waits with io_uring.

use std::cell::{RefCell, RefMut};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

use rotor_core::backend::{Clock, JobOrder, OffloadJob};
use rotor_core::{Backend, BackendHandle, EventSet, OffloadPool, Scope, Time, Token, Wake};
use rustix::event::{EventfdFlags, eventfd};

use crate::config::UringConfig;
use crate::driver::{Driver, is_out_of_descriptors};
use crate::refused::{RingUnavailable, Step};
use crate::stats::UringStats;

/// The backend that waits with Linux's io_uring.
///
/// Its clock is that of all loops of the process. A ring belongs to the thread that opened it, so a
/// loop on one stays on that thread: neither the backend nor its sockets are `Send`, and
/// [`handing_over`](rotor_core::LoopInstance::handing_over) does not accept it.
///
/// This thread does all the work, and no worker threads of the kernel: a thread that is bound to a
/// processor (sched_setaffinity(2)) keeps its loop there.
///
/// What machines have written is sent when the next wait begins, with one call for all of them. If
/// you call the turns of a loop one by one, it is sent in the next turn.
#[derive(Debug)]
pub struct Uring {
    shared: SharedDriver,
    waker: Arc<Waker>,
}

/// The handle with which the sockets of io_uring register.
#[derive(Clone, Debug)]
pub struct UringHandle {
    shared: SharedDriver,
    clock: Clock,
    pool: Option<OffloadPool>,
}

/// The driver, shared by the backend and its sockets. It ends with the last of them.
#[derive(Clone)]
pub(crate) struct SharedDriver(Rc<RefCell<Driver>>);

impl Uring {
    /// Opens a ring, for a loop that runs on this thread.
    ///
    /// # Errors
    ///
    /// The system provides no ring; [`RingUnavailable`] says why, and what can be done about it.
    pub fn open(config: &UringConfig) -> Result<Uring, RingUnavailable> {
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let waker = event().map_err(io::Error::from).map_err(RingUnavailable::at(Step::Waker))?;
        let own = waker.try_clone().map_err(RingUnavailable::at(Step::Waker))?;
        let driver = Driver::open(config.clone(), own)?;
        Ok(Uring {
            shared: SharedDriver(Rc::new(RefCell::new(driver))),
            waker: Arc::new(Waker(waker)),
        })
    }
}

impl Backend for Uring {
    type Handle = UringHandle;

    fn handle(&self) -> io::Result<UringHandle> {
        let pool = self.shared.driver().pool();
        Ok(UringHandle { shared: self.shared.clone(), clock: Clock::new(), pool })
    }

    fn waker(&self) -> io::Result<Arc<dyn Wake>> {
        Ok(self.waker.clone())
    }

    fn wait(&mut self, until: Option<Time>, ready: &mut Vec<(Token, EventSet)>) -> io::Result<()> {
        self.shared.driver().wait(until, ready)
    }

    fn may_have_more(&self) -> bool {
        self.shared.driver().may_have_more()
    }

    fn full_waits(&self) -> usize {
        self.shared.driver().full_waits()
    }

    fn has_unsent(&self) -> bool {
        self.shared.driver().has_unsent()
    }

    #[inline]
    fn coarse_now(&self) -> Time {
        self.shared.driver().coarse_now()
    }
}

impl UringHandle {
    /// Returns the statistics of the ring.
    pub fn stats(&self) -> UringStats {
        self.shared.driver().stats()
    }

    /// Returns the handle of a scope's loop. `what` names what needs it, for the error.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported), naming both, on a loop of another backend.
    pub fn of<'a, C>(scope: &'a Scope<'_, C>, what: &str) -> io::Result<&'a UringHandle> {
        scope.backend().expect(what)
    }

    pub(crate) fn shared(&self) -> &SharedDriver {
        &self.shared
    }

    /// Opens a socket. If no descriptor is left, gets back those of the streams that were dropped
    /// in this turn, and tries once more.
    pub(crate) fn open<T>(&self, open: impl Fn() -> io::Result<T>) -> io::Result<T> {
        open().or_else(|error| {
            if !is_out_of_descriptors(&error) {
                return Err(error);
            }
            self.shared.driver().flush_submissions();
            open()
        })
    }
}

impl BackendHandle for UringHandle {
    fn name(&self) -> &str {
        "io_uring"
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn wall_time(&self) -> SystemTime {
        self.clock.wall_time()
    }

    fn offload(&self, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        self.pool.as_ref().is_some_and(|pool| pool.offer(make))
    }

    fn offload_job(&self, order: &JobOrder<'_>, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        order.offer(self.pool.as_ref(), make)
    }
}

impl SharedDriver {
    /// Borrows the driver. It is not borrowed elsewhere, since the driver calls no machine.
    #[inline]
    pub(crate) fn driver(&self) -> RefMut<'_, Driver> {
        self.0.borrow_mut()
    }

    pub(crate) fn is_same(&self, other: &SharedDriver) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for SharedDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("io_uring")
    }
}

/// The descriptor whose writes wake the loop (eventfd(2)).
#[derive(Debug)]
struct Waker(OwnedFd);

impl Wake for Waker {
    fn wake(&self) -> io::Result<()> {
        match rustix::io::write(&self.0, &1_u64.to_ne_bytes()) {
            // It is never read, and is full after 2⁶⁴ − 1 wake-ups.
            Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
