//! `Body`: the body of a request, as services get it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::body_lost::BodyLost;
use crate::inbound::Channel;

/// The body of a request: frames as they come, then the trailers if there are any.
///
/// The peer is not asked for it before it is polled, and has to wait while 64 KiB of it wait here.
/// It may be read on any thread.
pub struct Body {
    /// Absent: it is empty.
    channel: Option<Arc<Channel>>,
}

impl Body {
    /// Makes an empty body.
    pub fn empty() -> Body {
        Body { channel: None }
    }

    pub(crate) fn of(channel: Arc<Channel>) -> Body {
        Body { channel: Some(channel) }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyLost;

    fn poll_frame(
        self: Pin<&mut Body>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyLost>>> {
        match &self.channel {
            Some(channel) => channel.poll(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.channel.as_ref().is_none_or(|channel| channel.is_end())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.channel {
            Some(channel) => channel.left().map_or_else(SizeHint::default, SizeHint::with_exact),
            None => SizeHint::with_exact(0),
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if let Some(channel) = &self.channel {
            channel.reader_gone();
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
        f.debug_struct("Body").field("is_empty", &self.channel.is_none()).finish()
    }
}
