//! Which of the two formats a scraper wants: `Accept`, with its weights (RFC 9110 §12.5.1).

/// Returns whether a scraper with these lines of `Accept` gets OpenMetrics: it names it with a
/// weight that is not 0, nor less than that of the classic format.
pub(crate) fn wants_open_metrics<'r>(lines: impl Iterator<Item = &'r [u8]>) -> bool {
    let (mut open, mut classic) = (None, None);
    for element in lines.flat_map(|line| line.split(|&octet| octet == b',')) {
        let Some(range) = Range::read(element) else { continue };
        if range.names(b"application/openmetrics-text", b"1.0.0") {
            open = open.max(Some(range.weight));
        } else if range.names(b"text/plain", b"0.0.4") {
            classic = classic.max(Some(range.weight));
        }
    }
    open.is_some_and(|open| open > 0 && open >= classic.unwrap_or(0))
}

/// One that is accepted.
struct Range<'r> {
    kind: &'r [u8],
    version: Option<&'r [u8]>,
    /// In thousandths.
    weight: u16,
}

impl<'r> Range<'r> {
    /// Absent: it is malformed, which counts as unsaid.
    fn read(element: &'r [u8]) -> Option<Range<'r>> {
        let mut parts = element.split(|&octet| octet == b';').map(<[u8]>::trim_ascii);
        let kind = parts.next()?;
        let mut range = Range { kind, version: None, weight: 1_000 };
        // One may be empty (RFC 9110 §5.6.6).
        for part in parts.filter(|part| !part.is_empty()) {
            let equals = part.iter().position(|&octet| octet == b'=')?;
            let (name, value) = (&part[..equals], &part[equals + 1..]);
            if name.eq_ignore_ascii_case(b"q") {
                range.weight = weight(value)?;
            } else if name.eq_ignore_ascii_case(b"version") {
                range.version = Some(value);
            }
        }
        Some(range)
    }

    fn names(&self, kind: &[u8], version: &[u8]) -> bool {
        let is_version = self.version.is_none_or(|own| own == version);
        self.kind.eq_ignore_ascii_case(kind) && is_version
    }
}

fn weight(value: &[u8]) -> Option<u16> {
    let value: f32 = str::from_utf8(value).ok()?.parse().ok()?;
    // Three digits at most (RFC 9110 §12.4.2); what is more precise is cut.
    (0.0..=1.0).contains(&value).then_some((value * 1_000.0) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_metrics_is_for_those_who_like_it_no_less() {
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
        ] {
            let lines_of = lines.iter().map(|line| line.as_bytes());
            assert_eq!(wants_open_metrics(lines_of), expected, "{lines:?}");
        }
    }
}
