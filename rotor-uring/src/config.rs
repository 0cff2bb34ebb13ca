//! `UringConfig`: the sizes and limits of a ring.

use std::time::Duration;

use rotor_core::OffloadPool;

/// The sizes and limits of a loop's ring.
///
/// They limit the ring's memory: [`memory_bytes`](UringConfig::memory_bytes) returns how much it
/// takes at most. Idle connections hold none of it.
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
    pub(crate) lingering_max: usize,
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
            lingering_max: 1_024,
            pool: None,
        }
    }

    /// Sets how many operations the kernel gets in one call (the `entries` of io_uring_setup(2)).
    /// Default 1,024; 1 to 32,768, rounded up to a power of two. Further operations wait in order
    /// in the process's memory, and need further calls.
    pub fn submissions(mut self, entries: u32) -> UringConfig {
        self.submissions = entries.clamp(1, 32_768).next_power_of_two();
        self
    }

    /// Sets how many completions fit into the ring (`IORING_SETUP_CQSIZE`, io_uring_setup(2)).
    /// Default 8,192; 2 to 65,536, rounded up to a power of two, and at least as many as
    /// [`submissions`](UringConfig::submissions).
    ///
    /// No completion is lost if there are more. The kernel then keeps them in memory of its own,
    /// which costs more, and ends multishot receives and polls, which are then submitted again.
    pub fn completions(mut self, entries: u32) -> UringConfig {
        self.completions = entries.clamp(2, 65_536).next_power_of_two();
        self
    }

    /// Sets how many completions a turn takes. Default 1,024; at least 1. The others wait for the
    /// next turn.
    pub fn events_max(mut self, events: usize) -> UringConfig {
        self.events_max = events.max(1);
        self
    }

    /// Sets the number and the size of the buffers into which the kernel puts received data.
    /// Default: 16 of 64 KiB. The number may be 1 to 1,024 (rounded up to a power of two), the size
    /// 256 B to 1 MiB.
    ///
    /// The buffers are for one turn: data that a machine has not read at its end is copied. If more
    /// data comes at once than they hold, the rest stays in the kernel, and each read of it is a
    /// system call (counted by [`buffers_exhausted`](crate::UringStats::buffers_exhausted)).
    ///
    /// Kernels before 6.12 use a whole buffer for each receive; there, many small buffers are
    /// better.
    pub fn buffers(mut self, count: u16, bytes: u32) -> UringConfig {
        self.buffers = count.clamp(1, 1_024).next_power_of_two();
        self.buffer_bytes = bytes.clamp(256, 1024 * 1024);
        self
    }

    /// Sets how many bytes of a stream may be unread before the kernel delivers no more.
    /// Default 64 KiB. Further data stays in the kernel, which slows down the peer, until the
    /// machine has read those bytes. The mark may be exceeded once, by what the kernel delivers in
    /// one call: at most as much as fits into the [`buffers`](UringConfig::buffers).
    pub fn unread_bytes_max(mut self, bytes: usize) -> UringConfig {
        self.unread_bytes_max = bytes;
        self
    }

    /// Sets how long a dropped stream goes on sending what was written to it. Default 30 s. It
    /// keeps its descriptor for that time. It does not outlive the loop: when that ends, the kernel
    /// gets as much as fits into the stream's send buffer.
    ///
    /// The rest, at most 128 KiB for a peer that does not read, is lost then, together with what
    /// the kernel had not sent: the connection is reset, so that the peer does not take truncated
    /// data for complete. A Unix socket, which has no resets, ends in order.
    pub fn linger(mut self, time: Duration) -> UringConfig {
        self.linger = time;
        self
    }

    /// Sets how many dropped streams may still be sending. Default 1,024; at least 1. Each of them
    /// has its descriptor and up to 128 KiB of memory, and neither the loop nor a listener counts it
    /// any more, so peers that do not read could pile up such streams. Beyond this, when the kernel
    /// has got what was written in the turn, the stream that was dropped first is reset, and
    /// counted in
    /// [`lingered_too_long`](crate::UringStats::lingered_too_long).
    pub fn lingering_max(mut self, streams: usize) -> UringConfig {
        self.lingering_max = streams.max(1);
        self
    }

    /// Sets the pool for work that machines offload. Without one,
    /// [`Scope::offload`](rotor_core::Scope::offload) is refused.
    pub fn offload_pool(mut self, pool: OffloadPool) -> UringConfig {
        self.pool = Some(pool);
        self
    }

    /// Returns how much memory a ring takes at most, in bytes: its two queues and its buffers.
    ///
    /// Some kernel versions count the queues as locked memory: 200 KiB for a ring with the default
    /// sizes. Then `RLIMIT_MEMLOCK` limits the queues of all rings of a user together, unless the
    /// process may lock any amount.
    ///
    /// Not included: data that streams have written and the kernel has not sent, at most 128 KiB
    /// for each, and 1 MiB of memory that is kept for that; and unread data, about
    /// [`unread_bytes_max`](UringConfig::unread_bytes_max) for each. Of these, only unread data is
    /// part of [`held_bytes`](rotor_core::net::StreamSocket::held_bytes).
    pub fn memory_bytes(&self) -> usize {
        // io_uring_setup(2): 64 bytes for each entry of the submission queue and 4 for its index,
        // 16 for each completion.
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
    fn settings_are_clamped_and_their_memory_is_computed() {
        let config = UringConfig::new();
        assert_eq!(config.memory_bytes(), 1_024 * 68 + 131_072 + 16 * (65_536 + 16));
        // There are at least as many completions as submissions.
        let few = config.clone().submissions(4_096).completions(2).buffers(1, 256);
        assert_eq!(few.memory_bytes(), 4_096 * 68 + 4_096 * 16 + 256 + 16);
        let config = config.submissions(0).completions(0).events_max(0).lingering_max(0);
        assert_eq!((config.submissions, config.completions), (1, 2));
        assert_eq!((config.events_max, config.lingering_max), (1, 1));
        let config = config.buffers(0, 0).submissions(u32::MAX).completions(u32::MAX);
        assert_eq!((config.buffers, config.buffer_bytes), (1, 256));
        assert_eq!((config.submissions, config.completions), (32_768, 65_536));
        let config = config.buffers(600, u32::MAX).submissions(3);
        assert_eq!((config.buffers, config.buffer_bytes, config.submissions), (1_024, 1 << 20, 4));
    }
}
