//! `Priority`: the priority of a response (RFC 9218), from the field `Priority` or PRIORITY_UPDATE.

use crate::semantics::token_list;

/// A longer value is ignored. None in use has a tenth of this, and with HPACK a byte may stand for a
/// field of 4 KiB.
const BYTES_MAX: usize = 256;

/// How urgent a response is, and whether it can be used in parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Priority {
    /// 0, the most urgent, to 7.
    pub urgency: u8,
    /// Whether the response can be used while it arrives: such responses of one urgency take turns.
    pub is_incremental: bool,
}

impl Priority {
    /// The priority of a request that states none (RFC 9218 §4).
    pub const DEFAULT: Priority = Priority { urgency: 3, is_incremental: false };

    /// Parses the value of a field. Malformed or unknown parts are ignored: a priority is only a
    /// wish.
    ///
    /// ```
    /// # mod rotor { pub use rotor_http as http; }
    /// use rotor::http::h2::Priority;
    ///
    /// assert_eq!(Priority::read(b"u=5, i"), Priority { urgency: 5, is_incremental: true });
    /// assert_eq!(Priority::read(b"u=9, x=\"y\""), Priority::DEFAULT);
    /// ```
    pub fn read(value: &[u8]) -> Priority {
        let mut priority = Priority::DEFAULT;
        priority.read_more(value);
        priority
    }

    /// Parses the value of another line of the same field. All lines are one dictionary, in which
    /// the last member of a name counts (RFC 9651 §4.2).
    pub(crate) fn read_more(&mut self, value: &[u8]) {
        if value.len() > BYTES_MAX {
            return;
        }
        for member in token_list::list_elements(value) {
            // A member may have parameters (RFC 9651 §3.1.2); none is defined, so they mean nothing.
            let member = member.split(|&byte| byte == b';').next().unwrap_or_default();
            match member {
                [b'u', b'=', digit @ b'0'..=b'7'] => self.urgency = digit - b'0',
                b"i" | b"i=?1" => self.is_incremental = true,
                b"i=?0" => self.is_incremental = false,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_read_and_the_last_member_counts() {
        for (value, urgency, is_incremental) in [
            ("", 3, false),
            ("u=0", 0, false),
            ("u=7,i", 7, true),
            (" i , u=1", 1, true),
            ("i=?0", 3, false),
            ("i, i=?0", 3, false),
            ("u=2, u=4", 4, false),
            ("u=8", 3, false),
            ("u=-1", 3, false),
            ("u=1.5", 3, false),
            ("i=1", 3, false),
            ("U=1, I", 3, false),
            ("u=1;x, i;x=?0", 1, true),
            ("u;x=1, ;u=1", 3, false),
            ("x=\"u=1;i, u=2\"", 3, false),
        ] {
            let priority = Priority { urgency, is_incremental };
            assert_eq!(Priority::read(value.as_bytes()), priority, "{value:?}");
        }
        for (len, urgency) in [(255, 1), (256, 1), (257, 3)] {
            let value = format!("{:>len$}", "u=1");
            assert_eq!(Priority::read(value.as_bytes()).urgency, urgency, "{len}");
        }
    }
}
