//! `Inspected`: what is looked at, and who may look.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use rotor_http::server::Counters;

use crate::access::Access;
use crate::failures::Failures;
use crate::query::parameter;
use crate::watched::Watched;

/// What is looked at.
#[derive(Default)]
pub(crate) struct Inspected {
    pub(crate) loops: Vec<Watched>,
    pub(crate) servers: Vec<(String, Arc<Counters>)>,
    pub(crate) failures: Option<Failures>,
    pub(crate) access: Access,
    /// A walk is under way.
    pub(crate) is_walking: Arc<AtomicBool>,
    /// Requests of those who may not look, or not change anything.
    pub(crate) refused: Arc<AtomicU64>,
}

impl Inspected {
    /// The place of the loop that a query names.
    pub(crate) fn find(&self, query: &str) -> Option<usize> {
        let name = parameter(query, "loop")?;
        self.loops.iter().position(|watched| watched.name == name)
    }
}
