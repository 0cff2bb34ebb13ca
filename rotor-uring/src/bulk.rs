//! `Bulk`: whether a stream receives so much at once that reading it is better than having it
//! delivered.

/// A read that returns fewer bytes than this lets the kernel deliver data again. 4 KiB: to be
/// notified first and then read costs a system call, about as much as copying 16 KiB.
const SMALL_READ_BYTES: usize = 4 * 1024;

/// For most streams, the kernel delivers what arrives: a message, or part of one. In an upload,
/// more data arrives than may be unread. The kernel would fill all buffers with it, one after the
/// other, and then its bytes would be copied once more. So such a stream is only notified, and
/// reads from the kernel into its own memory, until a read returns little.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Bulk {
    #[default]
    Off,
    /// Much data came at once.
    On,
    /// Like `On`, and the stream was not read since the last notification.
    Notified,
}

impl Bulk {
    /// Called if as much came at once as may be unread.
    pub(crate) fn start(&mut self) {
        *self = Bulk::On;
    }

    /// Called if the kernel reports that there is something to read.
    pub(crate) fn on_notification(&mut self) {
        if *self == Bulk::On {
            *self = Bulk::Notified;
        }
    }

    /// Called if a read has returned `count` of `asked` bytes. Only the first read after a
    /// notification shows how much comes at once: the last of several returns the rest.
    pub(crate) fn on_read(&mut self, count: usize, asked: usize) {
        if *self == Bulk::Notified {
            let is_little = count < asked && count < SMALL_READ_BYTES;
            *self = if is_little { Bulk::Off } else { Bulk::On };
        }
    }

    pub(crate) fn is_on(self) -> bool {
        self != Bulk::Off
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bulk_mode_ends_when_the_first_read_of_an_arrival_is_small() {
        const LARGE: usize = 64 * 1024;
        for (reads, is_on) in [
            (&[(LARGE, LARGE)][..], true),
            (&[(SMALL_READ_BYTES, LARGE)], true),
            (&[(SMALL_READ_BYTES - 1, LARGE)], false),
            (&[(LARGE, LARGE), (1, LARGE)], true),
            // The read filled its buffer, so there may be more.
            (&[(100, 100)], true),
            (&[(0, LARGE)], false),
        ] {
            let mut bulk = Bulk::default();
            bulk.on_notification();
            assert!(!bulk.is_on(), "of little nothing is told that would make it much");
            bulk.on_read(0, LARGE);
            bulk.start();
            // A read of bytes that arrived before the kernel was asked to notify.
            bulk.on_read(1, LARGE);
            assert!(bulk.is_on());
            bulk.on_notification();
            for (count, asked) in reads {
                bulk.on_read(*count, *asked);
            }
            assert_eq!(bulk.is_on(), is_on, "{reads:?}");
        }
    }
}
