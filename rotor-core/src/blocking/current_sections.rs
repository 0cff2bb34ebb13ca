//! `Sections`: the blocking sections for which the loop was handed over, so that the watchdog can
//! find those that do not end.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::time::Time;
use crate::token::Token;

/// The current sections of one loop.
#[derive(Debug, Default)]
pub(crate) struct Sections(Mutex<Vec<Section>>);

#[derive(Debug)]
struct Section {
    token: Token,
    machine: &'static str,
    /// Whether the section was declared. Otherwise it is a handler from which the loop was taken.
    is_declared: bool,
    /// When the watchdog first saw it.
    since: Option<Time>,
    /// Whether it was reported before the loop was taken from it.
    was_reported: bool,
    is_reported: bool,
}

/// A section that does not end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OverlongSection {
    pub(super) token: Token,
    pub(super) machine: &'static str,
    pub(super) is_declared: bool,
    /// Whether it was reported before.
    pub(super) is_repeated: bool,
    pub(super) time: Duration,
}

impl Sections {
    pub(crate) fn begin(&self, token: Token, machine: &'static str, is_declared: bool) {
        let (since, was_reported, is_reported) = (None, false, false);
        let section = Section { token, machine, is_declared, since, was_reported, is_reported };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(section);
    }

    /// Records that the handler was reported before the loop was taken from it.
    pub(super) fn mark_reported(&self, token: Token) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(section) = all.iter_mut().find(|section| section.token == token) {
            section.was_reported = true;
        }
    }

    pub(crate) fn end(&self, token: Token) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(position) = all.iter().position(|section| section.token == token) {
            all.swap_remove(position);
        }
    }

    /// Returns a section that has lasted for `time` and was not reported yet, each section only
    /// once; and whether there are other unreported ones.
    pub(super) fn find_overlong(
        &self,
        now: Time,
        time: Duration,
    ) -> (Option<OverlongSection>, bool) {
        let mut found = None;
        let mut has_unreported = false;
        for section in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            let lasted = now - *section.since.get_or_insert(now);
            if !section.is_reported && found.is_none() && lasted >= time {
                section.is_reported = true;
                let Section { token, machine, is_declared, was_reported, .. } = *section;
                let is_repeated = was_reported;
                found = Some(OverlongSection {
                    token,
                    machine,
                    is_declared,
                    is_repeated,
                    time: lasted,
                });
            }
            has_unreported |= !section.is_reported;
        }
        (found, has_unreported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_that_does_not_end_is_reported_once() {
        let (sections, token) = (Sections::default(), Token::new(1, 2));
        sections.begin(token, "a", true);
        sections.begin(Token::new(2, 2), "b", false);
        sections.mark_reported(Token::new(2, 2));
        let (second, at) =
            (Duration::from_secs(1), |secs: u64| Time::from_nanos(secs * 1_000_000_000));
        assert_eq!(sections.find_overlong(at(5), second), (None, true));
        let found = |token, machine, secs| {
            let time = Duration::from_secs(secs);
            let (is_declared, is_repeated) = (machine == "a", machine == "b");
            Some(OverlongSection { token, machine, is_declared, is_repeated, time })
        };
        assert_eq!(sections.find_overlong(at(6), second), (found(token, "a", 1), true));
        assert_eq!(sections.find_overlong(at(7), second), (found(Token::new(2, 2), "b", 2), false));
        assert_eq!(sections.find_overlong(at(9), second), (None, false));
        sections.end(token);
        // Taken over on an alert, so it was not reported before.
        sections.begin(token, "c", false);
        assert_eq!(sections.find_overlong(at(9), second), (None, true));
        assert_eq!(sections.find_overlong(at(10), second), (found(token, "c", 1), false));
    }
}
