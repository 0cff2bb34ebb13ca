//! The trace that what runs now is a part of.

use std::cell::RefCell;
use std::sync::Arc;

use rotor_http::TraceContext;

thread_local! {
    static CURRENT: RefCell<Option<Arc<TraceContext>>> = const { RefCell::new(None) };
}

/// Returns the trace that the handler which runs now is a part of, as it is to be told to others:
/// by [`Fetch::trace`](rotor_http::client::Fetch::trace) or
/// [`Request::add_trace`](rotor_http::client::Request::add_trace).
///
/// `None` outside of a handler that is [`Traced`](crate::Traced), and where nobody wants its span.
/// Who passes requests on has what came in
/// [`Head::trace_context`](rotor_http::server::Head::trace_context) then.
pub fn current() -> Option<Arc<TraceContext>> {
    // Nothing where the thread ends.
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// As long as it lives, its trace is the one of what runs; then the one before is again.
pub(crate) struct Running {
    before: Option<Arc<TraceContext>>,
}

impl Running {
    pub(crate) fn new(context: Arc<TraceContext>) -> Running {
        Running { before: swap(Some(context)) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        swap(self.before.take());
    }
}

fn swap(context: Option<Arc<TraceContext>>) -> Option<Arc<TraceContext>> {
    CURRENT.try_with(|current| current.replace(context)).ok().flatten()
}
