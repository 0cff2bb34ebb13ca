//! The page that a peer gets where no handler answers.

use super::response::Response;
use crate::semantics::status::Status;

/// In seconds. A server that has no room now may have some in the time in which a body that stands
/// still is given up.
const RETRY_AFTER: &str = "5";

/// One line of plain text: the status.
pub(super) fn plain_page(status: Status, response: &mut Response<'_>) {
    let page = format!("{} {}\n", status.code(), status.reason());
    response.reply(status, "text/plain", page.as_bytes());
}

/// Has a response that there is no room say when to ask again.
pub(super) fn say_when(status: Status, response: &mut Response<'_>) {
    if status == Status::SERVICE_UNAVAILABLE {
        response.say_retry_after(RETRY_AFTER);
    }
}
