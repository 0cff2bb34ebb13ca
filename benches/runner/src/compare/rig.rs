//! The environment in which servers are started: files, cores, time.

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
    /// Returns the time in which caches, allocator and branch predictors warm up before the
    /// measurement.
    pub(super) fn warm_up(&self) -> Duration {
        self.time / 5
    }
}
