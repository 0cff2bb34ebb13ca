//! The cache of known files: a bounded map from names to opened files, each of them valid for a
//! time.
//!
//! ```text
//!            insert                    first look-up after `renew_after`     insert
//!   unknown ───────▶ fresh (returned) ───────────────────────────▶ renewing ──────▶ fresh
//!      ▲                         (that caller opens it again,          │
//!      │                          others still get the old value)      │ another `renew_after`
//!      └──────────────────── room is needed, or too old ◀──────────────┘
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use rotor_core::Time;

/// A map of at most `entries_max` values. It is pure: the time is passed in.
#[derive(Debug)]
pub(super) struct Cache<V> {
    entries: BTreeMap<Box<[u8]>, Entry<V>>,
    entries_max: usize,
    renew_after: Duration,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    fresh_until: Time,
    last_used: Time,
    /// Whether some caller is opening the file again.
    is_being_renewed: bool,
}

impl<V: Clone> Cache<V> {
    pub(super) fn new(entries_max: usize, renew_after: Duration) -> Cache<V> {
        Cache { entries: BTreeMap::new(), entries_max, renew_after }
    }

    /// Returns the value, if it is known and fresh. When it has expired, the first caller gets
    /// `None` and has to open the file again, while the others get the old value for another
    /// `renew_after`. So a busy file is opened only once, however many requests there are.
    pub(super) fn get(&mut self, name: &[u8], now: Time) -> Option<V> {
        let entry = self.entries.get_mut(name)?;
        if now >= entry.fresh_until {
            // Only while the old value may still be returned. If nobody has inserted a new one by
            // then, the next caller starts afresh.
            let is_first = !entry.is_being_renewed && now < entry.fresh_until + self.renew_after;
            if is_first {
                entry.is_being_renewed = true;
                entry.fresh_until = now + self.renew_after;
            } else {
                self.entries.remove(name);
            }
            return None;
        }
        entry.last_used = now;
        Some(entry.value.clone())
    }

    /// Stores a value for a file that was requested at the time `requested_at`. A value that was
    /// requested later is not replaced.
    ///
    /// Drops entries that nobody has requested since they expired, so that a removed file does not
    /// occupy space on the disk forever. If there is still no room, expired entries are dropped,
    /// otherwise the one that was not used for longest.
    pub(super) fn insert(&mut self, name: &[u8], value: V, requested_at: Time) {
        let fresh_until = requested_at + self.renew_after;
        // Also while it is being renewed: the caller that renews it asked when `get` extended it.
        let is_late = |entry: &Entry<V>| entry.fresh_until > fresh_until;
        // The result of a slow opening that began earlier would bring back an older file.
        if self.entries_max == 0 || self.entries.get(name).is_some_and(is_late) {
            return;
        }
        self.drop_expired(requested_at);
        // A known name reuses its own entry.
        if self.entries.len() >= self.entries_max && !self.entries.contains_key(name) {
            self.make_room(requested_at);
        }
        let entry = Entry { value, fresh_until, last_used: requested_at, is_being_renewed: false };
        self.entries.insert(name.into(), entry);
    }

    /// Drops the entries whose values nobody would get any more, and closes their files with that.
    pub(super) fn drop_expired(&mut self, now: Time) {
        let renew_after = self.renew_after;
        self.entries.retain(|_, entry| now < entry.fresh_until + renew_after);
    }

    /// Removes a name, because its file does not exist any more.
    pub(super) fn remove(&mut self, name: &[u8]) {
        self.entries.remove(name);
    }

