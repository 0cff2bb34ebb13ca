//! Finds the outbox that a protocol has made in its `create`, in case it ends there and cannot
//! return the outbox.

use std::cell::Cell;
use std::sync::Arc;

use super::shared::Shared;

thread_local! {
    /// The state of the `create` call on this thread; a handler stays on its thread.
    static CREATION: Cell<Creation> = const { Cell::new(Creation::Nothing) };
}

#[derive(Default)]
enum Creation {
    /// No protocol with an outbox is being created.
    #[default]
    Nothing,
    Awaiting,
    Created(Arc<Shared>),
}

/// Restores the previous state. After a panic, it frees the messages of the outbox that was made:
/// its senders may exist for much longer.
struct RestoreGuard(Creation);

impl Drop for RestoreGuard {
    fn drop(&mut self) {
        // Without a panic, it was taken before.
        if let Creation::Created(shared) = CREATION.replace(std::mem::take(&mut self.0)) {
            shared.close();
        }
    }
}

/// Calls `make`, and returns its result with the outbox that was made meanwhile; the last one, if
/// there were several.
pub(super) fn capture_outbox<R>(make: impl FnOnce() -> R) -> (R, Option<Arc<Shared>>) {
    let _restore = RestoreGuard(CREATION.replace(Creation::Awaiting));
    let made = make();
    match CREATION.take() {
        Creation::Created(shared) => (made, Some(shared)),
        Creation::Nothing | Creation::Awaiting => (made, None),
    }
}

/// Notes that an outbox was made. Returns whether `capture_outbox` waits for it.
pub(super) fn report_created(shared: &Arc<Shared>) -> bool {
    let creation = CREATION.take();
    let is_awaited = !matches!(creation, Creation::Nothing);
    if is_awaited {
        CREATION.set(Creation::Created(shared.clone()));
    }
    is_awaited
}
