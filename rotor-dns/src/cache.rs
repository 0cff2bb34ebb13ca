//! The cache: replies, and how long each of them is valid.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rotor_core::Time;

use crate::error::LookupError;
use crate::held_bytes::reply_held_bytes;
use crate::record::Question;
use crate::result::LookupResult;

/// The longest time that an answer is kept (RFC 8767 §4 suggests days; most resolvers use one day).
pub(crate) const TTL_MAX: Duration = Duration::from_secs(86_400);
/// The longest time that a negative answer is kept (RFC 2308 §5: one to three hours have been found
/// to work well).
const NEGATIVE_TTL_MAX: Duration = Duration::from_secs(3_600);

/// How long a failure is kept the first time. RFC 9520 §3.2 requires at least 1 s. A full resolver
/// has several ways to a name, but a stub has only one, so it should soon notice that a server
/// works again.
const FAILURE_MIN: Duration = Duration::from_secs(1);
/// How long a repeated failure is kept at most, after its time has doubled with each repetition
/// (§3.2: at most 5 minutes). 8 s: hardly more than what a lookup loses by one server that does not
/// answer.
const FAILURE_MAX: Duration = Duration::from_secs(8);

/// How many bytes of memory a reply may take to be cached; a larger reply is asked for each time.
/// 64 KiB: a page of text, or 2,000 addresses. Without this limit, a few replies of the maximum
/// size, valid for a day, would displace all others.
pub const CACHED_BYTES_MAX: usize = 64 << 10;

/// The memory that the two trees take for a reply: three times its entries in them, since a node
/// may be only five elevenths full, and has others above it.
const TREE_BYTES: usize =
    3 * (size_of::<(Question, CachedReply)>() + size_of::<(Time, Question)>());

/// Replies by question, each until its expiry, within a limit of bytes. If there is no room, the
/// reply that would expire first is dropped.
#[derive(Debug)]
pub(crate) struct Cache {
    replies: BTreeMap<Question, CachedReply>,
    by_expiry: BTreeSet<(Time, Question)>,
    bytes: usize,
    bytes_max: usize,
}

#[derive(Debug)]
struct CachedReply {
    /// How long the reply was to be kept, and until when.
    valid_for: Duration,
    expires_at: Time,
    reply: LookupResult,
    bytes: usize,
}

impl Cache {
    pub(crate) fn new(bytes_max: usize) -> Cache {
        Cache { replies: BTreeMap::new(), by_expiry: BTreeSet::new(), bytes: 0, bytes_max }
    }

    /// Returns the reply that is valid at `now`.
    pub(crate) fn find(&self, question: &Question, now: Time) -> Option<&LookupResult> {
        let cached = self.replies.get(question)?;
        // An expired reply stays until another one needs its room, so a lookup changes nothing.
        (cached.expires_at > now).then_some(&cached.reply)
    }

    /// Keeps a reply for as long as it is valid. A reply that is too large, or valid for no time,
    /// is not kept.
    pub(crate) fn insert(
        &mut self,
        question: Question,
        reply: LookupResult,
        valid_for: Duration,
        now: Time,
    ) {
        let valid_for = valid_for.min(if reply.is_ok() { TTL_MAX } else { NEGATIVE_TTL_MAX });
        // A newer reply replaces the older one, even if it is not kept itself.
        self.remove(&question);
        let heap_bytes = reply_held_bytes(&reply);
        let bytes = TREE_BYTES + question.name.held_bytes() + heap_bytes;
        if valid_for.is_zero() || heap_bytes > CACHED_BYTES_MAX || bytes > self.bytes_max {
            return;
        }
        while self.bytes_max - self.bytes < bytes {
            // The reply that would expire first is worth least. Uses are not recorded, so that a
            // hit changes nothing.
            let Some((_, first)) = self.by_expiry.first().cloned() else { break };
            self.remove(&first);
        }
        let expires_at = now + valid_for;
        self.bytes += bytes;
        self.by_expiry.insert((expires_at, question.clone()));
        self.replies.insert(question, CachedReply { valid_for, expires_at, reply, bytes });
    }

    /// Keeps a failure of servers, longer each time that it is repeated; other failures are not
    /// kept.
    pub(crate) fn insert_failure(&mut self, question: Question, error: LookupError, now: Time) {
        if !error.is_server_failure() {
            return;
        }
        let valid_for = match self.replies.get(&question) {
            // A failure that expired long ago says nothing about this one.
            Some(CachedReply { reply: Err(before), valid_for, expires_at, .. })
                if before.is_server_failure() && now < *expires_at + FAILURE_MAX =>
            {
                (*valid_for * 2).min(FAILURE_MAX)
            }
            _ => FAILURE_MIN,
        };
        self.insert(question, Err(error), valid_for, now);
    }

