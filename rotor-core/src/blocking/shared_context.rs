//! `SharedContext`: a context of which several threads may have one each.

use std::sync::Arc;

/// A context whose clone is another handle to the same things: what a loop needs to be
/// [taken over](crate::LoopInstance::taking_over) while a handler still has the context.
///
/// Pools, resolvers, services, senders, spools and what lies in an `Arc` behind a lock or in
/// atomics are handles already, and so is a struct of them. A plain value is not: what one handler
/// writes into its own clone, the next one may not see. That is why this is said, and not concluded
/// from `Clone`.
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
/// A lock in it is held for a moment only, never while something is waited for: a handler that is
/// stuck with it stalls all who want it, each on a thread of its own.
///
/// The loop clones it when it goes to another thread, beforehand. A `clone` that panics is logged,
/// and the loop is not taken from who runs it then.
pub trait SharedContext: Clone + Send + 'static {}

impl SharedContext for () {}

impl<T: Send + Sync + 'static> SharedContext for Arc<T> {}
