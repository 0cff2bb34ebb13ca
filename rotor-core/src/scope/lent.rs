//! `Lent`: how a handler gets hold of the context.

use std::any::Any;
use std::panic::resume_unwind;
use std::thread;

use crate::guard::{Panicked, log_guarded};
use crate::time::Time;

/// The context, as a handler holds it.
///
/// In a loop that stays on its thread, this is a plain reference. In a loop that is handed over, it
/// refers to the place that holds the context: during a section that blocks, the context is with
/// another thread and the place is empty. The scope cannot be used during that time.
pub(crate) struct Lent<'a, C> {
    /// Checked first, so that most loops pay for one test only.
    own: Option<&'a mut C>,
    handed: Option<Handed<'a, C>>,
}

struct Handed<'a, C> {
    /// The place from which the context moves to the other thread. `None` if the handler keeps its
    /// own context.
    place: Option<&'a mut Option<Box<C>>>,
    // A shared reference, so that a scope can be reborrowed with a shorter lifetime.
    hand: &'a dyn HandOver<C>,
}

/// The thread that runs the loop, as seen from its handler: the handler gives the loop away and
/// takes it back.
pub(crate) trait HandOver<C> {
    /// Lets another thread go on with the loop and, if it moves with the loop, the context.
    fn give_up(&self, context: Option<Box<C>>) -> GaveUp<C>;

    /// Waits until the loop belongs to this thread again.
    fn take_back(&self) -> TookBack<C>;

    /// Notes that the machine woke itself, while another thread may have the loop. Returns whether
    /// this was noted.
    fn note_woke_itself(&self) -> bool;

    /// Sets the loop's time if this thread has the loop, and returns it. Returns `None` if another
    /// thread has the loop and sets the time.
    fn refresh_now(&self) -> Option<Time>;

    /// Returns whether another thread would go on with the loop.
    fn hands_over(&self) -> bool;
}

/// The result of giving up the loop.
pub(crate) enum GaveUp<C> {
    Away,
    /// No thread can go on with the loop. The context is returned.
    Here(Option<Box<C>>),
    /// The loop had been taken before: another thread is already going on with it.
    Taken,
}

/// The result of taking the loop back.
pub(crate) enum TookBack<C> {
    Here(Option<Box<C>>),
    /// The loop was dropped, together with the context.
    Gone,
}

/// Where a section runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    /// Here, while another thread runs the loop; the loop must be taken back afterwards.
    HandedOver,
    /// Here, and it holds up the loop.
    Here,
    /// Here, after the loop was taken from this handler.
    Taken,
}

/// For scopes that a handler splits off, in a loop that may be taken from it. Such scopes cannot
/// give up the loop, and `wake_self` wakes the machine through a notifier, as another machine
/// would.
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

    /// Makes a context that the handler keeps, whichever thread runs the loop: it is another handle
    /// to the same shared data.
    #[inline(always)]
    pub(crate) fn shared(
        context: &'a mut Option<Box<C>>,
        hand: &'a dyn HandOver<C>,
    ) -> Lent<'a, C> {
        Lent { own: context.as_deref_mut(), handed: Some(Handed { place: None, hand }) }
    }

    // The only function called here is one that does not return. So the compiler need not spill
    // what the handler holds, and copies nothing for this call.
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

    /// Converts a panic that was caught. Resumes it if it is the one that unwinds a handler whose
    /// loop was dropped.
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

    /// Makes a context for a split-off scope in a loop that may be taken from this handler.
    pub(super) fn split_off(context: &'a mut C) -> Lent<'a, C> {
        Lent { own: Some(context), handed: Some(Handed { place: None, hand: &SplitOff }) }
    }

    /// Returns the thread that runs the loop, if others may run it while the handler runs.
    #[inline(always)]
    pub(super) fn other_hand(&self) -> Option<&dyn HandOver<C>> {
        match &self.handed {
            Some(Handed { place: None, hand }) => Some(*hand),
            _ => None,
        }
    }

    /// Gives up the loop.
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

    /// Takes the loop back. If the loop was dropped, together with the context, this does not
    /// return: the handler is unwound as by a panic, without a message.
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

/// Stops a handler that uses the context after its loop was dropped: there is no context to return
/// a reference to.
///
/// This is reached only by code that has caught the unwinding of `take_back`, or that uses the
/// context while it unwinds. It waits forever, because a second panic could end the process.
/// `extern "C"` tells the compiler that this function cannot unwind, so it costs nothing in
/// handlers of loops that are never taken.
#[cold]
#[inline(never)]
extern "C" fn gone() -> ! {
    log_guarded!(error, "{GONE}, and asks for the context: it waits forever");
    loop {
        thread::park();
    }
}

/// The message for a handler that returned from a section that blocked after its loop had been
/// dropped.
const GONE: &str = "a handler goes on whose loop was dropped while it blocked";
