//! `Routes`: a table from method and path to a value, by matchit.

mod empty_segments;
mod parameters;

use std::fmt;

use matchit::Params;
use rotor_http::Method;

use self::empty_segments::{has_empty, only_path, precedence};
pub use self::parameters::Parameters;
#[cfg(feature = "router")]
pub(crate) use self::parameters::decode_parameter;
use crate::refused::Rejection;

/// A table of routes: finds the value that was added for a method and a path.
///
/// The values can be of any type, for example functions, or variants of an enum that a handler
/// matches. A path may have parameters, as in `/todos/{id}`, and may end with a parameter for the
/// rest of the path, as in `/files/{*rest}`. Parameters are never empty. If two routes match, the
/// first segment in which they differ decides: text takes precedence over a parameter, including
/// one for the rest. A slash at the end is part of the path. The route for GET serves HEAD, and the
/// table answers OPTIONS, unless these have routes of their own. A look-up does not allocate,
/// unless a parameter would be empty, so that another route is searched for.
///
/// Paths are compared as they are sent, so add a route for `/café` as `/caf%C3%A9`.
///
/// # Examples
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::Method;
/// use rotor_service::Routes;
///
/// #[derive(Clone, Copy, PartialEq, Debug)]
/// enum Wish {
///     List,
///     Add,
///     Show,
/// }
///
/// let mut routes = Routes::new();
/// routes.add(Method::Get, "/todos", Wish::List)?;
/// routes.add(Method::Post, "/todos", Wish::Add)?;
/// routes.add(Method::Get, "/todos/{id}", Wish::Show)?;
///
/// let (wish, parameters) = routes.find(Method::Get, "/todos/7")?;
/// assert_eq!((*wish, parameters.parse::<u32>("id")?), (Wish::Show, 7));
/// let refused = routes.find(Method::Put, "/todos").expect_err("there is no such route");
/// assert_eq!(refused.allow(), Some("GET, HEAD, OPTIONS, POST"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Routes<T> {
    /// Finds the index into `paths`.
    finder: matchit::Router<usize>,
    paths: Vec<Path<T>>,
}

/// The values of one path.
#[derive(Clone)]
struct Path<T> {
    pattern: String,
    methods: Vec<(String, T)>,
    /// Only this path, if it can match an empty segment.
    alone: Option<matchit::Router<()>>,
}

impl<T> Routes<T> {
    /// Makes a table without routes.
    pub fn new() -> Routes<T> {
        Routes { finder: matchit::Router::new(), paths: Vec::new() }
    }

    /// Adds a route. A route for GET serves HEAD too, unless HEAD has its own. If there is a route
    /// with the same method and path, its value is replaced.
    ///
    /// # Errors
    ///
    /// The caller's mistake: the path is malformed, does not begin with a slash (except `*`), has
    /// two parameters of one name, has something behind a parameter for the rest, has a character
    /// that cannot be in a path (one beyond ASCII, a space, `"`, `#`, `<`, `>`, `?`), or cannot be
    /// distinguished from an earlier one. The table is unchanged.
    pub fn add(&mut self, method: Method<'_>, path: &str, value: T) -> Result<(), RouteError> {
        let at = match self.paths.iter().position(|known| known.pattern == path) {
            Some(at) => at,
            None => {
                check_path(path)?;
                let inserted = self.finder.insert(path, self.paths.len());
                let pattern = path.to_owned();
                inserted.map_err(|error| RouteError {
                    path: pattern.clone(),
                    why: insert_error_text(&error),
                })?;
                let alone = only_path(&pattern);
                self.paths.push(Path { pattern, methods: Vec::new(), alone });
                self.paths.len() - 1
            }
        };
        let methods = &mut self.paths[at].methods;
        methods.retain(|(own, _)| own != method.as_str());
        methods.push((method.as_str().to_owned(), value));
        Ok(())
    }

