//! Finds the outbox that a protocol has made in its `create`, in case it ends there and cannot
//! return the outbox.

use std::cell::Cell;
use std::sync::Arc;

use super::shared::Shared;

thread_local! {
    /// The state of the `create` call on this thread; a handler stays on its thread.
    static MAKING: Cell<Making> = const { Cell::new(Making::Nothing) };
}

#[derive(Default)]
enum Making {
    /// No protocol with an outbox is being made.
    #[default]
    Nothing,
    Awaited,
    Made(Arc<Shared>),
}

/// Restores the previous state, also after a panic.
struct Before(Making);

impl Drop for Before {
    fn drop(&mut self) {
        MAKING.set(std::mem::take(&mut self.0));
    }
}

/// Calls `make`, and returns its result with the outbox that was made meanwhile; the last one, if
/// there were several.
pub(super) fn outbox_of<R>(make: impl FnOnce() -> R) -> (R, Option<Arc<Shared>>) {
    let _before = Before(MAKING.replace(Making::Awaited));
    let made = make();
    match MAKING.take() {
        Making::Made(shared) => (made, Some(shared)),
        Making::Nothing | Making::Awaited => (made, None),
    }
}

/// Notes that an outbox was made. Returns whether `outbox_of` waits for it.
pub(super) fn was_made(shared: &Arc<Shared>) -> bool {
    let making = MAKING.take();
    let is_awaited = !matches!(making, Making::Nothing);
    if is_awaited {
        MAKING.set(Making::Made(shared.clone()));
    }
    is_awaited
}
