//! `Flow` and `Wait`: how a step of HTTP ends, and what the next step waits for.
//!
//! Servers and clients, connections, their requests and each exchange all proceed in steps, and
//! report with the same four variants how a step has ended.

use rotor_core::{Deadline, Infallible};
use rotor_stream::Intent;

/// How a step ends. `D` is the result when all steps are done, `F` the reason if they failed.
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
/// | `Again` | there may be more to do with the input at hand | the same; the stream calls again, within its budgets |
/// | `Done` | the handler is done | the connection ends, or continues in another protocol |
/// | `Fail` | the rest cannot be received | the connection is reset (HTTP/1.1, server); never happens otherwise |
#[must_use = "a step that is not followed leaves its connection without anything to wait for"]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flow<D, F = Infallible> {
    Wait(Wait),
    Again,
    Done(D),
    Fail(F),
}

/// How many steps are made in a row before the stream is asked to call again, so that its
/// budgets are kept and other connections get their turn. Each step of a full batch takes one call
/// from the stream's budget of calls.
pub(crate) const BATCH: u32 = 64;

impl<D, F> Flow<D, F> {
    /// Makes steps until one of them ends with something other than `Again`. After [`BATCH`] steps,
    /// leaves the rest for later and returns `Again` itself.
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

    /// Makes this step next if there may be more to do; otherwise returns the flow unchanged.
    #[inline]
    pub(crate) fn on_again(self, step: impl FnOnce() -> Flow<D, F>) -> Flow<D, F> {
        match self {
            Flow::Again => step(),
            flow => flow,
        }
    }
}

/// What a step waits for: whichever of these comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wait {
    input: Input,
    /// At most this many unsent bytes.
    flush: Option<usize>,
    deadline: Deadline,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Input {
    /// No input: bytes that arrive stay where they are.
    None,
    /// The same, but they will be wanted later.
    Held,
    /// This many unread bytes in all.
    Bytes(usize),
    /// A poll of the socket, for bytes that have arrived by now, if any.
    Poll,
    /// What was waited for before, with the same condition for the output.
    Unchanged,
}

impl Wait {
    /// Waits for what was waited for before, until the same deadline.
    pub(crate) const UNCHANGED: Wait =
        Wait { input: Input::Unchanged, flush: None, deadline: Deadline::Keep };

    /// Waits for this many unread bytes in all; with `None`, for no input at all.
    #[inline]
    pub(crate) fn input(bytes: Option<usize>, deadline: Deadline) -> Wait {
        let input = match bytes {
            Some(bytes) => Input::Bytes(bytes),
            None => Input::None,
        };
        Wait { input, flush: None, deadline }
    }

    /// Waits for no input now, but for more of it later.
    pub(crate) fn held(deadline: Deadline) -> Wait {
        Wait { input: Input::Held, flush: None, deadline }
    }

    /// Waits for a poll of the socket: for bytes that have arrived by now, if any.
    pub(crate) fn poll(deadline: Deadline) -> Wait {
        Wait { input: Input::Poll, flush: None, deadline }
    }

    /// Also waits until at most this many unsent bytes are left.
    #[inline]
    pub(crate) fn or_flush(mut self, left: Option<usize>) -> Wait {
        self.flush = left;
        self
    }

    /// Returns the number of unsent bytes that is waited for, if any.
    pub(crate) fn flush_left(&self) -> Option<usize> {
        self.flush
    }

    /// Returns the deadline of this wait.
    pub(crate) fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// Converts this into what the stream expects.
    #[inline]
    pub(crate) fn intent<P>(self, protocol: P) -> Intent<P> {
        let intent = Intent::of(protocol);
        // The usual case.
        if let (Input::Bytes(bytes), None) = (self.input, self.flush) {
            return intent.bytes(bytes).with(self.deadline);
        }
        let waiting = match self.input {
            Input::Bytes(bytes) => intent.bytes(bytes),
            Input::None => intent.sleep(),
            Input::Held => intent.hold(),
            Input::Poll => intent.poll(),
            // Nothing may be added: only the stream knows what was waited for.
            Input::Unchanged => return intent.keep().with(self.deadline),
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
    fn a_batch_ends_at_the_first_other_flow_or_at_its_limit() {
        let wait = Flow::Wait(Wait::UNCHANGED);
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
    fn the_next_step_is_made_only_after_again() {
        let wait = Flow::Wait(Wait::UNCHANGED);
        for (first, is_made) in
            [(Flow::Again, true), (wait, false), (Flow::Done('d'), false), (Flow::Fail("f"), false)]
        {
            let mut made = false;
            let flow: Step = first.on_again(|| {
                made = true;
                Flow::Done('n')
            });
            let expected = if is_made { Flow::Done('n') } else { first };
            assert_eq!((flow, made), (expected, is_made), "{first:?}");
        }
    }

    #[test]
    fn a_wait_becomes_the_matching_intent() {
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
            (Wait::UNCHANGED, of().keep().keep_deadline()),
        ] {
            assert_eq!(format!("{:?}", wait.intent(())), format!("{intent:?}"), "{wait:?}");
        }
    }
}
