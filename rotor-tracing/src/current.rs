//! The current trace of a thread.

use std::cell::RefCell;
use std::sync::Arc;

use rotor_http::TraceContext;

thread_local! {
    static CURRENT: RefCell<Option<Arc<TraceContext>>> = const { RefCell::new(None) };
}

/// Returns the trace to which the running handler belongs, in the form that is sent to other
/// servers: pass it to [`Fetch::trace`](rotor_http::client::Fetch::trace) or
/// [`Request::add_trace`](rotor_http::client::Request::add_trace).
///
/// Returns `None` outside of a [`Traced`](crate::Traced) handler, and if no subscriber wants the
/// handler's span. To forward requests in that case, use the trace that arrived:
/// [`Head::trace_context`](rotor_http::server::Head::trace_context).
pub fn current() -> Option<Arc<TraceContext>> {
    // `None` at the end of the thread.
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// Makes its trace the current one. When it is dropped, the previous trace is current again.
pub(crate) struct CurrentGuard {
    previous: Option<Arc<TraceContext>>,
}

impl CurrentGuard {
    pub(crate) fn new(context: Arc<TraceContext>) -> CurrentGuard {
        CurrentGuard { previous: replace_current(Some(context)) }
    }
}

impl Drop for CurrentGuard {
    fn drop(&mut self) {
        replace_current(self.previous.take());
    }
}

fn replace_current(context: Option<Arc<TraceContext>>) -> Option<Arc<TraceContext>> {
    CURRENT.try_with(|current| current.replace(context)).ok().flatten()
}
