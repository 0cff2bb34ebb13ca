//! `Intake`: whether the kernel delivers data to a socket, or the socket is read by system calls;
//! as a table of states.

use rustix::io::Errno;

/// Whether an operation of the kernel delivers data to the socket.
///
/// ```text
///                 a read found nothing, or less than it had room for
///        ┌────────────────────────────────────────────────────────────────┐
///        │                    too much is unread,                         ▼
///     Direct ◀── Cancelling ◀── or it is deregistered ──────────── Delivering
///        ▲  the kernel has let go                                         │
///        └────────────────────────────────────────────────────────────────┘
///          no buffer left, an end, an error, an interruption
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The kernel has no operation of the socket: a read is a system call.
    Direct,
    /// The kernel has an operation, which completes each time that something arrives.
    Delivering,
    /// The operation is being cancelled, and may still complete.
    Cancelling,
}

/// How the input has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    None,
    /// The input is open, but a send has failed with this error. The kernel reports an error once,
    /// so the receive that would have failed with it will find an end.
    Lost(u16),
    /// The peer has ended its side.
    Ended,
    /// An error that was not reported yet; afterwards it is as if the peer had ended. By its
    /// number, which is below 4,096.
    Failed(u16),
}

/// What a completion of the operation reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InputEvent {
    /// Data was delivered.
    Data,
    /// There is something to read.
    Readable,
    /// The peer has ended its side.
    End,
    /// The operation was cancelled or interrupted, or has ended for a reason that does not concern
    /// the socket.
    Cancelled,
    /// There was no free buffer for the data, which is still in the kernel.
    NoBuffer,
    /// An error of the socket, by its number.
    Failed(u16),
}

/// What to do after a completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AfterInput {
    /// Tell the machine that it may read.
    Notify,
    /// Tell the machine, and submit the operation again.
    NotifyAndResubmit,
    /// Tell the machine that the end has come.
    NotifyEnd,
    /// Tell the machine that the socket has failed.
    NotifyError,
}

/// Where a read finds data when all delivered data has been read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// By a system call.
    SystemCall,
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

impl InputEvent {
    /// Converts the result of a receive: a number of bytes, or a negative error.
    pub(crate) fn from_receive(result: i32) -> InputEvent {
        if result == 0 { InputEvent::End } else { InputEvent::from_multishot(result) }
    }

    /// Converts the result of a poll that completes once.
    pub(crate) fn from_poll(result: i32) -> InputEvent {
        if result >= 0 { InputEvent::Readable } else { InputEvent::from_multishot(result) }
    }

    /// Converts the result of an operation without an end, such as a poll that stays.
    pub(crate) fn from_multishot(result: i32) -> InputEvent {
        if result >= 0 {
            return InputEvent::Data;
        }
        match Errno::from_raw_os_error(-result) {
            Errno::INTR | Errno::AGAIN | Errno::CANCELED => InputEvent::Cancelled,
            Errno::NOBUFS => InputEvent::NoBuffer,
            error => InputEvent::Failed(u16::try_from(error.raw_os_error()).unwrap_or(u16::MAX)),
        }
    }
}

impl Intake {
    pub(crate) fn new() -> Intake {
        Intake { state: State::Direct, end: End::None }
    }

    /// Returns where to read when no delivered data is left.
    #[inline]
    pub(crate) fn read_source(&mut self) -> Source {
        if let Some(error) = self.take_error() {
            return Source::Error(error);
        }
        match self.state {
            _ if self.has_ended() => Source::End,
            State::Direct => Source::SystemCall,
            // To read while the kernel delivers would change the order of the data.
            State::Delivering | State::Cancelling => Source::Nothing,
        }
    }

    /// Begins to deliver, unless the kernel has the operation already or nothing more will come.
    /// Returns whether the operation has to be submitted.
    #[inline]
    pub(crate) fn start_delivery(&mut self) -> bool {
        let is_new = self.state == State::Direct && !self.has_ended();
        if is_new {
            self.state = State::Delivering;
        }
        is_new
    }

