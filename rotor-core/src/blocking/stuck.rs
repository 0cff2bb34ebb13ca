//! `StuckReport`: the watchdog's report about a loop that has not polled for too long.

use std::fmt;
use std::time::Duration;

use crate::token::Token;

/// A report that a loop has not polled its backend for longer than
/// [`Blocking::patience`](crate::Blocking::patience). It names the machine whose handler runs.
///
/// It is passed to [`Blocking::on_stuck`](crate::Blocking::on_stuck) when this is noticed, and to
/// [`on_still_stuck`](crate::Blocking::on_still_stuck) at 10 and 100 times the patience. Each time
/// it is also logged as a warning.
#[doc(alias = "Stuck")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct StuckReport<'a> {
    /// The name of the thread that runs the loop; empty if it has none.
    pub loop_name: &'a str,
    /// The machine whose handler runs, or which the loop is dropping; `None` for a closure between
    /// handlers ([`Broadcast::post`](crate::Broadcast::post),
    /// [`LoopInstance::every`](crate::LoopInstance::every)).
    ///
    /// If a machine is being made, this is the token of the machine that spawned it.
    pub token: Option<Token>,
    /// The type of the machine ([`Machine::type_name`](crate::Machine::type_name)), or which
    /// closure runs.
    pub machine: &'static str,
    /// How long this has lasted, as far as the watchdog has seen. It may be up to half of the
    /// patience longer.
    pub time: Duration,
    /// How many handlers and closures were called in that time, including this one. 1 means that
    /// this handler alone takes so long. A larger number means that all of them together do, and
    /// this one is a sample.
    pub calls: u64,
    /// What the loop's thread is doing.
    pub thread: ThreadState,
    /// What was done about it.
    pub outcome: StuckOutcome,
}

/// A report that the situation of a [`StuckReport`] is over: the handler has returned or, if it was
/// a series of handlers, the loop has polled its backend again; or the loop has ended.
///
/// It is passed to [`Blocking::on_unstuck`](crate::Blocking::on_unstuck), once for each report
/// about a held-up loop that [`on_stuck`](crate::Blocking::on_stuck) got, and logged at level info.
#[doc(alias = "Unstuck")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct UnstuckReport<'a> {
    /// The name of the thread that runs the loop; empty if it has none.
    pub loop_name: &'a str,
    /// The machine whose handler ran at the last report; `None` for a closure.
    pub token: Option<Token>,
    /// The type of the machine, or which closure it was.
    pub machine: &'static str,
    /// How long it lasted, as far as the watchdog has seen, with an error of up to half of the
    /// patience.
    pub time: Duration,
    /// How many handlers and closures were called until the last report. 1 means one handler, which
    /// has returned.
    pub calls: u64,
}

impl fmt::Display for UnstuckReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnstuckReport { loop_name, token, machine, time, calls } = self;
        write!(f, "loop {loop_name:?} goes on, after {time:?}; it was in ")?;
        match token {
            Some(token) => write!(f, "machine {token} ({machine})")?,
            None => write!(f, "{machine}")?,
        }
        if *calls > 1 {
            write!(f, " and {} calls before it", calls - 1)?;
        }
        Ok(())
    }
}

/// What a loop's thread was doing. This is known only on Linux with `/proc`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ThreadState {
    /// It was computing.
    Running,
    /// It was waiting in the kernel.
    Waiting {
        /// The number of the system call (syscalls(2)) in this process's architecture. `None` if it
        /// waits outside of a system call, for example for a page of memory, or if the kernel does
        /// not report it.
        syscall: Option<u32>,
    },
    /// It was computing, but other threads had its CPU for more than half of the time.
    Preempted,
    /// Not known: the system is not Linux, or has no `/proc`.
    Unknown,
}

