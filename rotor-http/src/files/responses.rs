//! Chooses the response for a file, and writes it.

use std::sync::Arc;

use super::conditions::{Conditions, Evaluation};
use super::config::FilesConfig;
use super::known::{Content, KnownVariant, Representation};
use super::multipart::Multipart;
use super::range::{ByteRange, Selection, select};
use crate::semantics::error::MessageError;
use crate::semantics::status::Status;
use crate::server::Response;

/// The supported methods, for `Allow`.
const METHODS: &str = "GET, HEAD, OPTIONS";

/// Writes the file, a part of it, or a response without it if the conditions say so. `random`
/// provides the boundary.
pub(super) fn send_file(
    sent: Representation<'_>,
    conditions: &Conditions<'_>,
    config: &FilesConfig,
    now: i64,
    random: impl FnOnce() -> [u8; 16],
    response: &mut Response<'_>,
) -> Result<(), MessageError> {
    let known = sent.known;
    let mut validators = known.validators();
    // RFC 9110 §8.8.1: a date that several representations share does not distinguish them, and
    // compressors copy the date of the file.
    validators.modified_is_strong &= !sent.varies;
    match conditions.evaluate(&validators, now) {
        Evaluation::NotModified => return send_not_modified(sent, config, response),
        Evaluation::PreconditionFailed => {
            response.status(Status::PRECONDITION_FAILED)?;
            return send_page(Status::PRECONDITION_FAILED, response);
        }
        Evaluation::Perform => {}
    }
    let selection = conditions.range(&validators, now).map(|range| select(range, known.size));
    match selection.unwrap_or(Selection::Whole) {
        Selection::Whole => send_whole(sent, config, response),
        Selection::Nothing => send_not_satisfiable(known, response),
        Selection::Ranges(ranges) => match ranges[..] {
            [range] => send_part(sent, range, config, response),
            // RFC 9110 §15.3.7.2 does not say where to put the coding of the parts.
            _ if sent.coding.is_some() => send_whole(sent, config, response),
            // Called only here, so that no secure bytes are generated for requests that need no
            // boundary.
            _ => send_parts(sent, &ranges, config, random(), response),
        },
    }
}

fn send_whole(
    sent: Representation<'_>,
    config: &FilesConfig,
    response: &mut Response<'_>,
) -> Result<(), MessageError> {
    let known = sent.known;
    response.status(Status::OK)?;
    add_type(sent, response)?;
    add_validators(sent, config, response)?;
    response.add_header("Accept-Ranges", "bytes")?;
    response.add_length(known.size)?;
    response.done_headers()?;
    write_range(known, 0, known.size, response)?;
    response.done()
}

fn send_part(
    sent: Representation<'_>,
    range: ByteRange,
    config: &FilesConfig,
    response: &mut Response<'_>,
) -> Result<(), MessageError> {
    let known = sent.known;
    response.status(Status::PARTIAL_CONTENT)?;
    add_type(sent, response)?;
    response.add_header(
        "Content-Range",
        format!("bytes {}-{}/{}", range.first, range.last, known.size),
    )?;
    add_validators(sent, config, response)?;
    response.add_header("Accept-Ranges", "bytes")?;
    response.add_length(range.len())?;
    response.done_headers()?;
    write_range(known, range.first, range.len(), response)?;
    response.done()
}

fn send_parts(
    sent: Representation<'_>,
    ranges: &[ByteRange],
    config: &FilesConfig,
    random: [u8; 16],
    response: &mut Response<'_>,
) -> Result<(), MessageError> {
    let known = sent.known;
    let multipart = Multipart::new(ranges, known.size, &known.content_type, random);
    response.status(Status::PARTIAL_CONTENT)?;
    response.add_header("Content-Type", multipart.content_type())?;
    add_validators(sent, config, response)?;
    response.add_header("Accept-Ranges", "bytes")?;
    response.add_length(multipart.len())?;
    response.done_headers()?;
    for (head, range) in multipart.parts() {
        response.write_body(head)?;
        write_range(known, range.first, range.len(), response)?;
    }
    response.write_body(multipart.end())?;
    response.done()
}

/// Writes the page for files that are missing. It is not what the path stands for, so conditions and
/// ranges do not apply to it (RFC 9110 §13.2.1), and caches are told nothing about it.
pub(super) fn send_not_found(
    page: Representation<'_>,
    response: &mut Response<'_>,
) -> Result<(), MessageError> {
    response.status(Status::NOT_FOUND)?;
    add_type(page, response)?;
    if page.varies {
        response.add_header("Vary", "Accept-Encoding")?;
    }
    response.add_length(page.known.size)?;
    response.done_headers()?;
    write_range(page.known, 0, page.known.size, response)?;
    response.done()
}

