//! Names of topics, and filters with wildcards.

use super::reader::Malformed;

/// The maximum number of levels in a filter, which is also the maximum depth of the tree. A topic
/// name may have more; levels below are only matched by `#`.
pub(crate) const LEVELS_MAX: usize = 64;

/// Matches exactly one level.
pub(crate) const ONE: &str = "+";

/// Matches all following levels, or none.
pub(crate) const ALL: &str = "#";

/// Checks a topic name, to which messages are published (§4.7.1.1, §4.7.3).
pub(crate) fn check_name(name: &str) -> Result<&str, Malformed> {
    match name {
        "" => Err(Malformed("a topic without a name")),
        _ if name.contains(['+', '#']) => Err(Malformed("a wildcard in a topic's name")),
        _ => Ok(name),
    }
}

/// Checks a filter, to which clients subscribe. A wildcard must be a whole level, and `#` the last
/// one.
pub(crate) fn check_filter(filter: &str) -> Result<&str, Malformed> {
    if filter.is_empty() {
        return Err(Malformed("an empty filter"));
    }
    let mut levels = filter.split('/').peekable();
    while let Some(level) = levels.next() {
        let is_wildcard = level == ONE || level == ALL && levels.peek().is_none();
        if !is_wildcard && level.contains(['+', '#']) {
            return Err(Malformed("a wildcard within a level, or not at the end"));
        }
    }
    Ok(filter)
}

/// Returns the number of levels.
pub(crate) fn levels(filter: &str) -> usize {
    filter.split('/').count()
}

/// Returns whether a filter matches a name.
pub(crate) fn matches(filter: &str, name: &str) -> bool {
    if is_hidden(name) && filter.starts_with(['+', '#']) {
        return false;
    }
    let mut name = name.split('/');
    for level in filter.split('/') {
        match (level, name.next()) {
            // This also matches after the last level: `a/#` matches `a` (§4.7.1.2).
            (ALL, _) => return true,
            (ONE, Some(_)) => {}
            (level, Some(here)) if level == here => {}
            _ => return false,
        }
    }
    name.next().is_none()
}

/// Returns whether a name begins with a dollar. Such names are for the broker's own purposes, and a
/// wildcard at the beginning does not match them (§4.7.2).
pub(crate) fn is_hidden(name: &str) -> bool {
    name.starts_with('$')
}

/// Returns the common beginning of all names that a filter matches.
pub(crate) fn literal_prefix(filter: &str) -> &str {
    let end = filter.find(['+', '#']).unwrap_or(filter.len());
    // `a/#` matches `a` as well.
    filter[..end].strip_suffix('/').unwrap_or(&filter[..end])
}
