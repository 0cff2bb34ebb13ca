//! `Bulk`: whether so much comes for a stream at once that it is better read than given.

/// How little a read brings, in bytes, behind which a stream is given what comes again. 4 KiB: to be
/// told first and to ask then costs a system call, as much as to copy some 16 KiB.
const LITTLE_BYTES: usize = 4 * 1024;

/// What comes for most streams is given to them: a message, or a part of one. Of an upload more comes
/// than may be unread, and the kernel would fill all buffers with it, one after the other, for its
/// bytes to be copied once more. Such a stream is told that something is there, and reads that from
/// the kernel into its own memory, until a read brings little.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Bulk {
    #[default]
    Little,
    /// Much came at once.
    Much,
    /// The same, and nothing was read since the kernel told that there is something.
    Arrived,
}

impl Bulk {
    /// As much came at once as may be unread.
    pub(crate) fn note_much(&mut self) {
        *self = Bulk::Much;
    }

    /// The kernel tells that there is something.
    pub(crate) fn note_arrival(&mut self) {
        if *self == Bulk::Much {
            *self = Bulk::Arrived;
        }
    }

    /// A read that asked for so many bytes has brought so many. Only the first one behind an arrival
    /// says how much comes at once: the last of many brings what is left.
    pub(crate) fn note_read(&mut self, count: usize, asked: usize) {
        if *self == Bulk::Arrived {
            let is_little = count < asked && count < LITTLE_BYTES;
            *self = if is_little { Bulk::Little } else { Bulk::Much };
        }
    }

    pub(crate) fn is_much(self) -> bool {
        self != Bulk::Little
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_got_much_is_read_until_the_first_read_of_an_arrival_brings_little() {
        const LARGE: usize = 64 * 1024;
        for (reads, is_much) in [
            (&[(LARGE, LARGE)][..], true),
            (&[(LITTLE_BYTES, LARGE)], true),
            (&[(LITTLE_BYTES - 1, LARGE)], false),
            (&[(LARGE, LARGE), (1, LARGE)], true),
            // There may be more.
            (&[(100, 100)], true),
            (&[(0, LARGE)], false),
        ] {
            let mut bulk = Bulk::default();
            bulk.note_arrival();
            assert!(!bulk.is_much(), "of little nothing is told that would make it much");
            bulk.note_read(0, LARGE);
            bulk.note_much();
            // Of what came before the kernel was asked to tell.
            bulk.note_read(1, LARGE);
            assert!(bulk.is_much());
            bulk.note_arrival();
            for (count, asked) in reads {
                bulk.note_read(*count, *asked);
            }
            assert_eq!(bulk.is_much(), is_much, "{reads:?}");
        }
    }
}
