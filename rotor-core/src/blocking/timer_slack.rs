//! How exactly a sleeping thread is woken.

/// Has the system wake this thread exactly when its time is over. By default threads are woken up
/// to 50 µs later, which is half of what a handler has while its loop is behind.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn sleep_exactly() {
    // If the system refuses, the thread sleeps as others do.
    let _refused = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// Other systems are not asked.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn sleep_exactly() {}