    /// Finds the route of a request. Pass `path` as it was sent
    /// ([`Head::path`](rotor_http::server::Head::path)).
    ///
    /// # Errors
    ///
    /// 404: no route has this path. 405, with `Allow`: the path has routes, but for other methods.
    /// 204, with `Allow`: the answer to OPTIONS (RFC 9110 §9.3.7), which is not really an error,
    /// for this path or, if it is `*`, for all paths.
    pub fn find<'t, 'p>(
        &'t self,
        method: Method<'_>,
        path: &'p str,
    ) -> Result<(&'t T, Parameters<'t, 'p>), Rejection> {
        self.look_up(method, path).map_err(|missed| match missed {
            NoRoute::Path => Rejection::not_found(),
            NoRoute::Method(refused) => refused,
        })
    }

    /// Finds the route of a request, like `find`, but returns separately why there is none.
    pub(crate) fn look_up<'t, 'p>(
        &'t self,
        method: Method<'_>,
        path: &'p str,
    ) -> Result<(&'t T, Parameters<'t, 'p>), NoRoute> {
        let refused = |refused| Err(NoRoute::Method(refused));
        let (found, params) = match self.finder.at(path) {
            Ok(found) if has_empty(&found.params) => {
                self.find_with_empty_segment(path).ok_or(NoRoute::Path)?
            }
            Ok(found) => (&self.paths[*found.value], found.params),
            Err(_) if method == Method::Options && path == "*" => return refused(self.options()),
            Err(_) => return Err(NoRoute::Path),
        };
        let methods = &found.methods;
        let of = |name: &str| methods.iter().find(|(own, _)| own == name);
        let route = of(method.as_str()).or_else(|| match method {
            Method::Head => of("GET"),
            _ => None,
        });
        match route {
            Some((_, value)) => Ok((value, Parameters(Some(params)))),
            None if method == Method::Options => refused(Rejection::options(allow(methods))),
            None => refused(Rejection::not_allowed(allow(methods))),
        }
    }

    /// Finds the route of a path for which matchit has returned one with an empty parameter. It
    /// does not search on by itself.
    #[cold]
    fn find_with_empty_segment<'t, 'p>(
        &'t self,
        path: &'p str,
    ) -> Option<(&'t Path<T>, Params<'t, 'p>)> {
        let matched = self.paths.iter().filter_map(|known| {
            let found = known.alone.as_ref()?.at(path).ok()?;
            (!has_empty(&found.params)).then_some((known, found.params))
        });
        matched.min_by_key(|(known, _)| precedence(&known.pattern))
    }

    /// Returns whether any path has a route of this method.
    #[cfg(feature = "router")]
    pub(crate) fn has_method(&self, method: &str) -> bool {
        self.paths.iter().any(|path| path.methods.iter().any(|(own, _)| own == method))
    }

    /// Returns the answer to OPTIONS for the whole table.
    fn options(&self) -> Rejection {
        Rejection::options(allow(self.paths.iter().flat_map(|path| &path.methods)))
    }

    /// Returns whether there is a route of exactly this method and path.
    #[cfg(feature = "router")]
    pub(crate) fn has(&self, method: &str, path: &str) -> bool {
        let path = self.paths.iter().find(|known| known.pattern == path);
        path.is_some_and(|path| path.methods.iter().any(|(own, _)| own == method))
    }

    /// Returns all routes: method, path and value.
    #[cfg(feature = "router")]
    pub(crate) fn into_routes(self) -> impl Iterator<Item = (String, String, T)> {
        self.paths.into_iter().flat_map(|path| {
            let Path { pattern, methods, .. } = path;
            methods.into_iter().map(move |(method, value)| (method, pattern.clone(), value))
        })
    }
}

/// Why a request has no route.
pub(crate) enum NoRoute {
    /// No route has the path.
    Path,
    /// The path has no route for the method.
    Method(Rejection),
}

