//! `Intent`: what a protocol returns: its next state, what it waits for, and until when.

use std::fmt;

use rotor_core::{BoxError, Deadline, Time};

use crate::frame::{FrameHead, FrameLength};
use crate::wait_condition::{FlushThreshold, InputCondition, WaitCondition};

/// What a protocol returns from each call: go on, waiting for something until a deadline; or end.
///
/// It is built in three steps: the state, what to wait for, and until when. Code that leaves out
/// the third step does not compile.
///
/// ```
/// # mod rotor { pub use rotor_core::*; pub use rotor_stream as stream; }
/// use rotor::Time;
/// use rotor::stream::Intent;
/// use std::time::Duration;
///
/// let now = Time::ZERO;
/// let _: Intent<&str> =
///     Intent::of("head").delimiter(b"\r\n\r\n", 8192).deadline(now + Duration::from_secs(10));
/// let _: Intent<&str> = Intent::of("relay").bytes(1).or_flush(16384).no_deadline();
/// let _: Intent<&str> = Intent::of("not for me").keep().keep_deadline();
/// let _: Intent<&str> = Intent::done();
/// ```
///
/// ```compile_fail
/// # use rotor_stream::Intent;
/// fn forgets_its_deadline() -> Intent<u8> {
///     Intent::of(1).bytes(1)
/// }
/// ```
#[must_use = "a protocol whose intent is dropped is forgotten: return it"]
pub struct Intent<P> {
    pub(crate) next: Next<P>,
}

pub(crate) enum Next<P> {
    /// With `None` the protocol goes on waiting for what it waited for before; so it does with each
    /// part of the condition that is [kept](WaitCondition::KEPT).
    Wait(P, Option<WaitCondition>, Deadline),
    Done,
    Reset,
    Fail(BoxError),
}

/// One thing that a protocol can wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[doc(alias = "framing")]
pub enum Expectation {
    /// At least this many unread bytes. 0 is fulfilled at once.
    Bytes(usize),
    /// Whatever has arrived by now, possibly nothing. If no bytes are unread, the socket is read
    /// once even though no event has reported anything, unless it was found empty in this very
    /// event. Then [`bytes_read`](crate::Protocol::bytes_read) is called with a match of no bytes,
    /// or [`exception`](crate::Protocol::exception) if the peer has ended the stream.
    ///
    /// Events can be late: input that arrived before a wake-up may be reported after it. If the
    /// meaning of input depends on whether it arrived before or after the protocol wrote something,
    /// a poll tells the two cases apart, at the cost of a system call.
    #[doc(alias = "Look")]
    Poll,
    /// A string of bytes among the unread ones.
    Delimiter {
        /// The position among the unread bytes at which the search begins; bytes before it are not
        /// searched.
        offset: usize,
        /// The string.
        bytes: &'static [u8],
        /// The number of unread bytes, counted from the first one, within which the delimiter must
        /// end. If this many bytes have arrived without it, the protocol gets
        /// [`Exception::Limit`](crate::Exception::Limit).
        max: usize,
    },
    /// A frame whose beginning contains its length.
    Frame {
        /// The function that reads the length.
        head: FrameHead,
        /// The maximum length in bytes, counted from the first unread byte, so including the
        /// frame's beginning. [`input_max`](crate::StreamConfig::input_max) limits it too. A frame
        /// that declares a greater length, or has not declared its length within this many bytes,
        /// causes [`Exception::Limit`](crate::Exception::Limit) before the rest is read.
        max: usize,
    },
    /// At most this many bytes are left to be written. If no more are left already, it is fulfilled
    /// at once. 0 also means that a wrapping socket holds no bytes back.
    Flush(usize),
    /// Neither input nor output: only a deadline, a wake-up, or the end of the connection.
    Sleep,
    /// The same, but the protocol will want the input later: it holds its peer back. What has
    /// arrived by then is passed on first, so that a reset, a failed write or a peer that takes too
    /// little is reported only after the protocol has waited for input again. Until then the protocol
    /// does not learn of it: what it writes is discarded, and a [`Flush`](Expectation::Flush) is
    /// fulfilled at once. If it still holds its input after 1,024 of these, it learns of the loss, so
    /// that a producer without end stops; what has arrived is lost then.
    #[doc(alias = "backpressure")]
    Hold,
}

