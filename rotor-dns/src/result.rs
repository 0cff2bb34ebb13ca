//! `LookupResult`, the result of a question, and `QueryResult`, which adds how long it is valid.

use std::sync::Arc;
use std::time::Duration;

use crate::error::LookupError;
use crate::record::RecordSet;

/// The result of a question: the records, or why there are none.
#[doc(alias = "Reply")]
pub type LookupResult = Result<Arc<RecordSet>, LookupError>;

/// The result of a query: the records or why there are none, and how long that may be cached
/// (`None`: not at all).
#[derive(Clone, Debug)]
pub(crate) struct QueryResult {
    pub(crate) reply: LookupResult,
    pub(crate) valid_for: Option<Duration>,
}

impl QueryResult {
    pub(crate) fn failed(error: LookupError) -> QueryResult {
        QueryResult { reply: Err(error), valid_for: None }
    }
}
