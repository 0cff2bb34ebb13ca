//! Flow-control windows (RFC 9113 §5.2): how many bytes of DATA each side may still send.

use super::error::{ErrorCode, Violation};
use super::frame::U31_MAX;

/// What this side may send. Negative after the peer has reduced its initial window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendWindow(i64);

impl SendWindow {
    /// Creates a window of this many bytes.
    pub const fn new(bytes: u32) -> SendWindow {
        SendWindow(bytes as i64)
    }

    /// Returns how many bytes may be sent now.
    #[inline]
    pub fn credit(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    /// Returns the same, but negative if the window is.
    pub fn balance(self) -> i64 {
        self.0
    }

    /// Takes bytes that were sent; no more than the window allows.
    #[inline]
    pub fn take(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.credit());
        self.0 -= bytes as i64;
    }

    /// Changes the window by what the peer has announced.
    ///
    /// # Errors
    ///
    /// FLOW_CONTROL_ERROR if it would exceed 2^31 - 1 (RFC 9113 §6.9.1). The window is unchanged.
    pub fn change(&mut self, bytes: i64) -> Result<(), ErrorCode> {
        let changed = self.0 + bytes;
        if changed > i64::from(U31_MAX) {
            return Err(ErrorCode::FlowControlError);
        }
        self.0 = changed;
        Ok(())
    }

    /// Does the same for the window of the connection, or for all streams (RFC 9113 §6.9.2).
    ///
    /// # Errors
    ///
    /// The same, and the connection ends.
    pub(crate) fn change_or_fail_connection(&mut self, bytes: i64) -> Result<(), Violation> {
        let beyond = |code| Violation::Connection(code, "a window beyond 2^31 - 1");
        self.change(bytes).map_err(beyond)
    }
}

/// What the peer may send: `max` bytes, less those that are held here.
///
/// Received bytes are held until they are [`released`](ReceiveWindow::release), as they are
/// consumed. So a body that nobody takes stops its sender, and nobody else. The peer is told of
/// released bytes when they are half of the window, so that not every frame causes another one; or
/// when they are at least as many as the peer may still send, since half of the window can never be
/// released while more than half is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiveWindow {
    max: u32,
    /// What the peer may still send.
    left: u32,
    /// What was released but has not been announced to the peer.
    unannounced: u32,
}

impl ReceiveWindow {
    /// Creates a window of `max` bytes, which the peer knows.
    pub const fn new(max: u32) -> ReceiveWindow {
        ReceiveWindow { max, left: max, unannounced: 0 }
    }

    /// Creates a window of which the peer knows only `known` bytes: the rest must be announced.
    pub fn with_known(known: u32, max: u32) -> ReceiveWindow {
        ReceiveWindow { max: max.max(known), left: known, unannounced: max.saturating_sub(known) }
    }

    /// Returns what the peer may send now.
    pub fn left(&self) -> u32 {
        self.left
    }

    /// Takes received bytes, padding included.
    ///
    /// # Errors
    ///
    /// FLOW_CONTROL_ERROR: the peer has sent more than it may.
    pub fn take(&mut self, bytes: usize) -> Result<(), ErrorCode> {
        let bytes = u32::try_from(bytes).map_err(|_| ErrorCode::FlowControlError)?;
        self.left = self.left.checked_sub(bytes).ok_or(ErrorCode::FlowControlError)?;
        Ok(())
    }

    /// Releases received bytes that are not held any more.
    pub fn release(&mut self, bytes: usize) {
        self.unannounced += bytes as u32;
        debug_assert!(self.left + self.unannounced <= self.max);
    }

    /// Returns the increment for a WINDOW_UPDATE, if it is large enough to be sent.
    pub fn update(&mut self) -> Option<u32> {
        self.update_of(1)
    }

    /// Returns the same, but no increment of fewer than [`UPDATE_MIN`] bytes: for the window of a
    /// connection, and of a stream that holds its input. If nearly all of the window is held, the
    /// peer waits, as it does when all of it is held.
    pub(crate) fn update_of_held(&mut self) -> Option<u32> {
        self.update_of(UPDATE_MIN)
    }

    fn update_of(&mut self, least: u32) -> Option<u32> {
        if self.unannounced < (self.max / 2).min(self.left).max(least) {
            return None;
        }
        self.left += self.unannounced;
        Some(std::mem::take(&mut self.unannounced))
    }
}

/// The smallest increment of a window of which others hold a part, in bytes. Each increment allows
/// the peer one more frame, so a few bytes that are free beside many that are held would be passed
/// to and fro in tiny frames ("silly window syndrome", RFC 9293 §3.8.6.2), and peers count small
/// increments as a flood, as this side does.
pub(crate) const UPDATE_MIN: u32 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_send_window_is_taken_and_changed_up_to_its_bound() {
        let mut window = SendWindow::new(10);
        window.take(4);
        assert_eq!(window.credit(), 6);
        assert_eq!(window.change(-20), Ok(()));
        assert_eq!(window.credit(), 0);
        assert_eq!(window.change(15), Ok(()));
        assert_eq!(window.credit(), 1);
        assert_eq!(window.change(i64::from(U31_MAX) - 1), Ok(()));
        assert_eq!(window.change(1), Err(ErrorCode::FlowControlError));
        assert_eq!(window.credit(), U31_MAX as usize);
    }

    #[test]
    fn an_update_is_due_at_half_the_window_or_at_the_remaining_credit() {
        let mut window = ReceiveWindow::new(100);
        assert_eq!(window.take(101), Err(ErrorCode::FlowControlError));
        assert_eq!(window.take(50), Ok(()));
        window.release(49);
        assert_eq!(window.update(), None);
        window.release(1);
        assert_eq!((window.update(), window.left()), (Some(50), 100));
        assert_eq!(window.update(), None);
        // 80 of these bytes are held for good.
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
    fn no_update_of_a_held_window_is_smaller_than_the_least_one() {
        for (free, update) in [(12, None), (UPDATE_MIN - 1, None), (UPDATE_MIN, Some(UPDATE_MIN))] {
            let mut window = ReceiveWindow::new(100_000);
            assert_eq!(window.take(100_000), Ok(()));
            window.release(free as usize);
            assert_eq!(window.update_of_held(), update);
            // What was held is taken.
            window.release((100_000 - free) as usize);
            assert_eq!(window.update_of_held(), Some(100_000 - update.unwrap_or_default()));
        }
    }

    #[test]
    fn a_window_that_the_peer_does_not_know_is_announced() {
        let mut window = ReceiveWindow::with_known(65_535, 1 << 20);
        assert_eq!(window.update(), Some((1 << 20) - 65_535));
        assert_eq!(window.left(), 1 << 20);
        assert_eq!(ReceiveWindow::with_known(65_535, 10).left(), 65_535);
    }

    #[test]
    fn both_sides_agree_after_any_sequence_of_takes_and_releases() {
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
