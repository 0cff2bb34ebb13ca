//! The result of a question: `LookupResult`, and how long it is valid: `QueryResult`.

use std::sync::Arc;
use std::time::Duration;

use crate::error::LookupError;
use crate::record::RecordSet;

/// The result of a question: the records, or why there are none.
#[doc(alias = "Reply")]
pub type LookupResult = Result<Arc<RecordSet>, LookupError>;

/// The result of a lookup: the records or why there are none, and for how long that is known
/// (`None`: not to be kept).
#[derive(Clone, Debug)]
pub(crate) struct QueryResult {
    pub(crate) reply: LookupResult,
    pub(crate) good_for: Option<Duration>,
}

impl QueryResult {
    pub(crate) fn failed(error: LookupError) -> QueryResult {
        QueryResult { reply: Err(error), good_for: None }
    }
}
