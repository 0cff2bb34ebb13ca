//! `Flow`: how a step of HTTP ends, and `Wait`: what is waited for before the next one.
//!
//! Servers and clients, a connection, its requests and each exchange: all of them go on in steps
//! and say with the same four words how a step has ended.

use rotor_core::{Deadline, Infallible};
use rotor_stream::Intent;

/// How a step ends. `D` is what has come of it all, `F` why nothing has.
///
/// ```text
///        ┌──────── Again
///        ▼           │
///   ──▶ step ────────┼──▶ Wait ──▶ (the event that was waited for) ──▶ step
///                    ├──▶ Done
///                    └──▶ Fail
/// ```
///
/// | | exchange | requests, connection |
/// |--|--|--|
/// | `Wait` | nothing more can be done before this | the same |
/// | `Again` | there may be more to do with what has come | the same; the stream calls again, under its budgets |
/// | `Done` | the handler is done | the connection ends, or goes on in another protocol |
/// | `Fail` | the rest cannot be had | the connection is reset, on a server; else never |
#[must_use = "a step that is not followed leaves its connection without anything to wait for"]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flow<D, F = Infallible> {
    Wait(Wait),
    Again,
    Done(D),
    Fail(F),
}

/// Steps that are made in a row before the stream is asked to call again: so that its budgets are
/// kept, and other connections have their turn. Of its budget of calls each of them takes one.
pub(crate) const BATCH: u32 = 64;

impl<D, F> Flow<D, F> {
    /// Makes one step after the other until one ends with something else than `Again`; after
    /// [`BATCH`] of them it leaves the rest for later and says `Again` itself.
    #[inline]
    pub(crate) fn batch(mut step: impl FnMut() -> Flow<D, F>) -> Flow<D, F> {
        for _ in 0..BATCH {
            match step() {
                Flow::Again => {}
                flow => return flow,
            }
        }
        Flow::Again
    }

    /// Makes this step next, if there may be more to do; else it stays undone.
    #[inline]
    pub(crate) fn and_again(self, step: impl FnOnce() -> Flow<D, F>) -> Flow<D, F> {
        match self {
            Flow::Again => step(),
            flow => flow,
        }
    }
}

/// What is waited for: whichever of these comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wait {
    input: Input,
    /// No more than so many unsent bytes.
    flush: Option<usize>,
    deadline: Deadline,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Input {
    /// None: what comes stays where it is.
    None,
    /// So many unread bytes in all.
    Bytes(usize),
    /// What has come by now, which may be nothing.
    Poll,
    /// What was waited for before, and the same room to write.
    AsBefore,
}

impl Wait {
    /// For what was waited for before, and no longer.
    pub(crate) const AS_BEFORE: Wait =
        Wait { input: Input::AsBefore, flush: None, deadline: Deadline::Keep };

    /// For so many unread bytes in all; with `None`, for no input at all.
    #[inline]
    pub(crate) fn input(bytes: Option<usize>, deadline: Deadline) -> Wait {
        let input = match bytes {
            Some(bytes) => Input::Bytes(bytes),
            None => Input::None,
        };
        Wait { input, flush: None, deadline }
    }

    /// For a poll of the socket: for what has come by now, which may be nothing.
    pub(crate) fn poll(deadline: Deadline) -> Wait {
        Wait { input: Input::Poll, flush: None, deadline }
    }

    /// As well, for no more than so many unsent bytes.
    #[inline]
    pub(crate) fn or_flush(mut self, left: Option<usize>) -> Wait {
        self.flush = left;
        self
    }

    /// How few unsent bytes are waited for, if they are.
    pub(crate) fn flush_left(&self) -> Option<usize> {
        self.flush
    }

    /// Until when it waits.
    pub(crate) fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// The same as what a stream is told.
    #[inline]
    pub(crate) fn intent<P>(self, protocol: P) -> Intent<P> {
        let intent = Intent::of(protocol);
        // Nearly always.
        if let (Input::Bytes(bytes), None) = (self.input, self.flush) {
            return intent.bytes(bytes).with(self.deadline);
        }
        let waiting = match self.input {
            Input::Bytes(bytes) => intent.bytes(bytes),
            Input::None => intent.sleep(),
            Input::Poll => intent.poll(),
            // Nothing may be added: what was waited for is known to the stream alone.
            Input::AsBefore => return intent.keep().with(self.deadline),
        };
        let waiting = match self.flush {
            Some(left) => waiting.or_flush(left),
            None => waiting,
        };
        waiting.with(self.deadline)
    }
}

#[cfg(test)]
mod tests {
    use rotor_core::Time;

    use super::*;

    type Step = Flow<char, &'static str>;

    #[test]
    fn a_batch_ends_with_the_first_step_that_is_not_again_or_leaves_the_rest_for_later() {
        let wait = Flow::Wait(Wait::AS_BEFORE);
        for (agains, last, ended, steps) in [
            (0, Flow::Done('d'), Flow::Done('d'), 1),
            (1, Flow::Fail("f"), Flow::Fail("f"), 2),
            (3, wait, wait, 4),
            (BATCH - 1, Flow::Done('d'), Flow::Done('d'), BATCH),
            (BATCH, Flow::Done('d'), Flow::Again, BATCH),
            (BATCH + 1, wait, Flow::Again, BATCH),
        ] {
            let mut made = 0;
            let flow: Step = Flow::batch(|| {
                made += 1;
                if made > agains { last } else { Flow::Again }
            });
            assert_eq!((flow, made), (ended, steps), "{agains}, then {last:?}");
        }
    }

    #[test]
    fn what_comes_next_is_done_if_there_may_be_more_to_do() {
        let wait = Flow::Wait(Wait::AS_BEFORE);
        for (first, is_made) in
            [(Flow::Again, true), (wait, false), (Flow::Done('d'), false), (Flow::Fail("f"), false)]
        {
            let mut made = false;
            let flow: Step = first.and_again(|| {
                made = true;
                Flow::Done('n')
            });
            let expected = if is_made { Flow::Done('n') } else { first };
            assert_eq!((flow, made), (expected, is_made), "{first:?}");
        }
    }

    #[test]
    fn a_stream_is_told_to_wait_for_just_that() {
        let at = Deadline::At(Time::from_nanos(7));
        let of = || Intent::of(());
        for (wait, intent) in [
            (Wait::input(Some(3), at), of().bytes(3).with(at)),
            (Wait::input(Some(0), Deadline::Never), of().bytes(0).no_deadline()),
            (Wait::input(None, at), of().sleep().with(at)),
            (Wait::input(None, at).or_flush(Some(5)), of().flush(5).with(at)),
            (Wait::input(Some(3), at).or_flush(Some(0)), of().bytes(3).or_flush(0).with(at)),
            (Wait::input(Some(3), at).or_flush(None), of().bytes(3).with(at)),
            (Wait::poll(Deadline::Keep), of().poll().keep_deadline()),
            (Wait::AS_BEFORE, of().keep().keep_deadline()),
        ] {
            assert_eq!(format!("{:?}", wait.intent(())), format!("{intent:?}"), "{wait:?}");
        }
    }
}
