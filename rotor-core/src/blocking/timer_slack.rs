//! How exactly a thread is woken that sleeps for a time.

/// Has the system wake this thread when its time is over: threads are woken up to 50 µs later by
/// default, which is half of what a handler has while its loop is behind.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn sleep_exactly() {
    // Where the system refuses, the thread sleeps as others do.
    let _refused = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// Other systems are not asked.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn sleep_exactly() {}
