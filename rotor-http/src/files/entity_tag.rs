//! `EntityTag`: entity tags (RFC 9110 §8.8.3): made, quoted, parsed from lists, and compared weakly
//! or strongly.

use std::fmt;

use super::tag_key::TagKey;

/// A validator for one version of a representation: an opaque text, weak or strong.
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::files::EntityTag;
///
/// let tag = EntityTag::new_weak("v1").expect("no quote in it");
/// assert_eq!(tag.as_str(), "W/\"v1\"");
/// assert_eq!(EntityTag::new_strong("a\"b"), None);
/// ```
#[doc(alias = "ETag")]
#[doc(alias = "validator")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EntityTag {
    /// The tag as it is sent.
    text: Box<str>,
}

impl EntityTag {
    /// Makes a strong tag: equal tags mean equal bytes. Returns `None` if the text has a quote,
    /// whitespace or a control character.
    #[doc(alias = "strong")]
    pub fn new_strong(opaque: &str) -> Option<EntityTag> {
        EntityTag::quoted("", opaque)
    }

    /// Makes a weak tag: representations with equal tags are equivalent, so one can replace the
    /// other. Returns `None` in the same cases as [`new_strong`](EntityTag::new_strong).
    #[doc(alias = "weak")]
    pub fn new_weak(opaque: &str) -> Option<EntityTag> {
        EntityTag::quoted("W/", opaque)
    }

    fn quoted(prefix: &str, opaque: &str) -> Option<EntityTag> {
        let is_valid = opaque.bytes().all(is_tag_byte);
        is_valid.then(|| EntityTag { text: format!("{prefix}\"{opaque}\"").into() })
    }

    /// Makes the tag of a file, which was changed in any way (`ctime`) at this time. The tag is
    /// strong if that is so long ago that any later change has another time.
    ///
    /// Two versions with the same length but different times or inodes have equal tags with a
    /// probability of 1 in 2^64. Without the key, neither the inode nor the time can be computed
    /// from the tag.
    pub(super) fn from_file(
        key: TagKey,
        changed_nanos: u64,
        len: u64,
        inode: u64,
        is_settled: bool,
    ) -> EntityTag {
        let prefix = if is_settled { "" } else { "W/" };
        let mixed = key.mix([changed_nanos, len, inode]);
        EntityTag { text: format!("{prefix}\"{len:x}-{mixed:016x}\"").into() }
    }

    /// Returns the tag as it is sent in a field.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the tag is weak.
    pub fn is_weak(&self) -> bool {
        self.tag_ref().is_weak
    }

    /// Returns whether the value consists of exactly this tag, by strong comparison: for
    /// `If-Range`.
    pub(super) fn matches_if_range(&self, value: &[u8]) -> bool {
        matches!(TagRef::parse(value), Some((other, b"")) if self.tag_ref().strongly_equals(&other))
    }

    /// Returns whether the value of an `If-Match` matches this tag: it is `*`, or an equal tag is
    /// in the list, by strong comparison.
    pub(super) fn matches_if_match(&self, list: &[u8]) -> bool {
        list == b"*" || TagList(list).any(|other| self.tag_ref().strongly_equals(&other))
    }

    /// Returns whether the value of an `If-None-Match` matches this tag: it is `*`, or an equal tag
    /// is in the list, by weak comparison.
    pub(super) fn matches_if_none_match(&self, list: &[u8]) -> bool {
        list == b"*" || TagList(list).any(|other| self.tag_ref().opaque == other.opaque)
    }

    fn tag_ref(&self) -> TagRef<'_> {
        match self.text.as_bytes().strip_prefix(b"W/") {
            Some(opaque) => TagRef { is_weak: true, opaque },
            None => TagRef { is_weak: false, opaque: self.text.as_bytes() },
        }
    }
}

impl fmt::Debug for EntityTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EntityTag({})", self.text)
    }
}

impl fmt::Display for EntityTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A tag in a field that a peer sent.
#[derive(Debug, PartialEq, Eq)]
struct TagRef<'a> {
    is_weak: bool,
    /// The text with its quotes.
    opaque: &'a [u8],
}

impl<'a> TagRef<'a> {
    /// Parses a tag at the beginning of the text, and returns the rest.
    fn parse(text: &'a [u8]) -> Option<(TagRef<'a>, &'a [u8])> {
        let (is_weak, quoted) = match text.strip_prefix(b"W/") {
            Some(quoted) => (true, quoted),
            None => (false, text),
        };
        let inner = quoted.strip_prefix(b"\"")?;
        let len = inner.iter().position(|&byte| !is_tag_byte(byte))?;
        (inner[len] == b'"').then_some(())?;
        let (opaque, rest) = quoted.split_at(len + 2);
        Some((TagRef { is_weak, opaque }, rest))
    }

    /// RFC 9110 §8.8.3.2, strong comparison: "two entity tags are equivalent if both are not weak
    /// and their opaque-tags match character-by-character".
    fn strongly_equals(&self, other: &TagRef<'_>) -> bool {
        !self.is_weak && !other.is_weak && self.opaque == other.opaque
    }
}

/// The tags of a list. A tag may contain a comma, so the list is not split at commas. Parsing stops
/// at the first malformed element; the rest matches nothing. So `If-Match` fails, and with
/// `If-None-Match` the whole file is sent.
struct TagList<'a>(&'a [u8]);

