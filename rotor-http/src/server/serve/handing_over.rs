//! Taking over from another process, and handing over to the next one.

use std::path::PathBuf;

#[cfg(any(target_os = "linux", target_os = "android"))]
use rotor_core::hand_over::RejectedSuccessors;

use super::Serve;

impl<K, L> Serve<K, L> {
    /// Takes the listeners of the process that serves at `path`, if there is one, and hands them to
    /// the next process that asks at this path; see `rotor_core::hand_over`. Default: neither.
    ///
    /// The earlier process begins to drain once this one serves and has taken the path; the earlier
    /// one's [`drain`](Serve::drain) sets the time for that. If this process cannot take over,
    /// `run` finishes the requests that it has accepted meanwhile, for as long as a drain takes at
    /// most, and fails; the earlier process goes on serving. If that has ended in the meantime,
    /// this process serves, even if it cannot take the path, and then logs the error. In the
    /// hand-over, the listeners are called `http`, or `https` [over TLS](Serve::over): a process
    /// that begins to encrypt, or no longer does, opens an address of its own. The listeners keep
    /// their address, whatever this process is configured with, and their options: to change these,
    /// end the earlier process before this one starts. This works on Linux; on other systems `run`
    /// fails with `Unsupported`. Processes that ask and then do not take over are
    /// [counted](Serve::rejected_successors).
    #[doc(alias = "restart")]
    pub fn hand_over(mut self, path: impl Into<PathBuf>) -> Serve<K, L> {
        self.settings.hand_over.path = Some(path.into());
        self
    }

    /// Returns the counter of the processes that have asked for the listeners of this one and have
    /// not taken over, from [`run`](Serve::run) on; see `HandOver::rejected_successors`. It stays 0
    /// without a [hand-over](Serve::hand_over). Clones share one count.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[doc(alias = "sent_away")]
    pub fn rejected_successors(&self) -> RejectedSuccessors {
        self.settings.hand_over.rejected_successors.clone()
    }
}
