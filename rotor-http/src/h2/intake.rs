//! `Intake`: the bytes of DATA that a stream has received, checked against its window, the window
//! of the connection (RFC 9113 §5.2), and the announced length (§8.1.1).

use super::error::ErrorCode;
use super::window::ReceiveWindow;

/// The DATA that a stream has received.
///
/// ```text
///   received ─▶ held in both windows ─┬─ released: returned to the connection's window
///                                     └─ taken: returned to both windows
/// ```
///
/// Once bytes have been received, the intake is responsible for them: those that it has not
/// returned to the connection's window are returned at its [end](Intake::end).
#[derive(Debug)]
pub(crate) struct Intake {
    window: ReceiveWindow,
    /// Bytes that occupy the stream's window, padding included.
    held: u32,
    /// Those of them that occupy the connection's window as well.
    held_shared: u32,
    /// Whether a handler waits for the bytes that are held.
    is_wanted: bool,
    /// The required length of the body, if it is known.
    length: Option<u64>,
    /// Bytes of the body that have been received.
    received: u64,
}

impl Intake {
    /// Creates an intake for a stream with this window and this length.
    pub(crate) fn new(window: u32, length: Option<u64>) -> Intake {
        let window = ReceiveWindow::new(window);
        Intake { window, held: 0, held_shared: 0, is_wanted: false, length, received: 0 }
    }

    /// Sets the required length of the body, once it is known.
    pub(crate) fn set_length(&mut self, length: Option<u64>) {
        self.length = length;
    }

    /// Counts a DATA frame of this many bytes, padding included. The bytes are held even if they
    /// are too many, because the connection's window has accepted them.
    ///
    /// # Errors
    ///
    /// FLOW_CONTROL_ERROR: more than the window allows.
    pub(crate) fn count_frame(&mut self, bytes: usize) -> Result<(), ErrorCode> {
        let result = self.window.take(bytes);
        // A length has three bytes, so it fits.
        self.held += bytes as u32;
        self.held_shared += bytes as u32;
        result
    }

    /// Counts the bytes of the frame that belong to the body.
    ///
    /// # Errors
    ///
    /// PROTOCOL_ERROR: the body does not have the required length (RFC 9113 §8.1.1). A peer to
    /// which it is passed on as HTTP/1.1 would read the rest as another message.
    pub(crate) fn count_body(&mut self, bytes: usize, is_end: bool) -> Result<(), ErrorCode> {
        self.received += bytes as u64;
        let received = self.received;
        let is_invalid =
            self.length.is_some_and(|length| received > length || (is_end && received < length));
        if is_invalid { Err(ErrorCode::ProtocolError) } else { Ok(()) }
    }

    /// Returns whether the body may end here.
    pub(crate) fn may_end(&self) -> bool {
        self.length.is_none_or(|length| length == self.received)
    }

    /// Returns whether all announced bytes have been received.
    pub(crate) fn is_complete(&self) -> bool {
        self.length == Some(self.received)
    }

    /// Returns how many bytes of the body have been received.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Releases all bytes except for `untaken` ones. `is_wanted` says whether a handler waits for
    /// these.
    ///
    /// If so, they are returned to the connection's window. All bodies share that window: if each
    /// occupied a part of it and none was complete, none could continue. The bytes that wait are
    /// limited by the windows of the streams, and counted as memory.
    pub(crate) fn release(
        &mut self,
        untaken: usize,
        is_wanted: bool,
        connection: &mut ReceiveWindow,
    ) {
        let held = self.held.min(u32::try_from(untaken).unwrap_or(u32::MAX));
        self.window.release((self.held - held) as usize);
        self.held = held;
        let shared = if is_wanted { 0 } else { self.held_shared.min(held) };
        connection.release((self.held_shared - shared) as usize);
        self.held_shared = shared;
        self.is_wanted = is_wanted;
    }

    /// Ends the intake when the stream has ended: nothing is held any more.
    pub(crate) fn end(self, connection: &mut ReceiveWindow) {
        connection.release(self.held_shared as usize);
    }

    /// Returns the increment for a WINDOW_UPDATE of the stream, if it is large enough to be sent.
    pub(crate) fn update(&mut self) -> Option<u32> {
        match self.is_wanted {
            // The handler may wait for more than is there, and every byte helps it.
            true => self.window.update(),
            false => self.window.update_of_held(),
        }
    }

