//! `AtEnd`: a value whose owner may end in any way, and what is done with it then.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::guard::drop_guarded;

/// What is run with the context when an owner has ended.
pub(crate) type End<C> = Box<dyn FnOnce(&mut C) + Send>;

/// Where ends wait for the loop to come between two handlers.
pub(crate) trait EndQueue<C>: Send + Sync {
    /// Gives the end back where the loop is gone.
    fn push_end(&self, end: End<C>) -> Result<(), End<C>>;
}

/// The queue of a loop, as those have it who outlive a handler.
pub(crate) type AnyEndQueue<C> = Arc<dyn EndQueue<C>>;

/// A value that a machine, or a protocol or handler in it, owns, and that comes back to the context
/// when its owner is no more, whatever ended it. Made by [`Scope::at_end`](crate::Scope::at_end).
///
/// It is dropped with its owner, so there is no end that it misses: an answer of `done` or `error`,
/// a panic, a deadline, a reset, a drain, an upgrade to another protocol, the end of the loop. Its
/// function then gets the value and the context, once:
///
/// * in the turn in which it is dropped or in the next one, between two handlers, in the order in
///   which they were dropped, before what was [posted](crate::Broadcast::post). Handlers of others
///   may run before that;
/// * where the loop stops or drains, before [`run`](crate::LoopInstance::run) returns; of machines
///   that are dropped with the loop, while it is dropped;
/// * never, if it is dropped after its loop, or is [taken](AtEnd::into_inner). The value is dropped
///   then.
///
/// The owner changes the value as it goes on, since it derefs to it. So *why* something ends is
/// what the owner wrote there last: who takes leave in order says so, and what nobody has said was
/// a panic or the end of the loop.
///
/// The function must not block. One that panics is logged, and costs nothing else.
///
/// # Examples
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::{AtEnd, Machine, Response, Scope};
///
/// #[derive(Default)]
/// struct Room {
///     present: u32,
///     left: Vec<(String, &'static str)>,
/// }
///
/// struct Visit {
///     name: String,
///     why: &'static str,
/// }
///
/// impl Room {
///     fn leave(&mut self, visit: Visit) {
///         self.present -= 1;
///         self.left.push((visit.name, visit.why));
///     }
/// }
///
/// struct Guest(AtEnd<Visit, Room>);
///
/// impl Machine for Guest {
///     type Context = Room;
///     type Seed = String;
///
///     fn create(name: String, scope: &mut Scope<'_, Room>) -> Response<Self> {
///         scope.present += 1;
///         scope.wake_self();
///         Response::ok(Guest(scope.at_end(Visit { name, why: "it broke" }, Room::leave)))
///     }
///
///     fn wakeup(mut self, _: &mut Scope<'_, Room>) -> Response<Self, String> {
///         assert!(self.0.name != "Mallory", "a bug that shows with that name alone");
///         self.0.why = "it had enough";
///         Response::done()
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let creator = rotor::Loop::<Guest>::new(&rotor::Config::new())?;
/// let mut instance = creator.instantiate(Room::default());
/// instance.spawn("Alice".to_owned()).unwrap();
/// instance.spawn("Mallory".to_owned()).unwrap();
/// instance.run()?;
/// let room = instance.into_context();
/// assert_eq!(room.present, 0);
/// assert_eq!(room.left[0], ("Alice".to_owned(), "it had enough"));
/// assert_eq!(room.left[1], ("Mallory".to_owned(), "it broke"));
/// # Ok(())
/// # }
/// ```
#[must_use = "its function is called when it is dropped: keep it in the machine"]
#[doc(alias = "finally")]
#[doc(alias = "scopeguard")]
#[doc(alias = "defer")]
pub struct AtEnd<V: Send + 'static, C: 'static> {
    value: Option<V>,
    end: fn(&mut C, V),
    queue: AnyEndQueue<C>,
}

impl<V: Send + 'static, C: 'static> AtEnd<V, C> {
    pub(crate) fn new(value: V, end: fn(&mut C, V), queue: AnyEndQueue<C>) -> AtEnd<V, C> {
        AtEnd { value: Some(value), end, queue }
    }

    /// The value, taken back: the function is not called.
    pub fn into_inner(mut self) -> V {
        self.value.take().expect(THERE)
    }
}

/// The value is absent only in `into_inner` and `drop`, which nobody follows.
const THERE: &str = "the value is there until the end";

impl<V: Send + 'static, C: 'static> Deref for AtEnd<V, C> {
    type Target = V;
    fn deref(&self) -> &V {
        self.value.as_ref().expect(THERE)
    }
}

impl<V: Send + 'static, C: 'static> DerefMut for AtEnd<V, C> {
    fn deref_mut(&mut self) -> &mut V {
        self.value.as_mut().expect(THERE)
    }
}

impl<V: Send + 'static, C: 'static> Drop for AtEnd<V, C> {
    fn drop(&mut self) {
        let Some(value) = self.value.take() else { return };
        let end = self.end;
        if let Err(late) = self.queue.push_end(Box::new(move |context| end(context, value))) {
            // This may be a drop while something unwinds: a second panic would end the process.
            drop_guarded(late, "a value whose loop is gone");
        }
    }
}

impl<V: Send + fmt::Debug + 'static, C: 'static> fmt::Debug for AtEnd<V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AtEnd").field(&self.value).finish()
    }
}
