//! How punctually a sleeping thread is woken.

/// Makes the system wake this thread exactly when its time is over. By default, threads are woken
/// up to 50 µs late, which is half of the time that a handler has while its loop is behind.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn sleep_exactly() {
    // If the system refuses, the thread sleeps with the default precision.
    let _refused = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// Does nothing on other systems.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn sleep_exactly() {}
