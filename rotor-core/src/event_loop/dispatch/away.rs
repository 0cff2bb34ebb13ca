//! `Away`: a machine whose handler has given the loop away.

use crate::token::Token;

/// A machine whose handler has given the loop away and has not returned.
pub(super) struct Away {
    pub(super) token: Token,
    /// Its deadline has passed meanwhile.
    pub(super) is_timed_out: bool,
}
