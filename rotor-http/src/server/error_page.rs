//! The page that a peer gets where no handler answers.

use std::io::Write;

use super::response::Response;
use crate::semantics::status::Status;

/// In seconds. A server that has no room now may have some in the time in which a body that stands
/// still is given up.
const RETRY_AFTER: &str = "5";

/// In octets: more than any status with any reason.
const PAGE_BYTES_MAX: usize = 256;

/// One line of plain text: the status, and why a head was refused. Whoever wrote the client can do
/// nothing with a bare 400; and nothing of what the peer has sent is in it.
pub(super) fn plain_page(status: Status, response: &mut Response<'_>) {
    // On the stack: many bad requests are to cost no more than others.
    let mut page = [0; PAGE_BYTES_MAX];
    let mut rest = &mut page[..];
    // Longer than a page there is none.
    let _whole = match response.refusal() {
        Some(why) => writeln!(rest, "{} {}: {}", status.code(), status.reason(), why.reason()),
        None => writeln!(rest, "{} {}", status.code(), status.reason()),
    };
    let left = rest.len();
    response.reply(status, "text/plain", &page[..PAGE_BYTES_MAX - left]);
}

/// Has a response that there is no room say when to ask again.
pub(super) fn say_when(status: Status, response: &mut Response<'_>) {
    if status == Status::SERVICE_UNAVAILABLE {
        response.say_retry_after(RETRY_AFTER);
    }
}
