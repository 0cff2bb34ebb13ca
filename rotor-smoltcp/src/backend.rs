//! `Smoltcp`: the backend with a TCP/IP stack of its own.

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

/// The backend that takes packets from a [device](Device) and runs TCP, UDP and IP on the loop's
/// own thread.
///
/// Its clock is that of all loops of the process, unless it runs in virtual time
/// ([`in_virtual_time`](Smoltcp::in_virtual_time)). The backend and its sockets are `Send`: a loop
/// on it can be [handed over](rotor_core::LoopInstance::handing_over).
///
/// The stack sends what machines have written when the loop's next wait begins. If you call the
/// turns of a loop one by one, it is sent in the next turn.
#[derive(Debug)]
pub struct Smoltcp {
    shared: SharedStack,
    clock: LoopClock,
    /// A duplicate of the device's descriptor, so that the stack is not locked while the loop
    /// sleeps.
    descriptor: Option<OwnedFd>,
    wake_receiver: UnixStream,
    waker: Arc<Waker>,
}

/// The handle with which the sockets of a stack register.
#[derive(Clone, Debug)]
pub struct SmoltcpHandle {
    shared: SharedStack,
    clock: LoopClock,
    pool: Option<OffloadPool>,
}

/// The stack, shared by the backend and its sockets. It ends with the last of them.
#[derive(Clone)]
pub(crate) struct SharedStack(Arc<Mutex<Stack>>);

impl Smoltcp {
    /// Opens a stack on a device.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the configuration is wrong; the message says what. Otherwise, no
    /// descriptor is left, or the system has no random bytes.
    pub fn open(device: impl Device, config: &StackConfig) -> io::Result<Smoltcp> {
        Smoltcp::open_on(Box::new(device), config, LoopClock::Real(Clock::new()))
    }

    /// Opens a stack that runs in virtual time: its waits never block, and the owner of the clock
    /// advances it ([`ManualClock::step`]).
    ///
    /// # Errors
    ///
    /// As for [`open`](Smoltcp::open).
    pub fn in_virtual_time(
        device: impl Device,
        config: &StackConfig,
        clock: &ManualClock,
    ) -> io::Result<Smoltcp> {
        Smoltcp::open_on(Box::new(device), config, LoopClock::Manual(clock.clone()))
    }

    fn open_on(
        device: Box<dyn Device>,
        config: &StackConfig,
        clock: LoopClock,
    ) -> io::Result<Smoltcp> {
        let descriptor = device.descriptor().map(|fd| fd.try_clone_to_owned()).transpose()?;
        let (wake_sender, wake_receiver) = UnixStream::pair()?;
        wake_sender.set_nonblocking(true)?;
        wake_receiver.set_nonblocking(true)?;
        let stack = Stack::open(device, config, clock.clone())?;
        let shared = SharedStack(Arc::new(Mutex::new(stack)));
        Ok(Smoltcp {
            shared,
            clock,
            descriptor,
            wake_receiver,
            waker: Arc::new(Waker(wake_sender)),
        })
    }

    /// Sleeps until a packet comes, the loop is woken, or the time has passed.
    fn sleep(&mut self, wait: Wait) -> io::Result<()> {
        let time = match wait {
            Wait::Poll => return Ok(()),
            Wait::AtMost(time) => Some(time),
            Wait::Forever => None,
        };
        // A time that is too long for the system counts as none.
        let time = time.and_then(|time| Timespec::try_from(time).ok());
        let wake_receiver = PollFd::new(&self.wake_receiver, PollFlags::IN);
        let result = match &self.descriptor {
            Some(device) => {
                let mut polled = [wake_receiver, PollFd::new(device, PollFlags::IN)];
                poll(&mut polled, time.as_ref()).map(|_| !polled[0].revents().is_empty())
            }
            None => {
                let mut polled = [wake_receiver];
                poll(&mut polled, time.as_ref()).map(|_| !polled[0].revents().is_empty())
            }
        };
        match result {
            Ok(false) | Err(Errno::INTR) => Ok(()),
            Ok(true) => self.drain_wakeups(),
            Err(error) => Err(error.into()),
        }
    }

    fn drain_wakeups(&mut self) -> io::Result<()> {
        match self.wake_receiver.read(&mut [0; 64]) {
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
        let sleeps = wait != Wait::Poll && matches!(self.clock, LoopClock::Real(_));
        if sleeps {
            self.sleep(wait)?;
        }
        self.shared.stack().end_wait(until, sleeps, ready)
    }

    fn may_have_more(&self) -> bool {
        self.shared.stack().may_have_more()
    }

    fn full_waits(&self) -> usize {
        self.shared.stack().full_waits()
    }

    fn has_unsent(&self) -> bool {
        self.shared.stack().has_unsent()
    }

    #[inline]
    fn coarse_now(&self) -> Time {
        self.clock.coarse_now()
    }
}

/// Sends what was written in the last turn, as far as the peers' windows allow, even if the
/// [handle](SmoltcpHandle) and with it the stack are still in use: no turn follows that would send
/// it.
impl Drop for Smoltcp {
    fn drop(&mut self) {
        self.shared.stack().send_last();
    }
}

impl SmoltcpHandle {
    /// Returns the statistics of the stack.
    pub fn stats(&self) -> StackStats {
        self.shared.stack().stats()
    }

    /// Returns the handle of a scope's loop.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported), naming both, on a loop of another backend.
    pub fn of<'a, C>(scope: &'a Scope<'_, C>, what: &str) -> io::Result<&'a SmoltcpHandle> {
        scope.backend().expect(what)
    }

    pub(crate) fn shared(&self) -> &SharedStack {
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

    /// From the system, or from the [seed](StackConfig::seed).
    fn entropy(&self, bytes: &mut [u8]) -> io::Result<()> {
        if self.shared.stack().fill_seeded(bytes) { Ok(()) } else { system_entropy(bytes) }
    }

    fn offload(&self, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        self.pool.as_ref().is_some_and(|pool| pool.offer(make))
    }

    fn offload_job(&self, order: &JobOrder<'_>, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        order.offer(self.pool.as_ref(), make)
    }
}

impl SharedStack {
    /// Locks the stack. Contention is rare: the stack calls no machine, and is not locked while the
    /// loop sleeps.
    #[inline]
    pub(crate) fn stack(&self) -> MutexGuard<'_, Stack> {
        // A panic while the stack was locked was a bug; the stack is used as the panic left it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_same(&self, other: &SharedStack) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for SharedStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("smoltcp")
    }
}

/// Wakes the loop with a byte.
#[derive(Debug)]
struct Waker(UnixStream);

impl Wake for Waker {
    fn wake(&self) -> io::Result<()> {
        match (&self.0).write(&[1]) {
            // Full: the loop has not read for long, and will find enough bytes.
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }
}
