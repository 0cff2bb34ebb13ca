//! `Lent`: how a handler has the context.

use std::any::Any;
use std::panic::resume_unwind;
use std::thread;

use crate::guard::{Panicked, log_guarded};

/// The context, as a handler has it.
///
/// From a loop that stays on its thread as a plain reference. From one that is handed over as the
/// place where the context lies: while a section blocks, it is with another thread, and nobody can
/// ask the scope for it.
pub(crate) struct Lent<'a, C> {
    /// First: what most loops have costs one test.
    own: Option<&'a mut C>,
    handed: Option<Handed<'a, C>>,
}

struct Handed<'a, C> {
    place: &'a mut Option<Box<C>>,
    // Shared, so that a scope may stand for one of a shorter life.
    hand: &'a dyn HandOver<C>,
}

/// The thread that runs the loop, as its handler needs it: it gives the loop away and takes it back.
pub(crate) trait HandOver<C> {
    /// Has another thread go on with the loop. The context comes back where none can.
    fn give_up(&self, context: Box<C>) -> Result<(), Box<C>>;

    /// Waits until the loop is this thread's again. `None`: it is gone.
    fn take_back(&self) -> Option<Box<C>>;
}

impl<'a, C> Lent<'a, C> {
    #[inline(always)]
    pub(crate) fn own(context: &'a mut C) -> Lent<'a, C> {
        Lent { own: Some(context), handed: None }
    }

    pub(crate) fn handed(place: &'a mut Option<Box<C>>, hand: &'a dyn HandOver<C>) -> Lent<'a, C> {
        Lent { own: None, handed: Some(Handed { place, hand }) }
    }

    // What does not return is all that is called here: so no compiler has to fear for what a handler
    // holds, and copies nothing for it.
    #[inline(always)]
    pub(super) fn get(&self) -> &C {
        match (&self.own, &self.handed) {
            (Some(context), _) => context,
            (None, Some(Handed { place: Some(context), .. })) => context,
            _ => gone(),
        }
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self) -> &mut C {
        match (&mut self.own, &mut self.handed) {
            (Some(context), _) => context,
            (None, Some(Handed { place: Some(context), .. })) => context,
            _ => gone(),
        }
    }

    /// Reads a panic that was caught; goes on with it if it is that of a loop which is gone.
    #[cold]
    #[inline(never)]
    pub(super) fn caught(&self, payload: Box<dyn Any + Send>) -> Panicked {
        if self.own.is_none() && !self.hands_over() {
            resume_unwind(payload);
        }
        Panicked::from_payload(payload)
    }

    pub(super) fn reborrow(&mut self) -> Lent<'_, C> {
        let handed = self.handed.as_mut();
        Lent {
            own: self.own.as_deref_mut(),
            handed: handed.map(|Handed { place, hand }| Handed { place, hand: *hand }),
        }
    }

    pub(super) fn hands_over(&self) -> bool {
        self.handed.as_ref().is_some_and(|handed| handed.place.is_some())
    }

    /// Gives the loop up; false where it stays here.
    pub(super) fn give_up(&mut self) -> bool {
        let Some(Handed { place, hand }) = &mut self.handed else { return false };
        let Some(context) = place.take() else { return false };
        match hand.give_up(context) {
            Ok(()) => true,
            Err(context) => {
                **place = Some(context);
                false
            }
        }
    }

    /// Takes it back. A handler whose loop is gone does not return from here: it ends as if it had
    /// panicked, and nothing is said of that.
    pub(super) fn take_back(&mut self) {
        let Some(Handed { place, hand }) = &mut self.handed else { return };
        match hand.take_back() {
            Some(context) => **place = Some(context),
            None => resume_unwind(Box::new(GONE)),
        }
    }
}

/// There is no context, and nothing to be returned: the handler does not go on.
///
/// Only who has caught what `take_back` unwinds with, or asks while it unwinds, comes here, and
/// waits for ever: a panic could end the process then. And what cannot unwind costs the handlers
/// nothing that no loop is taken from; `extern` says that it cannot.
#[cold]
#[inline(never)]
extern "C" fn gone() -> ! {
    log_guarded!(error, "{GONE}, and asks for the context: it waits for ever");
    loop {
        thread::park();
    }
}

/// A handler came back from a section that blocked after its loop had been dropped.
const GONE: &str = "a handler goes on whose loop was dropped while it blocked";
