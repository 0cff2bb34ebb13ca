//! `Prefix`: where a router is nested; `ByPrefix`: values that apply to all paths there.

use crate::routes::{RouteError, check_path};

/// The beginning of paths, in whole segments: `/api`, `/users/{user}`.
#[derive(Clone, Debug)]
pub(super) struct Prefix {
    text: String,
    /// Ends with `End`.
    segments: Vec<Segment>,
}

/// The order of the variants is the order in which prefixes are tried, so that the more specific of
/// two prefixes of a path comes first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Segment {
    Name(String),
    Parameter,
    End,
}

impl Prefix {
    /// Reads a prefix.
    ///
    /// # Errors
    ///
    /// The caller's mistake: the text is not a prefix.
    pub(super) fn parse(text: &str) -> Result<Prefix, RouteError> {
        let refused = |why: &str| Err(RouteError::new(text, format!("as a prefix, it {why}")));
        let Some(segments) = text.strip_prefix('/') else { return refused("begins with a slash") };
        if segments.is_empty() {
            return refused("has at least one segment");
        }
        if segments.ends_with('/') {
            return refused("ends without a slash");
        }
        let mut read = Vec::new();
        for segment in segments.split('/') {
            let parameter = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
            read.push(match parameter.unwrap_or(segment) {
                name if name.contains(['{', '}'])
                    || parameter.is_some_and(|it| it.starts_with('*')) =>
                {
                    return refused("has names and parameters as its segments, nothing of both");
                }
                _ if parameter.is_some() => Segment::Parameter,
                name => Segment::Name(name.to_owned()),
            });
        }
        // The prefix may have only a fallback or CORS below it, so no route would reveal this
        // error.
        check_path(text)?;
        read.push(Segment::End);
        Ok(Prefix { text: text.to_owned(), segments: read })
    }

    /// Returns the path at which a route `path` of a router is found after nesting it here.
    pub(super) fn join(&self, path: &str) -> String {
        match path {
            "/" => self.text.clone(),
            path => format!("{}{path}", self.text),
        }
    }

    /// Returns the prefix of a router that is nested in one that is nested here.
    fn nested(&self, inner: Prefix) -> Prefix {
        let outer = self.segments.iter().filter(|segment| **segment != Segment::End);
        let segments = outer.cloned().chain(inner.segments).collect();
        Prefix { text: self.join(&inner.text), segments }
    }

    /// Returns how many parameters the prefix has.
    pub(super) fn parameters(&self) -> usize {
        self.segments.iter().filter(|segment| **segment == Segment::Parameter).count()
    }

    /// Returns whether a path is this prefix, or below it.
    fn covers(&self, path: &str) -> bool {
        let mut rest = path;
        self.segments.iter().all(|segment| {
            if *segment == Segment::End {
                return true;
            }
            let Some(behind) = rest.strip_prefix('/') else { return false };
            let (own, left) = behind.split_at(behind.find('/').unwrap_or(behind.len()));
            rest = left;
            match segment {
                Segment::Name(name) => name == own,
                Segment::Parameter | Segment::End => !own.is_empty(),
            }
        })
    }
}

/// A value for all paths, and other values for the paths below prefixes.
#[derive(Clone, Debug)]
pub(super) struct ByPrefix<T> {
    default: Option<T>,
    /// Sorted by segments.
    below: Vec<(Prefix, T)>,
}

impl<T> ByPrefix<T> {
    pub(super) const NONE: ByPrefix<T> = ByPrefix { default: None, below: Vec::new() };

    /// Sets the value for all paths that have no value of their own.
    pub(super) fn set(&mut self, value: T) {
        self.default = Some(value);
    }

    /// Returns the value for a path: that of the most specific prefix.
    #[inline]
    pub(super) fn get(&self, path: &str) -> Option<&T> {
        let below = self.below.iter().find(|(prefix, _)| prefix.covers(path));
        below.map(|(_, value)| value).or(self.default.as_ref())
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let below = self.below.iter_mut().map(|(_, value)| value);
        self.default.iter_mut().chain(below)
    }

    /// Adds the values of a router that is nested here.
    ///
    /// # Errors
    ///
    /// A prefix already has such a value (`what`).
    pub(super) fn nest(
        &mut self,
        prefix: &Prefix,
        inner: ByPrefix<T>,
        what: &str,
    ) -> Result<(), RouteError> {
        let default = inner.default.map(|value| (prefix.clone(), value));
        let below = inner.below.into_iter().map(|(inner, value)| (prefix.nested(inner), value));
        for (prefix, value) in default.into_iter().chain(below) {
            match self.below.binary_search_by(|(own, _)| own.segments.cmp(&prefix.segments)) {
                Ok(at) => {
                    let why = format!("{what} is there already, for {:?}", self.below[at].0.text);
                    return Err(RouteError::new(&prefix.text, why));
                }
                Err(at) => self.below.insert(at, (prefix, value)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_consists_of_whole_segments() {
        for text in ["/api", "/api/v1", "/{user}", "/users/{user}", "/a.b-c/%20"] {
            assert_eq!(Prefix::parse(text).expect(text).join("/x"), format!("{text}/x"));
        }
        for text in
            ["", "/", "api", "/api/", "//", "/{", "/}", "/a{b}", "/{*rest}", "/{{a}}", "/{a}{b}"]
        {
            let error = Prefix::parse(text).expect_err(text).to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
        // Without a route, only the prefix itself can report these errors.
        for text in ["/caf\u{e9}", "/a b", "/<user>", "/a?b", "/{a}/x/{a}"] {
            let error = Prefix::parse(text).expect_err(text).to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn the_value_of_the_most_specific_prefix_applies() {
        let (mut values, mut inner) = (ByPrefix::NONE, ByPrefix::NONE);
        let put = |to: &mut ByPrefix<&'static str>, prefix: &str, value| {
            let prefix = Prefix::parse(prefix).expect("a prefix");
            to.nest(&prefix, ByPrefix { default: Some(value), below: Vec::new() }, "it")
        };
        put(&mut inner, "/{id}", "api id").expect("it is new");
        put(&mut inner, "/new", "api new").expect("it is new");
        inner.set("api");
        let api = Prefix::parse("/api").expect("a prefix");
        values.nest(&api, inner, "it").expect("they are new");
        assert_eq!(values.get("/"), None);
        values.set("all");
        put(&mut values, "/{user}", "user").expect("it is new");
        put(&mut values, "/{user}/a/b", "user a b").expect("it is new");
        for (path, expected) in [
            ("/", "all"),
            ("*", "all"),
            ("", "all"),
            ("/api", "api"),
            ("/api/", "api"),
            ("/api//x", "api"),
            ("/apis", "user"),
            ("/Api/x", "user"),
            ("/api/7", "api id"),
            ("/api/7/x", "api id"),
            ("/api/new", "api new"),
            ("/api/news", "api id"),
            ("/eve/", "user"),
            ("//x", "all"),
            ("/eve/a/b", "user a b"),
            ("/eve/a/b/c", "user a b"),
            ("/eve/a", "user"),
            // As with routes, a literal segment has priority over a parameter.
            ("/api/a/b", "api id"),
        ] {
            assert_eq!(values.get(path), Some(&expected), "{path}");
        }
        let error = put(&mut values, "/{other}", "x").expect_err("the same paths").to_string();
        assert!(error.contains("\"/{other}\"") && error.contains("\"/{user}\""), "{error}");
        put(&mut values, "/api/{other}", "x").expect_err("the same paths");
    }
}
