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
/// one for the rest. Two routes cannot have a parameter and one for the rest in the same place, as
/// in `/{id}` and `/{*rest}`. A slash at the end is part of the path. The route for GET serves HEAD,
/// and the table answers OPTIONS, unless these have routes of their own. A look-up does not
/// allocate, unless a parameter would be empty, so that another route is searched for.
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
    /// Only this path, if it has a parameter.
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
        matchit::InsertError::InvalidParamSegment => {
            "a segment has one parameter at most, with nothing behind it".to_owned()
        }
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
mod tests;
