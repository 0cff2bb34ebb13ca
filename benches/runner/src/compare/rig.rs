//! What the servers find when they are started: files, cores, time.

use std::time::Duration;

use super::site::Site;
use crate::process::Cores;

/// What all rounds have in common.
#[derive(Debug)]
pub(super) struct Rig {
    pub(super) site: Site,
    pub(super) cores: Option<Cores>,
    pub(super) threads: usize,
    /// How long each server is measured in each round.
    pub(super) time: Duration,
}

impl Rig {
    /// Caches, allocator and branch predictors settle outside the measured time.
    pub(super) fn warm_up(&self) -> Duration {
        self.time / 5
    }
}