/// Refuses two parameters of one name, since the second could not be read by its name; characters
/// that cannot be in a path, since the route would never match; and a parameter for the rest that
/// is not at the end.
pub(crate) fn check_path(path: &str) -> Result<(), RouteError> {
    let refused = |why| Err(RouteError { path: path.to_owned(), why });
    if !path.starts_with('/') && path != "*" {
        return refused("it does not begin with a slash".to_owned());
    }
    // matchit's escapes for literal braces.
    let unescaped = path.replace("{{", "").replace("}}", "");
    // matchit refuses this, too, but keeps the beginning of the path.
    let rest = unescaped.split_once("{*").and_then(|(_, rest)| rest.split_once('}'));
    if rest.is_some_and(|(_, behind)| !behind.is_empty()) {
        return refused("a parameter for the rest can only be at the end".to_owned());
    }
    let mut parts = unescaped.split('{');
    let mut texts = vec![parts.next().unwrap_or_default()];
    let mut names = Vec::new();
    for part in parts {
        let (name, text) = part.split_once('}').unwrap_or((part, ""));
        let name = name.trim_start_matches('*');
        if names.contains(&name) {
            return refused(format!("two of its parameters have the name {name:?}"));
        }
        names.push(name);
        texts.push(text);
    }
    // The characters of RFC 3986 §3.3, and others that a connection accepts. All others are sent
    // percent-encoded.
    let is_sent = |character: char| character.is_ascii_graphic() && !"\"#<>?".contains(character);
    match texts.concat().chars().find(|&character| !is_sent(character)) {
        Some(character) => refused(format!(
            "no path is sent with {character:?}, but with its percent-encoding, or without it"
        )),
        None => Ok(()),
    }
}

/// Returns why a path cannot be added.
fn insert_error_text(error: &matchit::InsertError) -> String {
    match error {
        matchit::InsertError::Conflict { with } => format!("it cannot be told from {with:?}"),
        error => error.to_string(),
    }
}

/// Lists the methods in order, with HEAD if there is GET, and with OPTIONS.
fn allow<'t, T: 't>(methods: impl IntoIterator<Item = &'t (String, T)>) -> String {
    let mut names: Vec<&str> = methods.into_iter().map(|(name, _)| name.as_str()).collect();
    if names.contains(&"GET") {
        names.push("HEAD");
    }
    names.push("OPTIONS");
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

impl<T> Default for Routes<T> {
    fn default() -> Routes<T> {
        Routes::new()
    }
}

impl<T> fmt::Debug for Routes<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.paths.iter().map(|path| &path.pattern)).finish()
    }
}

/// A route that cannot be added: the caller's mistake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteError {
    path: String,
    why: String,
}

#[cfg(feature = "router")]
impl RouteError {
    pub(crate) fn new(path: &str, why: String) -> RouteError {
        RouteError { path: path.to_owned(), why }
    }
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the route {:?} cannot be added: {}", self.path, self.why)
    }
}

