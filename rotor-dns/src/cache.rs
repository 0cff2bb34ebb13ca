//! What is known already, and until when.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rotor_core::Time;

use crate::{LookupResult, Question};

/// How long an answer is kept at most (RFC 8767 §4 suggests days; a day is what most resolvers take).
const TTL_MAX: Duration = Duration::from_secs(86_400);
/// How long "there is none" is kept at most (RFC 2308 §5: one to three hours have been found to work well).
const NEGATIVE_TTL_MAX: Duration = Duration::from_secs(3_600);

/// Replies by question, each until its time; when there is no room, what would go first goes.
#[derive(Debug)]
pub(crate) struct Cache {
    replies: BTreeMap<Question, (Time, LookupResult)>,
    by_expiry: BTreeSet<(Time, Question)>,
    replies_max: usize,
}

impl Cache {
    pub(crate) fn new(replies_max: usize) -> Cache {
        Cache { replies: BTreeMap::new(), by_expiry: BTreeSet::new(), replies_max }
    }

    /// What is known at `now`.
    pub(crate) fn find(&self, question: &Question, now: Time) -> Option<&LookupResult> {
        let (until, reply) = self.replies.get(question)?;
        (*until > now).then_some(reply)
    }

    /// Keeps a reply for as long as it is good; one that is good for no time is not kept.
    pub(crate) fn keep(&mut self, question: Question, reply: LookupResult, good_for: Duration, now: Time) {
        let good_for = good_for.min(if reply.is_ok() { TTL_MAX } else { NEGATIVE_TTL_MAX });
        if let Some((until, _)) = self.replies.remove(&question) {
            self.by_expiry.remove(&(until, question.clone()));
        }
        if good_for.is_zero() || self.replies_max == 0 {
            return;
        }
        while self.replies.len() >= self.replies_max {
            let Some((_, first)) = self.by_expiry.pop_first() else { break };
            self.replies.remove(&first);
        }
        let until = now + good_for;
        self.by_expiry.insert((until, question.clone()));
        self.replies.insert(question, (until, reply));
    }

    pub(crate) fn len(&self) -> usize {
        self.replies.len()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Answer, Data, Kind, LookupError};

    fn question(text: &str) -> Question {
        Question { name: text.parse().expect("a name"), kind: Kind::A }
    }

    fn found(text: &str) -> LookupResult {
        let data = vec![Data::A([192, 0, 2, 1].into())];
        Ok(Arc::new(Answer { name: question(text).name, data, ttl: Duration::ZERO }))
    }

    fn none(text: &str) -> LookupResult {
        Err(LookupError::NoSuchName(question(text).name))
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_reply_is_known_until_its_time_and_not_at_it() {
        let mut cache = Cache::new(10);
        cache.keep(question("a"), found("a"), Duration::from_secs(5), at(10));
        cache.keep(question("b"), none("b"), Duration::from_secs(5), at(10));
        let last = at(15) - Duration::from_nanos(1);
        for name in ["a", "b"] {
            assert!(cache.find(&question(name), last).is_some());
            assert!(cache.find(&question(name), at(15)).is_none());
        }
        assert!(cache.find(&Question { kind: Kind::Aaaa, ..question("a") }, at(10)).is_none());
    }

    #[test]
    fn times_to_live_have_a_ceiling_and_none_is_not_kept() {
        let mut cache = Cache::new(10);
        cache.keep(question("a"), found("a"), Duration::from_secs(u32::MAX.into()), at(0));
        assert!(cache.find(&question("a"), at(86_399)).is_some());
        assert!(cache.find(&question("a"), at(86_400)).is_none());
        cache.keep(question("b"), none("b"), Duration::from_secs(u32::MAX.into()), at(0));
        assert!(cache.find(&question("b"), at(3_599)).is_some());
        assert!(cache.find(&question("b"), at(3_600)).is_none());
        cache.keep(question("c"), found("c"), Duration::ZERO, at(0));
        assert!(cache.find(&question("c"), at(0)).is_none());
    }

    #[test]
    fn the_bound_holds_and_what_would_expire_first_goes_first() {
        let mut cache = Cache::new(3);
        for (name, seconds) in [("a", 30), ("b", 10), ("c", 20), ("d", 40)] {
            cache.keep(question(name), found(name), Duration::from_secs(seconds), at(0));
        }
        assert_eq!(cache.len(), 3);
        assert!(cache.find(&question("b"), at(1)).is_none());
        assert!(["a", "c", "d"].iter().all(|name| cache.find(&question(name), at(1)).is_some()));
        // A new reply to the same question takes the place of the old one.
        cache.keep(question("a"), none("a"), Duration::from_secs(50), at(0));
        assert_eq!((cache.len(), cache.by_expiry.len()), (3, 3));
        assert!(cache.find(&question("a"), at(31)).is_some_and(|reply| reply.is_err()));
        let mut none_at_all = Cache::new(0);
        none_at_all.keep(question("a"), found("a"), Duration::from_secs(9), at(0));
        assert_eq!(none_at_all.len(), 0);
    }
}
