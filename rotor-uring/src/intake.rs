//! `Intake`: whether the kernel delivers data to a socket, or the socket is read by system calls;
//! as a table of states.

use rustix::io::Errno;

/// Whether an operation of the kernel delivers data to the socket.
///
/// ```text
///                 a read found nothing, or less than it had room for
///        ┌────────────────────────────────────────────────────────────────┐
///        │                    too much is unread,                         ▼
///      Asked ◀── Ending ◀──── or it is deregistered ─────────────────── Given
///        ▲  the kernel has let go                                         │
///        └────────────────────────────────────────────────────────────────┘
///          no buffer left, an end, an error, an interruption
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The kernel has no operation of the socket: a read is a system call.
    Asked,
    /// The kernel has an operation, which completes each time that something arrives.
    Given,
    /// The operation is being cancelled, and may still complete.
    Ending,
}

/// How the input has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    None,
    /// The peer has ended its side.
    Ended,
    /// An error that was not reported yet; afterwards it is as if the peer had ended. By its
    /// number, which is below 4,096.
    Failed(u16),
}

/// What a completion of the operation reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Came {
    /// Data was delivered.
    Some,
    /// There is something to read.
    There,
    /// The peer has ended its side.
    End,
    /// The operation was cancelled or interrupted, or has ended for a reason that does not concern
    /// the socket.
    Cancelled,
    /// There was no free buffer for the data, which is still in the kernel.
    Exhausted,
    /// An error of the socket, by its number.
    Failed(u16),
}

/// What to do after a completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Then {
    /// Tell the machine that it may read.
    Tell,
    /// Tell the machine, and submit the operation again.
    TellAndGive,
    /// Tell the machine that the end has come.
    TellEnd,
    /// Tell the machine that the socket has failed.
    TellError,
}

/// Where a read finds data when all delivered data has been read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// By a system call.
    Ask,
    /// Nowhere now; a completion will report when there is some.
    Nothing,
    /// There will be no more.
    End,
    /// The error, reported once.
    Error(i32),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Intake {
    state: State,
    end: End,
}

impl Came {
    /// Converts the result of a receive: a number of bytes, or a negative error.
    pub(crate) fn of_bytes(result: i32) -> Came {
        if result == 0 { Came::End } else { Came::of_connections(result) }
    }

    /// Converts the result of a poll that completes once.
    pub(crate) fn of_poll(result: i32) -> Came {
        if result >= 0 { Came::There } else { Came::of_connections(result) }
    }

    /// Converts the result of an operation without an end, such as a poll that stays.
    pub(crate) fn of_connections(result: i32) -> Came {
        if result >= 0 {
            return Came::Some;
        }
        match Errno::from_raw_os_error(-result) {
            Errno::INTR | Errno::AGAIN | Errno::CANCELED => Came::Cancelled,
            Errno::NOBUFS => Came::Exhausted,
            error => Came::Failed(u16::try_from(error.raw_os_error()).unwrap_or(u16::MAX)),
        }
    }
}

impl Intake {
    pub(crate) fn new() -> Intake {
        Intake { state: State::Asked, end: End::None }
    }

    /// Returns where to read when no delivered data is left.
    #[inline]
    pub(crate) fn source(&mut self) -> Source {
        if let Some(error) = self.take_error() {
            return Source::Error(error);
        }
        match (self.end, self.state) {
            (End::None, State::Asked) => Source::Ask,
            // To read while the kernel delivers would change the order of the data.
            (End::None, State::Given | State::Ending) => Source::Nothing,
            _ => Source::End,
        }
    }

    /// Begins to deliver, unless the kernel has the operation already or nothing more will come.
    /// Returns whether the operation has to be submitted.
    #[inline]
    pub(crate) fn give(&mut self) -> bool {
        let is_new = self.state == State::Asked && self.end == End::None;
        if is_new {
            self.state = State::Given;
        }
        is_new
    }

    /// Stops delivering for now. Returns whether the operation has to be cancelled.
    pub(crate) fn take_back(&mut self) -> bool {
        let is_given = self.state == State::Given;
        if is_given {
            self.state = State::Ending;
        }
        is_given
    }

    /// Handles a completion; `is_last` if it is the operation's last one.
    pub(crate) fn came(&mut self, came: Came, is_last: bool) -> Then {
        let was = self.state;
        if is_last {
            self.state = State::Asked;
        }
        match came {
            Came::Some if is_last && was == State::Given => {
                self.state = State::Given;
                Then::TellAndGive
            }
            Came::Some | Came::There | Came::Cancelled | Came::Exhausted => Then::Tell,
            Came::End => {
                self.end = End::Ended;
                Then::TellEnd
            }
            Came::Failed(error) => {
                self.end = End::Failed(error);
                Then::TellError
            }
        }
    }

