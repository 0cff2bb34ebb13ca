//! The options of `Connection` (RFC 9110 §7.6.1) that decide whether a connection persists
//! (RFC 9112 §9.3) or changes its protocol.

use crate::semantics::token_list;
use crate::semantics::version::Version;

/// The options of `Connection` that have an effect.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ConnectionOptions {
    pub(super) close: bool,
    pub(super) keep_alive: bool,
    pub(super) upgrade: bool,
}

impl ConnectionOptions {
    #[inline]
    pub(super) fn add(&mut self, value: &[u8]) {
        // All elements: `close` counts in any position, and `upgrade` may be beside it.
        for element in token_list::list_elements(value) {
            self.close |= element.eq_ignore_ascii_case(b"close");
            self.keep_alive |= element.eq_ignore_ascii_case(b"keep-alive");
            self.upgrade |= element.eq_ignore_ascii_case(b"upgrade");
        }
    }

    /// RFC 9112 §9.3: `close` has priority; otherwise 1.1 persists, and 1.0 only with `keep-alive`.
    pub(super) fn is_persistent(self, version: Version) -> bool {
        !self.close && (version >= Version::Http11 || self.keep_alive)
    }
}
