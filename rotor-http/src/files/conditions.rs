//! Conditional requests (RFC 9110 §13): the conditions of a request, and their evaluation.

use std::borrow::Cow;

use super::entity_tag::EntityTag;
use crate::semantics::date::parse_date;
use crate::semantics::fields::Fields;

/// The conditions of a GET or HEAD request, and its range.
///
/// Read them with [`from_fields`](Conditions::from_fields), then call
/// [`evaluate`](Conditions::evaluate) for the representation that would be sent. If the response
/// without them would not be 2xx, a handler must ignore them (RFC 9110 §13.2.1).
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::files::{Conditions, EntityTag, Validators, Evaluation};
/// use rotor::http::server::Head;
///
/// fn is_known_to_the_peer(head: &Head<'_>, tag: &EntityTag, now: i64) -> bool {
///     let validators = Validators { tag: Some(tag), modified: None, modified_is_strong: false };
///     Conditions::from_fields(head.fields()).evaluate(&validators, now) == Evaluation::NotModified
/// }
/// ```
#[doc(alias = "conditional request")]
#[doc(alias = "If-None-Match")]
#[doc(alias = "If-Modified-Since")]
#[doc(alias = "If-Match")]
#[doc(alias = "If-Range")]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conditions<'a> {
    if_match: Value<'a>,
    if_none_match: Value<'a>,
    if_modified_since: Value<'a>,
    if_unmodified_since: Value<'a>,
    if_range: Value<'a>,
    range: Value<'a>,
}

/// The value of a field. Several lines are joined as in RFC 9110 §5.3.
type Value<'a> = Option<Cow<'a, [u8]>>;

/// What distinguishes a representation from other versions.
#[derive(Debug, Clone, Copy)]
pub struct Validators<'a> {
    /// The entity tag.
    pub tag: Option<&'a EntityTag>,
    /// When the representation was changed, as in `Last-Modified`: seconds since 1970.
    pub modified: Option<i64>,
    /// Whether it cannot have changed twice in that second, so that an equal date means equal bytes
    /// (RFC 9110 §8.8.2.2).
    pub modified_is_strong: bool,
}

/// The result of evaluating the conditions of a request: how to respond (RFC 9110 §13.2.1).
#[doc(alias = "Verdict")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evaluation {
    /// Perform the request.
    Perform,
    /// Respond with 304: the client already has the current version.
    NotModified,
    /// Respond with 412: a precondition is not met.
    PreconditionFailed,
}

impl<'a> Conditions<'a> {
    /// Collects the fields in one pass.
    #[doc(alias = "of")]
    pub fn from_fields(fields: Fields<'a>) -> Conditions<'a> {
        let mut conditions = Conditions::default();
        for field in fields.iter() {
            let is = |name: &str| field.name.eq_ignore_ascii_case(name);
            let place = match field.name.len() {
                5 if is("Range") => &mut conditions.range,
                8 if is("If-Match") => &mut conditions.if_match,
                8 if is("If-Range") => &mut conditions.if_range,
                13 if is("If-None-Match") => &mut conditions.if_none_match,
                17 if is("If-Modified-Since") => &mut conditions.if_modified_since,
                19 if is("If-Unmodified-Since") => &mut conditions.if_unmodified_since,
                _ => continue,
            };
            match place {
                Some(value) => {
                    // RFC 9110 §5.3. Two dates or ranges become a malformed one in this way, which
                    // is ignored.
                    value.to_mut().extend_from_slice(b", ");
                    value.to_mut().extend_from_slice(field.value);
                }
                None => *place = Some(Cow::Borrowed(field.value)),
            }
        }
        conditions
    }

    /// Removes the range: for methods other than GET, which have no ranges (RFC 9110 §14.2).
    #[must_use]
    pub fn without_range(self) -> Conditions<'a> {
        Conditions { range: None, if_range: None, ..self }
    }