/// An intent that does not yet say what the protocol waits for.
#[derive(Debug)]
#[must_use = "say what it waits for"]
pub struct Undecided<P>(P);

/// An intent that does not yet say until when the protocol waits.
#[derive(Debug)]
#[must_use = "say until when: `.deadline(t)`, `.keep_deadline()` or `.no_deadline()`"]
pub struct NeedsDeadline<P> {
    protocol: P,
    wait: Option<WaitCondition>,
}

impl<P> Intent<P> {
    /// Goes on with the state `protocol`; the next call says what it waits for.
    pub fn of(protocol: P) -> Undecided<P> {
        Undecided(protocol)
    }

    /// Ends the protocol normally: its output is flushed, then the connection is closed in an
    /// orderly way.
    ///
    /// The protocol itself is dropped as soon as this is returned. Flushing and lingering continue
    /// without it. Meanwhile the connection keeps its socket, its slot and its place among the
    /// [`connections_max`](crate::AcceptConfig::connections_max) of its listener.
    ///
    /// [`close_timeout`](crate::StreamConfig::close_timeout) limits the flushing, and
    /// [`linger_timeout`](crate::StreamConfig::linger_timeout) the wait for the peer's end that
    /// follows. Remaining input is discarded.
    pub fn done() -> Intent<P> {
        Intent { next: Next::Done }
    }

    /// Ends the protocol at once by resetting its connection: unsent output is discarded, and the
    /// peer's next read fails ([`ConnectionReset`](std::io::ErrorKind::ConnectionReset)) instead of
    /// reporting the end of the stream.
    ///
    /// Use it when a message that lasts until the end of the connection was broken off: after
    /// [`done`](Intent::done) the peer would take the part it has for the whole message. A proxy
    /// passes on a reset in this way. Bytes that were written before may be lost too, because the
    /// system discards what it has not sent. A layer that cannot reset one of its streams reports
    /// that the stream has failed. If the socket has no resets (Unix sockets), the peer sees an
    /// ordinary end. A wrapping socket such as TLS does not send its own end (`close_notify`).
    ///
    /// Nothing is logged.
    #[doc(alias = "abort")]
    #[doc(alias = "RST")]
    #[doc(alias = "SO_LINGER")]
    pub fn reset() -> Intent<P> {
        Intent { next: Next::Reset }
    }

    /// Ends the protocol because it has failed: the connection is dropped at once, together with
    /// unsent output, and the loop logs the error. A [`StreamError`](crate::StreamError) that is the
    /// [peer's fault](crate::StreamError::is_peer_fault) is logged at debug level, and is no failure
    /// of the machine, if the connection was accepted. If there was unsent output, the connection is
    /// [reset](Intent::reset), so that the peer does not take what it has received for everything.
    ///
    /// To tell the peer something first, write it and return [`done`](Intent::done).
    pub fn error(error: impl Into<BoxError>) -> Intent<P> {
        Intent { next: Next::Fail(error.into()) }
    }

    /// Runs `f`, in which `?` may be used, and turns an error into [`error`](Intent::error).
    ///
    /// ```
    /// # use rotor_stream::{Intent, Transport};
    /// # use std::io::Write;
    /// fn count(transport: &mut Transport<'_>, number: &str) -> Intent<u32> {
    ///     Intent::attempt(|| {
    ///         let number: u32 = number.parse()?;
    ///         writeln!(transport.output, "{}", number + 1)?;
    ///         Ok(Intent::of(number + 1).keep().keep_deadline())
    ///     })
    /// }
    /// ```
    pub fn attempt(f: impl FnOnce() -> Result<Intent<P>, BoxError>) -> Intent<P> {
        f().unwrap_or_else(Intent::error)
    }

