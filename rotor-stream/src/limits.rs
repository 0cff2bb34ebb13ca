//! `StreamConfig`: every limit and time of a stream.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::byte_counts::ByteCounts;
use crate::bytes_held::BytesHeld;
use crate::least_rate::LeastRate;

/// Every limit and time of a stream, each with its unit, default and reason.
///
/// A protocol chooses its configuration in [`Protocol::config`](crate::Protocol::config). Streams
/// share it.
///
/// ```
/// # mod rotor { pub use rotor_stream as stream; }
/// use rotor::stream::StreamConfig;
/// use std::time::Duration;
///
/// let config =
///     StreamConfig::new().input_max(1024 * 1024).flush_timeout(Duration::from_secs(10)).share();
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct StreamConfig {
    pub(crate) input_max: usize,
    pub(crate) output_high_water: usize,
    pub(crate) read_budget: usize,
    pub(crate) collect_budget: usize,
    pub(crate) write_budget: usize,
    pub(crate) calls_budget: u32,
    pub(crate) flush_timeout: Duration,
    pub(crate) flush_step: usize,
    pub(crate) close_timeout: Duration,
    pub(crate) linger_timeout: Duration,
    pub(crate) linger_bytes: u64,
    pub(crate) connect_timeout: Duration,
    pub(crate) handshake_timeout: Duration,
    pub(crate) nodelay: bool,
    pub(crate) keepalive: Option<Duration>,
    pub(crate) send_buffer: Option<usize>,
    pub(crate) receive_buffer: Option<usize>,
    pub(crate) unsent_max: Option<u32>,
    pub(crate) held: Option<Arc<BytesHeld>>,
    pub(crate) counts: Option<Arc<ByteCounts>>,
    pub(crate) on_abort: AbortHook,
}

/// Why a connection was aborted while it was being closed in an orderly way. It was dropped at
/// once, which resets it if some of the peer's data is unread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[doc(alias = "CutOff")]
pub enum AbortReason {
    /// The peer did not take our last bytes in time:
    /// [`close_timeout`](StreamConfig::close_timeout).
    NotTaken,
    /// The system took our last bytes, but the peer did not end its side in time:
    /// [`linger_timeout`](StreamConfig::linger_timeout).
    NotEnded,
    /// The peer kept sending: [`linger_bytes`](StreamConfig::linger_bytes).
    StillSending,
    /// There was no room for our last bytes, because other streams hold too much:
    /// [`held`](StreamConfig::held).
    NoRoom,
}

/// Called when a connection is aborted.
#[derive(Clone, Default)]
pub(crate) struct AbortHook(Option<Arc<dyn Fn(AbortReason) + Send + Sync>>);

impl AbortHook {
    #[cold]
    pub(crate) fn call(&self, reason: AbortReason) {
        if let Some(hook) = &self.0 {
            hook(reason);
        }
    }
}

impl fmt::Debug for AbortHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "AbortHook" } else { "None" })
    }
}

impl StreamConfig {
    /// Returns the defaults.
    pub fn new() -> StreamConfig {
        StreamConfig {
            input_max: 64 * 1024,
            output_high_water: 64 * 1024,
            read_budget: 64 * 1024,
            collect_budget: 512 * 1024,
            write_budget: 256 * 1024,
            calls_budget: 1024,
            flush_timeout: Duration::from_secs(30),
            flush_step: 16 * 1024,
            close_timeout: Duration::from_secs(30),
            linger_timeout: Duration::from_secs(2),
            linger_bytes: u64::MAX,
            connect_timeout: Duration::from_secs(10),
            handshake_timeout: Duration::from_secs(10),
            nodelay: true,
            keepalive: None,
            send_buffer: None,
            receive_buffer: None,
            unsent_max: None,
            held: None,
            counts: None,
            on_abort: AbortHook::default(),
        }
    }

    /// Returns the defaults, shared by all streams that do not have a configuration of their own.
    pub fn standard() -> Arc<StreamConfig> {
        static STANDARD: OnceLock<Arc<StreamConfig>> = OnceLock::new();
        STANDARD.get_or_init(|| StreamConfig::new().share()).clone()
    }

