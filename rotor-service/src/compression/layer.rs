//! `CompressionLayer`: compression around an async handler.

use std::borrow::Cow;

use rotor_async::http::{Answer, Handler, Request};
use rotor_http::server::{Head, Response, Scope};
use rotor_http::{MessageError, RequestError, Status};

use super::{Compression, forbids_compression, weak_tag};

impl Compression {
    /// Wraps an async handler so that its responses are compressed. A response that is encoded
    /// already, has a digest, or whose `Cache-Control` says `no-transform`, is left unchanged, as by
    /// [`AcceptedCoding::reply`](super::AcceptedCoding::reply). If a response is compressed, its
    /// `ETag` becomes weak.
    ///
    /// ```no_run
    /// # mod rotor { pub use rotor_http as http; }
    /// use rotor_async::http::{Answer, Request, serve};
    /// use rotor_service::Compression;
    ///
    /// async fn page(_: Request) -> Answer {
    ///     Answer::from("All work and no play. ".repeat(1_000))
    /// }
    ///
    /// fn main() -> Result<(), rotor::http::server::ServeError> {
    ///     serve("127.0.0.1:3000", Compression::new().layer(page))
    /// }
    /// ```
    pub fn layer<H>(self, handler: H) -> CompressionLayer<H> {
        CompressionLayer { compression: self, handler }
    }
}

/// An async handler with compression; made by [`Compression::layer`].
#[derive(Clone, Debug)]
pub struct CompressionLayer<H> {
    compression: Compression,
    handler: H,
}

impl<C, H: Handler<C>> Handler<C> for CompressionLayer<H> {
    type Answer = Answer;

    fn head_received(
        &self,
        head: &Head<'_>,
        response: &mut Response<'_>,
    ) -> Result<(), MessageError> {
        self.handler.head_received(head, response)
    }

    fn handle(
        &self,
        request: Request,
        scope: &mut Scope<'_, C>,
    ) -> impl Future<Output = Answer> + 'static {
        let taken = self.compression.check(request.fields());
        let handled = self.handler.handle(request, scope);
        async move {
            let answer = handled.await.into();
            if answer.fields().any(|(name, value)| forbids_compression(name, value)) {
                return answer;
            }
            if answer.status() == Status::NOT_MODIFIED && !taken.is_range {
                // The 200 that this 304 stands for may have been compressed, with a weak tag. A
                // weak tag matches both that one and the strong one (RFC 9111 §4.3.4).
                let answer = if taken.coding.is_some() { with_weak_tag(answer) } else { answer };
                return answer.field("Vary", "Accept-Encoding");
            }
            let Some(content_type) = answer.content_type() else { return answer };
            let whole = taken.compress_whole(answer.status(), content_type, answer.content());
            let (content_type, fields) = (content_type.to_owned(), whole.fields);
            let coded = match whole.body {
                Cow::Owned(coded) => Some(coded),
                Cow::Borrowed(_) => None,
            };
            let mut answer = answer;
            if let Some(body) = coded {
                answer = with_weak_tag(answer).without("Accept-Ranges").body(content_type, body);
            }
            fields.iter().fold(answer, |answer, (name, value)| answer.field(*name, *value))
        }
    }

    fn error_page(status: Status, why: Option<RequestError>) -> Answer {
        H::error_page(status, why)
    }
}

/// Makes the `ETag` weak, if there is one.
fn with_weak_tag(answer: Answer) -> Answer {
    let tag = answer.fields().find(|(name, _)| name.eq_ignore_ascii_case("ETag"));
    match tag.map(|(_, value)| weak_tag(value).into_owned()) {
        Some(tag) => answer.without("ETag").field("ETag", tag),
        None => answer,
    }
}