    /// Returns the same intent for a protocol that begins on a stream that another protocol has
    /// used.
    ///
    /// A first intent has nothing to keep: `keep` becomes waiting for nothing, and `keep_deadline`
    /// becomes no deadline. Otherwise both would refer to what the other protocol waited for.
    pub fn as_first(self) -> Intent<P> {
        let next = match self.next {
            Next::Wait(protocol, wait, deadline) => {
                let deadline = if deadline == Deadline::Keep { Deadline::Never } else { deadline };
                let wait = wait.unwrap_or(WaitCondition::KEPT).after(WaitCondition::NOTHING);
                Next::Wait(protocol, Some(wait), deadline)
            }
            other => other,
        };
        Intent { next }
    }

    /// Calls the protocol once more, unless it has ended: for a wrapper that has two things to
    /// report. If the second intent keeps what the protocol waits for, or its deadline, that of the
    /// first intent is kept.
    ///
    /// ```
    /// # use rotor_core::Time;
    /// # use rotor_stream::Intent;
    /// let until = Time::ZERO;
    /// let _: Intent<&str> = Intent::of("begun").bytes(1).no_deadline()
    ///     .and_then(|_| Intent::of("told to end").keep().deadline(until));
    /// ```
    pub fn and_then(self, call: impl FnOnce(P) -> Intent<P>) -> Intent<P> {
        let Next::Wait(protocol, first_wait, first_deadline) = self.next else { return self };
        let next = match call(protocol).next {
            Next::Wait(protocol, wait, deadline) => {
                let deadline = if deadline == Deadline::Keep { first_deadline } else { deadline };
                let wait = match (wait, first_wait) {
                    (Some(wait), Some(first)) => Some(wait.after(first)),
                    (wait, first) => wait.or(first),
                };
                Next::Wait(protocol, wait, deadline)
            }
            over => over,
        };
        Intent { next }
    }

    /// Returns the same intent with another protocol. Wrappers convert the intents of the protocol
    /// inside them with this.
    pub fn map<P2>(self, protocol: impl FnOnce(P) -> P2) -> Intent<P2> {
        Intent {
            next: match self.next {
                Next::Wait(inner, wait, deadline) => Next::Wait(protocol(inner), wait, deadline),
                Next::Done => Next::Done,
                Next::Reset => Next::Reset,
                Next::Fail(error) => Next::Fail(error),
            },
        }
    }
}

impl<P> Undecided<P> {
    /// Waits for one thing; [`or`](NeedsDeadline::or) adds another.
    pub fn expect(self, expectation: Expectation) -> NeedsDeadline<P> {
        NeedsDeadline { protocol: self.0, wait: Some(WaitCondition::NOTHING) }.or(expectation)
    }

    /// Goes on waiting for what it waited for before; [`or`](NeedsDeadline::or) adds to that.
    ///
    /// In `create`, where there was nothing before, this is [`sleep`](Undecided::sleep).
    pub fn keep(self) -> NeedsDeadline<P> {
        NeedsDeadline { protocol: self.0, wait: None }
    }

    /// Waits for [`Expectation::Bytes`].
    #[inline]
    pub fn bytes(self, count: usize) -> NeedsDeadline<P> {
        // Like `expect`, without the work for the other kinds of input.
        let wait = WaitCondition { input: InputCondition::Bytes(count), flush: None };
        NeedsDeadline { protocol: self.0, wait: Some(wait) }
    }

    /// Waits for [`Expectation::Delimiter`], from the first unread byte on.
    pub fn delimiter(self, bytes: &'static [u8], max: usize) -> NeedsDeadline<P> {
        self.expect(Expectation::Delimiter { offset: 0, bytes, max })
    }

