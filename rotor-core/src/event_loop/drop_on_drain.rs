//! `DropOnDrain`: values of other threads that are dropped as soon as a loop drains, by which these
//! threads notice it.

use std::sync::{Mutex, PoisonError};

/// Values that live as long as a loop serves, for other threads that wait for its end.
pub(super) struct DropOnDrain(Mutex<Option<Vec<Box<dyn Send>>>>);

impl Default for DropOnDrain {
    fn default() -> DropOnDrain {
        DropOnDrain(Mutex::new(Some(Vec::new())))
    }
}

impl DropOnDrain {
    /// Keeps a value, or drops it at once if the loop no longer serves.
    pub(super) fn add(&self, value: impl Send + 'static) {
        if let Some(values) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            values.push(Box::new(value));
        }
    }

    /// Drops the values: the loop drains, or is gone.
    pub(super) fn drop_all(&self) {
        let values = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn values_are_dropped_at_the_first_end_and_later_ones_at_once() {
        let drop_on_drain = DropOnDrain::default();
        let value = Arc::new(());
        drop_on_drain.add(value.clone());
        assert_eq!(Arc::strong_count(&value), 2);
        drop_on_drain.drop_all();
        drop_on_drain.add(value.clone());
        drop_on_drain.drop_all();
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
