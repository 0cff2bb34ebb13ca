//! `Kept`: what others want to be dropped as soon as a loop drains, and hear of it by that.

use std::sync::{Mutex, PoisonError};

/// Things that live as long as a loop serves, of other threads that watch for its end.
pub(super) struct Kept(Mutex<Option<Vec<Box<dyn Send>>>>);

impl Default for Kept {
    fn default() -> Kept {
        Kept(Mutex::new(Some(Vec::new())))
    }
}

impl Kept {
    /// Keeps a thing; drops it at once where the loop does not serve any more.
    pub(super) fn keep(&self, thing: impl Send + 'static) {
        if let Some(kept) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            kept.push(Box::new(thing));
        }
    }

    /// The loop drains, or is gone.
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