/// What was done about a stuck loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StuckOutcome {
    /// Nothing was done: the loop goes on when the handler returns.
    Watched,
    /// Nothing more was done: this is a declared section of a handler
    /// ([`Scope::blocking`](crate::Scope::blocking)) that has lasted for 100 times the patience,
    /// while the loop goes on on another thread. Nothing is known about the section's thread.
    HandedOver,
    /// The loop was taken from the handler, and another thread goes on with it
    /// ([`LoopInstance::taking_over`](crate::LoopInstance::taking_over)). This is reported again
    /// when the handler has lasted for 100 times the patience.
    TakenOver,
    /// The loop should have been taken from the handler, but no thread was left
    /// ([`Blocking::threads_max`](crate::Blocking::threads_max), or the system's limit). It goes on
    /// when the handler returns.
    NoThread,
}

impl fmt::Display for StuckReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StuckReport { loop_name, token, machine, time, calls, thread, outcome } = self;
        write!(f, "loop {loop_name:?} ")?;
        match outcome {
            StuckOutcome::HandedOver => {
                write!(f, "goes on, and a section has blocked for {time:?}")?
            }
            // The time is the handler's, which has it even when the loop has long been going on.
            StuckOutcome::TakenOver if *calls == 1 => {
                write!(f, "goes on, and a handler has blocked for {time:?}")?;
            }
            _ => write!(f, "has not polled for {time:?}")?,
        }
        f.write_str(", in ")?;
        match token {
            Some(token) => write!(f, "machine {token} ({machine})")?,
            None => write!(f, "{machine}")?,
        }
        if *calls > 1 {
            write!(f, " and {} calls before it", calls - 1)?;
        }
        write!(f, ": {thread}, {outcome}")
    }
}

impl fmt::Display for ThreadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ThreadState::Running => f.write_str("it computes"),
            ThreadState::Waiting { syscall: Some(number) } => {
                write!(f, "it waits in system call {number}")
            }
            ThreadState::Waiting { syscall: None } => f.write_str("it waits in the kernel"),
            ThreadState::Preempted => f.write_str("it computes, preempted half of the time"),
            ThreadState::Unknown => f.write_str("its state is not known"),
        }
    }
}

impl fmt::Display for StuckOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StuckOutcome::Watched => f.write_str("watched"),
            StuckOutcome::HandedOver => f.write_str("handed over"),
            StuckOutcome::TakenOver => f.write_str("taken over"),
            StuckOutcome::NoThread => f.write_str("and no thread to take over"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_one_line() {
        let one = StuckReport {
            loop_name: "loop-0",
            token: Some(Token::new(3, 9)),
            machine: "app::Lookup",
            time: Duration::from_millis(12),
            calls: 1,
            thread: ThreadState::Waiting { syscall: Some(202) },
            outcome: StuckOutcome::Watched,
        };
        assert_eq!(
            one.to_string(),
            "loop \"loop-0\" has not polled for 12ms, in machine 3v9 (app::Lookup): \
             it waits in system call 202, watched"
        );
        let many = StuckReport {
            token: None,
            machine: "a posted closure",
            calls: 41,
            thread: ThreadState::Preempted,
            ..one
        };
        assert_eq!(
            many.to_string(),
            "loop \"loop-0\" has not polled for 12ms, in a posted closure and 40 calls before it: \
             it computes, preempted half of the time, watched"
        );
        // Reported again while the loop has long been going on.
        let taken =
            StuckReport { thread: ThreadState::Unknown, outcome: StuckOutcome::TakenOver, ..one };
        assert_eq!(
            taken.to_string(),
            "loop \"loop-0\" goes on, and a handler has blocked for 12ms, \
             in machine 3v9 (app::Lookup): its state is not known, taken over"
        );
        for (thread, text) in [
            (ThreadState::Running, "it computes"),
            (ThreadState::Waiting { syscall: None }, "it waits in the kernel"),
            (ThreadState::Unknown, "its state is not known"),
        ] {
            assert_eq!(thread.to_string(), text);
        }
    }
}
