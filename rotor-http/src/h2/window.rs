//! Windows (RFC 9113 §5.2): how many octets of DATA may still be sent, by us and by the peer.

use super::error::{ErrorCode, Violation};
use super::frame::U31_MAX;

/// What we may send. It may be below zero: after the peer has made its initial window smaller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendWindow(i64);

impl SendWindow {
    /// A window of so many octets.
    pub const fn new(octets: u32) -> SendWindow {
        SendWindow(octets as i64)
    }

    /// How many octets may be sent now.
    #[inline]
    pub fn octets(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    /// The same, where it may be below zero.
    pub fn balance(self) -> i64 {
        self.0
    }

    /// So many were sent, no more than there were.
    #[inline]
    pub fn take(&mut self, octets: usize) {
        debug_assert!(octets <= self.octets());
        self.0 -= octets as i64;
    }

    /// The peer takes more, or less.
    ///
    /// # Errors
    ///
    /// FLOW_CONTROL_ERROR: beyond 2^31 - 1 (RFC 9113 §6.9.1). The window is as it was.
    pub fn change(&mut self, octets: i64) -> Result<(), ErrorCode> {
        let changed = self.0 + octets;
        if changed > i64::from(U31_MAX) {
            return Err(ErrorCode::FlowControlError);
        }
        self.0 = changed;
        Ok(())
    }

    /// The same, by what the peer says of the connection, or of all streams (RFC 9113 §6.9.2).
    ///
    /// # Errors
    ///
    /// The same, and it costs the connection.
    pub(crate) fn change_of_all(&mut self, octets: i64) -> Result<(), Violation> {
        let beyond = |code| Violation::Connection(code, "a window beyond 2^31 - 1");
        self.change(octets).map_err(beyond)
    }
}

/// What the peer may send: of `max` octets those that are not held here.
///
/// What has come is held until it is [`released`](ReceiveWindow::release): as it is consumed, so
/// that a body that nobody takes stops its sender and nobody else. Of what was released the peer is
/// told when it is half of all, so that not each frame is answered by another; or as much as the
/// peer may still send: where more than half is held, half of all is never released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiveWindow {
    max: u32,
    /// What the peer may still send.
    left: u32,
    /// What was released and the peer was not told of.
    owed: u32,
}

impl ReceiveWindow {
    /// A window of `max` octets, of which the peer knows.
    pub const fn new(max: u32) -> ReceiveWindow {
        ReceiveWindow { max, left: max, owed: 0 }
    }

    /// A window of which the peer knows only so much: the rest is owed.
    pub fn of_known(known: u32, max: u32) -> ReceiveWindow {
        ReceiveWindow { max: max.max(known), left: known, owed: max.saturating_sub(known) }
    }

    /// What the peer may send now.
    pub fn left(&self) -> u32 {
        self.left
    }

    /// So many octets have come, padding included.
    ///
    /// # Errors
    ///
    /// FLOW_CONTROL_ERROR: more than the peer was allowed.
    pub fn take(&mut self, octets: usize) -> Result<(), ErrorCode> {
        let octets = u32::try_from(octets).map_err(|_| ErrorCode::FlowControlError)?;
        self.left = self.left.checked_sub(octets).ok_or(ErrorCode::FlowControlError)?;
        Ok(())
    }

    /// So many of those that have come are not held any more.
    pub fn release(&mut self, octets: usize) {
        self.owed += octets as u32;
        debug_assert!(self.left + self.owed <= self.max);
    }

    /// What the peer is to be told now, if it is enough to be told.
    pub fn update(&mut self) -> Option<u32> {
        if self.owed == 0 || self.owed < (self.max / 2).min(self.left) {
            return None;
        }
        self.left += self.owed;
        Some(std::mem::take(&mut self.owed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_send_window_is_taken_and_changed_and_never_beyond_its_bound() {
        let mut window = SendWindow::new(10);
        window.take(4);
        assert_eq!(window.octets(), 6);
        assert_eq!(window.change(-20), Ok(()));
        assert_eq!(window.octets(), 0);
        assert_eq!(window.change(15), Ok(()));
        assert_eq!(window.octets(), 1);
        assert_eq!(window.change(i64::from(U31_MAX) - 1), Ok(()));
        assert_eq!(window.change(1), Err(ErrorCode::FlowControlError));
        assert_eq!(window.octets(), U31_MAX as usize);
    }

    #[test]
    fn the_peer_is_told_once_half_was_released_or_as_much_as_it_may_still_send() {
        let mut window = ReceiveWindow::new(100);
        assert_eq!(window.take(101), Err(ErrorCode::FlowControlError));
        assert_eq!(window.take(50), Ok(()));
        window.release(49);
        assert_eq!(window.update(), None);
        window.release(1);
        assert_eq!((window.update(), window.left()), (Some(50), 100));
        assert_eq!(window.update(), None);
        // Of these, 80 are held for good.
        assert_eq!(window.take(90), Ok(()));
        window.release(9);
        assert_eq!(window.update(), None);
        window.release(1);
        assert_eq!((window.update(), window.left()), (Some(10), 20));
        for _ in 0..100 {
            assert_eq!(window.take(20), Ok(()));
            window.release(20);
            assert_eq!((window.update(), window.left()), (Some(20), 20));
        }
    }

    #[test]
    fn a_window_of_which_the_peer_does_not_know_is_owed() {
        let mut window = ReceiveWindow::of_known(65_535, 1 << 20);
        assert_eq!(window.update(), Some((1 << 20) - 65_535));
        assert_eq!(window.left(), 1 << 20);
        assert_eq!(ReceiveWindow::of_known(65_535, 10).left(), 65_535);
    }

    #[test]
    fn whatever_is_taken_and_released_the_ledger_of_the_peer_agrees() {
        let mut window = ReceiveWindow::new(1000);
        let (mut peers, mut held) = (1000u32, 0usize);
        for round in 0..10_000usize {
            let take = (round * 7919) % 97;
            if take as u32 <= peers {
                assert_eq!(window.take(take), Ok(()));
                peers -= take as u32;
                held += take;
            }
            let release = (round * 104_729) % 89;
            let release = release.min(held);
            window.release(release);
            held -= release;
            peers += window.update().unwrap_or(0);
            assert_eq!(window.left(), peers);
            assert!(peers as usize + held <= 1000);
        }
    }
}
