//! `ContextRef`: how a handler gets hold of the context.

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
pub(crate) struct ContextRef<'a, C> {
    /// Checked first, so that most loops pay for one test only.
    direct: Option<&'a mut C>,
    indirect: Option<IndirectContext<'a, C>>,
}

struct IndirectContext<'a, C> {
    /// The place from which the context moves to the other thread. `None` if the handler keeps its
    /// own context.
    place: Option<&'a mut Option<Box<C>>>,
    // A shared reference, so that a scope can be reborrowed with a shorter lifetime.
    holder: &'a dyn LoopHolder<C>,
}

/// The thread that runs the loop, as seen from its handler: the handler gives the loop away and
/// takes it back.
pub(crate) trait LoopHolder<C> {
    /// Lets another thread go on with the loop and, if it moves with the loop, the context.
    fn release_loop(&self, context: Option<Box<C>>) -> ReleaseOutcome<C>;

    /// Waits until the loop belongs to this thread again.
    fn reclaim_loop(&self) -> ReclaimOutcome<C>;

    /// Records that the machine woke itself, while another thread may have the loop. Returns
    /// whether this was recorded.
    fn record_self_wakeup(&self) -> bool;

    /// Sets the loop's time if this thread has the loop, and returns it. Returns `None` if another
    /// thread has the loop and sets the time.
    fn refresh_now(&self) -> Option<Time>;

    /// Returns whether another thread would go on with the loop.
    fn hands_over(&self) -> bool;
}

/// The result of giving up the loop.
pub(crate) enum ReleaseOutcome<C> {
    Released,
    /// No thread can go on with the loop. The context is returned.
    Kept(Option<Box<C>>),
    /// The loop had been taken before: another thread is already going on with it.
    Taken,
}

/// The result of taking the loop back.
pub(crate) enum ReclaimOutcome<C> {
    Reclaimed(Option<Box<C>>),
    /// The loop was dropped, together with the context.
    Dropped,
}

/// Where a section runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    /// Here, while another thread runs the loop; the loop must be taken back afterwards.
    HandedOver,
    /// Here, and it holds up the loop.
    Inline,
    /// Here, after the loop was taken from this handler.
    Taken,
}

/// For scopes that a handler splits off, in a loop that may be taken from it. Such scopes cannot
/// give up the loop, and `wake_self` wakes the machine through a notifier, as another machine
/// would.
struct SplitOffHolder;

impl<C> LoopHolder<C> for SplitOffHolder {
    fn release_loop(&self, context: Option<Box<C>>) -> ReleaseOutcome<C> {
        ReleaseOutcome::Kept(context)
    }

    fn reclaim_loop(&self) -> ReclaimOutcome<C> {
        ReclaimOutcome::Reclaimed(None)
    }

    fn record_self_wakeup(&self) -> bool {
        false
    }

    fn refresh_now(&self) -> Option<Time> {
        None
    }

    fn hands_over(&self) -> bool {
        false
    }
}

