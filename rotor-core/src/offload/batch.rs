//! `Batch`: jobs whose results are reported together.

use std::fmt;
use std::sync::Arc;

use crate::future::{Together, Waiter};
use crate::notifier::Notifier;

/// Jobs whose results a machine wants all together, with one wake-up. It comes when the last of
/// them is done, or lost, and the batch was dropped, so that no more jobs can join.
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
/// wake-up for each of them makes no batch.
#[doc(alias = "join_all")]
#[doc(alias = "JoinSet")]
#[doc(alias = "WaitGroup")]
#[must_use = "a batch that is dropped takes no more jobs"]
pub struct Batch {
    together: Arc<Together>,
}

impl Batch {
    pub(crate) fn new(machine: Notifier) -> Batch {
        Batch { together: Arc::new(Together::new(machine)) }
    }

    /// Adds one more job, and returns who waits for it.
    pub(crate) fn waiter(&self) -> Waiter {
        self.together.one_more();
        Waiter::Together(self.together.clone())
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.together.one_less();
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Batch")
    }
}