    /// Waits for [`Expectation::Frame`]: `length` reads the frame's length from its beginning, and
    /// `max` bounds it.
    ///
    /// ```
    /// # mod rotor { pub use rotor_stream as stream; }
    /// # use rotor::stream::Intent;
    /// use rotor::stream::FrameLength;
    ///
    /// /// Two bytes, most significant first, say how many follow.
    /// fn length(input: &[u8]) -> FrameLength {
    ///     match input {
    ///         [high, low, ..] => FrameLength::Bytes(2 + usize::from(u16::from_be_bytes([*high, *low]))),
    ///         _ => FrameLength::Unknown,
    ///     }
    /// }
    ///
    /// let _: Intent<&str> = Intent::of("a record").frame(length, 4_096).no_deadline();
    /// ```
    #[doc(alias = "length prefix")]
    #[doc(alias = "LengthDelimitedCodec")]
    pub fn frame(self, length: fn(&[u8]) -> FrameLength, max: usize) -> NeedsDeadline<P> {
        self.expect(Expectation::Frame { head: FrameHead(length), max })
    }

    /// Waits for [`Expectation::Poll`].
    #[doc(alias = "look")]
    pub fn poll(self) -> NeedsDeadline<P> {
        self.expect(Expectation::Poll)
    }

    /// Waits for [`Expectation::Flush`].
    pub fn flush(self, left: usize) -> NeedsDeadline<P> {
        self.expect(Expectation::Flush(left))
    }

    /// Waits for [`Expectation::Sleep`].
    pub fn sleep(self) -> NeedsDeadline<P> {
        self.expect(Expectation::Sleep)
    }

    /// Waits for [`Expectation::Hold`].
    pub fn hold(self) -> NeedsDeadline<P> {
        self.expect(Expectation::Hold)
    }
}

impl<P> NeedsDeadline<P> {
    /// Also waits for this. The protocol is called when either one occurs, and its next intent says
    /// anew what it waits for.
    ///
    /// A stream waits for at most one kind of input and one flush; a second one of the same kind
    /// replaces the first, also one that was [kept](Undecided::keep).
    pub fn or(self, expectation: Expectation) -> NeedsDeadline<P> {
        let mut wait = self.wait.unwrap_or(WaitCondition::KEPT);
        match expectation {
            Expectation::Bytes(count) => wait.input = InputCondition::Bytes(count),
            Expectation::Poll => wait.input = InputCondition::Poll,
            Expectation::Delimiter { offset, bytes, max } => {
                wait.input = InputCondition::Delimiter { offset, bytes, max };
            }
            Expectation::Frame { head, max } => wait.input = InputCondition::Frame { head, max },
            Expectation::Flush(left) => wait.flush = Some(FlushThreshold::from_bytes(left)),
            Expectation::Hold => wait.input = InputCondition::Held,
            Expectation::Sleep => {}
        }
        NeedsDeadline { protocol: self.protocol, wait: Some(wait) }
    }

    /// Also waits for [`Expectation::Flush`].
    pub fn or_flush(self, left: usize) -> NeedsDeadline<P> {
        self.or(Expectation::Flush(left))
    }

    /// Waits until this time, when [`Protocol::timeout`](crate::Protocol::timeout) is called.
    pub fn deadline(self, time: Time) -> Intent<P> {
        self.with(Deadline::At(time))
    }

    /// Waits until this time, or without a deadline for `None`.
    pub fn deadline_opt(self, time: Option<Time>) -> Intent<P> {
        self.with(time.map_or(Deadline::Never, Deadline::At))
    }

    /// Waits until the deadline that was set before, so a peer that sends a byte now and then
    /// cannot extend it.
    pub fn keep_deadline(self) -> Intent<P> {
        self.with(Deadline::Keep)
    }