/// Writes 304 with the fields of the full response that a cache uses (RFC 9110 §15.4.5).
fn send_not_modified(
    sent: Representation<'_>,
    config: &FilesConfig,
    response: &mut Response<'_>,
) -> Result<(), MessageError> {
    // Without a length: RFC 9110 §8.6 makes it optional, and old clients would wait for a body.
    response.status(Status::NOT_MODIFIED)?;
    add_validators(sent, config, response)?;
    response.done_headers()?;
    response.done()
}

fn send_not_satisfiable(
    known: &KnownVariant,
    response: &mut Response<'_>,
) -> Result<(), MessageError> {
    response.status(Status::RANGE_NOT_SATISFIABLE)?;
    response.add_header("Content-Range", format!("bytes */{}", known.size))?;
    send_page(Status::RANGE_NOT_SATISFIABLE, response)
}

/// Adds the content type and coding.
fn add_type(sent: Representation<'_>, response: &mut Response<'_>) -> Result<(), MessageError> {
    response.add_header("Content-Type", sent.known.content_type.as_bytes())?;
    match sent.coding {
        Some(coding) => response.add_header("Content-Encoding", coding.name()),
        None => Ok(()),
    }
}

/// Adds the fields by which a cache recognizes the file.
fn add_validators(
    sent: Representation<'_>,
    config: &FilesConfig,
    response: &mut Response<'_>,
) -> Result<(), MessageError> {
    response.add_header("ETag", sent.known.tag.as_str())?;
    response.add_header("Last-Modified", sent.known.modified_text)?;
    if sent.varies {
        response.add_header("Vary", "Accept-Encoding")?;
    }
    match config.cache_control_value() {
        Some(value) => response.add_header("Cache-Control", value),
        None => Ok(()),
    }
}

/// Writes a part of the file. Small files are shared from memory; the kernel sends the others,
/// which are never held here.
fn write_range(
    known: &KnownVariant,
    offset: u64,
    len: u64,
    response: &mut Response<'_>,
) -> Result<(), MessageError> {
    let file = match &known.content {
        Content::Held(block) => {
            // A small file has no offset that does not fit.
            let (from, len) = (offset as usize, len as usize);
            return response.write_block(block.slice(from..from + len));
        }
        Content::Open(file) => file,
    };
    let mut at = offset;
    let end = offset + len;
    while at < end {
        // One piece, unless the file is larger than the address space.
        let count = usize::try_from(end - at).unwrap_or(usize::MAX);
        response.write_file(Arc::clone(file), at, count)?;
        at += count as u64;
    }
    Ok(())
}

/// Redirects from a directory's path without the slash at its end to the path with it. `location`
/// must not begin with two slashes, which would name another host.
pub(super) fn send_redirect(
    location: &str,
    response: &mut Response<'_>,
) -> Result<(), MessageError> {
    response.status(Status::MOVED_PERMANENTLY)?;
    response.add_header("Location", location)?;
    send_page(Status::MOVED_PERMANENTLY, response)
}

/// Responds to OPTIONS, for a file or for the server.
pub(super) fn send_options(response: &mut Response<'_>) -> Result<(), MessageError> {
    response.status(Status::NO_CONTENT)?;
    response.add_header("Allow", METHODS)?;
    response.done_headers()?;
    response.done()
}

/// Responds to an unsupported method.
pub(super) fn send_not_allowed(response: &mut Response<'_>) -> Result<(), MessageError> {
    response.status(Status::METHOD_NOT_ALLOWED)?;
    response.add_header("Allow", METHODS)?;
    send_page(Status::METHOD_NOT_ALLOWED, response)
}

/// Responds that the server is too busy.
pub(super) fn send_busy(response: &mut Response<'_>) -> Result<(), MessageError> {
    response.status(Status::SERVICE_UNAVAILABLE)?;
    response.add_header("Retry-After", "1")?;
    send_page(Status::SERVICE_UNAVAILABLE, response)
}

/// Writes a line of text as the body, for a response that already has its status and special
/// fields.
fn send_page(status: Status, response: &mut Response<'_>) -> Result<(), MessageError> {
    let page = format!("{status}\n");
    response.add_header("Content-Type", "text/plain")?;
    response.add_length(page.len() as u64)?;
    response.done_headers()?;
    response.write_body(page)?;
    response.done()
}
