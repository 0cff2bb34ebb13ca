//! `Away`: what is known of a machine whose handler has given the loop away.

use crate::token::Token;

/// A machine whose handler has given the loop away and has not answered.
pub(super) struct Away {
    pub(super) token: Token,
    /// Its deadline was reached meanwhile.
    pub(super) is_timed_out: bool,
}
