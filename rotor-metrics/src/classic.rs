//! The classic text format of Prometheus, made of OpenMetrics.
//!
//! The two differ in little: a counter's samples end in `_total` in both, but OpenMetrics names the
//! family without it, so that a reader of the classic format finds a family without samples and
//! samples without help; likewise `_info`. The classic format knows no unit, no end, no exemplars, and
//! fewer types: one that it does not know makes the whole page unreadable.

/// Rewrites what `prometheus-client` writes.
pub(crate) fn classic(open_metrics: &str) -> String {
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
        // The help comes before the type, which says what it is the help of.
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

/// What the name of a family of a type of OpenMetrics ends in, and the type that it is.
fn classic_type(kind: &str) -> (&'static str, &str) {
    match kind {
        "counter" => ("_total", kind),
        "info" => ("_info", "gauge"),
        "stateset" => ("", "gauge"),
        "unknown" => ("", "untyped"),
        _ => ("", kind),
    }
}

/// A sample without what stands behind ` # `, outside of the values of labels.
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
    fn counters_are_declared_by_the_names_of_their_samples() {
        let open = "# HELP a_b How many.\n# TYPE a_b counter\n# UNIT a_b b\na_b_total{x=\"y\"} 1\n\
                    # HELP c A counter.\n# TYPE c gauge\nc 2\n# EOF\n";
        let wanted = "# HELP a_b_total How many.\n# TYPE a_b_total counter\na_b_total{x=\"y\"} 1\n\
                      # HELP c A counter.\n# TYPE c gauge\nc 2\n";
        assert_eq!(classic(open), wanted);
    }

    #[test]
    fn types_that_it_does_not_know_become_those_that_it_does() {
        let open = "# HELP build Which.\n# TYPE build info\nbuild_info{v=\"1\"} 1\n\
                    # HELP s State.\n# TYPE s stateset\ns{s=\"a\"} 1\n\
                    # HELP u Any.\n# TYPE u unknown\nu 3\n# EOF\n";
        let wanted = "# HELP build_info Which.\n# TYPE build_info gauge\nbuild_info{v=\"1\"} 1\n\
                      # HELP s State.\n# TYPE s gauge\ns{s=\"a\"} 1\n\
                      # HELP u Any.\n# TYPE u untyped\nu 3\n";
        assert_eq!(classic(open), wanted);
    }

    #[test]
    fn exemplars_are_left_out_and_values_that_look_like_them_are_not() {
        let open = "a_total{x=\" # {\\\" # \"} 1 # {trace_id=\"7\"} 1.0\nb 2\n";
        assert_eq!(classic(open), "a_total{x=\" # {\\\" # \"} 1\nb 2\n");
    }
}
