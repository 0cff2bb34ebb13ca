//! `ReturnOnDrop`: a value that is passed to a function together with the context, however its
//! owner ends.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::guard::drop_guarded;

/// A function that is run with the context when an owner has ended.
pub(crate) type EndFunction<C> = Box<dyn FnOnce(&mut C) + Send>;

/// The queue in which such functions wait until the loop runs them between two handlers.
pub(crate) trait EndQueue<C>: Send + Sync {
    /// Queues a function. Returns it if the loop is gone.
    fn push(&self, end: EndFunction<C>) -> Result<(), EndFunction<C>>;
}

/// The queue of a loop, in a form that may outlive a handler.
pub(crate) type AnyEndQueue<C> = Arc<dyn EndQueue<C>>;

/// A value that returns to the context when its owner is dropped, for whatever reason.
///
/// The owner is a machine, or a protocol or handler inside it.
/// [`Scope::at_end`](crate::Scope::at_end) creates the value, with a function that gets it back.
///
/// The value is dropped with its owner, so no kind of end is missed: a response of `done` or
/// `error`, a panic, a deadline, a reset, a drain, an upgrade to another protocol, the end of the
/// loop. Its function is then called once, with the context and the value:
///
/// * in the turn in which the value is dropped or in the next one, between two handlers, before
///   closures that were [posted](crate::Broadcast::post). The functions of several values are
///   called in the order in which the values were dropped. Handlers of other machines may run in
///   between;
/// * if the loop stops or drains, before [`run`](crate::LoopInstance::run) returns; for machines
///   that are dropped with the loop, while the loop is dropped;
/// * never, if the value is dropped after its loop, or [taken out](ReturnOnDrop::into_inner). It is
///   then merely dropped, or returned.
///
/// `ReturnOnDrop` derefs to the value, so the owner can change it, and can record in it *why* it
/// ends: an owner that ends normally writes a reason, so if there is none, the cause was a panic or
/// the end of the loop.
///
/// The function must not block. If it panics, the panic is logged and has no other effect.
///
/// # Examples
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::{ReturnOnDrop, Machine, Response, Scope};
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
/// struct Guest(ReturnOnDrop<Visit, Room>);
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
#[doc(alias = "AtEnd")]
#[must_use = "its function is called when it is dropped: keep it in the machine"]
#[doc(alias = "finally")]
#[doc(alias = "scopeguard")]
#[doc(alias = "defer")]
pub struct ReturnOnDrop<V: Send + 'static, C: 'static> {
    value: Option<V>,
    end: fn(&mut C, V),
    queue: AnyEndQueue<C>,
}

impl<V: Send + 'static, C: 'static> ReturnOnDrop<V, C> {
    pub(crate) fn new(value: V, end: fn(&mut C, V), queue: AnyEndQueue<C>) -> ReturnOnDrop<V, C> {
        ReturnOnDrop { value: Some(value), end, queue }
    }

    /// Returns the value. The function is not called.
    pub fn into_inner(mut self) -> V {
        self.value.take().expect(VALUE_PRESENT)
    }
}

/// The value is absent only in `into_inner` and `drop`, after which it is not used.
const VALUE_PRESENT: &str = "the value is there until the end";

impl<V: Send + 'static, C: 'static> Deref for ReturnOnDrop<V, C> {
    type Target = V;
    fn deref(&self) -> &V {
        self.value.as_ref().expect(VALUE_PRESENT)
    }
}

impl<V: Send + 'static, C: 'static> DerefMut for ReturnOnDrop<V, C> {
    fn deref_mut(&mut self) -> &mut V {
        self.value.as_mut().expect(VALUE_PRESENT)
    }
}

impl<V: Send + 'static, C: 'static> Drop for ReturnOnDrop<V, C> {
    fn drop(&mut self) {
        let Some(value) = self.value.take() else { return };
        let end = self.end;
        if let Err(late) = self.queue.push(Box::new(move |context| end(context, value))) {
            // This may run during the unwinding of a panic; a second panic would abort the process.
            drop_guarded(late, "a value whose loop is gone");
        }
    }
}

impl<V: Send + fmt::Debug + 'static, C: 'static> fmt::Debug for ReturnOnDrop<V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReturnOnDrop").field(&self.value).finish()
    }
}
