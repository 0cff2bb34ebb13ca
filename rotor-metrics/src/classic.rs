//! Converts OpenMetrics to the classic text format of Prometheus.
//!
//! The two formats differ little. The samples of a counter end in `_total` in both, but OpenMetrics
//! names the family without that suffix. A reader of the classic format would see a family without
//! samples, and samples without help. The same applies to `_info`. The classic format has no units,
//! no end marker, no exemplars and fewer types; an unknown type makes the whole page unreadable.

/// Converts the output of `prometheus-client`.
pub(crate) fn to_classic(open_metrics: &str) -> String {
    let mut page = String::with_capacity(open_metrics.len() + 1_024);
    let mut lines = open_metrics.lines().peekable();
    while let Some(line) = lines.next() {
        if line == "# EOF" || line.starts_with("# UNIT ") {
            continue;
        }
        if !line.starts_with("# ") {
            page.push_str(without_exemplar(line));
            page.push('\n');
            continue;
        }
        // The help precedes the type, on which the suffix of its name depends.
        let is_help = line.starts_with("# HELP ");
        let declares = if is_help { lines.peek().copied() } else { Some(line) };
        let kind = declares.filter(|line| line.starts_with("# TYPE "));
        let kind = kind.and_then(|line| line.rsplit(' ').next()).unwrap_or_default();
        let (suffix, kind) = classic_type(kind);
        match line.splitn(4, ' ').collect::<Vec<_>>().as_slice() {
            ["#", keyword, name, rest] => {
                let rest = if is_help { rest } else { kind };
                page.extend(["# ", keyword, " ", name, suffix, " ", rest]);
            }
            _ => page.push_str(line),
        }
        page.push('\n');
    }
    page
}

/// Returns the suffix of a family's name, and its classic type, for a type of OpenMetrics.
fn classic_type(kind: &str) -> (&'static str, &str) {
    match kind {
        "counter" => ("_total", kind),
        "info" => ("_info", "gauge"),
        "stateset" => ("", "gauge"),
        "unknown" => ("", "untyped"),
        _ => ("", kind),
    }
}

/// Returns a sample without its exemplar, which follows a ` # ` outside of label values.
fn without_exemplar(sample: &str) -> &str {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, byte) in sample.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b'#' if !is_quoted => return sample[..at].trim_end(),
            _ => {}
        }
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_declared_with_their_sample_names() {
        let open = "# HELP a_b How many.\n# TYPE a_b counter\n# UNIT a_b b\na_b_total{x=\"y\"} 1\n\
                    # HELP c A counter.\n# TYPE c gauge\nc 2\n# EOF\n";
        let wanted = "# HELP a_b_total How many.\n# TYPE a_b_total counter\na_b_total{x=\"y\"} 1\n\
                      # HELP c A counter.\n# TYPE c gauge\nc 2\n";
        assert_eq!(to_classic(open), wanted);
    }

    #[test]
    fn types_without_a_classic_form_are_converted() {
        let open = "# HELP build Which.\n# TYPE build info\nbuild_info{v=\"1\"} 1\n\
                    # HELP s State.\n# TYPE s stateset\ns{s=\"a\"} 1\n\
                    # HELP u Any.\n# TYPE u unknown\nu 3\n# EOF\n";
        let wanted = "# HELP build_info Which.\n# TYPE build_info gauge\nbuild_info{v=\"1\"} 1\n\
                      # HELP s State.\n# TYPE s gauge\ns{s=\"a\"} 1\n\
                      # HELP u Any.\n# TYPE u untyped\nu 3\n";
        assert_eq!(to_classic(open), wanted);
    }

    #[test]
    fn only_real_exemplars_are_left_out() {
        let open = "a_total{x=\" # {\\\" # \"} 1 # {trace_id=\"7\"} 1.0\nb 2\n";
        assert_eq!(to_classic(open), "a_total{x=\" # {\\\" # \"} 1\nb 2\n");
    }
}