    fn remove(&mut self, question: &Question) {
        if let Some(cached) = self.replies.remove(question) {
            self.bytes -= cached.bytes;
            self.by_expiry.remove(&(cached.expires_at, question.clone()));
        }
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.replies.len()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::error::ServerFault;
    use crate::record::{Data, Kind, RecordSet};

    fn question(text: &str) -> Question {
        Question { name: text.parse().expect("a name"), kind: Kind::A }
    }

    fn found(text: &str) -> LookupResult {
        let data = vec![Data::A([192, 0, 2, 1].into())];
        Ok(Arc::new(RecordSet { name: question(text).name, data, ttl: Duration::ZERO }))
    }

    fn none(text: &str) -> LookupResult {
        Err(LookupError::NoSuchName(question(text).name))
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_reply_is_found_until_it_expires() {
        let mut cache = Cache::new(1 << 20);
        cache.insert(question("a"), found("a"), Duration::from_secs(5), at(10));
        cache.insert(question("b"), none("b"), Duration::from_secs(5), at(10));
        let last = at(15) - Duration::from_nanos(1);
        for name in ["a", "b"] {
            assert!(cache.find(&question(name), last).is_some());
            assert!(cache.find(&question(name), at(15)).is_none());
        }
        assert!(cache.find(&Question { kind: Kind::Aaaa, ..question("a") }, at(10)).is_none());
    }

    #[test]
    fn lifetimes_are_capped_and_a_zero_lifetime_is_not_cached() {
        let mut cache = Cache::new(1 << 20);
        cache.insert(question("a"), found("a"), Duration::from_secs(u32::MAX.into()), at(0));
        assert!(cache.find(&question("a"), at(86_399)).is_some());
        assert!(cache.find(&question("a"), at(86_400)).is_none());
        cache.insert(question("b"), none("b"), Duration::from_secs(u32::MAX.into()), at(0));
        assert!(cache.find(&question("b"), at(3_599)).is_some());
        assert!(cache.find(&question("b"), at(3_600)).is_none());
        cache.insert(question("c"), found("c"), Duration::ZERO, at(0));
        assert!(cache.find(&question("c"), at(0)).is_none());
    }

    fn failed() -> LookupError {
        LookupError::Server(([192, 0, 2, 53], 53).into(), ServerFault::Code(2))
    }

    #[test]
    fn a_repeated_failure_is_cached_longer_up_to_the_limit() {
        let mut cache = Cache::new(1 << 20);
        let mut now = at(100);
        for (seconds, error) in
            [(1, failed()), (2, LookupError::Timeout), (4, failed()), (8, failed()), (8, failed())]
        {
            cache.insert_failure(question("a"), error, now);
            let end = now + Duration::from_secs(seconds);
            let known = |time| cache.find(&question("a"), time).is_some();
            assert!(known(end - Duration::from_nanos(1)) && !known(end), "{seconds} s");
            now = end;
        }
        assert_eq!((cache.len(), cache.by_expiry.len(), cache.bytes), (1, 1, failure_bytes()));
    }

    #[test]
    fn a_reply_or_enough_time_resets_the_failure_lifetime() {
        type Between = fn(&mut Cache);
        let cases: [(Between, Duration, u64); 4] = [
            (|_| {}, FAILURE_MAX - Duration::from_nanos(1), 2),
            (|_| {}, FAILURE_MAX, 1),
            (|cache| cache.insert(question("a"), found("a"), FAILURE_MAX, at(0)), FAILURE_MAX, 1),
            (|cache| cache.insert(question("a"), none("a"), FAILURE_MIN, at(0)), FAILURE_MIN, 1),
        ];
        for (number, (between, later, seconds)) in cases.into_iter().enumerate() {
            let mut cache = Cache::new(1 << 20);
            cache.insert_failure(question("a"), failed(), at(0));
            between(&mut cache);
            let again = at(0) + FAILURE_MIN + later;
            cache.insert_failure(question("a"), failed(), again);
            let end = again + Duration::from_secs(seconds);
            let known = |time| cache.find(&question("a"), time).is_some();
            assert!(known(end - Duration::from_nanos(1)) && !known(end), "number {number}");
        }
    }

    #[test]
    fn local_failures_are_not_cached() {
        let network = LookupError::Network(Arc::new(std::io::ErrorKind::NotConnected.into()));
        let mut cache = Cache::new(1 << 20);
        for error in [network, LookupError::NoSlot, LookupError::NoServer, LookupError::Lost] {
            cache.insert_failure(question("a"), error, at(0));
            assert_eq!(cache.len(), 0);
        }
        let mut cache = Cache::new(0);
        cache.insert_failure(question("a"), failed(), at(0));
        assert_eq!(cache.len(), 0, "there is no cache");
    }

    fn failure_bytes() -> usize {
        TREE_BYTES + question("a").name.held_bytes()
    }

    /// The size of a cached reply with one address, for a name of one letter.
    fn reply_bytes() -> usize {
        TREE_BYTES + question("a").name.held_bytes() + reply_held_bytes(&found("a"))
    }

    #[test]
    fn the_byte_limit_is_exact_and_the_first_to_expire_is_evicted() {
        for (bytes_max, expected) in
            [(3 * reply_bytes() - 1, 2), (3 * reply_bytes(), 3), (3 * reply_bytes() + 1, 3)]
        {
            let mut cache = Cache::new(bytes_max);
            for (name, seconds) in [("a", 30), ("b", 10), ("c", 20), ("d", 40)] {
                cache.insert(question(name), found(name), Duration::from_secs(seconds), at(0));
                assert!(cache.bytes <= bytes_max);
            }
            assert_eq!(
                (cache.len(), cache.by_expiry.len(), cache.bytes),
                (expected, expected, expected * reply_bytes())
            );
            assert!(cache.find(&question("b"), at(1)).is_none());
            let last = &["c", "a", "d"][3 - expected..];
            assert!(
                last.iter().all(|name| cache.find(&question(name), at(1)).is_some()),
                "{bytes_max}"
            );
        }
    }

    #[test]
    fn a_new_reply_replaces_the_old_one() {
        let mut cache = Cache::new(2 * reply_bytes());
        for (name, reply) in
            [("a", found("a")), ("b", found("b")), ("a", none("a")), ("a", found("a"))]
        {
            cache.insert(question(name), reply.clone(), Duration::from_secs(50), at(0));
            assert_eq!(cache.find(&question(name), at(1)).map(Result::is_ok), Some(reply.is_ok()));
        }
        assert_eq!((cache.len(), cache.by_expiry.len(), cache.bytes), (2, 2, 2 * reply_bytes()));
        // A reply that must not be kept also replaces the old one, which is no longer valid.
        cache.insert(question("a"), found("a"), Duration::ZERO, at(0));
        assert_eq!((cache.len(), cache.by_expiry.len(), cache.bytes), (1, 1, reply_bytes()));
    }

    #[test]
    fn an_oversized_reply_is_not_cached_and_evicts_nothing() {
        let large = |heap_bytes: usize| {
            let text = |length| Data::Txt(vec![vec![b'x'; length].into()]);
            let answer = |data| {
                Ok(Arc::new(RecordSet { name: question("l").name, data, ttl: Duration::ZERO }))
            };
            let rest = reply_held_bytes(&answer(vec![text(1_000)])) - 1_000;
            answer(vec![text(heap_bytes - rest)])
        };
        // An allocation counts in steps of 16 bytes.
        for (heap_bytes, is_kept) in [
            (CACHED_BYTES_MAX - 16, true),
            (CACHED_BYTES_MAX, true),
            (CACHED_BYTES_MAX + 16, false),
        ] {
            let reply = large(heap_bytes);
            assert_eq!(reply_held_bytes(&reply), heap_bytes);
            let mut cache = Cache::new(1 << 20);
            cache.insert(question("a"), found("a"), Duration::from_secs(1), at(0));
            cache.insert(question("l"), reply, Duration::from_secs(9), at(0));
            assert_eq!(cache.find(&question("l"), at(0)).is_some(), is_kept, "{heap_bytes}");
            assert!(cache.find(&question("a"), at(0)).is_some());
        }
        for (bytes_max, is_kept) in [
            (0, false),
            (reply_bytes() - 1, false),
            (reply_bytes(), true),
            (reply_bytes() + 1, true),
        ] {
            let mut cache = Cache::new(bytes_max);
            cache.insert(question("a"), found("a"), Duration::from_secs(9), at(0));
            assert_eq!(
                (cache.len(), cache.bytes > 0),
                (usize::from(is_kept), is_kept),
                "{bytes_max}"
            );
        }
    }
}
