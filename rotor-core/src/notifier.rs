//! Waking a machine, from its own loop or from any thread.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;
use std::task::{Wake, Waker};

use crate::sync::atomic::AtomicBool;
use crate::token::Token;
use crate::wake_queue::WakeQueue;

/// A handle that wakes one machine, or one part of it, from any thread.
///
/// [`Scope::notifier`](crate::Scope::notifier) creates it. A wake-up leads to a call of
/// [`Machine::wakeup`](crate::Machine::wakeup). Wake-ups that come before that call coalesce into
/// it, and none is ever lost: everything that the waking thread wrote before is visible in the
/// handler. A wake-up costs two atomic operations (for a part a few more, and an entry in a
/// channel), and a system call only if the loop sleeps. It never fails for lack of capacity.
///
/// A machine that wakes itself in a handler is called in the next turn, after the others, so it
/// cannot starve them. If it wakes itself in [`create`](crate::Machine::create), it is called in
/// the same turn if an event or a wake-up led to its spawn, after the machines that were woken
/// before, and within [`Config::wakeups_per_turn`](crate::Config::wakeups_per_turn).
///
/// ```
/// # use rotor_core::Notifier;
/// fn from_another_thread(notifier: Notifier) {
///     std::thread::scope(|threads| {
///         threads.spawn(move || {
///             if !notifier.wakeup() {
///                 eprintln!("the machine has ended meanwhile");
///             }
///         });
///     });
/// }
/// ```
#[doc(alias = "waker")]
#[doc(alias = "eventfd")]
#[derive(Clone)]
pub struct Notifier {
    wakes: Arc<WakeQueue>,
    token: Token,
    part: u32,
    /// For a part: whether its wake-up is in the channel already.
    queued: Option<Arc<AtomicBool>>,
}

impl Notifier {
    pub(crate) fn new(wakes: Arc<WakeQueue>, token: Token, part: u32) -> Notifier {
        // The machine itself has its flag in the word of its slot, so its notifiers need no memory.
        let queued = (part != 0).then(|| Arc::new(AtomicBool::new(false)));
        Notifier { wakes, token, part, queued }
    }

    /// Wakes the machine. Returns `false` if the machine or its loop is gone, so that the call has
    /// no effect.
    ///
    /// `true` means that the machine still existed. It may end, for another reason, before it is
    /// called.
    pub fn wakeup(&self) -> bool {
        match &self.queued {
            None => self.wakes.wake(self.token),
            Some(queued) => self.wakes.wake_part(self.token, self.part, queued),
        }
    }

    /// Returns whether the machine still exists.
    pub fn is_alive(&self) -> bool {
        self.wakes.is_alive(self.token)
    }

    /// Returns the token of the machine that this wakes.
    pub fn token(&self) -> Token {
        self.token
    }

    /// Returns the part of the machine that this wakes; 0 is the machine itself.
    pub fn part(&self) -> u32 {
        self.part
    }

    /// Returns a waker for a [`std::future::Future`] that the machine polls. This costs one
    /// allocation; clones of the waker cost none.
    ///
    /// The waker may outlive the machine. It then wakes nothing, not even the machine that occupies
    /// the same slot by then. If a machine polls one future after another, a waker of an earlier
    /// future may cause a spurious wake-up.
    ///
    /// ```
    /// # use rotor_core as rotor;
    /// use std::pin::Pin;
    /// use std::task::{Context, Poll};
    ///
    /// use rotor::{Infallible, Machine, Response, Scope};
    ///
    /// /// A future as a machine that ends with it. (`rotor-async` has more.)
    /// struct Task(Pin<Box<dyn Future<Output = ()>>>);
    ///
    /// impl Machine for Task {
    ///     type Context = ();
    ///     type Seed = Infallible;
    ///
    ///     fn wakeup(mut self, scope: &mut Scope<'_, ()>) -> Response<Self> {
    ///         let waker = scope.notifier().into_waker();
    ///         match self.0.as_mut().poll(&mut Context::from_waker(&waker)) {
    ///             Poll::Ready(()) => Response::done(),
    ///             Poll::Pending => Response::keep(self),
    ///         }
    ///     }
    /// }
    /// ```
    #[doc(alias = "async")]
    pub fn into_waker(self) -> Waker {
        Waker::from(Arc::new(self))
    }
}

/// Makes it work as std's [`Waker`], for [`into_waker`](Notifier::into_waker).
impl Wake for Notifier {
    fn wake(self: Arc<Notifier>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Notifier>) {
        // The result does not matter: wakers may outlive what they wake.
        self.wakeup();
    }
}

impl Notifier {
    /// Returns the target: the loop, the machine and its part.
    fn target(&self) -> (usize, Token, u32) {
        // The address of the wake queue identifies the loop, because tokens are unique only within
        // one loop.
        (Arc::as_ptr(&self.wakes).addr(), self.token, self.part)
    }
}

/// Notifiers are equal if they wake the same part of the same machine of the same loop.
impl PartialEq for Notifier {
    fn eq(&self, other: &Notifier) -> bool {
        self.target() == other.target()
    }
}

impl Eq for Notifier {}

/// The order is arbitrary, for use in sorted sets. Between notifiers of two loops it differs from
/// one run of the program to the next.
impl Ord for Notifier {
    fn cmp(&self, other: &Notifier) -> Ordering {
        self.target().cmp(&other.target())
    }
}

impl PartialOrd for Notifier {
    fn partial_cmp(&self, other: &Notifier) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Notifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Notifier({} part {})", self.token, self.part)
    }
}
