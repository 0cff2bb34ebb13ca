//! The error page that a peer gets if no handler responds.

use std::io::Write;

use super::response::Response;
use crate::semantics::status::Status;

/// In seconds. A server without room may have some after the time in which a stalled body is given
/// up.
const RETRY_AFTER: &str = "5";

/// In bytes: more than any status with any reason needs.
const PAGE_BYTES_MAX: usize = 256;

/// Writes one line of plain text: the status, and the reason if a head or body was refused. A bare
/// 400 does not help the author of a client. The line contains no text from the peer.
pub(super) fn plain_page(status: Status, response: &mut Response<'_>) {
    // On the stack, so that a flood of bad requests costs no more than other requests.
    let mut page = [0; PAGE_BYTES_MAX];
    let mut rest = &mut page[..];
    // No line is longer than the page.
    let _whole = match response.refusal() {
        Some(why) => writeln!(rest, "{} {}: {}", status.code(), status.reason(), why.reason()),
        None => writeln!(rest, "{} {}", status.code(), status.reason()),
    };
    let left = rest.len();
    response.reply(status, "text/plain", &page[..PAGE_BYTES_MAX - left]);
}

/// Adds a `Retry-After` to a 503.
pub(super) fn add_retry_after(status: Status, response: &mut Response<'_>) {
    if status == Status::SERVICE_UNAVAILABLE {
        response.set_retry_after(RETRY_AFTER);
    }
}
