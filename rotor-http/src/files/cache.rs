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

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rotor_core::Time;

/// How many entries are looked at to find the least recently used one. Among more entries, one that
/// was used more recently may be dropped instead; so the work has a bound.
const CANDIDATES_MAX: usize = 64;

/// A map of at most `entries_max` values. It is pure: the time is passed in.
///
/// A look-up changes only its own entry: the two orders learn of it when the entry is first in one
/// of them. So the work of a call does not grow with the number of entries, on average.
#[derive(Debug)]
pub(super) struct Cache<V> {
    entries: BTreeMap<Name, Entry<V>>,
    by_expiry: Order,
    by_use: Order,
    entries_max: usize,
    renew_after: Duration,
    /// How many entries were looked at to drop some of them.
    #[cfg(test)]
    visited: usize,
}

type Name = Arc<[u8]>;

/// Names in the order of a time, which is no later than the present one of their entry.
type Order = BTreeSet<(Time, Name)>;

#[derive(Debug)]
struct Entry<V> {
    value: V,
    fresh_until: Time,
    last_used: Time,
    /// Whether some caller is opening the file again.
    is_being_renewed: bool,
    /// The times with which the name is in the orders.
    in_expiry: Time,
    in_use: Time,
}

impl<V: Clone> Cache<V> {
    pub(super) fn new(entries_max: usize, renew_after: Duration) -> Cache<V> {
        Cache {
            entries: BTreeMap::new(),
            by_expiry: Order::new(),
            by_use: Order::new(),
            entries_max,
            renew_after,
            #[cfg(test)]
            visited: 0,
        }
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
                self.remove(name);
            }
            return None;
        }
        entry.last_used = entry.last_used.max(now);
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
        if let Some(entry) = self.entries.get_mut(name) {
            entry.value = value;
            entry.fresh_until = fresh_until;
            entry.last_used = entry.last_used.max(requested_at);
            entry.is_being_renewed = false;
            return;
        }
        if self.entries.len() >= self.entries_max {
            self.make_room(requested_at);
        }
        let name = Name::from(name);
        self.by_expiry.insert((fresh_until, name.clone()));
        self.by_use.insert((requested_at, name.clone()));
        let entry = Entry {
            value,
            fresh_until,
            last_used: requested_at,
            is_being_renewed: false,
            in_expiry: fresh_until,
            in_use: requested_at,
        };
        self.entries.insert(name, entry);
    }

    /// Drops the entries whose values nobody would get any more, and closes their files with that.
    pub(super) fn drop_expired(&mut self, now: Time) {
        self.drop_fresh_until(now, self.renew_after);
    }

    /// Removes a name, because its file does not exist any more.
    pub(super) fn remove(&mut self, name: &[u8]) {
        if let Some((name, entry)) = self.entries.remove_entry(name) {
            self.by_expiry.remove(&(entry.in_expiry, name.clone()));
            self.by_use.remove(&(entry.in_use, name));
        }
    }

    fn make_room(&mut self, now: Time) {
        self.drop_fresh_until(now, Duration::ZERO);
        if self.entries.len() < self.entries_max {
            return;
        }
        for _ in 0..CANDIDATES_MAX {
            let Some((_, name)) = self.by_use.first().cloned() else { return };
            self.count_visit();
            let Some(entry) = self.entries.get_mut(&name) else { return };
            if entry.in_use == entry.last_used {
                return self.remove(&name);
            }
            // It was used since.
            self.by_use.pop_first();
            entry.in_use = entry.last_used;
            self.by_use.insert((entry.in_use, name));
        }
        if let Some((_, name)) = self.by_use.first().cloned() {
            self.remove(&name);
        }
    }

    /// Drops the entries that have been out of date for this time.
    fn drop_fresh_until(&mut self, now: Time, since: Duration) {
        while let Some((_, name)) = self.by_expiry.first().filter(|(time, _)| *time + since <= now)
        {
            let name = name.clone();
            self.count_visit();
            let Some(entry) = self.entries.get_mut(&name) else { return };
            if entry.fresh_until + since <= now {
                self.remove(&name);
                continue;
            }
            // It was renewed since.
            self.by_expiry.pop_first();
            entry.in_expiry = entry.fresh_until;
            self.by_expiry.insert((entry.in_expiry, name));
        }
    }

    #[cfg(test)]
    fn count_visit(&mut self) {
        self.visited += 1;
    }

    #[cfg(not(test))]
    fn count_visit(&mut self) {}
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

    /// Checks that each entry is in both orders once.
    fn check_orders(cache: &Cache<u32>) {
        for (name, entry) in &cache.entries {
            assert!(cache.by_expiry.contains(&(entry.in_expiry, name.clone())));
            assert!(cache.by_use.contains(&(entry.in_use, name.clone())));
            assert!(entry.in_expiry <= entry.fresh_until && entry.in_use <= entry.last_used);
        }
        let len = cache.entries.len();
        assert_eq!((cache.by_expiry.len(), cache.by_use.len()), (len, len));
    }

    #[test]
    fn the_least_recently_used_entry_makes_room_whatever_its_age() {
        let mut cache = Cache::new(5, Duration::from_secs(100));
        for name in 0..5 {
            cache.insert(&[name], u32::from(name), at(name.into()));
        }
        for (time, name) in [3, 0, 4, 1, 2].into_iter().enumerate() {
            assert_eq!(cache.get(&[name], at(10 + time as u64)), Some(name.into()));
        }
        for (added, dropped) in [3, 0, 4, 1, 2].into_iter().enumerate() {
            check_orders(&cache);
            assert!(cache.entries.contains_key(&[dropped][..]), "{dropped}");
            cache.insert(&[10 + added as u8], 0, at(20 + added as u64));
            assert!(!cache.entries.contains_key(&[dropped][..]), "{dropped}");
            assert_eq!(cache.entries.len(), 5);
        }
        cache.remove(&[10]);
        check_orders(&cache);
    }

    /// The rules, in the plainest form: all entries are looked at each time.
    struct Model(Vec<(u8, u32, Time, Time, bool)>);

    impl Model {
        fn get(&mut self, name: u8, now: Time, renew_after: Duration) -> Option<u32> {
            let at = self.0.iter().position(|entry| entry.0 == name)?;
            let (_, value, fresh_until, last_used, is_being_renewed) = &mut self.0[at];
            if now < *fresh_until {
                *last_used = now.max(*last_used);
                return Some(*value);
            }
            if !*is_being_renewed && now < *fresh_until + renew_after {
                (*fresh_until, *is_being_renewed) = (now + renew_after, true);
            } else {
                self.0.remove(at);
            }
            None
        }

        fn insert(&mut self, name: u8, value: u32, now: Time, renew_after: Duration, max: usize) {
            let fresh_until = now + renew_after;
            if self.0.iter().any(|entry| entry.0 == name && entry.2 > fresh_until) {
                return;
            }
            self.0.retain(|entry| now < entry.2 + renew_after);
            let known = self.0.iter().position(|entry| entry.0 == name);
            let last_used = known.map_or(now, |at| self.0.remove(at).3.max(now));
            if known.is_none() && self.0.len() >= max {
                self.0.retain(|entry| now < entry.2);
                if self.0.len() >= max {
                    let oldest = self.0.iter().map(|entry| (entry.3, entry.0)).min();
                    self.0.retain(|entry| oldest != Some((entry.3, entry.0)));
                }
            }
            self.0.push((name, value, fresh_until, last_used, false));
        }
    }

    #[test]
    fn random_calls_have_the_results_of_a_plain_model() {
        for seed in 0..200 {
            let (mut state, mut now) = (seed, 0);
            // Knuth's generator; its high bits are the random ones.
            let mut random = |below: u64| {
                state = state * 6_364_136_223_846_793_005_u128 + 1_442_695_040_888_963_407;
                state &= u128::from(u64::MAX);
                (state >> 33) as u64 % below
            };
            let (max, renew_after) = (1 + random(8) as usize, Duration::from_millis(100));
            let (mut cache, mut model) = (Cache::new(max, renew_after), Model(Vec::new()));
            for value in 0..300 {
                now += random(30);
                let name = random(12) as u8;
                match random(10) {
                    0 => {
                        cache.remove(&[name]);
                        model.0.retain(|entry| entry.0 != name);
                    }
                    // The result of an opening, which may have begun earlier.
                    1..4 => {
                        let began = at(now.saturating_sub(random(2) * 60));
                        cache.insert(&[name], value, began);
                        model.insert(name, value, began, renew_after, max);
                    }
                    _ => {
                        let expected = model.get(name, at(now), renew_after);
                        assert_eq!(cache.get(&[name], at(now)), expected, "{seed} {value}");
                    }
                }
                check_orders(&cache);
                assert_eq!(cache.entries.len(), model.0.len(), "{seed} {value}");
            }
        }
    }

    #[test]
    fn the_work_of_an_insertion_does_not_grow_with_the_entries() {
        const ENTRIES: usize = 2_000;
        let mut cache = cache(ENTRIES);
        let mut insertions = 0;
        // All entries are in use, and are looked up again when they expire. In each round there is
        // a file that was not known.
        for round in 0..20 {
            let now = at(round * 25);
            for name in (0..ENTRIES).chain([ENTRIES + round as usize]) {
                if cache.get(&name.to_ne_bytes(), now).is_none() {
                    cache.insert(&name.to_ne_bytes(), 1, now);
                    insertions += 1;
                }
            }
        }
        check_orders(&cache);
        let most = (2 + CANDIDATES_MAX) * insertions;
        assert!(insertions > 4 * ENTRIES && cache.visited <= most, "{} of {most}", cache.visited);
    }

    #[test]
    fn a_cache_of_size_zero_stores_nothing() {
        let mut cache = cache(0);
        cache.insert(b"a", 1, at(0));
        assert_eq!(cache.get(b"a", at(0)), None);
    }
}
