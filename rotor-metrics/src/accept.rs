//! Chooses between the two formats by `Accept` and its weights (RFC 9110 §12.5.1).

use rotor_http::parse_weight;

/// Returns whether a scraper with these lines of `Accept` gets OpenMetrics: if it prefers that to
/// the classic format, or gives both the same weight and names OpenMetrics.
pub(crate) fn wants_open_metrics<'r>(lines: impl Iterator<Item = &'r [u8]>) -> bool {
    let (mut open, mut classic) = (Preference::NONE, Preference::NONE);
    for element in lines.flat_map(|line| split(line, b',')) {
        let Some(range) = MediaRange::parse(element) else { continue };
        open = open.max(range.preference(b"application", b"openmetrics-text", b"1.0.0"));
        classic = classic.max(range.preference(b"text", b"plain", b"0.0.4"));
    }
    let is_named = open.precision >= Precision::Named;
    open.weight > classic.weight || open.weight > 0 && open.weight == classic.weight && is_named
}

/// The preference for a format. The most precise range decides; of equally precise ones, that with
/// the larger weight.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Preference {
    precision: Precision,
    /// In thousandths.
    weight: u16,
}

impl Preference {
    const NONE: Preference = Preference { precision: Precision::Unspecified, weight: 0 };
}

/// How precisely a range names a format.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Precision {
    Unspecified,
    /// `*/*`.
    Any,
    /// `text/*`.
    Type,
    Named,
    WithVersion,
}

/// A media range of `Accept`.
struct MediaRange<'r> {
    kind: &'r [u8],
    subtype: &'r [u8],
    version: Option<&'r [u8]>,
    /// In thousandths.
    weight: u16,
}

impl<'r> MediaRange<'r> {
    /// Reads a media range; `None` if it is malformed, and is then ignored.
    fn parse(element: &'r [u8]) -> Option<MediaRange<'r>> {
        let mut parts = split(element, b';').map(<[u8]>::trim_ascii);
        let kind = parts.next()?;
        let slash = kind.iter().position(|&byte| byte == b'/')?;
        let (kind, subtype) = (&kind[..slash], &kind[slash + 1..]);
        let mut range = MediaRange { kind, subtype, version: None, weight: 1_000 };
        // A parameter may be empty (RFC 9110 §5.6.6).
        for part in parts.filter(|part| !part.is_empty()) {
            let equals = part.iter().position(|&byte| byte == b'=')?;
            let (name, value) = (&part[..equals], unquote(&part[equals + 1..])?);
            // The grammar allows no blanks around the `=`; `q =0` must not become a parameter that
            // is ignored, because it refuses its range.
            if name.iter().chain(value.first()).any(u8::is_ascii_whitespace) {
                return None;
            }
            if name.eq_ignore_ascii_case(b"q") {
                range.weight = parse_weight(value)?;
            } else if name.eq_ignore_ascii_case(b"version") {
                range.version = Some(value);
            }
        }
        Some(range)
    }

    /// Returns the preference for a format of this type and version. Other parameters are ignored.
    fn preference(&self, kind: &[u8], subtype: &[u8], version: &[u8]) -> Preference {
        let is_kind = self.kind.eq_ignore_ascii_case(kind);
        let precision = match (is_kind, self.subtype, self.version) {
            (false, b"*", _) if self.kind == b"*" => Precision::Any,
            (true, b"*", _) => Precision::Type,
            (true, own, None) if own.eq_ignore_ascii_case(subtype) => Precision::Named,
            (true, own, Some(own_version))
                if own.eq_ignore_ascii_case(subtype) && own_version == version =>
            {
                Precision::WithVersion
            }
            _ => return Preference::NONE,
        };
        Preference { precision, weight: self.weight }
    }
}

/// Splits text at separators, except within quoted strings (RFC 9110 §5.6.4).
fn split(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |&byte| {
        let was_escaped = is_escaped;
        is_escaped = is_quoted && !was_escaped && byte == b'\\';
        is_quoted ^= byte == b'"' && !was_escaped;
        byte == separator && !is_quoted
    })
}

