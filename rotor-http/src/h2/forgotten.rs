//! `Forgotten`: streams that we have reset, and frames for them that may still arrive.

use std::collections::{BTreeMap, VecDeque};

/// How many of the latest streams are remembered. A peer whose streams are reset faster than it can
/// learn about it is a flood.
const FORGOTTEN_MAX: usize = 1024;

/// Streams that we have reset. Frames that were on their way to them are not a violation of the
/// protocol (RFC 9113 §5.4.2). These can be no more than the window allowed, followed by trailers.
///
/// Streams are found by number, since each frame for one of them is looked up. With a linear
/// search, a peer that sends nothing else would be expensive.
#[derive(Debug, Default)]
pub struct Forgotten {
    /// `None` until there is one: most connections never reset a stream.
    lists: Option<Box<Lists>>,
}

#[derive(Debug, Default)]
struct Lists {
    streams: BTreeMap<u32, OnItsWay>,
    /// The streams in the order of their places, with some that have been removed, so that the
    /// oldest is found without a search.
    order: VecDeque<(u64, u32)>,
    /// How many streams have been remembered so far.
    count: u64,
}

/// What may still arrive for a stream.
#[derive(Debug)]
struct OnItsWay {
    /// Bytes of DATA.
    octets: u32,
    /// How many streams were remembered before this one.
    place: u64,
}

impl Forgotten {
    /// Remembers a stream that was reset. Up to this many bytes may still arrive for it.
    pub fn remember(&mut self, stream: u32, octets: u32) {
        let lists = self.lists.get_or_insert_default();
        lists.streams.insert(stream, OnItsWay { octets, place: lists.count });
        lists.order.push_back((lists.count, stream));
        lists.count += 1;
        if lists.order.len() > FORGOTTEN_MAX
            && let Some((place, oldest)) = lists.order.pop_front()
            // Otherwise the stream has ended, or was reset once more.
            && lists.streams.get(&oldest).is_some_and(|own| own.place == place)
        {
            lists.streams.remove(&oldest);
        }
    }

    /// Checks DATA for a stream that has ended. Returns whether it can have been on its way.
    pub fn data(&mut self, stream: u32, octets: usize, is_end: bool) -> bool {
        let Some(lists) = &mut self.lists else { return false };
        let Some(own) = lists.streams.get_mut(&stream) else { return false };
        let after = u32::try_from(octets).ok().and_then(|octets| own.octets.checked_sub(octets));
        own.octets = after.unwrap_or(0);
        if is_end {
            lists.streams.remove(&stream);
        }
        after.is_some()
    }

    /// Does the same for fields. Nothing can follow fields that end their stream.
    pub fn fields(&mut self, stream: u32, is_end: bool) -> bool {
        let Some(lists) = &mut self.lists else { return false };
        match is_end {
            true => lists.streams.remove(&stream).is_some(),
            false => lists.streams.contains_key(&stream),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_as_was_allowed_may_come_and_nothing_after_its_end() {
        let mut forgotten = Forgotten::default();
        forgotten.remember(1, 10);
        forgotten.remember(3, 10);
        forgotten.remember(5, 10);
        for (stream, octets, is_end, may_be) in [
            (7, 0, false, false),
            (1, 4, false, true),
            (1, 6, false, true),
            (1, 0, false, true),
            (1, 1, false, false),
            (3, 10, true, true),
            (3, 0, false, false),
        ] {
            assert_eq!(forgotten.data(stream, octets, is_end), may_be, "{stream} {octets}");
        }
        assert!(forgotten.fields(5, false) && forgotten.fields(5, true));
        assert!(!forgotten.fields(5, false) && !forgotten.fields(5, true));
    }

    #[test]
    fn the_oldest_are_not_remembered_for_ever() {
        let mut forgotten = Forgotten::default();
        let count = FORGOTTEN_MAX as u32;
        (0..=count).for_each(|stream| forgotten.remember(stream, 1));
        assert_eq!(forgotten.lists.as_ref().map(|lists| lists.streams.len()), Some(FORGOTTEN_MAX));
        // One that is reset again is the youngest.
        forgotten.remember(1, 1);
        forgotten.remember(count + 1, 1);
        assert_eq!(
            [0, 1, 2, 3, 4, count].map(|stream| forgotten.fields(stream, true)),
            [false, true, false, true, true, true]
        );
        // Those that are over take no room forever either.
        for stream in 0..10 * count {
            forgotten.remember(stream, 1);
            forgotten.fields(stream, true);
        }
        let lists = forgotten.lists.expect("some were remembered");
        assert_eq!((lists.streams.len(), lists.order.len()), (0, FORGOTTEN_MAX));
    }
}