    fn make_room(&mut self, now: Time) {
        self.entries.retain(|_, entry| now < entry.fresh_until);
        if self.entries.len() < self.entries_max {
            return;
        }
        let oldest = self
            .entries
            .iter()
            .min_by_key(|(_, entry)| entry.last_used)
            .map(|(name, _)| name.clone());
        if let Some(name) = oldest {
            self.entries.remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn cache(entries_max: usize) -> Cache<u32> {
        Cache::new(entries_max, Duration::from_millis(100))
    }

    #[test]
    fn a_value_is_returned_until_it_expires() {
        let mut cache = cache(2);
        assert_eq!(cache.get(b"a", at(0)), None);
        cache.insert(b"a", 1, at(0));
        assert_eq!(cache.get(b"a", at(0)), Some(1));
        assert_eq!(cache.get(b"a", at(99)), Some(1));
        assert_eq!(cache.get(b"b", at(99)), None);
        cache.remove(b"a");
        assert_eq!(cache.get(b"a", at(99)), None);
    }

    #[test]
    fn one_caller_renews_while_others_get_the_old_value_once() {
        let mut cache = cache(2);
        cache.insert(b"a", 1, at(0));
        assert_eq!(cache.get(b"a", at(100)), None, "this one looks again");
        assert_eq!(cache.get(b"a", at(100)), Some(1), "the others need not");
        assert_eq!(cache.get(b"a", at(199)), Some(1));
        assert_eq!(cache.get(b"a", at(200)), None, "nobody came back: it is not known any more");
        assert_eq!(cache.get(b"a", at(200)), None);

        cache.insert(b"a", 1, at(300));
        assert_eq!(cache.get(b"a", at(400)), None);
        cache.insert(b"a", 2, at(401));
        assert_eq!(cache.get(b"a", at(500)), Some(2), "the one that looked again came back");
    }

    #[test]
    fn a_long_expired_value_is_not_returned() {
        let mut cache = cache(2);
        cache.insert(b"a", 1, at(0));
        assert_eq!(cache.get(b"a", at(10_000)), None);
        assert_eq!(cache.get(b"a", at(10_000)), None);
    }

    #[test]
    fn expired_entries_are_dropped_before_the_least_recently_used() {
        let mut cache = cache(2);
        cache.insert(b"a", 1, at(0));
        cache.insert(b"b", 2, at(10));
        assert_eq!(cache.get(b"a", at(20)), Some(1));
        cache.insert(b"c", 3, at(30));
        assert_eq!(cache.get(b"b", at(30)), None, "it was not used for longest");
        assert_eq!((cache.get(b"a", at(30)), cache.get(b"c", at(30))), (Some(1), Some(3)));
        cache.insert(b"d", 4, at(110));
        assert_eq!(cache.get(b"a", at(110)), None, "it was out of date");
        assert_eq!((cache.get(b"c", at(110)), cache.get(b"d", at(110))), (Some(3), Some(4)));
        assert_eq!(cache.entries.len(), 2);
    }

    #[test]
    fn entries_that_are_no_longer_requested_are_dropped() {
        let mut cache = cache(9);
        cache.insert(b"a", 1, at(0));
        cache.insert(b"b", 2, at(199));
        assert_eq!(cache.entries.len(), 2, "it may be about to be looked at again");
        cache.insert(b"b", 2, at(200));
        assert_eq!(cache.entries.len(), 1);
    }

    #[test]
    fn a_late_result_does_not_replace_a_newer_one() {
        let mut cache = cache(2);
        cache.insert(b"a", 2, at(50));
        cache.insert(b"a", 1, at(0));
        assert_eq!(cache.get(b"a", at(149)), Some(2));
        assert_eq!(cache.get(b"a", at(150)), None);
        cache.insert(b"a", 3, at(150));
        assert_eq!(cache.get(b"a", at(249)), Some(3));
        cache.insert(b"b", 1, at(0));
        assert_eq!(cache.get(b"b", at(100)), None, "it counts from the question");
    }

    #[test]
    fn a_late_result_does_not_replace_a_value_that_is_being_renewed() {
        let mut cache = cache(2);
        cache.insert(b"a", 2, at(50));
        assert_eq!(cache.get(b"a", at(150)), None, "this one looks again");
        cache.insert(b"a", 1, at(49));
        assert_eq!(cache.get(b"a", at(151)), Some(2), "the others get the newer one");
        cache.insert(b"a", 3, at(150));
        assert_eq!(cache.get(b"a", at(249)), Some(3));
    }

    #[test]
    fn a_cache_of_size_zero_stores_nothing() {
        let mut cache = cache(0);
        cache.insert(b"a", 1, at(0));
        assert_eq!(cache.get(b"a", at(0)), None);
    }
}
