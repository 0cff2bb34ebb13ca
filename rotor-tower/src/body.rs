//! `Body`: the body of a request, as a service gets it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::body_lost::BodyLost;
use crate::inbound::BodyChannel;

/// The body of a request: data frames as they arrive, and then the trailers, if any.
///
/// The body is not requested from the peer before it is first polled. While 64 KiB of it wait here,
/// the peer has to wait. It may be read on any thread.
pub struct Body(Source);

enum Source {
    /// The rest of a body that arrived whole.
    Whole(Bytes),
    Channel(Arc<BodyChannel>),
}

impl Body {
    /// Makes an empty body.
    pub fn empty() -> Body {
        Body::whole(Bytes::new())
    }

    /// Makes a body that has arrived whole.
    pub(crate) fn whole(octets: Bytes) -> Body {
        Body(Source::Whole(octets))
    }

    pub(crate) fn from_channel(channel: Arc<BodyChannel>) -> Body {
        Body(Source::Channel(channel))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyLost;

    fn poll_frame(
        mut self: Pin<&mut Body>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyLost>>> {
        match &mut self.0 {
            Source::Whole(rest) if rest.is_empty() => Poll::Ready(None),
            Source::Whole(rest) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(rest))))),
            Source::Channel(channel) => channel.poll(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::Whole(rest) => rest.is_empty(),
            Source::Channel(channel) => channel.is_finished(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Whole(rest) => SizeHint::with_exact(rest.len() as u64),
            Source::Channel(channel) => {
                channel.remaining().map_or_else(SizeHint::default, SizeHint::with_exact)
            }
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if let Source::Channel(channel) = &self.0 {
            channel.close_reader();
        }
    }
}

impl Default for Body {
    fn default() -> Body {
        Body::empty()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_empty = matches!(&self.0, Source::Whole(rest) if rest.is_empty());
        f.debug_struct("Body").field("is_empty", &is_empty).finish()
    }
}
