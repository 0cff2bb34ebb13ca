//! Which outbox a protocol has made in its `create`, where it has ended there and cannot say so.

use std::cell::Cell;
use std::sync::Arc;

use super::shared::Shared;

thread_local! {
    /// Of the `create` that is under way on this thread: a handler stays on its thread.
    static MAKING: Cell<Making> = const { Cell::new(Making::Nothing) };
}

#[derive(Default)]
enum Making {
    /// No protocol is made here, or none with an outbox.
    #[default]
    Nothing,
    Awaited,
    Made(Arc<Shared>),
}

/// Puts what was before in its place again, after a panic too.
struct Before(Making);

impl Drop for Before {
    fn drop(&mut self) {
        MAKING.set(std::mem::take(&mut self.0));
    }
}

/// Makes something, and says which outbox was made meanwhile: the last one, if there was any.
pub(super) fn outbox_of<R>(make: impl FnOnce() -> R) -> (R, Option<Arc<Shared>>) {
    let _before = Before(MAKING.replace(Making::Awaited));
    let made = make();
    match MAKING.take() {
        Making::Made(shared) => (made, Some(shared)),
        Making::Nothing | Making::Awaited => (made, None),
    }
}

/// An outbox was made. Returns whether somebody wants to know.
pub(super) fn was_made(shared: &Arc<Shared>) -> bool {
    let making = MAKING.take();
    let is_awaited = !matches!(making, Making::Nothing);
    if is_awaited {
        MAKING.set(Making::Made(shared.clone()));
    }
    is_awaited
}
