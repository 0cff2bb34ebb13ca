//! `StaticFiles`: the handler.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::SystemTime;

use rotor_core::{Future, Outcome, Scope, Time};

use super::answer;
use super::conditions::Conditions;
use super::config::{Files, Shared};
use super::content_type::content_type;
use super::known::{Known, unix_seconds};
use super::open::{Entry, OpenError};
use super::path::FilePath;
use crate::h1::{MessageError, Method, Status};
use crate::server::{Head, Next, NoUpgrade, Response, Server};

/// A handler that answers with the files of a directory.
///
/// ```text
///                    known                              the file, 206, 304, 412, 416
///   headers_received ───────────────────────────────────────────▶ finished
///        │   unknown: opened on another thread                       ▲
///        └──────────────────────────────▶ waits ── wakeup ───────────┘  301, 403, 404
/// ```
///
/// It is generic over the context and asks nothing of it. Its seed is [`Files`].
pub struct StaticFiles<C> {
    waiting: Box<Waiting>,
    context: PhantomData<fn(C)>,
}

/// A request whose file is being opened.
struct Waiting {
    files: Files,
    path: FilePath<'static>,
    conditions: Conditions<'static>,
    /// Where a directory without its slash is.
    location: String,
    /// When the file was asked for, by the wall and by the loop.
    before: SystemTime,
    asked: Time,
    file: Future<Result<Entry, OpenError>>,
}

impl<C> Server for StaticFiles<C> {
    type Context = C;
    type Seed = Files;
    type Upgrade = NoUpgrade<C>;

    fn headers_received(
        files: Files,
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        match head.method() {
            Method::Get | Method::Head => {}
            Method::Options => return finish(answer::options(response)),
            _ => return finish(answer::not_allowed(response)),
        }
        let path = match FilePath::parse(head.path(), files.shared.config.serves_hidden()) {
            Ok(path) => path,
            Err(error) => return refuse(error.status(), response),
        };
        let mut conditions = Conditions::of(head.fields());
        if head.method() != Method::Get {
            conditions = conditions.without_range();
        }
        let known = files.shared.known().get(path.as_bytes(), scope.now());
        if let Some(known) = known {
            return finish(send(&known, &conditions, &files.shared, response, scope));
        }
        let (before, asked) = (scope.wall_time(), scope.now());
        let Some(file) = open_file(&files.shared, &path, scope) else {
            return finish(answer::busy(response));
        };
        let location = with_slash(head);
        let (path, conditions) = (path.into_owned(), conditions.into_owned());
        StaticFiles::wait(Box::new(Waiting { files, path, conditions, location, before, asked, file }))
    }

    fn wakeup(self, response: &mut Response<'_>, scope: &mut Scope<'_, C>) -> Next<Self> {
        let Waiting { files, path, conditions, location, before, asked, file } = *self.waiting;
        let entry = match file.take() {
            Outcome::Pending(file) => {
                return StaticFiles::wait(Box::new(Waiting {
                    files,
                    path,
                    conditions,
                    location,
                    before,
                    asked,
                    file,
                }));
            }
            Outcome::Value(entry) => entry,
            Outcome::Lost(lost) => {
                log::error!("a file was not opened: {lost}");
                return refuse(Status::INTERNAL_SERVER_ERROR, response);
            }
        };
        match entry {
            Ok(Entry::File(file, metadata)) => {
                let config = &files.shared.config;
                let name = path.of_file(config.index_name()).unwrap_or_default();
                let known = Known::new(file, &metadata, content_type(&name, config.charset_name()), before);
                let known = Arc::new(known);
                files.shared.known().insert(path.as_bytes(), known.clone(), asked);
                finish(send(&known, &conditions, &files.shared, response, scope))
            }
            Ok(Entry::Directory) if !path.is_directory() => finish(answer::redirect(&location, response)),
            Ok(Entry::Directory) => refuse(Status::NOT_FOUND, response),
            Err(error) => {
                files.shared.known().remove(path.as_bytes());
                if let OpenError::Busy(error) | OpenError::Failed(error) = &error {
                    log::warn!("a file cannot be opened: {error}");
                }
                refuse(error.status(), response)
            }
        }
    }
}

impl<C> StaticFiles<C> {
    fn wait(waiting: Box<Waiting>) -> Next<Self> {
        Next::go_on(StaticFiles { waiting, context: PhantomData }).keep_deadline()
    }
}

/// Has the file of a path opened on another thread; `None` if none of them has room.
fn open_file<C>(
    shared: &Arc<Shared>,
    path: &FilePath<'_>,
    scope: &Scope<'_, C>,
) -> Option<Future<Result<Entry, OpenError>>> {
    let index = shared.config.index_name();
    // Without an index page, a directory is there only to be told from nothing.
    let name = path.of_file(index);
    let is_index = path.is_directory();
    let has_index = index.is_some();
    let shared = shared.clone();
    let work = move || match shared.root.find(&name.ok_or(OpenError::NotFound)?)? {
        // An index page that is a directory itself is none; without index pages, directories are not found.
        Entry::Directory if is_index || !has_index => Err(OpenError::NotFound),
        entry => Ok(entry),
    };
    scope.offload(work).ok()
}

fn send<C>(
    known: &Known,
    conditions: &Conditions<'_>,
    shared: &Shared,
    response: &mut Response<'_>,
    scope: &Scope<'_, C>,
) -> Result<(), MessageError> {
    let now = unix_seconds(scope.wall_time());
    answer::file(known, conditions, &shared.config, now, || scope.random_u64(), response)
}

/// The target with a slash at the end of its path. A path that is served begins with one slash only.
fn with_slash(head: &Head<'_>) -> String {
    match head.query() {
        Some(query) => format!("{}/?{query}", head.path()),
        None => format!("{}/", head.path()),
    }
}

/// Nothing more comes. A misuse of the writer would be a fault of this module; the connection answers for it.
fn finish<C>(written: Result<(), MessageError>) -> Next<StaticFiles<C>> {
    if let Err(error) = written {
        log::error!("a file could not be answered with: {error}");
    }
    Next::finished()
}

fn refuse<C>(status: Status, response: &mut Response<'_>) -> Next<StaticFiles<C>> {
    StaticFiles::<C>::emit_error_page(status, response);
    Next::finished()
}

impl<C> fmt::Debug for StaticFiles<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticFiles").field("path", &self.waiting.path).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_is_small_and_may_move_to_another_thread() {
        fn is_send<T: Send>() {}
        fn is_shared<T: Send + Sync>() {}
        is_send::<StaticFiles<std::rc::Rc<()>>>();
        is_shared::<Files>();
        assert_eq!(size_of::<StaticFiles<[u64; 9]>>(), size_of::<usize>());
        assert_eq!(size_of::<Files>(), size_of::<usize>());
    }
}