    /// Returns an owned copy, for a handler that waits before it responds.
    pub fn into_owned(self) -> Conditions<'static> {
        let own = |value: Value<'a>| value.map(|value| Cow::Owned(value.into_owned()));
        Conditions {
            if_match: own(self.if_match),
            if_none_match: own(self.if_none_match),
            if_modified_since: own(self.if_modified_since),
            if_unmodified_since: own(self.if_unmodified_since),
            if_range: own(self.if_range),
            range: own(self.range),
        }
    }

    /// Evaluates the conditions in the order of RFC 9110 §13.2.2. `now`, in seconds since 1970,
    /// decides the century of dates with two-digit years.
    ///
    /// A malformed date is ignored. A date is also ignored if the corresponding field with tags is
    /// present.
    #[doc(alias = "check")]
    pub fn evaluate(&self, validators: &Validators<'_>, now: i64) -> Evaluation {
        // RFC 9110 §13.1.3, §13.1.4: an invalid date is ignored.
        let date = |value: &Value<'_>| value.as_deref().and_then(|value| parse_date(value, now));
        if let Some(list) = self.if_match.as_deref() {
            if !validators.tag.map_or(list == b"*", |tag| tag.matches_if_match(list)) {
                return Evaluation::PreconditionFailed;
            }
        // §13.1.4: ignored if there is an `If-Match`.
        } else if let (Some(since), Some(modified)) =
            (date(&self.if_unmodified_since), validators.modified)
            && modified > since
        {
            return Evaluation::PreconditionFailed;
        }
        // §13.1.3: here, too, the date counts only without an `If-None-Match`. This comes after the
        // first two, because by §13.2.2 a failed precondition takes precedence.
        let is_known = if let Some(list) = self.if_none_match.as_deref() {
            validators.tag.map_or(list == b"*", |tag| tag.matches_if_none_match(list))
        } else {
            let since = date(&self.if_modified_since);
            since.zip(validators.modified).is_some_and(|(since, modified)| modified <= since)
        };
        if is_known { Evaluation::NotModified } else { Evaluation::Perform }
    }

    /// Returns the requested range, unless `If-Range` says that it belongs to another version (RFC
    /// 9110 §13.1.5).
    pub(super) fn range(&self, validators: &Validators<'_>, now: i64) -> Option<&[u8]> {
        let range = self.range.as_deref()?;
        let Some(condition) = self.if_range.as_deref() else { return Some(range) };
        // §13.1.5: "A recipient of an If-Range header field MUST ignore the Range header field if
        // the If-Range condition evaluates as false". A date must be equal, and a strong validator.
        let is_tag = condition.starts_with(b"\"") || condition.starts_with(b"W/");
        let holds = if is_tag {
            validators.tag.is_some_and(|tag| tag.matches_if_range(condition))
        } else {
            let date = parse_date(condition, now);
            validators.modified_is_strong && date.is_some() && date == validators.modified
        };
        holds.then_some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::Evaluation::{NotModified, Perform, PreconditionFailed};
    use super::*;
    use crate::h1::{FieldStorage, HeadReader};
    use crate::limits::Limits;

    const MODIFIED: i64 = 784_111_777;
    const NOW: i64 = 1_790_000_000;
    const AT: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

    fn with_conditions<T>(lines: &str, f: impl FnOnce(Conditions<'_>) -> T) -> T {
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
        let mut storage = FieldStorage::new();
        let head = HeadReader::new().read_request(text.as_bytes(), &mut storage, &Limits::new());
        f(Conditions::from_fields(head.expect("well-formed").expect("whole").fields()))
    }

    fn check(lines: &str, tag: Option<&EntityTag>) -> Evaluation {
        let validators = Validators { tag, modified: Some(MODIFIED), modified_is_strong: true };
        with_conditions(lines, |conditions| {
            let evaluation = conditions.evaluate(&validators, NOW);
            assert_eq!(
                conditions.into_owned().evaluate(&validators, NOW),
                evaluation,
                "a copy says the same"
            );
            evaluation
        })
    }

    #[test]
    fn conditions_are_evaluated_in_the_order_of_the_rfc() {
        let tag = EntityTag::new_strong("a");
        for (lines, evaluation) in [
            ("", Perform),
            // If-Match: strong comparison, false means 412.
            ("If-Match: \"a\"\r\n", Perform),
            ("If-Match: \"b\", \"a\"\r\n", Perform),
            ("If-Match: *\r\n", Perform),
            ("If-Match: W/\"a\"\r\n", PreconditionFailed),
            ("If-Match: \"b\"\r\n", PreconditionFailed),
            ("If-Match: nonsense\r\n", PreconditionFailed),
            ("if-match: \"b\"\r\nIF-MATCH: \"a\"\r\n", Perform),
            // If-Unmodified-Since: only without If-Match.
            (&format!("If-Unmodified-Since: {AT}\r\n"), Perform),
            (&format!("If-Unmodified-Since: {AFTER}\r\n"), Perform),
            (&format!("If-Unmodified-Since: {BEFORE}\r\n"), PreconditionFailed),
            ("If-Unmodified-Since: yesterday\r\n", Perform),
            (&format!("If-Unmodified-Since: {BEFORE}\r\nIf-Match: \"a\"\r\n"), Perform),
            (&format!("If-Unmodified-Since: {AT}\r\nIf-Match: \"b\"\r\n"), PreconditionFailed),
            // If-None-Match: weak comparison.
            ("If-None-Match: \"a\"\r\n", NotModified),
            ("If-None-Match: W/\"a\"\r\n", NotModified),
            ("If-None-Match: \"b\", \"a\"\r\n", NotModified),
            ("If-None-Match: \"b\"\r\nIf-None-Match: \"a\"\r\n", NotModified),
            ("If-None-Match: *\r\n", NotModified),
            ("If-None-Match: \"b\"\r\n", Perform),
            ("If-None-Match: a\r\n", Perform),
            ("If-None-Match: \r\n", Perform),
            // If-Modified-Since: only without If-None-Match.
            (&format!("If-Modified-Since: {AT}\r\n"), NotModified),
            (&format!("If-Modified-Since: {AFTER}\r\n"), NotModified),
            (&format!("If-Modified-Since: {BEFORE}\r\n"), Perform),
            ("If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\n", NotModified),
            ("If-Modified-Since: Sun Nov  6 08:49:37 1994\r\n", NotModified),
            ("If-Modified-Since: 784111777\r\n", Perform),
            ("If-Modified-Since: \r\n", Perform),
            (&format!("If-Modified-Since: {AT}\r\nIf-Modified-Since: {AT}\r\n"), Perform),
            (&format!("If-Modified-Since: {AT}\r\nIf-None-Match: \"b\"\r\n"), Perform),
            (&format!("If-Modified-Since: {BEFORE}\r\nIf-None-Match: \"a\"\r\n"), NotModified),
            (&format!("If-Modified-Since: {AT}\r\nIf-None-Match: \r\n"), Perform),
            // 412 comes before 304.
            ("If-Match: \"b\"\r\nIf-None-Match: \"a\"\r\n", PreconditionFailed),
            ("If-Match: \"a\"\r\nIf-None-Match: \"a\"\r\n", NotModified),
            (
                &format!("If-Unmodified-Since: {BEFORE}\r\nIf-Modified-Since: {AT}\r\n"),
                PreconditionFailed,
            ),
        ] {
            assert_eq!(check(lines, tag.as_ref()), evaluation, "{lines}");
        }
    }

    #[test]
    fn a_weak_tag_never_matches_strongly() {
        let tag = EntityTag::new_weak("a");
        for (lines, evaluation) in [
            ("If-Match: \"a\"\r\n", PreconditionFailed),
            ("If-Match: W/\"a\"\r\n", PreconditionFailed),
            ("If-Match: *\r\n", Perform),
            ("If-None-Match: \"a\"\r\n", NotModified),
            ("If-None-Match: W/\"a\"\r\n", NotModified),
        ] {
            assert_eq!(check(lines, tag.as_ref()), evaluation, "{lines}");
        }
    }

    #[test]
    fn only_the_asterisk_matches_a_file_without_a_tag() {
        for (lines, evaluation) in [
            ("If-Match: \"a\"\r\n", PreconditionFailed),
            ("If-Match: *\r\n", Perform),
            ("If-None-Match: \"a\"\r\n", Perform),
            ("If-None-Match: *\r\n", NotModified),
        ] {
            assert_eq!(check(lines, None), evaluation, "{lines}");
        }
    }

    #[test]
    fn a_range_applies_only_to_the_version_in_if_range() {
        let (strong, weak) = (EntityTag::new_strong("a"), EntityTag::new_weak("a"));
        let no_line = String::new();
        for (condition, tag, modified_is_strong, holds) in [
            (&no_line, &strong, true, true),
            (&"If-Range: \"a\"\r\n".into(), &strong, true, true),
            (&"If-Range: \"b\"\r\n".into(), &strong, true, false),
            (&"If-Range: W/\"a\"\r\n".into(), &strong, true, false),
            (&"If-Range: \"a\"\r\n".into(), &weak, true, false),
            (&"If-Range: W/\"a\"\r\n".into(), &weak, true, false),
            (&"If-Range: \"a\", \"b\"\r\n".into(), &strong, true, false),
            (&"If-Range: *\r\n".into(), &strong, true, false),
            (&format!("If-Range: {AT}\r\n"), &strong, true, true),
            (&format!("If-Range: {AT}\r\n"), &strong, false, false),
            (&format!("If-Range: {AFTER}\r\n"), &strong, true, false),
            (&format!("If-Range: {BEFORE}\r\n"), &strong, true, false),
            (&"If-Range: soon\r\n".into(), &strong, true, false),
        ] {
            let validators =
                Validators { tag: tag.as_ref(), modified: Some(MODIFIED), modified_is_strong };
            let lines = format!("Range: bytes=0-1\r\n{condition}");
            with_conditions(&lines, |conditions| {
                let range = conditions.range(&validators, NOW);
                assert_eq!(range, holds.then_some(&b"bytes=0-1"[..]), "{lines}");
                assert_eq!(conditions.without_range().range(&validators, NOW), None);
            });
        }
        let validators =
            Validators { tag: strong.as_ref(), modified: None, modified_is_strong: true };
        with_conditions("If-Range: \"a\"\r\n", |conditions| {
            assert_eq!(conditions.range(&validators, NOW), None, "no range was asked for");
        });
        for condition in [AT, "soon"] {
            with_conditions(
                &format!("Range: bytes=0-1\r\nIf-Range: {condition}\r\n"),
                |conditions| {
                    assert_eq!(
                        conditions.range(&validators, NOW),
                        None,
                        "without a date, none is its: {condition}"
                    );
                },
            );
        }
    }
}