    /// Sets the counters for the bytes that streams read and write. Several configurations may
    /// share them. Default: none.
    pub fn count_bytes(mut self, counts: Arc<ByteCounts>) -> StreamConfig {
        self.counts = Some(counts);
        self
    }

    /// Wraps the configuration in the `Arc` that streams keep.
    #[must_use]
    pub fn share(self) -> Arc<StreamConfig> {
        Arc::new(self)
    }

    /// Returns this configuration for a stream that had another one. If the abort hook, the total
    /// of held memory or the counters are not set here, those of `before` are kept. If this is the
    /// standard configuration, `before` is returned.
    pub(crate) fn with_unset_from(
        self: Arc<Self>,
        before: &Arc<StreamConfig>,
    ) -> Arc<StreamConfig> {
        if Arc::ptr_eq(&self, &StreamConfig::standard()) {
            return before.clone();
        }
        let has_unset = self.held.is_none() && before.held.is_some()
            || self.counts.is_none() && before.counts.is_some()
            || self.on_abort.0.is_none() && before.on_abort.0.is_some();
        if !has_unset {
            return self;
        }
        let mut config = Arc::unwrap_or_clone(self);
        config.held = config.held.or_else(|| before.held.clone());
        config.counts = config.counts.or_else(|| before.counts.clone());
        config.on_abort.0 = config.on_abort.0.or_else(|| before.on_abort.0.clone());
        config.share()
    }

    /// Sets the maximum number of unread bytes that a protocol may wait for. At least 1; default
    /// 65,536: long lines and small records fit, and a peer that never completes one costs little.
    /// A read may go beyond it, because it fills the room that the buffer has: up to twice the
    /// limit, rounded up to a power of two; or up to 64 KiB, if that is more.
    ///
    /// Waiting for `Bytes(n)` beyond it, or for a delimiter that is not found within this many
    /// bytes, causes [`Exception::Limit`](crate::Exception::Limit).
    pub fn input_max(mut self, bytes: usize) -> StreamConfig {
        self.input_max = bytes.max(1);
        self
    }

    /// Sets the high-water mark of the output, in bytes of all kinds of segments. Default 65,536:
    /// about what a socket takes at once.
    ///
    /// When the output is above it, nothing is read and the protocol gets no more input, until half
    /// of the mark is left. The segments hold at most about twice as much memory (not counting what
    /// files, static bytes and blocks shared with others hold).
    ///
    /// A protocol whose input does not become its output, such as one end of a proxy, sets
    /// `usize::MAX` and bounds its output itself: its peer may take nothing because its own output
    /// is not read, and then both would wait for ever.
    #[doc(alias = "output_high")]
    #[doc(alias = "backpressure")]
    #[doc(alias = "high-water mark")]
    pub fn output_high_water(mut self, bytes: usize) -> StreamConfig {
        self.output_high_water = bytes;
        self
    }

    /// Sets the maximum number of bytes read in one event. At least 1; default 65,536: four full
    /// blocks. The rest is read in the next turn, after the other machines. One read may exceed it.
    /// For a wrapping socket, the bytes that it received count if there are more of them, such as
    /// with TLS records of a single byte.
    pub fn read_budget(mut self, bytes: usize) -> StreamConfig {
        self.read_budget = bytes.max(1);
        self
    }

    /// Sets the maximum number of bytes read in one event while the protocol collects a message in
    /// memory ([`Transport::set_collecting`](crate::Transport::set_collecting)), if that is more
    /// than `read_budget`. Default 524,288.
    ///
    /// If a message arrives in many events, its first parts have left the processor's caches when
    /// they are processed, which costs more than reading them did. With a larger budget, fewer
    /// messages are in memory at a time, but other machines wait that much longer.
    pub fn collect_budget(mut self, bytes: usize) -> StreamConfig {
        self.collect_budget = bytes;
        self
    }

