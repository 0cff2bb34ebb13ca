//! `Trace`: the span of a request, and the state of its response.

use std::marker::PhantomData;
use std::num::NonZero;
use std::sync::Arc;
use std::thread::panicking;

use rotor_core::Scope;
use rotor_http::server::{Head, Next, Response, Server};
use rotor_http::{Status, TraceContext};
use tracing::Span;
use tracing::span::Entered;

use crate::current::Running;
use crate::spans::Spans;

pub(crate) struct Trace<P: Spans> {
    span: Span,
    context: Arc<TraceContext>,
    /// The status of a response of which nothing had been sent when that was last checked. Until
    /// something is sent, it may still be replaced.
    begun: Option<Status>,
    is_answered: bool,
    spans: PhantomData<fn() -> P>,
}

impl<P: Spans> Trace<P> {
    /// Begins the trace of a request; `None` if no subscriber wants its span.
    #[cold]
    pub(crate) fn begin<C>(head: &Head<'_>, scope: &Scope<'_, C>) -> Option<Box<Trace<P>>> {
        let came = head.trace_context();
        let here = NonZero::new(scope.random_u64()).unwrap_or(NonZero::<u64>::MIN);
        let context = match &came {
            Some(came) => came.child(here),
            None => {
                let halves = (scope.random_u64(), scope.random_u64());
                let trace = u128::from(halves.0) << 64 | u128::from(halves.1);
                TraceContext::begin(NonZero::new(trace).unwrap_or(NonZero::<u128>::MIN), here, true)
            }
        };
        let span = P::request(head, &context, came.as_ref());
        // A subscriber may want some spans and not others.
        if span.is_disabled() {
            return None;
        }
        let context = Arc::new(context);
        let (begun, is_answered) = (None, false);
        Some(Box::new(Trace { span, context, begun, is_answered, spans: PhantomData }))
    }

    /// Until both values are dropped, running code is in the span.
    pub(crate) fn enter(&self) -> (Running, Entered<'_>) {
        (Running::new(self.context.clone()), self.span.enter())
    }

    /// Called before the handler is called: its response may have been sent meanwhile.
    pub(crate) fn looks_at(&mut self, response: &Response<'_>) {
        if response.is_under_way() {
            self.answered_as_begun();
        }
    }

    /// Called after the handler has returned `next`.
    pub(crate) fn returned<S: Server>(&mut self, next: &Next<S>, response: &Response<'_>) {
        match (next.failure(), response.final_status()) {
            // It replaces what was written, since nothing of that has been sent.
            (Some(failure), _) => self.answered(failure),
            (None, begun) if next.goes_on() => self.begun = begun,
            (None, Some(status)) if response.is_complete() => self.answered(status),
            (None, _) => self.begun = None,
        }
    }

    /// Records the status that was written, if any.
    pub(crate) fn answered_as_begun(&mut self) {
        if let Some(status) = self.begun {
            self.answered(status);
        }
    }

    /// Records the status, once.
    pub(crate) fn answered(&mut self, status: Status) {
        if !self.is_answered {
            self.is_answered = true;
            P::answered(&self.span, status);
        }
    }
}

impl<P: Spans> Drop for Trace<P> {
    fn drop(&mut self) {
        // After a panic the response is taken back. If the handler ends in any other way, the
        // response is sent, and usually has been by now.
        if !panicking() {
            self.answered_as_begun();
        }
        if !self.is_answered {
            P::unanswered(&self.span);
        }
    }
}
