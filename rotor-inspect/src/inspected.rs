//! `Inspected`: the inspected loops and servers, and the rules of access.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use rotor_http::server::Counters;

use crate::access::Access;
use crate::failures::Failures;
use crate::query::parameter;
use crate::watched::WatchedLoop;

/// The inspected loops and servers.
#[derive(Default)]
pub(crate) struct Inspected {
    pub(crate) loops: Vec<WatchedLoop>,
    pub(crate) servers: Vec<(String, Arc<Counters>)>,
    pub(crate) failures: Option<Failures>,
    pub(crate) access: Access,
    /// Whether a walk is under way.
    pub(crate) is_walking: Arc<AtomicBool>,
    /// Counts requests that were refused by the rules of access.
    pub(crate) refused: Arc<AtomicU64>,
}

impl Inspected {
    /// Returns the index of the loop that a query names.
    pub(crate) fn find_loop(&self, query: &str) -> Option<usize> {
        let name = parameter(query, "loop")?;
        self.loops.iter().position(|watched| watched.name == name)
    }
}
