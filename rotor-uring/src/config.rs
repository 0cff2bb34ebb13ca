//! `UringConfig`: how large a ring is.

use std::time::Duration;

use rotor_core::OffloadPool;

/// How large a loop's ring is, and what it may hold.
///
/// The ring's memory is bounded by these numbers: [`memory_bytes`](UringConfig::memory_bytes) says
/// by how much. Connections that wait hold none of it.
#[derive(Clone, Debug)]
#[must_use]
pub struct UringConfig {
    pub(crate) submissions: u32,
    pub(crate) completions: u32,
    pub(crate) events_max: usize,
    pub(crate) buffers: u16,
    pub(crate) buffer_bytes: u32,
    pub(crate) unread_bytes_max: usize,
    pub(crate) linger: Duration,
    pub(crate) pool: Option<OffloadPool>,
}

impl UringConfig {
    /// Returns the defaults.
    pub fn new() -> UringConfig {
        UringConfig {
            submissions: 1_024,
            completions: 8_192,
            events_max: 1_024,
            buffers: 16,
            buffer_bytes: 64 * 1024,
            unread_bytes_max: 64 * 1024,
            linger: Duration::from_secs(30),
            pool: None,
        }
    }

    /// Sets how many operations the kernel is handed in one call (the `entries` of io_uring_setup(2)).
    /// Default 1,024; 1 to 32,768, made a power of two. More wait in memory of ours, in order, and are
    /// handed over by further calls.
    pub fn submissions(mut self, entries: u32) -> UringConfig {
        self.submissions = entries.clamp(1, 32_768).next_power_of_two();
        self
    }

    /// Sets for how many completions the ring has room (`IORING_SETUP_CQSIZE`, io_uring_setup(2)).
    /// Default 8,192; 2 to 65,536, made a power of two, and at least as many as
    /// [`submissions`](UringConfig::submissions). None is lost beyond that: the kernel keeps them in memory
    /// of its own, which is dearer, and ends standing receives and polls, which are then handed over anew.
    pub fn completions(mut self, entries: u32) -> UringConfig {
        self.completions = entries.clamp(2, 65_536).next_power_of_two();
        self
    }

    /// Sets how many completions are taken in a turn. Default 1,024; at least 1. The others stay
    /// where they are until the next turn.
    pub fn events_max(mut self, events: usize) -> UringConfig {
        self.events_max = events.max(1);
        self
    }

    /// Sets into how many buffers the kernel puts what comes, and how large each is. Default 16 of
    /// 64 KiB; 1 to 1,024 (made a power of two), of 256 B to 1 MiB. They are for one turn: what a
    /// machine has not read by its end is copied. If more comes at once than they hold, it stays in the
    /// kernel, and each read of it is a system call
    /// ([`buffers_exhausted`](crate::UringStats::buffers_exhausted) counts that).
    ///
    /// Kernels before 6.12 take a whole buffer for each receive: there, many small ones are better.
    pub fn buffers(mut self, count: u16, bytes: u32) -> UringConfig {
        self.buffers = count.clamp(1, 1_024).next_power_of_two();
        self.buffer_bytes = bytes.clamp(256, 1024 * 1024);
        self
    }

    /// Sets how many bytes may be unread on a stream before the kernel gives it no more, in bytes.
    /// Default 64 KiB. What comes then stays in the kernel, which holds up the peer, until the machine has
    /// read those bytes. The mark may be passed once, by what the kernel gives in one call: as much as fits
    /// into the [`buffers`](UringConfig::buffers).
    pub fn unread_bytes_max(mut self, bytes: usize) -> UringConfig {
        self.unread_bytes_max = bytes;
        self
    }

    /// Sets how long a stream that was dropped goes on sending what it had taken. Default 30 s. Until then
    /// it has its descriptor. Not beyond the end of the loop: then the kernel is handed all that it has room
    /// for in the stream's buffer.
    ///
    /// What is left then, up to 128 KiB for a peer that does not read, is lost, with what the kernel had not
    /// sent: the connection ends by a reset, so that the peer does not take for complete what was cut off. One
    /// of Unix sockets, which have no resets, ends in order.
    pub fn linger(mut self, time: Duration) -> UringConfig {
        self.linger = time;
        self
    }

    /// Gives work that machines offload to `pool`; without one,
    /// [`Scope::offload`](rotor_core::Scope::offload) is refused.
    pub fn offload_pool(mut self, pool: OffloadPool) -> UringConfig {
        self.pool = Some(pool);
        self
    }

    /// Returns how much memory a ring takes at the most, in bytes: its two queues and its buffers.
    /// Where the kernel counts the queues as locked memory, which depends on its version, they count for
    /// `RLIMIT_MEMLOCK` of whoever may not lock what he likes, over all rings of the user: 200 KiB of a
    /// default ring.
    ///
    /// Not in it: what streams have written and the kernel has not sent, 128 KiB for each at the
    /// most, and 1 MiB of memory that is kept for that.
    pub fn memory_bytes(&self) -> usize {
        // io_uring_setup(2): 64 bytes for each entry to be submitted and 4 for its place in the
        // queue, 16 for each completion.
        let completions = self.completions.max(self.submissions) as usize;
        let queues = self.submissions as usize * (64 + 4) + completions * 16;
        queues + usize::from(self.buffers) * (self.buffer_bytes as usize + 16)
    }
}

impl Default for UringConfig {
    fn default() -> UringConfig {
        UringConfig::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_kept_in_their_bounds_and_the_memory_is_said() {
        let config = UringConfig::new();
        assert_eq!(config.memory_bytes(), 1_024 * 68 + 131_072 + 16 * (65_536 + 16));
        // There are as many completions as submissions at the least.
        let few = config.clone().submissions(4_096).completions(2).buffers(1, 256);
        assert_eq!(few.memory_bytes(), 4_096 * 68 + 4_096 * 16 + 256 + 16);
        let config = config.submissions(0).completions(0).events_max(0);
        assert_eq!((config.submissions, config.completions), (1, 2));
        assert_eq!(config.events_max, 1);
        let config = config.buffers(0, 0).submissions(u32::MAX).completions(u32::MAX);
        assert_eq!((config.buffers, config.buffer_bytes), (1, 256));
        assert_eq!((config.submissions, config.completions), (32_768, 65_536));
        let config = config.buffers(600, u32::MAX).submissions(3);
        assert_eq!((config.buffers, config.buffer_bytes, config.submissions), (1_024, 1 << 20, 4));
    }
}
