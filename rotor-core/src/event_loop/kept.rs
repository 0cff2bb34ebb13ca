//! `Kept`: values of other threads that are dropped as soon as a loop drains, by which these
//! threads notice it.

use std::sync::{Mutex, PoisonError};

/// Values that live as long as a loop serves, for other threads that wait for its end.
pub(super) struct Kept(Mutex<Option<Vec<Box<dyn Send>>>>);

impl Default for Kept {
    fn default() -> Kept {
        Kept(Mutex::new(Some(Vec::new())))
    }
}

impl Kept {
    /// Keeps a value, or drops it at once if the loop no longer serves.
    pub(super) fn keep(&self, thing: impl Send + 'static) {
        if let Some(kept) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            kept.push(Box::new(thing));
        }
    }

    /// Drops the values: the loop drains, or is gone.
    pub(super) fn drop_all(&self) {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn what_is_kept_goes_with_the_first_end_and_what_comes_later_at_once() {
        let kept = Kept::default();
        let thing = Arc::new(());
        kept.keep(thing.clone());
        assert_eq!(Arc::strong_count(&thing), 2);
        kept.drop_all();
        kept.keep(thing.clone());
        kept.drop_all();
        assert_eq!(Arc::strong_count(&thing), 1);
    }
}
