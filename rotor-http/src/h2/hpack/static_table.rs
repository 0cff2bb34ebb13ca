//! The static table of HPACK (RFC 7541, appendix A). Indices count from 1.

/// The number of entries; the indices of the dynamic table follow them.
pub const STATIC_ENTRIES: usize = 61;

/// Names and values; the value is empty if the table has only a name.
pub const STATIC_TABLE: [(&str, &str); STATIC_ENTRIES] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// Returns the first index of a name in lower case, found by its length and first byte. It knows
/// the names that responses have.
#[inline]
pub(super) fn name_index(name: &[u8]) -> Option<usize> {
    let index = match (name.len(), name.first()?) {
        (4, b'd') => 33,
        (4, b'e') => 34,
        (4, b'v') => 59,
        (4, b'l') => 45,
        (4, b'f') => 37,
        (4, b'h') => 38,
        (3, b'a') => 21,
        (5, b'a') => 22,
        (6, b's') => 54,
        (6, b'a') => 19,
        (6, b'c') => 32,
        (6, b'e') => 35,
        (7, b'e') => 36,
        (7, b'r') => 51,
        (8, b'l') => 46,
        (10, b's') => 55,
        (11, b'r') => 53,
        (12, b'c') => 31,
        (13, b'a') => 18,
        (13, b'c') if name == b"cache-control" => 24,
        (13, b'c') => 30,
        (13, b'l') => 44,
        (14, b'c') => 28,
        (16, b'c') if name == b"content-encoding" => 26,
        (16, b'c') => 27,
        (16, b'w') => 61,
        (19, b'c') => 25,
        _ => return None,
    };
    (STATIC_TABLE[index - 1].0.as_bytes() == name).then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_index_of_its_first_entry_or_none() {
        for (name, _) in STATIC_TABLE {
            if let Some(index) = name_index(name.as_bytes()) {
                let first = STATIC_TABLE.iter().position(|(own, _)| *own == name);
                assert_eq!(Some(index - 1), first, "{name}");
            }
        }
        for name in
            ["content-type", "content-length", "date", "server", "etag", "location", "set-cookie"]
        {
            assert!(name_index(name.as_bytes()).is_some(), "{name}");
        }
        for name in ["", "x", "dote", "content-typo", "cache-contral"] {
            assert_eq!(name_index(name.as_bytes()), None, "{name}");
        }
    }
}