    /// Returns how many bytes the peer may send on the stream now.
    pub(crate) fn left(&self) -> u32 {
        self.window.left()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The connection window of 1,000 bytes, of which this many have been received.
    fn connection(received: usize) -> ReceiveWindow {
        let mut window = ReceiveWindow::new(1000);
        window.take(received).expect("there are as many");
        window
    }

    /// The credit that returns to the windows of the stream and of the connection when everything
    /// is announced.
    fn returned_bytes(intake: &mut Intake, connection: &mut ReceiveWindow) -> (u32, u32) {
        let more = |window: &mut ReceiveWindow| {
            // Uses up the rest of the window, so that an update is always due.
            let left = window.left() as usize;
            window.take(left).expect("as many as there are");
            window.update().unwrap_or_default()
        };
        (more(&mut intake.window), more(connection))
    }

    #[test]
    fn taken_bytes_return_to_both_windows_and_wanted_ones_to_the_shared_one() {
        for (untaken, is_wanted, expected) in [
            (60, false, (0, 0)),
            (40, false, (20, 20)),
            (0, false, (60, 60)),
            (60, true, (0, 60)),
            (40, true, (20, 60)),
            // The unread input may exceed the received bytes, if a protocol has put other bytes
            // before them.
            (usize::MAX, false, (0, 0)),
        ] {
            let (mut intake, mut connection) = (Intake::new(100, None), connection(60));
            intake.count_frame(60).expect("there are as many");
            intake.release(untaken, is_wanted, &mut connection);
            let case = (untaken, is_wanted);
            assert_eq!(returned_bytes(&mut intake, &mut connection), expected, "{case:?}");
        }
    }

    #[test]
    fn every_byte_returns_to_the_shared_window_exactly_once() {
        let (mut intake, mut connection) = (Intake::new(100, None), connection(70));
        intake.count_frame(60).expect("there are as many");
        intake.release(50, true, &mut connection);
        intake.release(50, false, &mut connection);
        intake.count_frame(10).expect("there are as many");
        intake.release(55, false, &mut connection);
        // The stream holds 55 bytes. For the shared window only the last ten are held; the earlier
        // ones were returned.
        assert_eq!((intake.held, intake.held_shared), (55, 10));
        intake.end(&mut connection);
        let left = connection.left() as usize;
        connection.take(left).expect("as many as there are");
        assert_eq!(connection.update(), Some(70));
    }

    #[test]
    fn bytes_beyond_the_window_are_an_error_and_are_still_returned() {
        for (bytes, result) in
            [(99, Ok(())), (100, Ok(())), (101, Err(ErrorCode::FlowControlError))]
        {
            let (mut intake, mut connection) = (Intake::new(100, None), connection(bytes));
            assert_eq!(intake.count_frame(bytes), result, "{bytes}");
            intake.end(&mut connection);
            connection.take(1000 - bytes).expect("as many as there are");
            assert_eq!(connection.update(), Some(bytes as u32), "{bytes}");
        }
    }

    #[test]
    fn a_body_must_have_its_announced_length() {
        const WRONG: Result<(), ErrorCode> = Err(ErrorCode::ProtocolError);
        for (length, pieces, last, may_end) in [
            (None, &[][..], Ok(()), true),
            (None, &[(5, false), (0, true)], Ok(()), true),
            (Some(0), &[], Ok(()), true),
            (Some(0), &[(0, true)], Ok(()), true),
            (Some(0), &[(1, false)], WRONG, false),
            (Some(5), &[(4, false)], Ok(()), false),
            (Some(5), &[(4, true)], WRONG, false),
            (Some(5), &[(5, false)], Ok(()), true),
            (Some(5), &[(3, false), (2, true)], Ok(()), true),
            (Some(5), &[(6, false)], WRONG, false),
            (Some(5), &[(3, false), (3, true)], WRONG, false),
        ] {
            let mut intake = Intake::new(0, None);
            intake.set_length(length);
            let counted = pieces.iter().map(|(bytes, is_end)| intake.count_body(*bytes, *is_end));
            assert_eq!(counted.last().unwrap_or(Ok(())), last, "{length:?}: {pieces:?}");
            assert_eq!(intake.may_end(), may_end, "{length:?}: {pieces:?}");
            assert_eq!(intake.is_complete(), may_end && length.is_some(), "{length:?}: {pieces:?}");
            assert_eq!(intake.received(), pieces.iter().map(|(bytes, _)| *bytes as u64).sum());
        }
    }
}
