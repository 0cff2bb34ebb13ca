//! `Spans`: how the span of a request is made.

use rotor_http::server::Head;
use rotor_http::{Status, TraceContext};
use tracing::field::Empty;
use tracing::{Level, Span};

/// The target of the spans of requests.
const TARGET: &str = "rotor::http";

/// How the spans of requests are made, and what is written into them: [`HttpSpans`], or one of your
/// own, that makes children of what `tracing-opentelemetry` extracts, say.
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::server::Head;
/// use rotor::http::TraceContext;
/// use rotor_tracing::Spans;
/// use rotor_tracing::tracing::{Level, Span, span, span_enabled};
///
/// /// Spans of the level DEBUG, with nothing but the method.
/// enum Short {}
///
/// impl Spans for Short {
///     fn are_wanted() -> bool {
///         span_enabled!(Level::DEBUG)
///     }
///
///     fn request(head: &Head<'_>, _: &TraceContext, _: Option<&TraceContext>) -> Span {
///         span!(Level::DEBUG, "request", method = head.method().as_str())
///     }
/// }
/// ```
pub trait Spans: 'static {
    /// Returns whether anybody wants such spans: a look at one atomic value where nobody
    /// subscribes. Where not, nothing else is called.
    ///
    /// Default: whether those of the target `rotor::http` and the level INFO are wanted.
    #[inline]
    fn are_wanted() -> bool {
        tracing::span_enabled!(target: TARGET, Level::INFO, "request")
    }

    /// Makes the span of a request. `context` is what others are told of it, `came` what the
    /// request said: of the same trace, if it said something.
    ///
    /// Default: as the [front page](crate#what-a-span-of-a-request-has) says.
    fn request(head: &Head<'_>, context: &TraceContext, came: Option<&TraceContext>) -> Span {
        let span = tracing::span!(
            target: TARGET,
            Level::INFO,
            "request",
            otel.kind = "server",
            http.request.method = head.method().as_str(),
            url.path = head.path(),
            network.protocol.version = %&head.version().to_string()["HTTP/".len()..],
            trace_id = format_args!("{:032x}", context.trace_id()),
            span_id = format_args!("{:016x}", context.parent_id()),
            parent_span_id = Empty,
            http.response.status_code = Empty,
            error.r#type = Empty,
        );
        if let Some(came) = came {
            span.record("parent_span_id", format_args!("{:016x}", came.parent_id()));
        }
        span
    }

    /// The status of the response: as the handler wrote it, what it failed with, or what a broken
    /// body is answered with. Once a request, before the span is closed.
    ///
    /// Default: records it, from 500 on as an error.
    fn answered(span: &Span, status: Status) {
        span.record("http.response.status_code", status.code());
        if status.code() >= 500 {
            span.record("error.type", tracing::field::display(status.code()));
        }
    }

    /// The handler is gone without a status: it panicked, it forgot to answer, or to end what it had
    /// begun, of which nothing had left, or the peer has gone.
    ///
    /// Default: records that as an error.
    fn unanswered(span: &Span) {
        span.record("error.type", "unanswered");
    }
}

/// Spans as the [front page](crate#what-a-span-of-a-request-has) describes them.
#[derive(Debug, Clone, Copy)]
pub enum HttpSpans {}

impl Spans for HttpSpans {}
