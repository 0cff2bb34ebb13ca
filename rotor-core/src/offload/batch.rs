//! `Batch`: jobs whose results are reported together.

use std::fmt;
use std::sync::Arc;

use crate::future::{PortCounter, Waiter};
use crate::notifier::Notifier;

/// A group of jobs whose machine is woken once, when all results are there. The wake-up comes when
/// the last job is done or lost and the batch has been dropped, so that no more jobs can join.
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::{Future, Job, OffloadPool, Scope};
///
/// fn squares<C>(numbers: Vec<u64>, scope: &Scope<'_, C>) -> Vec<Future<u64>> {
///     let batch = scope.create_batch();
///     let square = |number| move |_: &Job<'_>| number * number;
///     let begin = |number| scope.job(square(number)).of(&batch).start().ok();
///     numbers.into_iter().filter_map(begin).collect()
/// }
/// ```
///
/// Each result is in the future of its own job as soon as that job is done. A machine that wants a
/// wake-up for each job needs no batch.
#[doc(alias = "join_all")]
#[doc(alias = "JoinSet")]
#[doc(alias = "WaitGroup")]
#[must_use = "a batch that is dropped takes no more jobs"]
pub struct Batch {
    counter: Arc<PortCounter>,
}

impl Batch {
    pub(crate) fn new(machine: Notifier) -> Batch {
        Batch { counter: Arc::new(PortCounter::new(machine)) }
    }

    /// Adds one more job, and returns the waiter for its result.
    pub(crate) fn waiter(&self) -> Waiter {
        self.counter.add_port();
        Waiter::PortCounter(self.counter.clone())
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.counter.remove_port();
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Batch")
    }
}