    /// Sets the maximum number of bytes written in one event, of all kinds. Output that a protocol
    /// leaves at its end may be as much again. At least 1; default 262,144: a peer that takes a
    /// file as fast as it is sent does not hold up the others, and a file costs no more CPU time
    /// than in larger portions.
    pub fn write_budget(mut self, bytes: usize) -> StreamConfig {
        self.write_budget = bytes.max(1);
        self
    }

    /// Sets the maximum number of calls of the protocol in one event. At least 1; default 1,024:
    /// far beyond a usual pipeline, and far below the number of calls that a budget of bytes full
    /// of empty lines would cause.
    ///
    /// A protocol may count one call as several
    /// ([`Transport::count_calls`](crate::Transport::count_calls)). HTTP counts requests, chunks
    /// and frames in this way; its server allows 128 of them.
    pub fn calls_budget(mut self, calls: u32) -> StreamConfig {
        self.calls_budget = calls.max(1);
        self
    }

    /// Sets how long a peer may take to accept [`flush_step`](StreamConfig::flush_step) bytes of
    /// waiting output. Default 30 s. If it takes longer, the connection ends with
    /// [`Fatal::FlushTimeout`](crate::Fatal); the protocol is told behind the input that it
    /// [holds](crate::Expectation::Hold).
    #[doc(alias = "slow read")]
    pub fn flush_timeout(mut self, time: Duration) -> StreamConfig {
        self.flush_timeout = time;
        self
    }

    /// Sets how many bytes the peer must accept within each flush time-out (or all that wait, if
    /// fewer). Default 16,384: with the default time, a peer that reads more slowly than about 550
    /// bytes a second is not worth its memory. With 0, a peer may take as long as it likes while
    /// the protocol is at work; once the protocol is done, or has ended its side, the peer must
    /// take at least one byte within each [`close_timeout`](StreamConfig::close_timeout).
    ///
    /// A peer gains nothing by taking a byte now and then, and taking much at once gives it no more
    /// time for the rest: see [`LeastRate`](crate::LeastRate).
    pub fn flush_step(mut self, bytes: usize) -> StreamConfig {
        self.flush_step = bytes;
        self
    }

    /// Sets the flush time-out that applies once the protocol is done, or has ended its side: how
    /// long the peer may take to accept [`flush_step`](StreamConfig::flush_step) bytes of the
    /// remaining output, or one byte if that is 0. Default 30 s. After that the connection is
    /// dropped.
    pub fn close_timeout(mut self, time: Duration) -> StreamConfig {
        self.close_timeout = time;
        self
    }

    /// Returns how fast a peer must take waiting output, while the protocol is at work or after
    /// that.
    pub(crate) fn flush_rate(&self, is_open: bool) -> LeastRate {
        let step = self.flush_step as u64;
        match is_open {
            true => LeastRate::new(step, self.flush_timeout),
            // Nothing else has a deadline for the rest: without a step, a peer that takes none of
            // it would occupy the slot and the descriptor forever.
            false => LeastRate::new(step.max(1), self.close_timeout),
        }
    }

    /// Sets how long the peer may continue sending after we have ended our side, so that no reset
    /// overtakes our last bytes. Default 2 s. The bytes it sends are discarded.
    #[doc(alias = "SO_LINGER")]
    #[doc(alias = "lingering close")]
    pub fn linger_timeout(mut self, time: Duration) -> StreamConfig {
        self.linger_timeout = time;
        self
    }

    /// Sets how many bytes, at most, are read and discarded during that time. Default: unlimited,
    /// since the time is limited. If a peer sends more, our last bytes may be lost to a reset.
    pub fn linger_bytes(mut self, bytes: u64) -> StreamConfig {
        self.linger_bytes = bytes;
        self
    }

    /// Sets how long connecting may take. Default 10 s.
    pub fn connect_timeout(mut self, time: Duration) -> StreamConfig {
        self.connect_timeout = time;
        self
    }

    /// Sets how long the handshake of a wrapping socket may take as a whole. Default 10 s. A peer
    /// that has begun the handshake is told that the connection ends (TLS: `close_notify`), and
    /// closing lingers.
    pub fn handshake_timeout(mut self, time: Duration) -> StreamConfig {
        self.handshake_timeout = time;
        self
    }

