//! `DetachedHandler`: a machine whose handler has given the loop away.

use crate::token::Token;

/// A machine whose handler has given the loop away, or from which the loop was taken, and which has
/// not returned.
pub(super) struct DetachedHandler {
    pub(super) token: Token,
    /// Its deadline has passed meanwhile.
    pub(super) is_timed_out: bool,
}
