//! Converts a response of the package `http`: the head at once, the body as there is room.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderValue, header};
use http_body::Body;
use rotor_core::BoxError;
use rotor_http::server::Response;
use rotor_http::{MessageError, Status, Trailers};

/// How many frames of a response's body are taken in one event. The limit prevents a body of small
/// or empty frames from holding up the loop.
pub const FRAMES_MAX: usize = 64;

/// From this length in bytes, a piece is passed on without copying; a shorter one is copied into
/// the output.
const SHARED_BYTES_MIN: usize = 16 << 10;

/// The result of pumping a body.
pub(crate) enum PumpOutcome {
    /// The body has nothing ready.
    Pending,
    /// There is no room for more output.
    Full,
    /// There is more, left for the next turn.
    More,
    Done,
    Failed(BoxError),
}

/// Writes the head. Returns whether a body follows; if not, the response is complete.
pub(crate) fn write_head(
    parts: &http::response::Parts,
    body: &impl Body,
    response: &mut Response<'_>,
) -> Result<bool, MessageError> {
    let status = to_status(parts.status);
    response.status(status)?;
    let mut length = None;
    for (name, value) in &parts.headers {
        match *name {
            // The writer checks the body against this length.
            header::CONTENT_LENGTH => {
                length = value.to_str().ok().and_then(|text| text.parse().ok())
            }
            // The connection decides about all options but `close`.
            header::CONNECTION if has_close_option(value) => response.close(),
            // The connection decides about framing. RFC 9113 §8.2.2 forbids all of these fields on
            // HTTP/2.
            header::CONNECTION | header::TRANSFER_ENCODING => {}
            _ if matches!(name.as_str(), "keep-alive" | "proxy-connection") => {}
            _ => response.add_header(name.as_str(), value.as_bytes())?,
        }
    }
    if status.forbids_body() || status == Status::RESET_CONTENT {
        // A 304 may have the length that a 200 would have (RFC 9110 §8.6).
        if let Some(length) = length.filter(|_| status == Status::NOT_MODIFIED) {
            response.add_length(length)?;
        }
        response.done_headers()?;
        response.done()?;
        return Ok(false);
    }
    let exact = body.size_hint().exact();
    match length.or(exact) {
        // For HEAD, services return an empty body, whose length is not that of GET.
        Some(0) if length.is_none() && !response.sends_body() => response.add_chunked()?,
        Some(length) => response.add_length(length)?,
        None => response.add_chunked()?,
    }
    response.done_headers()?;
    Ok(true)
}

fn has_close_option(connection: &HeaderValue) -> bool {
    let mut options = connection.as_bytes().split(|&byte| byte == b',');
    options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
}

/// Returns whether no body is sent: the response has none, or it is left out.
pub(crate) fn is_bodiless(response: &Response<'_>, body: &impl Body) -> bool {
    !response.sends_body() || body.is_end_stream()
}

/// Writes as much of the body as is ready and has room.
pub(crate) fn pump<B>(
    mut body: Pin<&mut B>,
    context: &mut Context<'_>,
    response: &mut Response<'_>,
) -> PumpOutcome
where
    B: Body,
    B::Error: Into<BoxError>,
{
    for _ in 0..FRAMES_MAX {
        if response.room() == 0 {
            return PumpOutcome::Full;
        }
        let frame = match body.as_mut().poll_frame(context) {
            // The peer has the whole response, even if the body does not end.
            Poll::Pending if response.is_length_reached() => {
                return outcome_of_end(response.done());
            }
            Poll::Pending => return PumpOutcome::Pending,
            Poll::Ready(None) => return outcome_of_end(response.done()),
            Poll::Ready(Some(Err(error))) => return PumpOutcome::Failed(error.into()),
            Poll::Ready(Some(Ok(frame))) => frame,
        };
        let written = match frame.into_data() {
            Ok(data) => write_data(data, response),
            Err(frame) => match frame.into_trailers() {
                Ok(trailers) => return outcome_of_end(write_trailers(&trailers, response)),
                // A kind of frame that a later version may add.
                Err(_) => Ok(()),
            },
        };
        if let Err(misuse) = written {
            return PumpOutcome::Failed(misuse.into());
        }
        // If this was the last piece, it is sent together with the end.
        if body.is_end_stream() {
            return outcome_of_end(response.done());
        }
    }
    PumpOutcome::More
}

fn outcome_of_end(written: Result<(), MessageError>) -> PumpOutcome {
    match written {
        Ok(()) => PumpOutcome::Done,
        Err(misuse) => PumpOutcome::Failed(misuse.into()),
    }
}

fn write_data(mut data: impl Buf, response: &mut Response<'_>) -> Result<(), MessageError> {
    let count = data.remaining();
    if count >= SHARED_BYTES_MIN {
        // The memory itself, if the service keeps no reference to it; otherwise a copy.
        return response.write_block(Vec::from(data.copy_to_bytes(count)));
    }
    while data.has_remaining() {
        let chunk = data.chunk();
        response.write_body(chunk)?;
        let count = chunk.len();
        data.advance(count);
    }
    Ok(())
}

/// Ends the response with trailers, if they can be sent: after chunks, or on HTTP/2. Fields that
/// are not allowed in trailers (RFC 9110 §6.5.1) are left out.
fn write_trailers(trailers: &HeaderMap, response: &mut Response<'_>) -> Result<(), MessageError> {
    let fields = trailers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    let fields: Vec<(&str, &[u8])> = fields.filter(|(name, _)| Trailers::allow(name)).collect();
    if fields.len() < trailers.len() {
        log::debug!("{} trailers of a response are left out", trailers.len() - fields.len());
    }
    match response.done_with_trailers(&fields) {
        // A body with a length cannot have trailers; it is complete without them.
        Err(misuse @ MessageError::TrailersNotChunked) => {
            log::debug!("the trailers of a response are left out: {misuse}");
            response.done()
        }
        written => written,
    }
}

pub(crate) fn to_status(status: http::StatusCode) -> Status {
    // Both types have the range 100 to 999.
    Status::new(status.as_u16()).unwrap_or(Status::INTERNAL_SERVER_ERROR)
}

/// Converts a piece of a request's body without copying it.
pub(crate) fn to_bytes(block: rotor_stream::Block) -> Bytes {
    struct Owner(rotor_stream::Block);
    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    Bytes::from_owner(Owner(block))
}