    /// Returns the error if it was not reported yet.
    pub(crate) fn take_error(&mut self) -> Option<i32> {
        let End::Failed(error) = self.end else { return None };
        self.end = End::Ended;
        Some(i32::from(error))
    }

    /// Whether the peer has ended its side, or the socket has failed.
    pub(crate) fn has_ended(self) -> bool {
        self.end != End::None
    }

    /// Forgets an error. For sockets that go on after an error: their next call reports its own.
    pub(crate) fn forget_error(&mut self) {
        self.end = End::None;
    }

    /// Called if a system call has found the peer's end.
    pub(crate) fn note_end(&mut self) {
        self.end = End::Ended;
    }

    /// Whether the kernel has an operation of the socket.
    #[inline]
    pub(crate) fn is_with_kernel(self) -> bool {
        self.state != State::Asked
    }

    /// Whether the next data will be reported without a read that fails with `WouldBlock` first.
    #[inline]
    pub(crate) fn is_given(self) -> bool {
        self.state == State::Given
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESET: u16 = 104;

    fn in_state(state: State) -> Intake {
        Intake { state, end: End::None }
    }

    #[test]
    fn results_are_understood() {
        let cases = [
            (1, Came::Some, Came::Some),
            (i32::MAX, Came::Some, Came::Some),
            (0, Came::End, Came::Some),
            (-4, Came::Cancelled, Came::Cancelled),
            (-11, Came::Cancelled, Came::Cancelled),
            (-125, Came::Cancelled, Came::Cancelled),
            (-105, Came::Exhausted, Came::Exhausted),
            (-i32::from(RESET), Came::Failed(RESET), Came::Failed(RESET)),
            (-24, Came::Failed(24), Came::Failed(24)),
        ];
        for (result, bytes, connections) in cases {
            assert_eq!(Came::of_bytes(result), bytes, "{result}");
            assert_eq!(Came::of_connections(result), connections, "{result}");
            let polled = if connections == Came::Some { Came::There } else { connections };
            assert_eq!(Came::of_poll(result), polled, "{result}");
        }
    }

    #[test]
    fn a_completion_leads_to_what_the_table_says() {
        use {Came::*, State::*};
        let cases = [
            (Given, Some, false, Given, Then::Tell),
            (Given, Some, true, Given, Then::TellAndGive),
            // Not anew: whoever asks finds the end of it.
            (Given, There, true, Asked, Then::Tell),
            (Given, End, true, Asked, Then::TellEnd),
            (Given, Cancelled, true, Asked, Then::Tell),
            (Given, Exhausted, true, Asked, Then::Tell),
            (Given, Failed(RESET), true, Asked, Then::TellError),
            (Ending, Some, false, Ending, Then::Tell),
            // Not anew: it was to end.
            (Ending, Some, true, Asked, Then::Tell),
            (Ending, There, true, Asked, Then::Tell),
            (Ending, End, true, Asked, Then::TellEnd),
            (Ending, Cancelled, true, Asked, Then::Tell),
            (Ending, Exhausted, true, Asked, Then::Tell),
            (Ending, Failed(RESET), true, Asked, Then::TellError),
        ];
        for (state, came, is_last, after, then) in cases {
            let mut intake = in_state(state);
            assert_eq!(intake.came(came, is_last), then, "{state:?} {came:?} {is_last}");
            assert_eq!(intake.state, after, "{state:?} {came:?} {is_last}");
        }
    }

    #[test]
    fn it_is_asked_only_where_the_kernel_has_nothing_of_it() {
        for (state, source, is_given, with_kernel) in [
            (State::Asked, Source::Ask, false, false),
            (State::Given, Source::Nothing, true, true),
            (State::Ending, Source::Nothing, false, true),
        ] {
            let mut intake = in_state(state);
            assert_eq!(intake.source(), source);
            assert_eq!((intake.is_given(), intake.is_with_kernel()), (is_given, with_kernel));
        }
    }

    #[test]
    fn it_is_given_once_and_taken_back_once() {
        let mut intake = Intake::new();
        assert!(!intake.take_back());
        assert!(intake.give() && !intake.give());
        assert!(intake.take_back() && !intake.take_back());
        assert!(!intake.give(), "before the kernel has let go it would be two");
        assert_eq!(intake.came(Came::Cancelled, true), Then::Tell);
        assert!(intake.give());
    }

    #[test]
    fn an_error_is_told_once_and_an_end_for_ever() {
        let mut intake = in_state(State::Given);
        intake.came(Came::Failed(RESET), true);
        assert_eq!(intake.source(), Source::Error(i32::from(RESET)));
        assert_eq!((intake.source(), intake.source()), (Source::End, Source::End));
        assert!(!intake.give(), "there will be no more");
        intake.forget_error();
        assert_eq!((intake.source(), intake.give()), (Source::Ask, true));
        intake = Intake::new();
        intake.note_end();
        assert_eq!(intake.source(), Source::End);
    }
}
