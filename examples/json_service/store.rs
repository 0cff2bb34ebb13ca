//! The data in memory: pages for a limited time, notes forever. The number of both is limited.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rotor::Time;

/// How long a page of the upstream may be used.
const CACHE_TIME: Duration = Duration::from_secs(10);

/// The maximum number of pages. With 16 KiB each, they take 16 MiB.
const CACHE_MAX: usize = 1_024;

/// The maximum number of notes. With 4 KiB each, they take 40 MiB.
const NOTES_MAX: usize = 10_000;

/// Pages by name, each for [`CACHE_TIME`].
#[derive(Default)]
pub(crate) struct Cache {
    pages: BTreeMap<Arc<str>, Arc<[u8]>>,
    /// When each page expires, and its name. They are in the order of expiry, since all live
    /// equally long.
    order: VecDeque<(Time, Arc<str>)>,
}

impl Cache {
    /// Returns the page, if there is one that has not expired.
    pub(crate) fn get(&mut self, name: &str, now: Time) -> Option<Arc<[u8]>> {
        self.forget(now, CACHE_MAX);
        self.pages.get(name).cloned()
    }

    /// Stores a page. If there is one already, that is kept.
    pub(crate) fn put(&mut self, name: Arc<str>, page: Arc<[u8]>, now: Time) {
        self.forget(now, CACHE_MAX - 1);
        if !self.pages.contains_key(&name) {
            self.order.push_back((now + CACHE_TIME, name.clone()));
            self.pages.insert(name, page);
        }
    }

    /// Removes expired pages, and the oldest ones if there are more than `left`.
    fn forget(&mut self, now: Time, left: usize) {
        while let Some((until, _)) = self.order.front()
            && (*until <= now || self.order.len() > left)
            && let Some((_, name)) = self.order.pop_front()
        {
            self.pages.remove(&name);
        }
    }
}

/// Notes by number, from 1: the context.
#[derive(Default)]
pub(crate) struct Notes {
    notes: Vec<Box<[u8]>>,
}

impl Notes {
    /// Returns the number of the new note, or `None` if there is no room.
    pub(crate) fn add(&mut self, note: &[u8]) -> Option<usize> {
        if self.notes.len() >= NOTES_MAX {
            return None;
        }
        self.notes.push(note.into());
        Some(self.notes.len())
    }

    pub(crate) fn get(&self, number: usize) -> Option<&[u8]> {
        self.notes.get(number.checked_sub(1)?).map(|note| &note[..])
    }
}