    /// Sets whether small writes are sent at once. Default: yes, because a stream writes once per
    /// event and so gathers small writes itself.
    #[doc(alias = "TCP_NODELAY")]
    #[doc(alias = "Nagle")]
    pub fn nodelay(mut self, yes: bool) -> StreamConfig {
        self.nodelay = yes;
        self
    }

    /// Sets after how much silence the system probes the peer, in whole seconds from 1 to 32,767.
    /// Default: never; deadlines detect silent peers sooner.
    #[doc(alias = "SO_KEEPALIVE")]
    pub fn keepalive(mut self, idle: Option<Duration>) -> StreamConfig {
        self.keepalive = idle;
        self
    }

    /// Sets approximately how many unacknowledged bytes, at most, the system keeps
    /// ([`SO_SNDBUF`](rotor_core::net::StreamSocket::set_send_buffer)). Default: the system
    /// decides; Linux uses up to 4 MiB, as the connection needs it. Any number turns that
    /// adjustment off, and limits what a peer that reads slowly costs the system.
    ///
    /// Sockets ignore options that they do not have, here and in the two methods below: Unix
    /// sockets ignore `unsent_max`, simulated and scripted ones all three.
    #[doc(alias = "SO_SNDBUF")]
    pub fn send_buffer(mut self, bytes: Option<usize>) -> StreamConfig {
        self.send_buffer = bytes;
        self
    }

    /// Sets approximately how many received but unread bytes, at most, the system keeps
    /// ([`SO_RCVBUF`](rotor_core::net::StreamSocket::set_receive_buffer)). Default: the system
    /// decides.
    #[doc(alias = "SO_RCVBUF")]
    pub fn receive_buffer(mut self, bytes: Option<usize>) -> StreamConfig {
        self.receive_buffer = bytes;
        self
    }

    /// Sets how many unsent bytes, at most, the system keeps
    /// ([`TCP_NOTSENT_LOWAT`](rotor_core::net::StreamSocket::set_unsent_max)), at least one; the
    /// rest stays in the output. Default: as many as the system's buffer holds.
    #[doc(alias = "TCP_NOTSENT_LOWAT")]
    pub fn unsent_max(mut self, bytes: Option<u32>) -> StreamConfig {
        self.unsent_max = bytes;
        self
    }

    /// Sets a limit for the memory that several streams together hold while they wait for input, or
    /// for a peer to take output. Default: none, apart from the limits of each stream, times the
    /// number of streams.
    ///
    /// It counts the memory of inputs and outputs and of wrapping sockets, in units of 64 bytes. Of
    /// a shared block, each stream counts its share. Static bytes, files and the system's buffers
    /// do not count. If a stream is about to wait and would hold more than is left, it ends: with
    /// [`Fatal::NoRoom`](crate::Fatal::NoRoom), or [`AbortReason::NoRoom`] if its protocol is done.
    /// Streams that need less than before are never ended, nor are those that hold nothing while
    /// they wait, as most streams do that are served at once. A stream that has used up its budget
    /// for an event, and goes on in the next turn, does not wait: what it holds until then is
    /// counted when it waits, and until then only its own limits apply.
    pub fn held(mut self, total: Option<Arc<BytesHeld>>) -> StreamConfig {
        self.held = total;
        self
    }

    /// Sets a function that is called, on the loop's thread, when a connection is aborted while it
    /// is being closed. Such a connection is reset if not all of its output was taken. The function
    /// is meant for counting and must not block. The protocol no longer exists at that time, so it
    /// cannot be told. Default: none.
    #[doc(alias = "on_cut_off")]
    pub fn on_abort(mut self, hook: impl Fn(AbortReason) + Send + Sync + 'static) -> StreamConfig {
        self.on_abort = AbortHook(Some(Arc::new(hook)));
        self
    }
}

impl Default for StreamConfig {
    fn default() -> StreamConfig {
        StreamConfig::new()
    }
}
