//! `Traced`: a server around a server, with a span for each request.

use std::fmt;

use rotor_core::{Description, Scope};
use rotor_http::server::{Around, Head, Next, RequestEvent, Response, Server};
use rotor_http::{BodyError, Method, Status};

use crate::spans::{HttpSpans, Spans};
use crate::trace::RequestTrace;

/// A server that wraps another server, with a span for each request. The span is entered for every
/// call of the request's handler, including calls that are made when something [waits in its
/// place](Next::wait).
///
/// It has the context, seed and upgrade of the inner server, so `Traced<Hello>` can replace `Hello`
/// anywhere. Around a [`Routed`](rotor_http::server::Routed) it traces all requests, inside one
/// those of its route. Async handlers and tower services are polled in the span.
///
/// If a request says to which trace it belongs (`traceparent`), its span becomes a part of that
/// trace; otherwise a new trace begins. [`current`](crate::current) returns what to send to other
/// servers.
///
/// If no subscriber wants the spans, a request costs reading one atomic value; nothing else is
/// read, and nothing is allocated. If a subscriber wants them, a request costs one allocation, and
/// what the span itself costs.
#[doc(alias = "TraceLayer")]
#[doc(alias = "instrument")]
pub struct Traced<S, P: Spans = HttpSpans> {
    handler: S,
    request_span: RequestSpan<P>,
}

/// The span around the handler, if there is one.
struct RequestSpan<P: Spans>(Option<Box<RequestTrace<P>>>);

impl<S, P> Around<S> for RequestSpan<P>
where
    S: Server + 'static,
    P: Spans,
{
    type Outer = Traced<S, P>;

    #[inline]
    fn call(
        &mut self,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, S::Context>,
        call: impl FnOnce(&mut Response<'_>, &mut Scope<'_, S::Context>) -> Next<S>,
    ) -> Next<S> {
        let Some(trace) = &mut self.0 else { return call(response, scope) };
        trace.before_call(response);
        let next = {
            let _running = trace.enter();
            call(response, scope)
        };
        trace.after_call(&next, response);
        next
    }

    #[inline]
    fn outer(self, handler: S) -> Traced<S, P> {
        Traced { handler, request_span: self }
    }
}

type Sc<'a, 'b, S> = &'a mut Scope<'b, <S as Server>::Context>;

impl<S: Server + 'static, P: Spans> Server for Traced<S, P> {
    type Context = S::Context;
    type Seed = S::Seed;
    type Upgrade = S::Upgrade;

    const HEARS_END: bool = S::HEARS_END;

    #[inline]
    fn supports(method: Method<'_>) -> bool {
        S::supports(method)
    }

    #[inline]
    fn headers_received(
        seed: S::Seed,
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: Sc<'_, '_, S>,
    ) -> Next<Self> {
        let trace = if P::are_wanted() { RequestTrace::start(head, scope) } else { None };
        let mut request_span = RequestSpan(trace);
        let next = request_span.call(response, scope, |response, scope| {
            S::headers_received(seed, head, response, scope)
        });
        next.around(request_span)
    }

    fn handle(
        self,
        event: RequestEvent<'_>,
        response: &mut Response<'_>,
        scope: Sc<'_, '_, S>,
    ) -> Next<Self> {
        let Traced { handler, mut request_span } = self;
        let next = request_span
            .call(response, scope, |response, scope| handler.handle(event, response, scope));
        next.around(request_span)
    }

    fn describe(&self, to: &mut Description) {
        self.handler.describe(to);
    }

    fn bad_request(self, error: BodyError, scope: Sc<'_, '_, S>) {
        let Traced { handler, mut request_span } = self;
        // This is what the peer is told, since the handler cannot answer any more; a peer that has
        // gone is told nothing. It replaces a response that was begun. If that had been sent
        // already, the handler has usually been called since, so its status is known.
        if let Some(trace) = &mut request_span.0
            && !matches!(error, BodyError::Truncated)
        {
            trace.record_status(error.status());
        }
        let _running = request_span.0.as_ref().map(|trace| trace.enter());
        handler.bad_request(error, scope);
    }

    fn emit_error_page(status: Status, response: &mut Response<'_>) {
        S::emit_error_page(status, response);
    }
}

impl<S, P: Spans> fmt::Debug for Traced<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.request_span.0 {
            Some(_) => "Traced(in a span)",
            None => "Traced(without a span)",
        })
    }
}
