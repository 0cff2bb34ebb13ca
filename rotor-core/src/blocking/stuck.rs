//! `Stuck`: what the watchdog says of a loop that has not polled for too long.

use std::fmt;
use std::time::Duration;

use crate::token::Token;

/// A loop that has not polled its backend for longer than
/// [`Blocking::patience`](crate::Blocking::patience), and the machine whose handler runs meanwhile.
///
/// Shown to [`Blocking::on_stuck`](crate::Blocking::on_stuck) when it is noticed, and to
/// [`on_still_stuck`](crate::Blocking::on_still_stuck) at 10 and 100 times the patience; logged as
/// a warning each time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Stuck<'a> {
    /// The name of the thread that runs the loop; empty where it has none.
    pub loop_name: &'a str,
    /// The machine whose handler runs. `None` for a closure between handlers
    /// ([`Broadcast::post`](crate::Broadcast::post),
    /// [`LoopInstance::every`](crate::LoopInstance::every)).
    ///
    /// A machine that is being made has the token of the one that spawned it.
    pub token: Option<Token>,
    /// Its type ([`Machine::type_name`](crate::Machine::type_name)), or what closure it is.
    pub machine: &'static str,
    /// How long it has been going on, as far as was seen: too little by half of the patience at
    /// most.
    pub time: Duration,
    /// How many handlers and closures were called in that time, this one included. 1: it is one
    /// handler that takes so long. More: all of them together do, and this one is a sample.
    pub calls: u64,
    /// What the loop's thread does.
    pub thread: ThreadState,
    /// What was done about it.
    pub outcome: StuckOutcome,
}

/// What was [`Stuck`], and is over: the handler has returned, or of many the loop has polled its
/// backend again.
///
/// Shown to [`Blocking::on_unstuck`](crate::Blocking::on_unstuck), once for each that
/// [`on_stuck`](crate::Blocking::on_stuck) was shown of a loop that held still, and logged as
/// information.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Unstuck<'a> {
    /// The name of the thread that runs the loop; empty where it has none.
    pub loop_name: &'a str,
    /// The machine whose handler ran when it was last reported; `None` for a closure.
    pub token: Option<Token>,
    /// Its type, or what closure it is.
    pub machine: &'static str,
    /// How long it was, as far as was seen: exact to half of the patience.
    pub time: Duration,
    /// How many handlers and closures it was, when it was last reported. 1: one handler, which has
    /// returned.
    pub calls: u64,
}

impl fmt::Display for Unstuck<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unstuck { loop_name, token, machine, time, calls } = self;
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

/// What a loop's thread was seen doing. Known on Linux with `/proc`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ThreadState {
    /// It computes.
    Running,
    /// It waits in the kernel.
    Waiting {
        /// The number of the system call (syscalls(2)) in this process's architecture; `None` where
        /// it waits without one, for a page of memory say, or the kernel does not tell.
        syscall: Option<u32>,
    },
    /// It computes, and other threads had its CPU for more than half of the time.
    Preempted,
    /// Not known: another system than Linux, or no `/proc`.
    Unknown,
}

/// What was done about a loop that is stuck.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StuckOutcome {
    /// Nothing: it was watched, and goes on when the handler returns.
    Watched,
    /// It is a section of a handler that was declared ([`Scope::blocking`](crate::Scope::blocking))
    /// and has lasted for 100 times the patience. The loop goes on meanwhile; of the thread nothing
    /// is known.
    HandedOver,
    /// Another thread goes on with the loop, which was taken from the handler
    /// ([`LoopInstance::taking_over`](crate::LoopInstance::taking_over)). Said again of one that
    /// has lasted for 100 times the patience.
    TakenOver,
    /// The same was wanted, and there was no thread
    /// ([`Blocking::threads_max`](crate::Blocking::threads_max), or the system's limit): it goes on
    /// when the handler returns.
    NoThread,
}

impl fmt::Display for Stuck<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stuck { loop_name, token, machine, time, calls, thread, outcome } = self;
        if *outcome == StuckOutcome::HandedOver {
            write!(f, "loop {loop_name:?} goes on, and a section has blocked for {time:?}, in ")?;
        } else {
            write!(f, "loop {loop_name:?} has not polled for {time:?}, in ")?;
        }
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
        let one = Stuck {
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
        let many = Stuck {
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
        for (thread, text) in [
            (ThreadState::Running, "it computes"),
            (ThreadState::Waiting { syscall: None }, "it waits in the kernel"),
            (ThreadState::Unknown, "its state is not known"),
        ] {
            assert_eq!(thread.to_string(), text);
        }
    }
}
