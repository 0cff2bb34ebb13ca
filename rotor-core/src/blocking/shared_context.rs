//! `SharedContext`: a context of which several threads may each have a clone.

use std::sync::Arc;

/// A context whose clones are handles to the same data. A loop needs such a context to be [taken
/// over](crate::LoopInstance::taking_over) while a handler still has the context.
///
/// Pools, resolvers, services, senders, spools, and data in an `Arc` with a lock or atomics are
/// such handles already, and so is a struct of them. A plain value is not: what one handler writes
/// into its own clone, the next handler may not see. That is why you must implement this trait, and
/// `Clone` alone is not enough.
///
/// ```
/// # use rotor_core as rotor;
/// use std::sync::{Arc, Mutex};
/// use rotor::SharedContext;
///
/// #[derive(Clone, Default)]
/// struct Shared {
///     names: Arc<Mutex<Vec<String>>>,
/// }
///
/// impl SharedContext for Shared {}
/// ```
///
/// Hold a lock in the context for a moment only, never while you wait for something: if a handler
/// is stuck while it holds the lock, it stalls all other handlers that need it, each on a thread of
/// its own.
///
/// The loop clones the context in advance, when it moves to another thread. If `clone` panics, that
/// is logged, and the loop cannot be taken from the thread that runs it at that time.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a context that several threads may have clones of",
    note = "an `Arc` is one; implement `SharedContext` for a type of your own if all its clones show the same data, for \
            example by an `Arc` with a lock or atomics",
    note = "`LoopInstance::handing_over` needs no such context: there, a handler says where it blocks (`Scope::blocking`)"
)]
pub trait SharedContext: Clone + Send + 'static {}

impl SharedContext for () {}

impl<T: Send + Sync + 'static> SharedContext for Arc<T> {}
