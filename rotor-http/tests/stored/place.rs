//! A temporary directory for the files of a spool, and a disk that the test can stop.

use std::fs;
use std::sync::mpsc::{Sender, channel};

use rotor_body::{Spool, SpoolConfig};
use rotor_core::OffloadPool;
use rotor_test_kit::Directory;

/// An empty directory that is removed on drop.
pub(crate) struct SpoolDirectory(pub(crate) Directory);

impl SpoolDirectory {
    pub(crate) fn new() -> SpoolDirectory {
        SpoolDirectory(Directory::create())
    }

    /// Bodies above 1,000 bytes go to a file, 4,000 bytes at a time.
    pub(crate) fn config(&self) -> SpoolConfig {
        SpoolConfig::new(&*self.0).ram_bytes_max(1_000).piece_bytes(4_000).keep_free_bytes(0)
    }

    pub(crate) fn spool(&self) -> Spool {
        self.config().open().expect("it can be written")
    }

    pub(crate) fn is_empty(&self) -> bool {
        fs::read_dir(&self.0).is_ok_and(|mut entries| entries.next().is_none())
    }
}

/// A disk that does no work before it is released.
pub(crate) struct SlowDisk {
    pub(crate) pool: OffloadPool,
    hold: Option<Sender<()>>,
}

impl SlowDisk {
    pub(crate) fn new() -> SlowDisk {
        let mut disk = SlowDisk { pool: OffloadPool::new(1, 1_000), hold: None };
        disk.hold();
        disk
    }

    /// Stops the disk from now on.
    pub(crate) fn hold(&mut self) {
        if self.hold.is_some() {
            return;
        }
        let (hold, held) = channel::<()>();
        let (begun, has_begun) = channel::<()>();
        let mut job = Some(move || {
            begun.send(()).expect("the test waits");
            let _ = held.recv();
        });
        let is_taken = self.pool.offer(&mut || Box::new(job.take().expect("it is asked for once")));
        assert!(is_taken);
        has_begun.recv().expect("the thread runs it");
        self.hold = Some(hold);
    }

    /// Lets the disk do the work that is queued, and all later work.
    pub(crate) fn release(&mut self) {
        self.hold = None;
    }
}

/// Waits until the threads of a spool have closed all files that are no longer used.
pub(crate) fn wait_until_empty(spool: &Spool) {
    while spool.files() > 0 {
        std::thread::yield_now();
    }
    assert_eq!((spool.bytes(), spool.unwritten_bytes()), (0, 0));
}

/// A pattern in which no two adjacent bytes are equal.
pub(crate) fn pattern_bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at % 251) as u8).collect()
}