    /// Stops delivering for now. Returns whether the operation has to be cancelled.
    pub(crate) fn stop_delivery(&mut self) -> bool {
        let was_delivering = self.state == State::Delivering;
        if was_delivering {
            self.state = State::Cancelling;
        }
        was_delivering
    }

    /// Handles a completion; `is_last` if it is the operation's last one.
    pub(crate) fn on_completion(&mut self, event: InputEvent, is_last: bool) -> AfterInput {
        let was = self.state;
        if is_last {
            self.state = State::Direct;
        }
        match event {
            InputEvent::Data if is_last && was == State::Delivering => {
                self.state = State::Delivering;
                AfterInput::NotifyAndResubmit
            }
            InputEvent::Data
            | InputEvent::Readable
            | InputEvent::Cancelled
            | InputEvent::NoBuffer => AfterInput::Notify,
            InputEvent::End => {
                self.set_ended();
                if self.has_failed() { AfterInput::NotifyError } else { AfterInput::NotifyEnd }
            }
            InputEvent::Failed(error) => {
                self.end = End::Failed(error);
                AfterInput::NotifyError
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
        matches!(self.end, End::Ended | End::Failed(_))
    }

    /// Whether there is an error that was not reported yet.
    pub(crate) fn has_failed(self) -> bool {
        matches!(self.end, End::Failed(_))
    }

    /// Forgets an error. For sockets that go on after an error: their next call reports its own.
    pub(crate) fn clear_error(&mut self) {
        self.end = End::None;
    }

    /// Called if the peer's end was found, which is an error if the connection was lost before.
    pub(crate) fn set_ended(&mut self) {
        self.end = match self.end {
            End::Lost(error) => End::Failed(error),
            _ => End::Ended,
        };
    }

    /// Called if a send has failed. If the peer had ended its side before it has reset, the error
    /// is `EPIPE`: then the end is one.
    pub(crate) fn on_send_failed(&mut self, error: i32) {
        let is_lost = matches!(
            Errno::from_raw_os_error(error),
            Errno::CONNRESET
                | Errno::CONNABORTED
                | Errno::TIMEDOUT
                | Errno::HOSTUNREACH
                | Errno::NETUNREACH
        );
        if is_lost && self.end == End::None {
            self.end = End::Lost(u16::try_from(error).unwrap_or(u16::MAX));
        }
    }

    /// Whether the kernel has an operation of the socket.
    #[inline]
    pub(crate) fn has_operation(self) -> bool {
        self.state != State::Direct
    }

    /// Whether the next data will be reported without a read that fails with `WouldBlock` first.
    #[inline]
    pub(crate) fn is_delivering(self) -> bool {
        self.state == State::Delivering
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
    fn results_are_decoded() {
        let cases = [
            (1, InputEvent::Data, InputEvent::Data),
            (i32::MAX, InputEvent::Data, InputEvent::Data),
            (0, InputEvent::End, InputEvent::Data),
            (-4, InputEvent::Cancelled, InputEvent::Cancelled),
            (-11, InputEvent::Cancelled, InputEvent::Cancelled),
            (-125, InputEvent::Cancelled, InputEvent::Cancelled),
            (-105, InputEvent::NoBuffer, InputEvent::NoBuffer),
            (-i32::from(RESET), InputEvent::Failed(RESET), InputEvent::Failed(RESET)),
            (-24, InputEvent::Failed(24), InputEvent::Failed(24)),
        ];
        for (result, bytes, connections) in cases {
            assert_eq!(InputEvent::from_receive(result), bytes, "{result}");
            assert_eq!(InputEvent::from_multishot(result), connections, "{result}");
            let polled =
                if connections == InputEvent::Data { InputEvent::Readable } else { connections };
            assert_eq!(InputEvent::from_poll(result), polled, "{result}");
        }
    }

    #[test]
    fn each_completion_leads_to_the_state_and_action_of_the_table() {
        use {InputEvent::*, State::*};
        let cases = [
            (Delivering, Data, false, Delivering, AfterInput::Notify),
            (Delivering, Data, true, Delivering, AfterInput::NotifyAndResubmit),
            // Not resubmitted: the next direct read finds the reason.
            (Delivering, Readable, true, Direct, AfterInput::Notify),
            (Delivering, End, true, Direct, AfterInput::NotifyEnd),
            (Delivering, Cancelled, true, Direct, AfterInput::Notify),
            (Delivering, NoBuffer, true, Direct, AfterInput::Notify),
            (Delivering, Failed(RESET), true, Direct, AfterInput::NotifyError),
            (Cancelling, Data, false, Cancelling, AfterInput::Notify),
            // Not resubmitted: it was to be cancelled.
            (Cancelling, Data, true, Direct, AfterInput::Notify),
            (Cancelling, Readable, true, Direct, AfterInput::Notify),
            (Cancelling, End, true, Direct, AfterInput::NotifyEnd),
            (Cancelling, Cancelled, true, Direct, AfterInput::Notify),
            (Cancelling, NoBuffer, true, Direct, AfterInput::Notify),
            (Cancelling, Failed(RESET), true, Direct, AfterInput::NotifyError),
        ];
        for (state, event, is_last, after, action) in cases {
            let mut intake = in_state(state);
            assert_eq!(
                intake.on_completion(event, is_last),
                action,
                "{state:?} {event:?} {is_last}"
            );
            assert_eq!(intake.state, after, "{state:?} {event:?} {is_last}");
        }
    }

    #[test]
    fn a_read_makes_a_system_call_only_without_a_kernel_operation() {
        for (state, source, is_delivering, has_operation) in [
            (State::Direct, Source::SystemCall, false, false),
            (State::Delivering, Source::Nothing, true, true),
            (State::Cancelling, Source::Nothing, false, true),
        ] {
            let mut intake = in_state(state);
            assert_eq!(intake.read_source(), source);
            assert_eq!(
                (intake.is_delivering(), intake.has_operation()),
                (is_delivering, has_operation)
            );
        }
    }

    #[test]
    fn delivery_starts_once_and_stops_once() {
        let mut intake = Intake::new();
        assert!(!intake.stop_delivery());
        assert!(intake.start_delivery() && !intake.start_delivery());
        assert!(intake.stop_delivery() && !intake.stop_delivery());
        assert!(!intake.start_delivery(), "before the kernel has let go it would be two");
        assert_eq!(intake.on_completion(InputEvent::Cancelled, true), AfterInput::Notify);
        assert!(intake.start_delivery());
    }

    #[test]
    fn an_error_is_reported_once_and_an_end_always() {
        let mut intake = in_state(State::Delivering);
        intake.on_completion(InputEvent::Failed(RESET), true);
        assert_eq!(intake.read_source(), Source::Error(i32::from(RESET)));
        assert_eq!((intake.read_source(), intake.read_source()), (Source::End, Source::End));
        assert!(!intake.start_delivery(), "there will be no more");
        intake.clear_error();
        assert_eq!((intake.read_source(), intake.start_delivery()), (Source::SystemCall, true));
        intake = Intake::new();
        intake.set_ended();
        assert_eq!(intake.read_source(), Source::End);
    }

    #[test]
    fn an_end_after_a_lost_send_is_an_error_unless_the_peer_had_ended() {
        const PIPE: i32 = 32;
        let reset = i32::from(RESET);
        for (error, action, source) in [
            (reset, AfterInput::NotifyError, Source::Error(reset)),
            (PIPE, AfterInput::NotifyEnd, Source::End),
        ] {
            let mut intake = in_state(State::Delivering);
            intake.on_send_failed(error);
            assert_eq!((intake.read_source(), intake.has_ended()), (Source::Nothing, false));
            assert_eq!(intake.on_completion(InputEvent::Data, false), AfterInput::Notify);
            assert_eq!(intake.on_completion(InputEvent::End, true), action);
            assert_eq!((intake.read_source(), intake.read_source()), (source, Source::End));
            intake.on_send_failed(reset);
            assert_eq!(intake.read_source(), Source::End, "the end came first");
            let mut unread = Intake::new();
            unread.on_send_failed(error);
            assert_eq!(unread.read_source(), Source::SystemCall);
            assert!(unread.start_delivery(), "there may be data from before");
        }
    }
}
