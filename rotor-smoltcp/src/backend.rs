//! `Smoltcp`: the backend that has a TCP/IP stack of its own.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use rotor_core::backend::{Clock, JobOrder, OffloadJob, system_entropy};
use rotor_core::{Backend, BackendHandle, EventSet, OffloadPool, Scope, Time, Token, Wake};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::clock::{LoopClock, ManualClock};
use crate::config::StackConfig;
use crate::device::Device;
use crate::stack::{Stack, Wait};
use crate::stats::StackStats;

/// The backend that takes packets from a [device](Device), and has TCP, UDP and IP in the loop's own
/// thread.
///
/// Its clock is that of all loops of the process, but for those in virtual time
/// ([`in_virtual_time`](Smoltcp::in_virtual_time)). It is `Send`, and so are its sockets: a loop on
/// it can be [handed over](rotor_core::LoopInstance::handing_over).
///
/// What machines write leaves when the next wait begins: whoever gives a loop its turns one by one
/// has it leave with the next turn.
#[derive(Debug)]
pub struct Smoltcp {
    shared: Shared,
    clock: LoopClock,
    /// The device's descriptor once more, so that the stack is not held while the loop sleeps.
    descriptor: Option<OwnedFd>,
    bell: UnixStream,
    waker: Arc<Waker>,
}

/// What the sockets of a stack register with.
#[derive(Clone, Debug)]
pub struct SmoltcpHandle {
    shared: Shared,
    clock: LoopClock,
    pool: Option<OffloadPool>,
}

/// The stack, which the backend and its sockets have in common. It ends with the last of them.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<Stack>>);

impl Smoltcp {
    /// Opens a stack on a device.
    ///
    /// # Errors
    ///
    /// `InvalidInput`, which says what is wrong with the configuration; else that no descriptor is
    /// left, or no random bytes.
    pub fn open(device: impl Device, config: &StackConfig) -> io::Result<Smoltcp> {
        Smoltcp::with(Box::new(device), config, LoopClock::Real(Clock::new()))
    }

    /// Opens a stack that runs in virtual time: its waits never block, and whoever has the clock
    /// moves it ([`ManualClock::step`]).
    ///
    /// # Errors
    ///
    /// As for [`open`](Smoltcp::open).
    pub fn in_virtual_time(
        device: impl Device,
        config: &StackConfig,
        clock: &ManualClock,
    ) -> io::Result<Smoltcp> {
        Smoltcp::with(Box::new(device), config, LoopClock::Manual(clock.clone()))
    }

    fn with(
        device: Box<dyn Device>,
        config: &StackConfig,
        clock: LoopClock,
    ) -> io::Result<Smoltcp> {
        let descriptor = device.descriptor().map(|fd| fd.try_clone_to_owned()).transpose()?;
        let (rings, bell) = UnixStream::pair()?;
        rings.set_nonblocking(true)?;
        bell.set_nonblocking(true)?;
        let stack = Stack::open(device, config, clock.clone())?;
        let shared = Shared(Arc::new(Mutex::new(stack)));
        Ok(Smoltcp { shared, clock, descriptor, bell, waker: Arc::new(Waker(rings)) })
    }

    /// Sleeps until a packet comes, the loop is woken, or the time is over.
    fn sleep(&mut self, wait: Wait) -> io::Result<()> {
        let time = match wait {
            Wait::Not => return Ok(()),
            Wait::AtMost(time) => Some(time),
            Wait::Forever => None,
        };
        // A time that is too long for the system is as good as none.
        let time = time.and_then(|time| Timespec::try_from(time).ok());
        let bell = PollFd::new(&self.bell, PollFlags::IN);
        let result = match &self.descriptor {
            Some(device) => {
                let mut polled = [bell, PollFd::new(device, PollFlags::IN)];
                poll(&mut polled, time.as_ref()).map(|_| !polled[0].revents().is_empty())
            }
            None => {
                let mut polled = [bell];
                poll(&mut polled, time.as_ref()).map(|_| !polled[0].revents().is_empty())
            }
        };
        match result {
            Ok(false) | Err(Errno::INTR) => Ok(()),
            Ok(true) => self.drain_bell(),
            Err(error) => Err(error.into()),
        }
    }

    fn drain_bell(&mut self) -> io::Result<()> {
        match self.bell.read(&mut [0; 64]) {
            Ok(_) => Ok(()),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

impl Backend for Smoltcp {
    type Handle = SmoltcpHandle;

    fn handle(&self) -> io::Result<SmoltcpHandle> {
        let pool = self.shared.stack().pool();
        Ok(SmoltcpHandle { shared: self.shared.clone(), clock: self.clock.clone(), pool })
    }

    fn waker(&self) -> io::Result<Arc<dyn Wake>> {
        Ok(self.waker.clone())
    }

    fn wait(&mut self, until: Option<Time>, ready: &mut Vec<(Token, EventSet)>) -> io::Result<()> {
        let wait = self.shared.stack().begin_wait(until)?;
        let sleeps = wait != Wait::Not && matches!(self.clock, LoopClock::Real(_));
        if sleeps {
            self.sleep(wait)?;
        }
        self.shared.stack().end_wait(until, sleeps, ready)
    }

    fn may_have_more(&self) -> bool {
        self.shared.stack().may_have_more()
    }

    #[inline]
    fn coarse_now(&self) -> Time {
        self.clock.coarse_now()
    }
}

/// What was written in the last turn leaves, as far as its peers take it at once: also where somebody
/// still has the [handle](SmoltcpHandle), and with it the stack. No turn follows that would do it.
impl Drop for Smoltcp {
    fn drop(&mut self) {
        self.shared.stack().send_last();
    }
}

impl SmoltcpHandle {
    /// Returns what the stack has done, and what it holds.
    pub fn stats(&self) -> StackStats {
        self.shared.stack().stats()
    }

    /// Returns the handle of the loop that a scope is of.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported), naming both, on a loop of another backend.
    pub fn of<'a, C>(scope: &'a Scope<'_, C>, what: &str) -> io::Result<&'a SmoltcpHandle> {
        scope.backend().expect(what)
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }
}

impl BackendHandle for SmoltcpHandle {
    fn name(&self) -> &str {
        "smoltcp"
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn wall_time(&self) -> SystemTime {
        self.clock.wall_time()
    }

    /// The system's, or those of [the seed](StackConfig::seed).
    fn entropy(&self, bytes: &mut [u8]) -> io::Result<()> {
        if self.shared.stack().seeded(bytes) { Ok(()) } else { system_entropy(bytes) }
    }

    fn offload(&self, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        self.pool.as_ref().is_some_and(|pool| pool.offer(make))
    }

    fn offload_job(&self, order: &JobOrder<'_>, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        order.offer(self.pool.as_ref(), make)
    }
}

impl Shared {
    /// Nobody keeps it: what is called on the stack calls no machine, and the loop sleeps without.
    #[inline]
    pub(crate) fn stack(&self) -> MutexGuard<'_, Stack> {
        // Where somebody has panicked with it that was a bug, and it is as good as it was then.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is(&self, other: &Shared) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("smoltcp")
    }
}

/// What wakes the loop when it is written to.
#[derive(Debug)]
struct Waker(UnixStream);

impl Wake for Waker {
    fn wake(&self) -> io::Result<()> {
        match (&self.0).write(&[1]) {
            // Full: the loop has not looked for long, and will find enough.
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }
}
