//! `WaiterQueue`: a queue that waiters leave, as those see it that make them leave.

/// A queue of futures that wait for a value, or of jobs. What does not wait any more leaves it.
pub(crate) trait WaiterQueue: Send + Sync {
    fn remove(&self, place: u64);

    /// Called if the future was dropped with its value in it. Usually the drop of the value passes
    /// it on to the next waiter. If the value does nothing when it is dropped, this method must do
    /// so.
    fn value_unclaimed(&self) {}
}
