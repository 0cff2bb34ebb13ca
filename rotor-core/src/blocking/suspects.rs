//! `Suspects`: types of machines whose handlers were stuck recently, and how many of their next
//! handlers are called on other threads from the beginning.
//!
//! ```text
//!                 its loop was taken                     it took long
//!   no suspect ──────────────────────▶ 1 may be away ◀───────────────── + 1, taken: twice as many + 1
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
    /// The maximum number of handlers that may be away at the same time.
    away_max: u32,
    /// The number of handlers that are away now.
    away: u32,
}

/// No loop needs more threads than this, and eight short calls end the suspicion.
const AWAY_MAX: u32 = 255;

/// A program has few types of machines. If names are made up at run time, those beyond the limit
/// are not suspected.
const TYPES_MAX: usize = 64;

impl Suspects {
    /// Returns whether there are no suspects, so that a call need not check anything else.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Notes that the loop was taken from a stuck handler of this type.
    pub(crate) fn was_taken(&mut self, machine: &'static str) {
        if let Some(suspect) = self.find(machine) {
            suspect.away_max = (suspect.away_max * 2 + 1).min(AWAY_MAX);
        } else if self.0.len() < TYPES_MAX {
            self.0.push(Suspect { machine, away_max: 1, away: 0 });
        }
    }

    /// Returns whether the loop need not wait for the next handler of this type.
    pub(crate) fn may_leave(&mut self, machine: &'static str) -> bool {
        self.find(machine).is_some_and(|suspect| suspect.away < suspect.away_max)
    }

    /// Notes that a handler of this type is called on another thread.
    pub(crate) fn has_left(&mut self, machine: &'static str) {
        if let Some(suspect) = self.find(machine) {
            suspect.away += 1;
        }
    }

    /// Notes that a handler has returned on another thread. `was_long` says whether it would have
    /// held up the loop.
    pub(crate) fn came_back(&mut self, machine: &'static str, was_long: bool) {
        if let Some(suspect) = self.find(machine) {
            suspect.away = suspect.away.saturating_sub(1);
            suspect.away_max = match was_long {
                true => (suspect.away_max + 1).min(AWAY_MAX),
                false => suspect.away_max / 2,
            };
        }
        self.0.retain(|suspect| suspect.away_max > 0 || suspect.away > 0);
    }

    fn find(&mut self, machine: &'static str) -> Option<&mut Suspect> {
        let is_it = |suspect: &&mut Suspect| {
            ptr::eq(suspect.machine, machine) || suspect.machine == machine
        };
        self.0.iter_mut().find(is_it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets all leave that may.
    fn leave(suspects: &mut Suspects) -> u32 {
        let mut left = 0;
        while suspects.may_leave("a") {
            suspects.has_left("a");
            left += 1;
        }
        left
    }

    #[test]
    fn a_hundred_that_block_at_once_are_found_out_by_a_few_of_them() {
        let mut suspects = Suspects::default();
        assert!(suspects.is_empty() && !suspects.may_leave("a"));
        let (mut taken, mut left) = (0, 0);
        while taken + left < 100 {
            suspects.was_taken("a");
            taken += 1;
            left += leave(&mut suspects);
        }
        assert_eq!(taken, 7);
        assert!(!suspects.may_leave("b"));
    }

    #[test]
    fn of_one_that_was_stuck_alone_one_more_is_not_waited_for() {
        let mut suspects = Suspects::default();
        suspects.was_taken("a");
        assert_eq!(leave(&mut suspects), 1);
        suspects.came_back("a", false);
        assert!(suspects.is_empty());
        suspects.came_back("a", true);
        assert!(suspects.is_empty(), "nothing is known of it");
    }

    #[test]
    fn more_are_believed_as_they_turn_out_to_be_long_and_half_as_many_where_they_do_not() {
        let mut suspects = Suspects::default();
        suspects.was_taken("a");
        suspects.has_left("a");
        for (was_long, away_max) in
            [(true, 2), (true, 3), (true, 4), (true, 5), (false, 2), (true, 3), (false, 1)]
        {
            suspects.has_left("a");
            suspects.came_back("a", was_long);
            assert_eq!(suspects.0[0].away_max, away_max);
        }
        suspects.was_taken("b");
        suspects.has_left("a");
        suspects.came_back("a", false);
        assert!(!suspects.may_leave("a") && suspects.0.len() == 2, "one of them is away still");
        suspects.came_back("a", false);
        assert!(suspects.0.len() == 1 && suspects.may_leave("b"));
    }

    #[test]
    fn there_is_an_end_to_how_many_and_to_how_many_types() {
        let mut suspects = Suspects::default();
        for _ in 0..100 {
            suspects.was_taken("a");
        }
        assert_eq!(leave(&mut suspects), AWAY_MAX);
        suspects.came_back("a", true);
        assert_eq!(leave(&mut suspects), 1);
        for number in 0..TYPES_MAX {
            suspects.was_taken(format!("type {number}").leak());
        }
        assert!(suspects.may_leave("type 62") && !suspects.may_leave("type 63"));
    }
}