impl<'a> Iterator for TagList<'a> {
    type Item = TagRef<'a>;

    fn next(&mut self) -> Option<TagRef<'a>> {
        // RFC 9110 §5.6.1: empty elements are skipped.
        let begin = self.0.iter().position(|byte| !matches!(byte, b',' | b' ' | b'\t'))?;
        let (tag, rest) = TagRef::parse(&self.0[begin..])?;
        // If something else follows the tag, this is not a list, and may have another meaning.
        let is_delimited =
            rest.iter().find(|byte| !matches!(byte, b' ' | b'\t')).is_none_or(|&byte| byte == b',');
        self.0 = rest;
        is_delimited.then_some(tag)
    }
}

/// Returns whether the byte is an `etagc`: visible ASCII without the quote, or beyond ASCII.
fn is_tag_byte(byte: u8) -> bool {
    matches!(byte, 0x21 | 0x23..=0x7e | 0x80..)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strong(opaque: &str) -> EntityTag {
        EntityTag::new_strong(opaque).expect("no quote in it")
    }

    #[test]
    fn tags_are_quoted_and_invalid_ones_are_refused() {
        assert_eq!(strong("").as_str(), "\"\"");
        assert_eq!(strong("a,b").to_string(), "\"a,b\"");
        assert!(!strong("W/").is_weak());
        assert!(
            EntityTag::new_weak("a").is_some_and(|tag| tag.is_weak() && tag.as_str() == "W/\"a\"")
        );
        for bad in ["\"", "a b", "a\tb", "\0", "\r\n", "\x7f"] {
            assert_eq!(EntityTag::new_strong(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn comparison_is_strong_or_weak() {
        // RFC 9110 §8.8.3.2, the table of examples: ours, theirs, strong, weak.
        for (ours, theirs, is_strong_match, is_weak_match) in [
            ("W/\"1\"", "W/\"1\"", false, true),
            ("W/\"1\"", "W/\"2\"", false, false),
            ("W/\"1\"", "\"1\"", false, true),
            ("\"1\"", "W/\"1\"", false, true),
            ("\"1\"", "\"1\"", true, true),
            ("\"1\"", "\"2\"", false, false),
        ] {
            let ours = EntityTag { text: ours.into() };
            assert_eq!(
                ours.matches_if_match(theirs.as_bytes()),
                is_strong_match,
                "{ours} {theirs}"
            );
            assert_eq!(
                ours.matches_if_range(theirs.as_bytes()),
                is_strong_match,
                "{ours} {theirs}"
            );
            assert_eq!(
                ours.matches_if_none_match(theirs.as_bytes()),
                is_weak_match,
                "{ours} {theirs}"
            );
        }
    }

    #[test]
    fn lists_are_parsed_up_to_the_first_malformed_element() {
        let tag = strong("a,b");
        for (list, is_match) in [
            ("\"a,b\"", true),
            ("\"x\", \"a,b\"", true),
            ("\"x\",\t\"a,b\"\t, \"y\"", true),
            (", ,\"a,b\",,", true),
            ("W/\"x\",\"a,b\"", true),
            ("*", true),
            ("", false),
            (",", false),
            ("\"a\"", false),
            ("a,b", false),
            ("\"a,b", false),
            ("a,b\"", false),
            ("\"a,b\"x", false),
            ("\"a,b\" \"y\"", false),
            ("\"x\" \"a,b\"", false),
            ("bad, \"a,b\"", false),
            ("\"x y\", \"a,b\"", false),
            ("w/\"a,b\"", false),
            ("*, \"a,b\"", false),
            ("\"a,b\\\"", false),
            ("**", false),
        ] {
            assert_eq!(tag.matches_if_match(list.as_bytes()), is_match, "{list}");
            assert_eq!(tag.matches_if_none_match(list.as_bytes()), is_match, "{list}");
        }
    }

    #[test]
    fn if_range_accepts_a_single_tag_and_no_list() {
        let tag = strong("a");
        assert!(tag.matches_if_range(b"\"a\""));
        for other in ["*", "\"a\",", "\"a\", \"b\"", "\"a\" ", "a", "", "W/\"a\""] {
            assert!(!tag.matches_if_range(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn the_tag_of_a_file_differs_between_versions() {
        let key = TagKey::new([1; 16]);
        let base = EntityTag::from_file(key, 5, 7, 9, true);
        assert_eq!(base, EntityTag::from_file(key, 5, 7, 9, true));
        assert!(!base.is_weak() && EntityTag::from_file(key, 5, 7, 9, false).is_weak());
        assert!(
            EntityTag::from_file(key, 5, 7, 9, false)
                .matches_if_none_match(base.as_str().as_bytes())
        );
        for other in [
            EntityTag::from_file(key, 6, 7, 9, true),
            EntityTag::from_file(key, 5, 8, 9, true),
            EntityTag::from_file(key, 5, 7, 10, true),
            EntityTag::from_file(key, 9, 7, 5, true),
            EntityTag::from_file(TagKey::new([2; 16]), 5, 7, 9, true),
        ] {
            assert_ne!(base, other);
        }
        let read = TagRef::parse(base.as_str().as_bytes());
        assert!(matches!(read, Some((_, b""))), "{base}");
    }
}
