//! Names of topics, and filters with wildcards.

use super::reader::Malformed;

/// How many levels a filter may have: so many nodes deep is the tree of all of them. A name may
/// have more; nothing but a `#` hears what is below.
pub(crate) const LEVELS_MAX: usize = 64;

/// One level, whatever it is.
pub(crate) const ONE: &str = "+";

/// All levels from here on, and none.
pub(crate) const ALL: &str = "#";

/// A name: what a message is published to (§4.7.1.1, §4.7.3).
pub(crate) fn check_name(name: &str) -> Result<&str, Malformed> {
    match name {
        "" => Err(Malformed("a topic without a name")),
        _ if name.contains(['+', '#']) => Err(Malformed("a wildcard in a topic's name")),
        _ => Ok(name),
    }
}

/// A filter: what a client subscribes to. A wildcard is a whole level, `#` the last one.
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

/// How many levels there are.
pub(crate) fn levels(filter: &str) -> usize {
    filter.split('/').count()
}

/// Whether a filter is for a name.
pub(crate) fn matches(filter: &str, name: &str) -> bool {
    if is_hidden(name) && filter.starts_with(['+', '#']) {
        return false;
    }
    let mut name = name.split('/');
    for level in filter.split('/') {
        match (level, name.next()) {
            // Behind the last level, too: `a/#` is for `a` (§4.7.1.2).
            (ALL, _) => return true,
            (ONE, Some(_)) => {}
            (level, Some(here)) if level == here => {}
            _ => return false,
        }
    }
    name.next().is_none()
}

/// Names with a dollar are for the broker's own purposes: a wildcard at the beginning does not mean
/// them (§4.7.2).
pub(crate) fn is_hidden(name: &str) -> bool {
    name.starts_with('$')
}

/// What all names begin with that a filter is for.
pub(crate) fn beginning(filter: &str) -> &str {
    let end = filter.find(['+', '#']).unwrap_or(filter.len());
    // `a/#` is for `a` as well.
    filter[..end].strip_suffix('/').unwrap_or(&filter[..end])
}
