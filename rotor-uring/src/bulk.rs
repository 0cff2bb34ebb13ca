//! `Bulk`: whether a stream receives so much at once that reading it is better than having it
//! delivered.

/// A read that returns fewer bytes than this lets the kernel deliver data again. 4 KiB: to be
/// notified first and then read costs a system call, about as much as copying 16 KiB.
const LITTLE_BYTES: usize = 4 * 1024;

/// For most streams, the kernel delivers what arrives: a message, or part of one. In an upload,
/// more data arrives than may be unread. The kernel would fill all buffers with it, one after the
/// other, and then its bytes would be copied once more. So such a stream is only notified, and
/// reads from the kernel into its own memory, until a read returns little.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Bulk {
    #[default]
    Little,
    /// Much data came at once.
    Much,
    /// Like `Much`, and the stream was not read since the last notification.
    Arrived,
}

impl Bulk {
    /// Called if as much came at once as may be unread.
    pub(crate) fn note_much(&mut self) {
        *self = Bulk::Much;
    }

    /// Called if the kernel reports that there is something to read.
    pub(crate) fn note_arrival(&mut self) {
        if *self == Bulk::Much {
            *self = Bulk::Arrived;
        }
    }

    /// Called if a read has returned `count` of `asked` bytes. Only the first read after a
    /// notification shows how much comes at once: the last of several returns the rest.
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
