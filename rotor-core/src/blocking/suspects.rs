//! `Suspects`: types of machines whose handlers were stuck recently, and how many of their next
//! handlers are called on other threads from the beginning.
//!
//! ```text
//!                 its loop was taken                     it took long
//!   no suspect ──────────────────▶ 1 may be detached ◀───────────── + 1, taken: twice as many + 1
//!       ▲                                   │
//!       └──────────────── half ─────────────┘ it was short after all
//! ```
//!
//! If a hundred handlers block at once, the watchdog would have to take the loop from each of them:
//! a hundred checks, after each of which another thread must get a CPU. So the loop does not wait
//! for a handler if others of the same type were stuck just now. That is a guess: it is applied to
//! one handler, and to more if it turns out to be right. For a type of which one call in a hundred
//! blocks, one of the next calls is made on another thread, and no more.

use std::ptr;

/// The types that are suspected now: few, and usually none.
#[derive(Default)]
pub(crate) struct Suspects(Vec<Suspect>);

struct Suspect {
    machine: &'static str,
    /// The maximum number of handlers that may be detached at the same time.
    detached_max: u32,
    /// The number of handlers that are detached now.
    detached: u32,
}

/// No loop needs more threads than this, and eight short calls end the suspicion.
const DETACHED_MAX: u32 = 255;

/// A program has few types of machines. If names are made up at run time, those beyond the limit
/// are not suspected.
const TYPES_MAX: usize = 64;

impl Suspects {
    /// Returns whether there are no suspects, so that a call need not check anything else.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Records that the loop was taken from a stuck handler of this type.
    pub(crate) fn record_takeover(&mut self, machine: &'static str) {
        if let Some(suspect) = self.find(machine) {
            suspect.detached_max = (suspect.detached_max * 2 + 1).min(DETACHED_MAX);
        } else if self.0.len() < TYPES_MAX {
            self.0.push(Suspect { machine, detached_max: 1, detached: 0 });
        }
    }

    /// Returns whether the loop need not wait for the next handler of this type.
    pub(crate) fn may_detach(&mut self, machine: &'static str) -> bool {
        self.find(machine).is_some_and(|suspect| suspect.detached < suspect.detached_max)
    }

    /// Records that a handler of this type is called on another thread.
    pub(crate) fn record_detached(&mut self, machine: &'static str) {
        if let Some(suspect) = self.find(machine) {
            suspect.detached += 1;
        }
    }

    /// Records that a handler has returned on another thread. `was_long` says whether it would have
    /// held up the loop.
    pub(crate) fn record_return(&mut self, machine: &'static str, was_long: bool) {
        if let Some(suspect) = self.find(machine) {
            suspect.detached = suspect.detached.saturating_sub(1);
            suspect.detached_max = match was_long {
                true => (suspect.detached_max + 1).min(DETACHED_MAX),
                false => suspect.detached_max / 2,
            };
        }
        self.0.retain(|suspect| suspect.detached_max > 0 || suspect.detached > 0);
    }

    fn find(&mut self, machine: &'static str) -> Option<&mut Suspect> {
        let is_match = |suspect: &&mut Suspect| {
            ptr::eq(suspect.machine, machine) || suspect.machine == machine
        };
        self.0.iter_mut().find(is_match)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Detaches as many as allowed.
    fn detach_all(suspects: &mut Suspects) -> u32 {
        let mut detached_count = 0;
        while suspects.may_detach("a") {
            suspects.record_detached("a");
            detached_count += 1;
        }
        detached_count
    }

    #[test]
    fn seven_takeovers_suffice_for_a_hundred_blocked_handlers() {
        let mut suspects = Suspects::default();
        assert!(suspects.is_empty() && !suspects.may_detach("a"));
        let (mut taken, mut detached_count) = (0, 0);
        while taken + detached_count < 100 {
            suspects.record_takeover("a");
            taken += 1;
            detached_count += detach_all(&mut suspects);
        }
        assert_eq!(taken, 7);
        assert!(!suspects.may_detach("b"));
    }

    #[test]
    fn one_stuck_handler_lets_one_more_be_detached() {
        let mut suspects = Suspects::default();
        suspects.record_takeover("a");
        assert_eq!(detach_all(&mut suspects), 1);
        suspects.record_return("a", false);
        assert!(suspects.is_empty());
        suspects.record_return("a", true);
        assert!(suspects.is_empty(), "nothing is known of it");
    }

    #[test]
    fn the_limit_grows_with_long_handlers_and_halves_with_short_ones() {
        let mut suspects = Suspects::default();
        suspects.record_takeover("a");
        suspects.record_detached("a");
        for (was_long, detached_max) in
            [(true, 2), (true, 3), (true, 4), (true, 5), (false, 2), (true, 3), (false, 1)]
        {
            suspects.record_detached("a");
            suspects.record_return("a", was_long);
            assert_eq!(suspects.0[0].detached_max, detached_max);
        }
        suspects.record_takeover("b");
        suspects.record_detached("a");
        suspects.record_return("a", false);
        assert!(
            !suspects.may_detach("a") && suspects.0.len() == 2,
            "one of them is still detached"
        );
        suspects.record_return("a", false);
        assert!(suspects.0.len() == 1 && suspects.may_detach("b"));
    }

    #[test]
    fn detached_handlers_and_suspected_types_are_limited() {
        let mut suspects = Suspects::default();
        for _ in 0..100 {
            suspects.record_takeover("a");
        }
        assert_eq!(detach_all(&mut suspects), DETACHED_MAX);
        suspects.record_return("a", true);
        assert_eq!(detach_all(&mut suspects), 1);
        for number in 0..TYPES_MAX {
            suspects.record_takeover(format!("type {number}").leak());
        }
        assert!(suspects.may_detach("type 62") && !suspects.may_detach("type 63"));
    }
}
