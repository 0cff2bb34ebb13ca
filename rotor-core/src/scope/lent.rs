//! `Lent`: how a handler has the context.

use std::any::Any;
use std::panic::resume_unwind;
use std::thread;

use crate::guard::{Panicked, log_guarded};
use crate::time::Time;

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
    /// Where the context goes along. Without it the handler keeps the one that it was lent.
    place: Option<&'a mut Option<Box<C>>>,
    // Shared, so that a scope may stand for one of a shorter life.
    hand: &'a dyn HandOver<C>,
}

/// The thread that runs the loop, as its handler needs it: it gives the loop away and takes it
/// back.
pub(crate) trait HandOver<C> {
    /// Has another thread go on with the loop, and with the context, where that goes along.
    fn give_up(&self, context: Option<Box<C>>) -> GaveUp<C>;

    /// Waits until the loop is this thread's again.
    fn take_back(&self) -> TookBack<C>;

    /// The machine wakes itself, and another thread may have the loop. Returns whether that was
    /// noted.
    fn note_woke_itself(&self) -> bool;

    /// Sets the loop's time, if the loop is here; `None` if it is not, and others set it.
    fn refresh_now(&self) -> Option<Time>;

    /// Whether another thread would go on with the loop.
    fn hands_over(&self) -> bool;
}

/// What came of giving the loop up.
pub(crate) enum GaveUp<C> {
    Away,
    /// No thread can go on with it. The context comes back.
    Here(Option<Box<C>>),
    /// It had been taken before: somebody goes on with it.
    Taken,
}

/// What came of taking it back.
pub(crate) enum TookBack<C> {
    Here(Option<Box<C>>),
    /// The loop is gone, and the context with it.
    Gone,
}

/// Where a section is to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    /// Another thread has the loop meanwhile, which is to be taken back.
    HandedOver,
    /// It holds up the loop.
    Here,
    /// The loop was taken from this handler before.
    Taken,
}

/// Of the scopes that a handler splits off, in a loop that may be taken from it: they give nothing
/// up, and the machine is woken as by others.
struct SplitOff;

impl<C> HandOver<C> for SplitOff {
    fn give_up(&self, context: Option<Box<C>>) -> GaveUp<C> {
        GaveUp::Here(context)
    }

    fn take_back(&self) -> TookBack<C> {
        TookBack::Here(None)
    }

    fn note_woke_itself(&self) -> bool {
        false
    }

    fn refresh_now(&self) -> Option<Time> {
        None
    }

    fn hands_over(&self) -> bool {
        false
    }
}

impl<'a, C> Lent<'a, C> {
    #[inline(always)]
    pub(crate) fn own(context: &'a mut C) -> Lent<'a, C> {
        Lent { own: Some(context), handed: None }
    }

    pub(crate) fn handed(place: &'a mut Option<Box<C>>, hand: &'a dyn HandOver<C>) -> Lent<'a, C> {
        Lent { own: None, handed: Some(Handed { place: Some(place), hand }) }
    }

    /// The handler keeps the context, whoever runs the loop: that is another handle to the same
    /// things.
    #[inline(always)]
    pub(crate) fn shared(
        context: &'a mut Option<Box<C>>,
        hand: &'a dyn HandOver<C>,
    ) -> Lent<'a, C> {
        Lent { own: context.as_deref_mut(), handed: Some(Handed { place: None, hand }) }
    }

    // What does not return is all that is called here: so no compiler has to fear for what a
    // handler holds, and copies nothing for it.
    #[inline(always)]
    pub(super) fn get(&self) -> &C {
        match (&self.own, &self.handed) {
            (Some(context), _) => context,
            (None, Some(Handed { place: Some(Some(context)), .. })) => context,
            _ => gone(),
        }
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self) -> &mut C {
        match (&mut self.own, &mut self.handed) {
            (Some(context), _) => context,
            (None, Some(Handed { place: Some(Some(context)), .. })) => context,
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
            handed: handed
                .map(|Handed { place, hand }| Handed { place: place.as_deref_mut(), hand: *hand }),
        }
    }

    pub(super) fn hands_over(&self) -> bool {
        match &self.handed {
            Some(Handed { place: Some(place), .. }) => place.is_some(),
            Some(Handed { place: None, hand }) => hand.hands_over(),
            None => false,
        }
    }

    /// The same context beside a loop that may be taken from this handler.
    pub(super) fn split_off(context: &'a mut C) -> Lent<'a, C> {
        Lent { own: Some(context), handed: Some(Handed { place: None, hand: &SplitOff }) }
    }

    /// Whoever runs the loop, if others may have it while the handler runs.
    #[inline(always)]
    pub(super) fn other_hand(&self) -> Option<&dyn HandOver<C>> {
        match &self.handed {
            Some(Handed { place: None, hand }) => Some(*hand),
            _ => None,
        }
    }

    /// Gives the loop up.
    pub(super) fn give_up(&mut self) -> Section {
        let Some(Handed { place, hand }) = &mut self.handed else { return Section::Here };
        let context = place.as_mut().and_then(|place| place.take());
        if place.is_some() && context.is_none() {
            return Section::Here;
        }
        match hand.give_up(context) {
            GaveUp::Away => Section::HandedOver,
            GaveUp::Taken => Section::Taken,
            GaveUp::Here(context) => {
                if let Some(place) = place {
                    **place = context;
                }
                Section::Here
            }
        }
    }

    /// Takes it back. A handler whose loop is gone, and the context with it, does not return from
    /// here: it ends as if it had panicked, and nothing is said of that.
    pub(super) fn take_back(&mut self) {
        let Some(Handed { place, hand }) = &mut self.handed else { return };
        match hand.take_back() {
            TookBack::Here(context) => {
                if let Some(place) = place {
                    **place = context;
                }
            }
            TookBack::Gone => resume_unwind(Box::new(GONE)),
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
