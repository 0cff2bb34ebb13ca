//! `SharedContext`: a context of which several threads may have a clone each.

use std::sync::Arc;

/// A context whose clone is another handle to the same things. A loop needs such a context to be
/// [taken over](crate::LoopInstance::taking_over) while a handler still has the context.
///
/// Pools, resolvers, services, senders, spools, and what lies in an `Arc` behind a lock or in
/// atomics, are handles already, and so is a struct of them. A plain value is not: what one handler
/// writes into its own clone, the next one may not see. That is why you must implement this trait,
/// and `Clone` alone is not enough.
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
/// Hold a lock in it for a moment only, never while you wait for something: a handler that is stuck
/// with the lock stalls all who want it, each on a thread of its own.
///
/// The loop clones the context beforehand, when it moves to another thread. If `clone` panics, that
/// is logged, and the loop is not taken from the thread that runs it then.
pub trait SharedContext: Clone + Send + 'static {}

impl SharedContext for () {}

impl<T: Send + Sync + 'static> SharedContext for Arc<T> {}
