//! From a response of `http` to the connection's: its head at once, its body as there is room.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderValue, header};
use http_body::Body;
use rotor_core::BoxError;
use rotor_http::server::Response;
use rotor_http::{MessageError, Status, Trailers};

/// How many frames of a response's body are taken in one event: a body of small or empty ones must
/// not hold up the loop.
pub const FRAMES_MAX: usize = 64;

/// A piece of so many octets goes along as it is; a smaller one is copied into the output.
const SHARED_BYTES_MIN: usize = 16 << 10;

/// How far a body has come.
pub(crate) enum Pumped {
    /// Nothing more is there.
    Waits,
    /// There is no room for more.
    Full,
    /// There is more, for the next turn.
    More,
    Done,
    Failed(BoxError),
}

/// Writes the head. Returns whether a body is to follow; without one the response is complete.
pub(crate) fn write_head(
    parts: &http::response::Parts,
    body: &impl Body,
    response: &mut Response<'_>,
) -> Result<bool, MessageError> {
    let status = status_of(parts.status);
    response.status(status)?;
    let mut length = None;
    for (name, value) in &parts.headers {
        match *name {
            // What is said of the length is checked against the body by the writer.
            header::CONTENT_LENGTH => {
                length = value.to_str().ok().and_then(|text| text.parse().ok())
            }
            // Its tokens but `close` follow from what else is written.
            header::CONNECTION if says_close(value) => response.close(),
            // Framing is the connection's. RFC 9113 §8.2.2 forbids all of these on HTTP/2.
            header::CONNECTION | header::TRANSFER_ENCODING => {}
            _ if matches!(name.as_str(), "keep-alive" | "proxy-connection") => {}
            _ => response.add_header(name.as_str(), value.as_bytes())?,
        }
    }
    if status.forbids_body() || status == Status::RESET_CONTENT {
        // Of 304 it may be said which length 200 would have had (RFC 9110 §8.6).
        if let Some(length) = length.filter(|_| status == Status::NOT_MODIFIED) {
            response.add_length(length)?;
        }
        response.done_headers()?;
        response.done()?;
        return Ok(false);
    }
    let exact = body.size_hint().exact();
    match length.or(exact) {
        // To HEAD, services give the empty body: it says nothing of what GET would have had.
        Some(0) if length.is_none() && !response.sends_body() => response.add_chunked()?,
        Some(length) => response.add_length(length)?,
        None => response.add_chunked()?,
    }
    response.done_headers()?;
    Ok(true)
}

fn says_close(connection: &HeaderValue) -> bool {
    let mut options = connection.as_bytes().split(|&byte| byte == b',');
    options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
}

/// Whether nothing of the body is sent: it is not, or there is none.
pub(crate) fn is_bodiless(response: &Response<'_>, body: &impl Body) -> bool {
    !response.sends_body() || body.is_end_stream()
}

/// Writes as much of the body as is there and has room.
pub(crate) fn pump<B>(
    mut body: Pin<&mut B>,
    context: &mut Context<'_>,
    response: &mut Response<'_>,
) -> Pumped
where
    B: Body,
    B::Error: Into<BoxError>,
{
    for _ in 0..FRAMES_MAX {
        if response.room() == 0 {
            return Pumped::Full;
        }
        let frame = match body.as_mut().poll_frame(context) {
            Poll::Pending => return Pumped::Waits,
            Poll::Ready(None) => return ended(response.done()),
            Poll::Ready(Some(Err(error))) => return Pumped::Failed(error.into()),
            Poll::Ready(Some(Ok(frame))) => frame,
        };
        let written = match frame.into_data() {
            Ok(data) => write_data(data, response),
            Err(frame) => match frame.into_trailers() {
                Ok(trailers) => return ended(write_trailers(&trailers, response)),
                // A kind of frame of a later version.
                Err(_) => Ok(()),
            },
        };
        if let Err(misuse) = written {
            return Pumped::Failed(misuse.into());
        }
        // The last piece is known to be the last: it goes out with the end.
        if body.is_end_stream() {
            return ended(response.done());
        }
    }
    Pumped::More
}

fn ended(written: Result<(), MessageError>) -> Pumped {
    match written {
        Ok(()) => Pumped::Done,
        Err(misuse) => Pumped::Failed(misuse.into()),
    }
}

fn write_data(mut data: impl Buf, response: &mut Response<'_>) -> Result<(), MessageError> {
    let count = data.remaining();
    if count >= SHARED_BYTES_MIN {
        // The memory itself, where the service has let go of it; else a copy.
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

/// Ends with trailers where they can be sent: behind chunks, or on HTTP/2. Without those that the
/// head should have said (RFC 9110 §6.5.1).
fn write_trailers(trailers: &HeaderMap, response: &mut Response<'_>) -> Result<(), MessageError> {
    let fields = trailers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    let fields: Vec<(&str, &[u8])> = fields.filter(|(name, _)| Trailers::allow(name)).collect();
    if fields.len() < trailers.len() {
        log::debug!("{} trailers of a response are left out", trailers.len() - fields.len());
    }
    match response.done_with_trailers(&fields) {
        // The length left no place for them: the body is whole without.
        Err(misuse @ MessageError::TrailersNotChunked) => {
            log::debug!("the trailers of a response are left out: {misuse}");
            response.done()
        }
        written => written,
    }
}

pub(crate) fn status_of(status: http::StatusCode) -> Status {
    // The same range, 100 to 999.
    Status::new(status.as_u16()).unwrap_or(Status::INTERNAL_SERVER_ERROR)
}

/// A piece of a request's body, in the memory in which it came.
pub(crate) fn bytes_of(block: rotor_stream::Block) -> Bytes {
    struct Owner(rotor_stream::Block);
    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    Bytes::from_owner(Owner(block))
}
