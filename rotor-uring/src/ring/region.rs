//! `Region`: memory that the kernel writes to.

use std::io;
use std::ptr::{self, NonNull};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Whole pages of the process, zeroed, at a fixed address. Only `slice` makes references to it: the
/// kernel may write to the rest at any time.
pub(super) struct Region {
    start: NonNull<u8>,
    len: usize,
}

impl Region {
    /// Maps `len` bytes, at least one. Pages take memory only after they were written to.
    pub(super) fn new(len: usize) -> io::Result<Region> {
        let len = len.max(1);
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the mapping is anonymous, and where the system likes: it replaces no other
        // memory.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), len, protection, MapFlags::PRIVATE) };
        let start = NonNull::new(start?.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Region { start, len })
    }

    /// Returns the address of a byte of the region; `None` beyond its end.
    pub(super) fn address(&self, at: usize) -> Option<NonNull<u8>> {
        // SAFETY: inside the mapping, by the comparison.
        (at < self.len).then(|| unsafe { self.start.add(at) })
    }

    /// Returns bytes of the region; none if the range is not in it.
    ///
    /// # Safety
    ///
    /// The kernel must not write to them while the slice is in use.
    pub(super) unsafe fn slice(&self, from: usize, to: usize) -> &[u8] {
        if from >= to || to > self.len {
            return &[];
        }
        // SAFETY: in the mapping, whose bytes were zero before the kernel wrote any; that the
        // kernel does not write now is the caller's promise.
        unsafe { std::slice::from_raw_parts(self.start.add(from).as_ptr(), to - from) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and the code that shared it with the kernel has made sure
        // that the kernel has let go, or has forgotten the region instead of dropping it.
        if let Err(error) = unsafe { munmap(self.start.as_ptr().cast(), self.len) } {
            log::error!("memory of a ring was not given back: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bytes_outside_a_region_are_accessible() {
        let region = Region::new(10).expect("there is memory");
        // SAFETY: no kernel knows this memory.
        let slice = |from, to| unsafe { region.slice(from, to) }.len();
        for (from, to, len) in [(0, 10, 10), (3, 5, 2), (0, 11, 0), (5, 5, 0), (6, 5, 0)] {
            assert_eq!(slice(from, to), len);
        }
        assert!(region.address(9).is_some() && region.address(10).is_none());
    }
}
