//! The pairs, limited in number and in bytes. Each may have a time to expire.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use rotor::Time;

/// The approximate cost of a pair in addition to its bytes, in bytes: its places in both trees.
const PAIR_OVERHEAD: usize = 128;

/// How many expired pairs are removed at once to make room for a new one.
const REAPED_FOR_ONE: usize = 64;

/// A key, shared by both trees as long as its pair exists.
pub(crate) type Key = Arc<[u8]>;

pub(crate) struct Store {
    pairs: BTreeMap<Key, Pair>,
    /// The pairs that expire, soonest first. Each is also in `pairs`, with the same time.
    expiries: BTreeSet<(Time, Key)>,
    bytes: usize,
    pairs_max: usize,
    bytes_max: usize,
    expired: u64,
}

struct Pair {
    value: Vec<u8>,
    expires: Option<Time>,
}

impl Pair {
    fn has_expired(&self, now: Time) -> bool {
        self.expires.is_some_and(|time| time <= now)
    }
}

/// Why an operation was refused. The store is unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    Full,
    NotANumber,
    TooLarge,
}

fn cost(key: &[u8], value: &[u8]) -> usize {
    key.len() + value.len() + PAIR_OVERHEAD
}

impl Store {
    /// Makes an empty store with a maximum number of pairs, and of bytes for their keys and values,
    /// including 128 for each pair.
    pub(crate) fn new(pairs_max: usize, bytes_max: usize) -> Store {
        let (pairs, expiries) = (BTreeMap::new(), BTreeSet::new());
        Store { pairs, expiries, bytes: 0, pairs_max, bytes_max, expired: 0 }
    }

    /// Returns the number of pairs, including those that have expired and were not removed yet.
    pub(crate) fn len(&self) -> usize {
        self.pairs.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns how many pairs were removed because they had expired.
    pub(crate) fn expired(&self) -> u64 {
        self.expired
    }

    /// Removes expired pairs, at most `count` of them.
    pub(crate) fn reap(&mut self, now: Time, count: usize) {
        for _ in 0..count {
            let Some((time, key)) = self.expiries.first() else { return };
            if *time > now {
                return;
            }
            let key = key.clone();
            self.remove_expired(&key, now);
        }
    }

    fn remove_expired(&mut self, key: &[u8], now: Time) {
        if self.pairs.get(key).is_some_and(|pair| pair.has_expired(now)) {
            self.remove(key);
            self.expired += 1;
        }
    }

    fn remove(&mut self, key: &[u8]) -> bool {
        let Some((key, pair)) = self.pairs.remove_entry(key) else { return false };
        self.bytes -= cost(&key, &pair.value);
        if let Some(time) = pair.expires {
            self.expiries.remove(&(time, key));
        }
        true
    }

    pub(crate) fn get(&mut self, key: &[u8], now: Time) -> Option<&[u8]> {
        self.remove_expired(key, now);
        self.pairs.get(key).map(|pair| &pair.value[..])
    }

    /// Makes room for the pair, in addition to all others or in place of the one with the same key.
    fn make_room(&mut self, key: &[u8], value: &[u8], now: Time) -> Result<(), Refusal> {
        let old = self.pairs.get(key).map(|pair| cost(key, &pair.value));
        let is_full = |store: &Store| {
            (old.is_none() && store.pairs.len() >= store.pairs_max)
                || store.bytes - old.unwrap_or(0) + cost(key, value) > store.bytes_max
        };
        if is_full(self) {
            self.reap(now, REAPED_FOR_ONE);
        }
        if is_full(self) { Err(Refusal::Full) } else { Ok(()) }
    }

    /// Stores a pair that does not expire, in place of the previous one.
    pub(crate) fn set(&mut self, key: &[u8], value: &[u8], now: Time) -> Result<(), Refusal> {
        self.remove_expired(key, now);
        self.make_room(key, value, now)?;
        self.remove(key);
        self.bytes += cost(key, value);
        self.pairs.insert(key.into(), Pair { value: value.into(), expires: None });
        Ok(())
    }

    /// Removes a pair. Returns whether there was one.
    pub(crate) fn delete(&mut self, key: &[u8], now: Time) -> bool {
        self.remove_expired(key, now);
        self.remove(key)
    }

    /// Adds one to a number, or to 0 if there is none. Its time to expire does not change.
    pub(crate) fn increment(&mut self, key: &[u8], now: Time) -> Result<i64, Refusal> {
        let Some(value) = self.get(key, now) else {
            return self.set(key, b"1", now).map(|()| 1);
        };
        let text = std::str::from_utf8(value).map_err(|_| Refusal::NotANumber)?;
        let number: i64 = text.parse().map_err(|_| Refusal::NotANumber)?;
        let number = number.checked_add(1).ok_or(Refusal::TooLarge)?;
        let value = number.to_string().into_bytes();
        self.make_room(key, &value, now)?;
        if let Some(pair) = self.pairs.get_mut(key) {
            self.bytes = self.bytes - pair.value.len() + value.len();
            pair.value = value;
        }
        Ok(number)
    }

    /// Sets when a pair expires. Returns whether there is such a pair.
    pub(crate) fn expire(&mut self, key: &[u8], after: Duration, now: Time) -> bool {
        self.remove_expired(key, now);
        let Some((key, _)) = self.pairs.get_key_value(key) else { return false };
        let (key, time) = (key.clone(), now + after);
        let Some(pair) = self.pairs.get_mut(&key) else { return false };
        if let Some(old) = pair.expires.replace(time) {
            self.expiries.remove(&(old, key.clone()));
        }
        self.expiries.insert((time, key));
        true
    }

    /// Calls `show` for the keys that begin with `prefix` and come after `after`, in order, until
    /// `show` returns `false` or `look_at` keys were checked. Returns the last key that was checked,
    /// if there may be more.
    pub(crate) fn list(
        &self,
        prefix: &[u8],
        after: Option<&Key>,
        look_at: usize,
        now: Time,
        mut show: impl FnMut(&[u8]) -> bool,
    ) -> Option<Key> {
        let from = after.map_or(Bound::Included(prefix), |key| Bound::Excluded(&key[..]));
        let pairs = self.pairs.range::<[u8], _>((from, Bound::Unbounded));
        for (index, (key, pair)) in pairs.take_while(|(key, _)| key.starts_with(prefix)).enumerate()
        {
            if (!pair.has_expired(now) && !show(key)) || index + 1 >= look_at {
                return Some(key.clone());
            }
        }
        None
    }
}