impl<'a, C> ContextRef<'a, C> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn direct(context: &'a mut C) -> ContextRef<'a, C> {
        ContextRef { direct: Some(context), indirect: None }
    }

    pub(crate) fn movable(
        place: &'a mut Option<Box<C>>,
        holder: &'a dyn LoopHolder<C>,
    ) -> ContextRef<'a, C> {
        ContextRef { direct: None, indirect: Some(IndirectContext { place: Some(place), holder }) }
    }

    /// Makes a context that the handler keeps, whichever thread runs the loop: it is another handle
    /// to the same shared data.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn shared(
        context: &'a mut Option<Box<C>>,
        holder: &'a dyn LoopHolder<C>,
    ) -> ContextRef<'a, C> {
        ContextRef {
            direct: context.as_deref_mut(),
            indirect: Some(IndirectContext { place: None, holder }),
        }
    }

    // The only function called here is one that does not return. So the compiler need not spill
    // what the handler holds, and copies nothing for this call.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn get(&self) -> &C {
        match (&self.direct, &self.indirect) {
            (Some(context), _) => context,
            (None, Some(IndirectContext { place: Some(Some(context)), .. })) => context,
            _ => wait_forever(),
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn get_mut(&mut self) -> &mut C {
        match (&mut self.direct, &mut self.indirect) {
            (Some(context), _) => context,
            (None, Some(IndirectContext { place: Some(Some(context)), .. })) => context,
            _ => wait_forever(),
        }
    }

    /// Converts a panic that was caught. Resumes it if it is the one that unwinds a handler whose
    /// loop was dropped.
    #[cold]
    #[inline(never)]
    pub(super) fn convert_panic(&self, payload: Box<dyn Any + Send>) -> Panicked {
        if self.direct.is_none() && !self.hands_over() {
            resume_unwind(payload);
        }
        Panicked::from_payload(payload)
    }

    pub(super) fn reborrow(&mut self) -> ContextRef<'_, C> {
        let indirect = self.indirect.as_mut();
        ContextRef {
            direct: self.direct.as_deref_mut(),
            indirect: indirect.map(|IndirectContext { place, holder }| IndirectContext {
                place: place.as_deref_mut(),
                holder: *holder,
            }),
        }
    }

    pub(super) fn hands_over(&self) -> bool {
        match &self.indirect {
            Some(IndirectContext { place: Some(place), .. }) => place.is_some(),
            Some(IndirectContext { place: None, holder }) => holder.hands_over(),
            None => false,
        }
    }

    /// Makes a context for a split-off scope in a loop that may be taken from this handler.
    pub(super) fn split_off(context: &'a mut C) -> ContextRef<'a, C> {
        ContextRef {
            direct: Some(context),
            indirect: Some(IndirectContext { place: None, holder: &SplitOffHolder }),
        }
    }

    /// Returns the thread that runs the loop, if the loop may be taken from the handler at any time.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn takeover_holder(&self) -> Option<&dyn LoopHolder<C>> {
        match &self.indirect {
            Some(IndirectContext { place: None, holder }) => Some(*holder),
            _ => None,
        }
    }

    /// Gives up the loop.
    pub(super) fn release_loop(&mut self) -> Section {
        let Some(IndirectContext { place, holder }) = &mut self.indirect else {
            return Section::Inline;
        };
        let context = place.as_mut().and_then(|place| place.take());
        if place.is_some() && context.is_none() {
            return Section::Inline;
        }
        match holder.release_loop(context) {
            ReleaseOutcome::Released => Section::HandedOver,
            ReleaseOutcome::Taken => Section::Taken,
            ReleaseOutcome::Kept(context) => {
                if let Some(place) = place {
                    **place = context;
                }
                Section::Inline
            }
        }
    }

    /// Takes the loop back. If the loop was dropped, together with the context, this does not
    /// return: the handler is unwound as by a panic, without a message.
    pub(super) fn reclaim_loop(&mut self) {
        let Some(IndirectContext { place, holder }) = &mut self.indirect else { return };
        match holder.reclaim_loop() {
            ReclaimOutcome::Reclaimed(context) => {
                if let Some(place) = place {
                    **place = context;
                }
            }
            ReclaimOutcome::Dropped => resume_unwind(Box::new(LOOP_DROPPED)),
        }
    }
}

/// Stops a handler that uses the context after its loop was dropped: there is no context to return
/// a reference to.
///
/// This is reached only by code that has caught the unwinding of `reclaim_loop`, or that uses the
/// context while it unwinds. It waits forever, because a second panic could end the process.
/// `extern "C"` tells the compiler that this function cannot unwind, so it costs nothing in
/// handlers of loops that are never taken.
#[cold]
#[inline(never)]
extern "C" fn wait_forever() -> ! {
    log_guarded!(error, "{LOOP_DROPPED}, and asks for the context: it waits forever");
    loop {
        thread::park();
    }
}

/// The message for a handler that returned from a section that blocked after its loop had been
/// dropped.
const LOOP_DROPPED: &str = "a handler goes on whose loop was dropped while it blocked";