    /// Waits without a deadline. This is right if something else limits the time. Otherwise a
    /// silent peer holds the connection as long as it likes.
    pub fn no_deadline(self) -> Intent<P> {
        self.with(Deadline::Never)
    }

    /// Waits until the given kind of deadline, for code that has a [`Deadline`] already.
    pub fn with(self, deadline: Deadline) -> Intent<P> {
        Intent { next: Next::Wait(self.protocol, self.wait, deadline) }
    }
}

impl<P> fmt::Debug for Intent<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.next {
            Next::Wait(_, wait, deadline) => write!(f, "Wait({wait:?}, {deadline:?})"),
            Next::Done => f.write_str("Done"),
            Next::Reset => f.write_str("Reset"),
            Next::Fail(error) => write!(f, "Fail({error})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deadline_of<P>(intent: &Intent<P>) -> Option<Deadline> {
        match intent.next {
            Next::Wait(_, _, deadline) => Some(deadline),
            Next::Done | Next::Reset | Next::Fail(_) => None,
        }
    }

    #[test]
    fn each_deadline_method_sets_its_deadline() {
        let time = Time::from_nanos(7);
        for (intent, deadline) in [
            (Intent::of(()).sleep().deadline(time), Deadline::At(time)),
            (Intent::of(()).sleep().deadline_opt(Some(time)), Deadline::At(time)),
            (Intent::of(()).sleep().deadline_opt(None), Deadline::Never),
            (Intent::of(()).sleep().no_deadline(), Deadline::Never),
            (Intent::of(()).sleep().keep_deadline(), Deadline::Keep),
            (Intent::of(()).sleep().with(Deadline::Keep), Deadline::Keep),
        ] {
            assert_eq!(deadline_of(&intent), Some(deadline));
        }
        assert_eq!(deadline_of(&Intent::<()>::done()), None);
    }

    #[test]
    fn and_then_keeps_the_first_wait_and_deadline_unless_replaced() {
        let (one, two) = (Time::from_nanos(1), Time::from_nanos(2));
        let first = || Intent::of('a').bytes(3).or_flush(5).deadline(one);
        for (second, both) in [
            (Intent::of('b').keep().keep_deadline(), first()),
            (
                Intent::of('b').keep().deadline(two),
                Intent::of('b').bytes(3).or_flush(5).deadline(two),
            ),
            (
                Intent::of('b').keep().no_deadline(),
                Intent::of('b').bytes(3).or_flush(5).no_deadline(),
            ),
            (Intent::of('b').sleep().keep_deadline(), Intent::of('b').sleep().deadline(one)),
            (Intent::of('b').bytes(1).deadline(two), Intent::of('b').bytes(1).deadline(two)),
            (
                Intent::of('b').keep().or_flush(7).keep_deadline(),
                Intent::of('b').bytes(3).or_flush(7).deadline(one),
            ),
            (
                Intent::of('b').keep().or(Expectation::Hold).keep_deadline(),
                Intent::of('b').hold().or_flush(5).deadline(one),
            ),
            (Intent::done(), Intent::done()),
            (Intent::error("e"), Intent::error("e")),
        ] {
            let what = format!("{second:?}");
            assert_eq!(
                format!("{:?}", first().and_then(|_| second)),
                format!("{both:?}"),
                "{what}"
            );
        }
        let must_not_be_called = |_| -> Intent<char> { panic!("there is nobody to be called") };
        assert!(matches!(Intent::done().and_then(must_not_be_called).next, Next::Done));
        assert!(matches!(Intent::reset().and_then(must_not_be_called).next, Next::Reset));
        assert!(matches!(Intent::error("e").and_then(must_not_be_called).next, Next::Fail(_)));
        // Neither changes anything: the expectation and deadline stay as they were.
        let neither = Intent::of('a').keep().keep_deadline();
        let neither = neither.and_then(|a| Intent::of(a).keep().keep_deadline());
        assert!(matches!(neither.next, Next::Wait('a', None, Deadline::Keep)));
    }
}
