//! `Spans`: how the spans of requests are made.

use rotor_http::server::Head;
use rotor_http::{Method, Status, TraceContext};
use tracing::field::Empty;
use tracing::{Level, Span};

/// The target of the spans of requests.
const TARGET: &str = "rotor::http";

/// How the spans of requests are made, and what is recorded in them. Use [`HttpSpans`] or a type of
/// your own, for example one that uses `tracing-opentelemetry` to make spans children of the
/// extracted trace.
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
    /// Returns whether any subscriber wants such spans. If not, nothing else is called. If there is
    /// no subscriber, this costs reading one atomic value.
    ///
    /// Default: whether spans with the target `rotor::http` and the level INFO are wanted.
    #[inline]
    fn are_wanted() -> bool {
        tracing::span_enabled!(target: TARGET, Level::INFO, "request")
    }

    /// Makes the span of a request. `context` is what is sent to other servers. `incoming` is what
    /// the request contained; if it contained a trace, `context` belongs to the same one.
    ///
    /// Default: as described on the [first page](crate#the-span-of-a-request).
    fn request(head: &Head<'_>, context: &TraceContext, incoming: Option<&TraceContext>) -> Span {
        // OpenTelemetry requires one value for all unknown methods, of which a peer may send any
        // number.
        let (method, original) = match head.method() {
            Method::Extension(name) => ("_OTHER", Some(name)),
            method => (method.as_str(), None),
        };
        let span = tracing::span!(
            target: TARGET,
            Level::INFO,
            "request",
            otel.kind = "server",
            http.request.method = method,
            http.request.method_original = original,
            url.path = head.path(),
            network.protocol.version = %&head.version().to_string()["HTTP/".len()..],
            trace_id = format_args!("{:032x}", context.trace_id()),
            span_id = format_args!("{:016x}", context.parent_id()),
            parent_span_id = Empty,
            http.response.status_code = Empty,
            error.r#type = Empty,
        );
        if let Some(incoming) = incoming {
            span.record("parent_span_id", format_args!("{:016x}", incoming.parent_id()));
        }
        span
    }

    /// Records the status of the response: the one that the handler wrote, the one that it failed
    /// with, or the one that answers a broken body. Called at most once per request, before the
    /// span is closed.
    ///
    /// Default: records the status, and from 500 on also as an error.
    fn answered(span: &Span, status: Status) {
        span.record("http.response.status_code", status.code());
        if status.code() >= 500 {
            span.record("error.type", tracing::field::display(status.code()));
        }
    }

    /// Records that the handler ended without a status: it panicked, it did not answer, it did not
    /// end a response of which nothing had been sent, or the peer has gone.
    ///
    /// Default: records this as an error.
    fn unanswered(span: &Span) {
        span.record("error.type", "unanswered");
    }
}

/// Spans as described on the [first page](crate#the-span-of-a-request).
#[derive(Debug, Clone, Copy)]
pub enum HttpSpans {}

impl Spans for HttpSpans {}
