//! The options of `Connection` (RFC 9110 §7.6.1) that decide whether a connection persists
//! (RFC 9112 §9.3) or changes its protocol; and for how long it persists.

use std::time::Duration;

use crate::semantics::grammar;
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

/// Returns how long the sender of a `Keep-Alive` keeps the connection open without a request: its
/// parameter `timeout`, in seconds. No RFC defines this parameter (RFC 2068 §19.7.1.1 has only the
/// syntax), but many servers send it.
#[cold]
pub(super) fn keep_alive_timeout(value: &[u8]) -> Option<Duration> {
    let seconds = |parameter: &[u8]| {
        let (name, value) = parameter.split_at_checked(b"timeout=".len())?;
        let is_timeout = name.eq_ignore_ascii_case(b"timeout=");
        grammar::parse_decimal(value).filter(|_| is_timeout).map(Duration::from_secs)
    };
    token_list::list_elements(value).filter_map(seconds).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_of_keep_alive_is_a_number_of_seconds() {
        for (value, expected) in [
            ("timeout=5", Some(5)),
            ("max=100, Timeout=05", Some(5)),
            ("timeout=0,max=1", Some(0)),
            ("timeout=9, timeout=7", Some(7)),
            ("timeout=x, timeout=7", Some(7)),
            ("timeout=18446744073709551615", Some(u64::MAX)),
            ("timeout=18446744073709551616", None),
            ("", None),
            ("5", None),
            ("timeout", None),
            ("timeout=", None),
            ("timeout=-1", None),
            ("timeout=1.5", None),
            ("timeout=\"5\"", None),
            ("timeouts=5", None),
            ("xtimeout=5", None),
            ("max=5", None),
        ] {
            let timeout = keep_alive_timeout(value.as_bytes());
            assert_eq!(timeout, expected.map(Duration::from_secs), "{value}");
        }
    }
}
