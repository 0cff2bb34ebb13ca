//! Following another process, and being followed.

use std::path::PathBuf;

#[cfg(any(target_os = "linux", target_os = "android"))]
use rotor_core::hand_over::SentAway;

use super::Serve;

impl<K> Serve<K> {
    /// Takes the listeners of the process that serves at `path`, if there is one, and hands them to
    /// the next one that asks there; see `rotor_core::hand_over`. Default: neither.
    ///
    /// The process before drains, for the time of its [`drain`](Serve::drain), once this one
    /// serves and has the path. Where this one cannot follow, `run` stops its loops and fails, and
    /// the other one goes on; where that has ended meanwhile, this one serves, and logs what is
    /// wrong. Their name is `http`. On Linux; elsewhere `run` fails with `Unsupported`.
    /// Who asks and does not follow is [counted](Serve::sent_away).
    #[doc(alias = "restart")]
    pub fn hand_over(mut self, path: impl Into<PathBuf>) -> Serve<K> {
        self.settings.succession.path = Some(path.into());
        self
    }

    /// Returns what counts the processes that have asked for the listeners of this one and have not
    /// followed it, from [`run`](Serve::run) on: as `HandOver::sent_away`. 0 for ever without a
    /// [hand-over](Serve::hand_over). Clones count together.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn sent_away(&self) -> SentAway {
        self.settings.succession.sent_away.clone()
    }
}
