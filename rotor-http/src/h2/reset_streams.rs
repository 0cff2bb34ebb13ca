//! `ResetStreams`: streams that we have reset, and frames for them that may still arrive.

use std::collections::{BTreeMap, VecDeque};

/// How many of the latest streams are recorded. A peer whose streams are reset faster than it can
/// learn about it is a flood.
const RESET_STREAMS_MAX: usize = 1024;

/// Streams that we have reset. Frames for them that were in flight are not a violation of the
/// protocol (RFC 9113 §5.4.2). These can be no more than the window allowed, followed by trailers.
///
/// Streams are found by number, since each frame for one of them is looked up. With a linear
/// search, a peer that sends nothing else would be expensive.
#[derive(Debug, Default)]
pub struct ResetStreams {
    /// `None` until there is one: most connections never reset a stream.
    lists: Option<Box<Lists>>,
}

#[derive(Debug, Default)]
struct Lists {
    streams: BTreeMap<u32, InFlight>,
    /// The streams in the order of their sequence numbers, with some that have been removed, so that the
    /// oldest is found without a search.
    order: VecDeque<(u64, u32)>,
    /// How many streams have been recorded so far.
    count: u64,
}

/// What may still arrive for a stream.
#[derive(Debug)]
struct InFlight {
    /// Bytes of DATA.
    bytes: u32,
    /// How many streams were recorded before this one.
    sequence: u64,
}

impl ResetStreams {
    /// Returns the memory that the streams hold, in bytes.
    #[inline]
    pub(crate) fn held_bytes(&self) -> usize {
        self.lists.as_ref().map_or(0, |lists| lists.held_bytes())
    }

    /// Records a stream that was reset. Up to this many bytes may still arrive for it.
    pub fn record(&mut self, stream: u32, bytes: u32) {
        let lists = self.lists.get_or_insert_default();
        lists.streams.insert(stream, InFlight { bytes, sequence: lists.count });
        lists.order.push_back((lists.count, stream));
        lists.count += 1;
        if lists.order.len() > RESET_STREAMS_MAX
            && let Some((sequence, oldest)) = lists.order.pop_front()
            // Otherwise the stream has ended, or was reset once more.
            && lists.streams.get(&oldest).is_some_and(|own| own.sequence == sequence)
        {
            lists.streams.remove(&oldest);
        }
    }

    /// Checks DATA for a stream that has ended. Returns whether it can have been in flight.
    pub fn accept_data(&mut self, stream: u32, bytes: usize, is_end: bool) -> bool {
        let Some(lists) = &mut self.lists else { return false };
        let Some(own) = lists.streams.get_mut(&stream) else { return false };
        let after = u32::try_from(bytes).ok().and_then(|bytes| own.bytes.checked_sub(bytes));
        own.bytes = after.unwrap_or(0);
        if is_end {
            lists.streams.remove(&stream);
        }
        after.is_some()
    }

    /// Does the same for fields. Nothing can follow fields that end their stream.
    pub fn accept_fields(&mut self, stream: u32, is_end: bool) -> bool {
        let Some(lists) = &mut self.lists else { return false };
        match is_end {
            true => lists.streams.remove(&stream).is_some(),
            false => lists.streams.contains_key(&stream),
        }
    }
}

impl Lists {
    /// A node of the tree has room for eleven streams and is at least half full.
    fn held_bytes(&self) -> usize {
        let stream = size_of::<(u32, InFlight)>();
        2 * stream * self.streams.len() + self.order.capacity() * size_of::<(u64, u32)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_stream_receives_up_to_its_window_and_nothing_after_its_end() {
        let mut reset_streams = ResetStreams::default();
        reset_streams.record(1, 10);
        reset_streams.record(3, 10);
        reset_streams.record(5, 10);
        for (stream, bytes, is_end, is_accepted) in [
            (7, 0, false, false),
            (1, 4, false, true),
            (1, 6, false, true),
            (1, 0, false, true),
            (1, 1, false, false),
            (3, 10, true, true),
            (3, 0, false, false),
        ] {
            assert_eq!(
                reset_streams.accept_data(stream, bytes, is_end),
                is_accepted,
                "{stream} {bytes}"
            );
        }
        assert!(reset_streams.accept_fields(5, false) && reset_streams.accept_fields(5, true));
        assert!(!reset_streams.accept_fields(5, false) && !reset_streams.accept_fields(5, true));
    }

    #[test]
    fn only_the_latest_reset_streams_are_recorded() {
        let mut reset_streams = ResetStreams::default();
        let count = RESET_STREAMS_MAX as u32;
        (0..=count).for_each(|stream| reset_streams.record(stream, 1));
        assert_eq!(
            reset_streams.lists.as_ref().map(|lists| lists.streams.len()),
            Some(RESET_STREAMS_MAX)
        );
        // A stream that is reset again becomes the youngest.
        reset_streams.record(1, 1);
        reset_streams.record(count + 1, 1);
        assert_eq!(
            [0, 1, 2, 3, 4, count].map(|stream| reset_streams.accept_fields(stream, true)),
            [false, true, false, true, true, true]
        );
        // Ended streams do not take up room forever either.
        for stream in 0..10 * count {
            reset_streams.record(stream, 1);
            reset_streams.accept_fields(stream, true);
        }
        let lists = reset_streams.lists.expect("some were remembered");
        assert_eq!((lists.streams.len(), lists.order.len()), (0, RESET_STREAMS_MAX));
    }
}
