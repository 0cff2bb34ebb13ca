//! `RequestTrace`: the span of a request, and the state of its response.

use std::marker::PhantomData;
use std::num::NonZero;
use std::sync::Arc;
use std::thread::panicking;

use rotor_core::Scope;
use rotor_http::server::{Head, Next, Response, Server};
use rotor_http::{Status, TraceContext};
use tracing::Span;
use tracing::span::Entered;

use crate::current::CurrentGuard;
use crate::spans::Spans;

pub(crate) struct RequestTrace<P: Spans> {
    span: Span,
    context: Arc<TraceContext>,
    /// The status of a response of which nothing had been sent when that was last checked. Until
    /// something is sent, it may still be replaced.
    started_status: Option<Status>,
    is_status_recorded: bool,
    spans: PhantomData<fn() -> P>,
}

impl<P: Spans> RequestTrace<P> {
    /// Begins the trace of a request; `None` if no subscriber wants its span.
    #[cold]
    pub(crate) fn start<C>(head: &Head<'_>, scope: &Scope<'_, C>) -> Option<Box<RequestTrace<P>>> {
        let incoming = head.trace_context();
        let here = NonZero::new(scope.random_u64()).unwrap_or(NonZero::<u64>::MIN);
        let context = match &incoming {
            Some(incoming) => incoming.child(here),
            None => {
                let halves = (scope.random_u64(), scope.random_u64());
                let trace = u128::from(halves.0) << 64 | u128::from(halves.1);
                TraceContext::begin(NonZero::new(trace).unwrap_or(NonZero::<u128>::MIN), here, true)
            }
        };
        let span = P::request(head, &context, incoming.as_ref());
        // A subscriber may want some spans and not others.
        if span.is_disabled() {
            return None;
        }
        let context = Arc::new(context);
        let (started_status, is_status_recorded) = (None, false);
        Some(Box::new(RequestTrace {
            span,
            context,
            started_status,
            is_status_recorded,
            spans: PhantomData,
        }))
    }

    /// Until both values are dropped, running code is in the span.
    pub(crate) fn enter(&self) -> (CurrentGuard, Entered<'_>) {
        (CurrentGuard::new(self.context.clone()), self.span.enter())
    }

    /// Called before the handler is called: its response may have been sent meanwhile.
    pub(crate) fn before_call(&mut self, response: &Response<'_>) {
        if response.is_under_way() {
            self.record_started_status();
        }
    }

    /// Called after the handler has returned `next`.
    pub(crate) fn after_call<S: Server>(&mut self, next: &Next<S>, response: &Response<'_>) {
        match (next.failure(), response.final_status()) {
            // It replaces what was written, since nothing of that has been sent.
            (Some(failure), _) => self.record_status(failure),
            (None, started_status) if next.goes_on() => self.started_status = started_status,
            (None, Some(status)) if response.is_complete() => self.record_status(status),
            (None, _) => self.started_status = None,
        }
    }

    /// Records the status that was written, if any.
    pub(crate) fn record_started_status(&mut self) {
        if let Some(status) = self.started_status {
            self.record_status(status);
        }
    }

    /// Records the status, once.
    pub(crate) fn record_status(&mut self, status: Status) {
        if !self.is_status_recorded {
            self.is_status_recorded = true;
            P::answered(&self.span, status);
        }
    }
}

impl<P: Spans> Drop for RequestTrace<P> {
    fn drop(&mut self) {
        // After a panic the response is taken back. If the handler ends in any other way, the
        // response is sent, and usually has been by now.
        if !panicking() {
            self.record_started_status();
        }
        if !self.is_status_recorded {
            P::unanswered(&self.span);
        }
    }
}
