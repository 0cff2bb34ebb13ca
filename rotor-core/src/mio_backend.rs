//! The default backend: the kernel's readiness queue (epoll, kqueue) through mio, edge-triggered.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mio::{Events, Poll, Registry};

use crate::backend::{Backend, BackendHandle, JobOrder, OffloadJob, Wake};
use crate::clock::Clock;
use crate::config::EVENTS_LIMIT;
use crate::event_set::{EventSet, Interest};
use crate::offload::OffloadPool;
use crate::time::Time;
use crate::token::Token;

/// The token of the waker. No machine can have it.
const WAKER: mio::Token = mio::Token(usize::MAX);

/// The interest for sources that are read from. Urgent bytes are reported as well: a read stops
/// before one, and code that takes a short read as a sign that the socket is empty would otherwise
/// wait forever for the bytes that follow.
#[cfg(any(target_os = "linux", target_os = "android"))]
const READABLE: mio::Interest = mio::Interest::READABLE.add(mio::Interest::PRIORITY);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const READABLE: mio::Interest = mio::Interest::READABLE;

/// The backend that waits in the kernel, through mio.
///
/// It is the default of [`Loop`](crate::Loop) and seldom named. Its clock is the monotonic clock,
/// in nanoseconds since the first loop of the process was made.
#[doc(alias = "epoll")]
#[doc(alias = "kqueue")]
#[doc(alias = "reactor")]
#[derive(Debug)]
pub struct Mio {
    poll: Poll,
    events: Events,
    /// Whether the last poll returned as many events as it had capacity for.
    was_full: bool,
    clock: Clock,
    pool: Option<OffloadPool>,
}

/// The handle with which mio's sockets register.
#[derive(Debug)]
pub struct MioHandle {
    registry: Arc<Registry>,
    clock: Clock,
    pool: Option<OffloadPool>,
}

impl Mio {
    /// Opens a readiness queue that takes up to `events_max` events from the kernel in one call: at
    /// least 1, at most [`EVENTS_LIMIT`].
    ///
    /// # Errors
    ///
    /// No descriptor is left for the queue.
    pub fn new(events_max: usize) -> io::Result<Mio> {
        let events = Events::with_capacity(events_max.clamp(1, EVENTS_LIMIT));
        Ok(Mio { poll: Poll::new()?, events, was_full: false, clock: Clock::new(), pool: None })
    }

    /// Sets the pool for work that machines offload. Without a pool,
    /// [`Scope::offload`](crate::Scope::offload) is refused.
    ///
    /// [`Loop::new`](crate::Loop::new) sets the pool of its [`Config`](crate::Config).
    #[must_use]
    pub fn offload_pool(mut self, pool: OffloadPool) -> Mio {
        self.pool = Some(pool);
        self
    }
}

impl Backend for Mio {
    type Handle = MioHandle;

    fn handle(&self) -> io::Result<MioHandle> {
        // One more descriptor for each loop, shared by all of its sockets. One for each socket
        // would be too many.
        let registry = Arc::new(self.poll.registry().try_clone()?);
        Ok(MioHandle { registry, clock: self.clock, pool: self.pool.clone() })
    }

    fn waker(&self) -> io::Result<Arc<dyn Wake>> {
        Ok(Arc::new(MioWaker(mio::Waker::new(self.poll.registry(), WAKER)?)))
    }

    fn wait(&mut self, until: Option<Time>, ready: &mut Vec<(Token, EventSet)>) -> io::Result<()> {
        let timeout = until.map(|until| match until {
            // This only polls, so the clock need not be read.
            Time::ZERO => Duration::ZERO,
            // If the time has passed, this is zero: subtraction of times saturates.
            until => until - self.clock.now(),
        });
        if let Err(error) = self.poll.poll(&mut self.events, timeout) {
            // A signal ends a wait early, which is allowed; it must not end `run`. `was_full` stays
            // as it was: the events that the last poll left are still there.
            return if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) };
        }
        // The waker's event counts too, because it took a place from the others.
        let mut places = self.events.capacity();
        for event in &self.events {
            places = places.saturating_sub(1);
            if event.token() != WAKER {
                ready.push((Token::from_usize(event.token().0), event_set_of(event)));
            }
        }
        self.was_full = places == 0;
        Ok(())
    }

    fn may_have_more(&self) -> bool {
        self.was_full
    }

    #[inline]
    fn coarse_now(&self) -> Time {
        self.clock.coarse_now()
    }
}

fn event_set_of(event: &mio::event::Event) -> EventSet {
    let mut events = EventSet::EMPTY;
    let mut add = |is: bool, what: EventSet| {
        if is {
            events |= what;
        }
    };
    add(event.is_readable(), EventSet::READABLE);
    add(event.is_writable(), EventSet::WRITABLE);
    add(event.is_read_closed(), EventSet::READ_CLOSED);
    add(event.is_write_closed(), EventSet::WRITE_CLOSED);
    add(event.is_error(), EventSet::ERROR);
    add(event.is_priority(), EventSet::URGENT);
    events
}

impl AsFd for Mio {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poll.registry().as_fd()
    }
}

impl BackendHandle for MioHandle {
    fn name(&self) -> &str {
        "mio"
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

impl MioHandle {
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.registry.clone()
    }

    pub(crate) fn register(
        &self,
        source: &mut impl mio::event::Source,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        let interest = match interest {
            Interest::Readable => READABLE,
            Interest::Writable => mio::Interest::WRITABLE,
            Interest::Both => READABLE.add(mio::Interest::WRITABLE),
        };
        self.registry.register(source, mio::Token(token.into_usize()), interest)
    }

    pub(crate) fn deregister(&self, source: &mut impl mio::event::Source) -> io::Result<()> {
        self.registry.deregister(source)
    }
}

struct MioWaker(mio::Waker);

impl Wake for MioWaker {
    fn wake(&self) -> io::Result<()> {
        self.0.wake()
    }
}