impl std::error::Error for RouteError {}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use rotor_http::Status;

    use super::*;

    fn table() -> Routes<&'static str> {
        let mut routes = Routes::new();
        for (method, path, value) in [
            (Method::Get, "/", "home"),
            (Method::Get, "/todos", "list"),
            (Method::Post, "/todos", "add"),
            (Method::Get, "/todos/{id}", "show"),
            (Method::Delete, "/todos/{id}", "remove"),
            (Method::Get, "/todos/new", "form"),
            (Method::Get, "/files/{*rest}", "file"),
            (Method::Put, "/only", "put"),
            (Method::Get, "/lists/{list}/{id}", "entry"),
        ] {
            routes.add(method, path, value).expect("a route");
        }
        routes
    }

    #[test]
    fn a_method_and_a_path_lead_to_one_route_or_to_a_refusal() {
        let routes = table();
        for (method, path, expected) in [
            (Method::Get, "/", "home"),
            (Method::Get, "/todos", "list"),
            (Method::Head, "/todos", "list"),
            (Method::Post, "/todos", "add"),
            (Method::Get, "/todos/7", "show"),
            (Method::Get, "/todos/new", "form"),
            (Method::Get, "/files/a/b", "file"),
            (Method::Put, "/todos", "405 GET, HEAD, OPTIONS, POST"),
            (Method::Delete, "/todos/new", "405 GET, HEAD, OPTIONS"),
            (Method::Head, "/only", "405 OPTIONS, PUT"),
            (Method::Extension("GETT"), "/", "405 GET, HEAD, OPTIONS"),
            (Method::Get, "/todos/", "404 "),
            (Method::Get, "/todos/7/8", "404 "),
            (Method::Get, "/lists/a/7", "entry"),
            (Method::Get, "/lists//7", "404 "),
            (Method::Get, "/lists/a/", "404 "),
            (Method::Get, "/files/", "404 "),
            (Method::Get, "", "404 "),
            (Method::Options, "/todos", "204 GET, HEAD, OPTIONS, POST"),
            (Method::Options, "/only", "204 OPTIONS, PUT"),
            (Method::Options, "*", "204 DELETE, GET, HEAD, OPTIONS, POST, PUT"),
            (Method::Options, "/none", "404 "),
            (Method::Get, "*", "404 "),
            (Method::Get, "/TODOS", "404 "),
            (Method::Get, "/todos%2F7", "404 "),
        ] {
            let found = match routes.find(method, path) {
                Ok((value, _)) => (*value).to_owned(),
                Err(refused) => {
                    format!("{} {}", refused.status().code(), refused.allow().unwrap_or_default())
                }
            };
            assert_eq!(found, expected, "{method} {path}");
        }
    }

    #[test]
    fn the_first_differing_segment_decides_between_two_routes() {
        let mut routes = Routes::new();
        for path in
            ["/{a}/b/c", "/{a}/x/c", "/a/{b}/{c}", "/a/b/{c}", "/a/{b}/x/{*rest}", "/{a}/{b}/x/y"]
        {
            routes.add(Method::Get, path, path).expect("a route");
        }
        for (path, expected) in [
            ("/a/b/c", "/a/b/{c}"),
            // Though `/{a}/x/c` has fewer parameters.
            ("/a/x/c", "/a/{b}/{c}"),
            ("/x/b/c", "/{a}/b/c"),
            ("/x/b/x/y", "/{a}/{b}/x/y"),
            ("/a/b/x/y", "/a/{b}/x/{*rest}"),
            ("/a/b/x/y/z", "/a/{b}/x/{*rest}"),
        ] {
            assert_eq!(*routes.find(Method::Get, path).expect(path).0, expected, "{path}");
        }
    }

    #[test]
    fn an_empty_segment_is_found_by_a_route_that_can_have_one() {
        let mut routes = Routes::new();
        for path in [
            "/{*rest}",
            "/lists/{list}/{id}",
            "/a/{b}/{*rest}",
            "/a/b/c/{d}/e",
            "/x//{y}/z",
            "/x/{y}/{z}/z",
        ] {
            routes.add(Method::Get, path, path).expect("a route");
        }
        for (path, expected) in [
            ("/lists/a/7", "/lists/{list}/{id} list=a id=7"),
            ("/lists//7", "/{*rest} rest=lists//7"),
            ("/lists//7/8", "/{*rest} rest=lists//7/8"),
            ("/a/x/c//", "/a/{b}/{*rest} b=x rest=c//"),
            ("/a/b//x", "/a/{b}/{*rest} b=b rest=/x"),
            ("/a/b/c//e", "/a/{b}/{*rest} b=b rest=c//e"),
            ("/a//c/d", "/{*rest} rest=a//c/d"),
            ("//b/x", "/{*rest} rest=/b/x"),
            ("/x//y/z", "/x//{y}/z y=y"),
            ("/x/y//z", "/{*rest} rest=x/y//z"),
        ] {
            let (found, parameters) = routes.find(Method::Get, path).expect(path);
            let parameters = parameters.0.as_ref().map(Params::iter);
            let parameters = parameters.into_iter().flatten();
            let found = parameters.fold((*found).to_owned(), |found, (name, value)| {
                format!("{found} {name}={value}")
            });
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn an_explicit_options_route_is_used() {
        let mut routes = table();
        routes.add(Method::Options, "/only", "options").expect("a route");
        assert_eq!(*routes.find(Method::Options, "/only").expect("a route").0, "options");
        let refused = routes.find(Method::Get, "/only").expect_err("it is for others");
        assert_eq!(refused.allow(), Some("OPTIONS, PUT"));
    }

    #[test]
    fn parameters_are_available_raw_and_decoded() {
        let routes = table();
        let text = |path| {
            let (_, parameters) = routes.find(Method::Get, path).expect("a route");
            parameters.text("id").map(Cow::into_owned).map_err(|refused| refused.status())
        };
        assert_eq!(text("/todos/a%20b"), Ok("a b".to_owned()));
        assert_eq!(
            text("/todos/%2F..%2F"),
            Ok("/../".to_owned()),
            "one segment, whatever is in it"
        );
        assert_eq!(text("/todos/%zz"), Ok("%zz".to_owned()));
        assert_eq!(text("/todos/%ff"), Err(Status::BAD_REQUEST));
        assert_eq!(text("/"), Err(Status::NOT_FOUND));
        let (_, parameters) = routes.find(Method::Get, "/todos/7").expect("a route");
        assert_eq!((parameters.parse("id"), parameters.raw("id")), (Ok(7), Some("7")));
        let (_, parameters) = routes.find(Method::Get, "/todos/%37%20").expect("a route");
        assert_eq!(parameters.parse("id"), Ok("7 ".to_owned()), "as the text is");
        let (_, parameters) = routes.find(Method::Get, "/todos/%37").expect("a route");
        assert_eq!(parameters.parse("id"), Ok(7), "the same digit (RFC 3986 §2.3)");
        for path in ["/todos/x", "/todos/-1", "/todos/99999999999999999999"] {
            let (_, parameters) = routes.find(Method::Get, path).expect("a route");
            let status = parameters.parse::<u64>("id").map_err(|refused| refused.status());
            assert_eq!(status, Err(Status::NOT_FOUND), "{path}");
        }
    }

    #[test]
    fn an_ambiguous_route_is_refused_and_an_equal_one_replaces() {
        let mut routes = table();
        for (path, why) in [
            ("todos", "does not begin with a slash"),
            ("", "does not begin with a slash"),
            ("{*rest}", "does not begin with a slash"),
            ("/todos/{other}", "cannot be told from \"/todos/{id}\""),
            ("/files/{*all}", "cannot be told from \"/files/{*rest}\""),
            ("/{", "valid name"),
            ("/a/{*b}/c", "at the end"),
            ("/new/{a}/{*b}/c", "at the end"),
            ("/a/{b}/c/{b}", "two of its parameters have the name \"b\""),
            ("/a/{b}/{*b}", "the name \"b\""),
            ("/caf\u{e9}", "no path is sent with '\u{e9}'"),
            ("/{a}/\u{e9}", "no path is sent with '\u{e9}'"),
            ("/a b", "no path is sent with ' '"),
            ("/a?b={b}", "no path is sent with '?'"),
            ("/a#b", "no path is sent with '#'"),
            ("/users/<id>", "no path is sent with '<'"),
            ("/a>b", "no path is sent with '>'"),
            ("/a\"b", "no path is sent with '\"'"),
        ] {
            let error =
                routes.add(Method::Get, path, "x").expect_err("it is ambiguous").to_string();
            let pattern = format!("{path:?}");
            assert!(error.contains(&pattern) && error.contains(why), "{error}");
        }
        routes.add(Method::Get, "/new/{*rest}", "x").expect("a refused one leaves nothing behind");
        routes.add(Method::Get, "/a\\b^c|d`e", "x").expect("what a request target may have");
        routes.add(Method::Get, "/{{a}}/{{a}}/{a}", "x").expect("braces");
        routes.add(Method::Get, "/caf%C3%A9/{gr\u{f6}\u{df}e}", "x").expect("a name is only ours");
        routes.add(Method::Get, "/todos/{id}", "new").expect("it replaces");
        routes.add(Method::Patch, "/todos/{id}", "patch").expect("beside it");
        assert_eq!(*routes.find(Method::Get, "/todos/7").expect("a route").0, "new");
        assert_eq!(*routes.find(Method::Delete, "/todos/7").expect("a route").0, "remove");
        assert_eq!(*routes.find(Method::Patch, "/todos/7").expect("a route").0, "patch");
    }
}