/// Removes the quotes of a value; `None` if they are not closed. No value that matters has escapes.
fn unquote(value: &[u8]) -> Option<&[u8]> {
    match value {
        [b'"', quoted @ .., b'"'] => Some(quoted),
        [b'"', ..] => None,
        value => Some(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_metrics_is_chosen_if_preferred_or_equal_and_named() {
        for (lines, expected) in [
            (&[][..], false),
            (&["*/*"], false),
            (&["text/plain"], false),
            (&["application/openmetrics-text"], true),
            (&["Application/OpenMetrics-Text; Version=1.0.0; charset=utf-8"], true),
            (&["application/openmetrics-text;version=1.0.0;q=0"], false),
            (&["application/openmetrics-text;q=0.000, */*"], false),
            (&["application/openmetrics-text;version=0.0.1"], false),
            (
                &["application/openmetrics-text;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.1"],
                true,
            ),
            (&["application/openmetrics-text;q=0.4", "text/plain;q=0.5"], false),
            (&["text/plain;q=0.5", "application/openmetrics-text;q=0.5"], true),
            (&["text/plain;version=1.0.0;q=0.9,application/openmetrics-text;q=0.1"], true),
            (
                &["application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;\
                escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"],
                true,
            ),
            (&["application/openmetrics-text;q=2"], false),
            (&["application/openmetrics-text;q=-1"], false),
            (&["application/openmetrics-text;q=NaN"], false),
            (&["application/openmetrics-text;q"], false),
            (&["application/openmetrics-text; version=1.0.0; ;q=0.5;,text/plain;q=0.4"], true),
            (&["application/openmetrics-textual"], false),
            // A type that is not named has the weight of the range that includes it.
            (&["application/openmetrics-text;q=0.3, */*;q=0.8"], false),
            (&["application/openmetrics-text;q=0.3, text/*;q=0.8"], false),
            (&["application/openmetrics-text;q=0.8, */*;q=0.3"], true),
            (&["application/openmetrics-text;q=0.3, text/plain;q=0.1, */*;q=0.8"], true),
            (&["application/*"], true),
            (&["application/*;q=0.5, */*;q=0.5"], false),
            (&["text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8"], false),
            (&["text/plain;q=0, */*"], true),
            (&["*/*;q=0"], false),
            (&["*/plain, application/openmetrics-text;q=0.1"], true),
            // The more specific range counts, whatever its weight.
            (
                &["application/openmetrics-text;version=1.0.0;q=0, application/openmetrics-text"],
                false,
            ),
            (
                &["application/openmetrics-text", "application/openmetrics-text;version=1.0.0;q=0"],
                false,
            ),
            (
                &["text/plain;version=0.0.4;q=0.2, text/plain, application/openmetrics-text;q=0.5"],
                true,
            ),
            (&["application/*;q=0, application/openmetrics-text;q=0.1"], true),
            // Of two equal ranges, the larger weight counts.
            (
                &[
                    "application/openmetrics-text;q=0.1, application/openmetrics-text;q=0.9, text/plain;q=0.5",
                ],
                true,
            ),
            // Quoted strings.
            (&["application/openmetrics-text;version=\"1.0.0\""], true),
            (&["text/plain;x=\", application/openmetrics-text;y=\""], false),
            (&["text/plain;x=\"\\\", application/openmetrics-text;y=\""], false),
            (&["text/plain;x=\"\\\", application/openmetrics-text, z=\""], false),
            (&["application/openmetrics-text;x=\";q=0;\""], true),
            (&["application/openmetrics-text;x=\"q"], false),
            // Blanks, and invalid weights.
            (&["application/openmetrics-text ;\tq=0.5 , text/plain\t; q=0.4"], true),
            (&["application/openmetrics-text;q =0"], false),
            (&["application/openmetrics-text;q= 1"], false),
            (&["application/openmetrics-text;q=1e-1"], false),
            (&["application/openmetrics-text;q=+0.5"], false),
            (&["application/openmetrics-text;q=0.1234"], false),
            (&["application/openmetrics-text;q=1.001"], false),
            (&["application/openmetrics-text;q="], false),
            (&["application/openmetrics-text;q=1.000"], true),
            (&["application/openmetrics-text;q=0.001"], true),
            (&["application/openmetrics-text;q=0., text/plain;q=0"], false),
            (&["application/openmetrics-text;Q=0"], false),
            (&["*"], false),
            (&[""], false),
        ] {
            let lines_of = lines.iter().map(|line| line.as_bytes());
            assert_eq!(wants_open_metrics(lines_of), expected, "{lines:?}");
        }
    }
}
