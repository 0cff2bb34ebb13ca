//! `Trace`: what a request that has a span keeps of it.

use std::marker::PhantomData;
use std::num::NonZero;
use std::sync::Arc;

use rotor_core::Scope;
use rotor_http::server::Head;
use rotor_http::{Status, TraceContext};
use tracing::Span;
use tracing::span::Entered;

use crate::current::Running;
use crate::spans::Spans;

pub(crate) struct Trace<P: Spans> {
    span: Span,
    context: Arc<TraceContext>,
    /// The status of a response that has begun in this call of the handler. If the handler ends with
    /// it, without the rest, the peer gets another.
    begun: Option<Status>,
    is_answered: bool,
    spans: PhantomData<fn() -> P>,
}

impl<P: Spans> Trace<P> {
    /// Of a request that begins; `None` where nobody wants its span.
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
        // Whoever subscribes may want some and not others.
        if span.is_disabled() {
            return None;
        }
        let context = Arc::new(context);
        let (begun, is_answered) = (None, false);
        Some(Box::new(Trace { span, context, begun, is_answered, spans: PhantomData }))
    }

    /// Until both are dropped, what runs is in the span.
    pub(crate) fn enter(&self) -> (Running, Entered<'_>) {
        (Running::new(self.context.clone()), self.span.enter())
    }

    /// So much of the response is written, if anything is.
    pub(crate) fn written(&mut self, status: Option<Status>, is_complete: bool) {
        match status {
            Some(status) if is_complete => self.answered(status),
            begun => self.begun = begun,
        }
    }

    /// The handler goes on, and what it has written is sent.
    pub(crate) fn goes_on(&mut self) {
        if let Some(status) = self.begun {
            self.answered(status);
        }
    }

    /// The status is known.
    pub(crate) fn answered(&mut self, status: Status) {
        if !self.is_answered {
            self.is_answered = true;
            P::answered(&self.span, status);
        }
    }
}

impl<P: Spans> Drop for Trace<P> {
    fn drop(&mut self) {
        if !self.is_answered {
            P::unanswered(&self.span);
        }
    }
}
