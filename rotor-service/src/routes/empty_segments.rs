//! Paths with an empty segment, like `/a//b`, or with only the text in front of a parameter, like
//! `/v` for `/v{version}`. matchit lets such a parameter be empty if the path goes on behind it, and
//! does not search on for another route.

use matchit::Params;

/// Returns whether a parameter is empty.
pub(super) fn has_empty(params: &Params<'_, '_>) -> bool {
    params.iter().any(|(_, value)| value.is_empty())
}

/// Returns a table of only this path, if the path has a parameter. (matchit finds a path without one
/// before any other.)
pub(super) fn only_path(pattern: &str) -> Option<matchit::Router<()>> {
    let mut alone = matchit::Router::new();
    pattern.contains('{').then(|| alone.insert(pattern, ()).ok()).flatten().map(|()| alone)
}

/// Returns the text that orders the paths that match a request: text before parameters, and those
/// before one for the rest.
pub(super) fn precedence(pattern: &str) -> String {
    // No path has braces that are not escaped, so these two characters can stand for them.
    let unescaped = pattern.replace("{{", "[").replace("}}", "]");
    let mut order = String::new();
    let mut parts = unescaped.split('{');
    order.extend(parts.next());
    for part in parts {
        let (name, text) = part.split_once('}').unwrap_or((part, ""));
        order.push(if name.starts_with('*') { char::MAX } else { '\u{10fffe}' });
        order.push_str(text);
    }
    order
}
