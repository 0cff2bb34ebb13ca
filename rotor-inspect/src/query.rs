//! Reads the parameters of a query.

use crate::walk::{Query, Sort};

/// Returns the value of a parameter, percent-decoded.
pub(crate) fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| percent_decode(value))
}

/// Reads the query for machines; invalid values are ignored.
pub(crate) fn parse_query(query: &str) -> Query {
    let sort = match parameter(query, "sort").as_deref() {
        Some("age") => Sort::Age,
        Some("deadline") => Sort::Deadline,
        Some("messages") => Sort::Messages,
        _ => Sort::Held,
    };
    let number = |name| parameter(query, name).and_then(|number| number.parse().ok());
    Query {
        sort,
        page: number("page").unwrap_or(0),
        machine: parameter(query, "machine"),
        state: parameter(query, "state"),
        token: number("token"),
    }
}

/// Percent-decodes text. Invalid sequences are left unchanged.
fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        // `from_str_radix` accepts a sign, which is not a digit.
        let code = text.get(at + 1..at + 3).filter(|code| !code.starts_with('+'));
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        match (bytes[at], code) {
            (b'%', Some(byte)) => {
                decoded.push(byte);
                at += 3;
            }
            (byte, _) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_and_decoded() {
        let query = "loop=a%20b&machine=x%3A%3AY%3cZ%3e&sort=age&page=3&token=17&bad=%zz%";
        assert_eq!(parameter(query, "loop").as_deref(), Some("a b"));
        assert_eq!(parameter(query, "bad").as_deref(), Some("%zz%"));
        assert_eq!(parameter(query, "none"), None);
        assert_eq!(parameter("a=%+5%-5", "a").as_deref(), Some("%+5%-5"));
        assert_eq!(parameter("a=%e4%", "a").as_deref(), Some("\u{fffd}%"));
        let requested = parse_query(query);
        assert_eq!((requested.sort, requested.page, requested.token), (Sort::Age, 3, Some(17)));
        assert_eq!(requested.machine.as_deref(), Some("x::Y<Z>"));
        let requested = parse_query("page=-1&sort=nonsense&token=x");
        assert_eq!((requested.sort, requested.page, requested.token), (Sort::Held, 0, None));
    }
}
