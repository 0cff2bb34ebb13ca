//! Groups a page so that each family is declared once.
//!
//! `prometheus-client` writes the output of a registry's collectors one after another. If two of
//! them have a family in common, it is declared twice, and its samples are in two places. In both
//! formats this makes the whole page unreadable. Prometheus: "Only one TYPE line may exist for a
//! given metric name", "All lines for a given metric must be provided as one single group".
//! OpenMetrics 1.0 requires unique names of families.

use std::collections::BTreeMap;

/// A family of a page.
struct Family<'p> {
    /// Its `# HELP`, and the following lines that begin with `# `.
    declaration: &'p str,
    samples: Vec<&'p str>,
}

/// Moves the samples of a family that is declared again to those of its first declaration. The
/// first help is kept. A family that is declared again with another type or unit is left in its
/// place; the scraper will report that.
pub(crate) fn group_families(page: String) -> String {
    regroup(&page).unwrap_or(page)
}

/// Returns `None` if each family is declared once.
fn regroup(page: &str) -> Option<String> {
    let (before, families) = families(page);
    let mut first: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut groups: Vec<Family<'_>> = Vec::with_capacity(families.len());
    let mut is_changed = false;
    for mut family in families {
        match first.get(&identity(family.declaration)) {
            Some(&at) => {
                is_changed = true;
                groups[at].samples.append(&mut family.samples);
            }
            None => {
                first.insert(identity(family.declaration), groups.len());
                groups.push(family);
            }
        }
    }
    if !is_changed {
        return None;
    }
    let mut grouped = String::with_capacity(page.len());
    grouped.push_str(before);
    for family in &groups {
        grouped.push_str(family.declaration);
        family.samples.iter().for_each(|samples| grouped.push_str(samples));
    }
    if page.ends_with(EOF_LINE) {
        grouped.push_str(EOF_LINE);
    }
    Some(grouped)
}

const EOF_LINE: &str = "# EOF\n";

/// Returns the text before the first family, and the families, without the end marker.
fn families(page: &str) -> (&str, Vec<Family<'_>>) {
    let page = page.strip_suffix(EOF_LINE).unwrap_or(page);
    let mut starts = Vec::new();
    let mut at = 0;
    for line in page.split_inclusive('\n') {
        if line.starts_with("# HELP ") {
            starts.push(at);
        }
        at += line.len();
    }
    let before = &page[..starts.first().copied().unwrap_or(page.len())];
    let ends = starts.iter().skip(1).copied().chain([page.len()]);
    let families = starts.iter().zip(ends).map(|(&start, end)| {
        let lines = &page[start..end];
        let declared = lines.split_inclusive('\n').take_while(|line| line.starts_with("# "));
        let (declaration, samples) = lines.split_at(declared.map(str::len).sum());
        Family { declaration, samples: vec![samples] }
    });
    (before, families.collect())
}

/// Returns the name of a family, and its declaration except the help.
fn identity(declaration: &str) -> (&str, &str) {
    let (help, rest) = declaration.split_once('\n').unwrap_or((declaration, ""));
    (help.split(' ').nth(2).unwrap_or_default(), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_declared_twice_is_merged_into_the_first() {
        let page = "# HELP a How many.\n# TYPE a counter\n# UNIT a b\na_total{x=\"1\"} 1\n\
                    # HELP c More.\n# TYPE c gauge\nc 2\n\
                    # HELP a Once more.\n# TYPE a counter\n# UNIT a b\na_total{x=\"2\"} 3\n\
                    # HELP a Again.\n# TYPE a counter\n# UNIT a b\n\
                    # HELP c More.\n# TYPE c gauge\nc{x=\"# HELP a\"} 4\n# EOF\n";
        let wanted = "# HELP a How many.\n# TYPE a counter\n# UNIT a b\n\
                      a_total{x=\"1\"} 1\na_total{x=\"2\"} 3\n\
                      # HELP c More.\n# TYPE c gauge\nc 2\nc{x=\"# HELP a\"} 4\n# EOF\n";
        assert_eq!(group_families(page.to_owned()), wanted);
    }

    #[test]
    fn distinct_families_are_left_unchanged() {
        for page in [
            "",
            "# EOF\n",
            "a 1\n# EOF\n",
            "# HELP a A.\n# TYPE a gauge\na 1\n# HELP aa A.\n# TYPE aa gauge\naa 1\n# EOF\n",
            "# HELP a A.\n# TYPE a gauge\na 1\n# HELP a A.\n# TYPE a counter\na_total 1\n# EOF\n",
            "# HELP a A.\n# TYPE a gauge\n# UNIT a b\na 1\n# HELP a A.\n# TYPE a gauge\na 1\n# EOF\n",
        ] {
            assert_eq!(group_families(page.to_owned()), page);
        }
    }
}
