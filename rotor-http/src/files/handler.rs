//! `StaticFiles`: the handler that sends files.

use std::fmt;
use std::fs::Metadata;
use std::io;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::SystemTime;

use rotor_core::{Future, LogLimit, Outcome, Scope, Time};

use super::conditions::Conditions;
use super::config::{Files, Shared};
use super::content_type::content_type;
use super::entry::{Entry, OpenError};
use super::known::{Content, KnownFile, KnownVariant};
use super::path::{FilePath, PathError};
use super::precompressed::{AcceptedCodings, Precompressed};
use super::responses;
use crate::semantics::calendar::unix_seconds;
use crate::semantics::error::MessageError;
use crate::semantics::method::Method;
use crate::semantics::status::Status;
use crate::server::{Head, Next, NoUpgrade, Response, Server};

/// A handler that responds with the files of a directory.
///
/// ```text
///                    known                              the file, 206, 304, 412, 416
///   headers_received ───────────────────────────────────────────▶ finished
///        │   unknown: opened on another thread                       ▲
///        └──────────────────────────────▶ waits ── wakeup ───────────┘  301, 403, 404
/// ```
///
/// It works with any context, and requires no traits of it. Its seed is [`Files`].
#[doc(alias = "sendfile")]
#[doc(alias = "range request")]
#[doc(alias = "path traversal")]
pub struct StaticFiles<C> {
    request: Box<PendingRequest>,
    file: OpenFuture,
    context: PhantomData<fn(C)>,
}

/// A file that is being opened on another thread.
type OpenFuture = Future<Result<OpenedPath, OpenError>>;

/// What was found at a path.
enum OpenedPath {
    File(Arc<KnownFile>),
    Directory,
    /// Nothing, for which this page is sent.
    NotFound(Arc<KnownFile>),
    /// Nothing, and this file is sent instead.
    Fallback(Arc<KnownFile>),
}

/// Limits how often it is logged that a file cannot be opened: without descriptors, each request
/// fails.
static FAILURES: LogLimit = LogLimit::new();

/// A request whose file is being opened.
struct PendingRequest {
    files: Files,
    /// `None` if nothing is ever served at the path, so that only a fallback is opened.
    path: Option<FilePath<'static>>,
    conditions: Conditions<'static>,
    accepted: AcceptedCodings,
    /// The path with a slash at its end, in case it is a directory.
    location: String,
    /// The time of the request, by the loop.
    time: Time,
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
            // For any path, whether the file exists or not: nothing is looked up.
            Method::Options => return finish(responses::send_options(response)),
            _ => return finish(responses::send_not_allowed(response)),
        }
        let config = &files.shared.config;
        let path = match config.path_below(head.path()) {
            // The mount path itself, without a slash. Without index pages, there is nothing.
            Some("") if config.index_name().is_none() => Err(PathError::NotServed),
            Some("") => return finish(responses::send_redirect(&with_slash(head), response)),
            Some(path) => FilePath::parse(path, config.serves_hidden()),
            None => return refuse(Status::NOT_FOUND, response),
        };
        let path = match path {
            Ok(path) => Some(path),
            Err(PathError::NotServed) if config.fallback_file().is_some() => None,
            Err(error) => return refuse(error.status(), response),
        };
        let mut conditions = Conditions::from_fields(head.fields());
        // RFC 9110 §14.2: ranges are defined only for GET.
        if head.method() != Method::Get {
            conditions = conditions.without_range();
        }
        let accepted = AcceptedCodings::from_fields(files.shared.config.codings(), head.fields());
        let known = |path: &FilePath<'_>| files.shared.known().get(path.as_bytes(), scope.now());
        if let Some(known) = path.as_ref().and_then(known) {
            return finish(send(&known, &conditions, accepted, &files.shared, response, scope));
        }
        // Refused and not queued here: the number of requests that wait for a thread must have a
        // limit.
        let Some(file) = open_file(&files.shared, path.as_ref(), scope) else {
            return finish(responses::send_busy(response));
        };
        // Copied now, because the head is gone by the time it is needed.
        let location = with_slash(head);
        let (conditions, time) = (conditions.into_owned(), scope.now());
        let path = path.map(FilePath::into_owned);
        let request = PendingRequest { files, path, conditions, accepted, location, time };
        StaticFiles::wait(Box::new(request), file)
    }

    fn wakeup(self, response: &mut Response<'_>, scope: &mut Scope<'_, C>) -> Next<Self> {
        let StaticFiles { request, file, .. } = self;
        match file.take() {
            // A spurious wake-up.
            Outcome::Pending(file) => StaticFiles::wait(request, file),
            Outcome::Value(Ok(found)) => finish(request.respond(found, response, scope)),
            Outcome::Value(Err(error)) => {
                request.record_failure(&error);
                refuse(error.status(), response)
            }
            Outcome::Lost(lost) => {
                log::error!("a file was not opened: {lost}");
                refuse(Status::INTERNAL_SERVER_ERROR, response)
            }
        }
    }
}

impl<C> StaticFiles<C> {
    fn wait(request: Box<PendingRequest>, file: OpenFuture) -> Next<Self> {
        Next::go_on(StaticFiles { request, file, context: PhantomData }).keep_deadline()
    }
}

impl PendingRequest {
    /// Responds with what was found, and remembers it.
    fn respond<C>(
        self,
        found: OpenedPath,
        response: &mut Response<'_>,
        scope: &Scope<'_, C>,
    ) -> Result<(), MessageError> {
        let shared = &self.files.shared;
        let known = match found {
            OpenedPath::File(known) => {
                if let Some(path) = &self.path {
                    // As of the time of the request: a later change may not be in it.
                    shared.known().insert(path.as_bytes(), known.clone(), self.time);
                }
                known
            }
            // In all other cases it was a file before, perhaps.
            OpenedPath::Directory => {
                self.forget();
                return responses::send_redirect(&self.location, response);
            }
            OpenedPath::NotFound(page) => {
                self.forget();
                return responses::send_not_found(page.for_client(&self.accepted), response);
            }
            OpenedPath::Fallback(file) => {
                self.forget();
                file
            }
        };
        send(&known, &self.conditions, self.accepted, shared, response, scope)
    }

    /// Forgets that there was a file at the path.
    fn forget(&self) {
        if let Some(path) = &self.path {
            self.files.shared.known().remove(path.as_bytes());
        }
    }

    /// Forgets a file that does not exist any more. A file that just cannot be opened at the moment
    /// may still be remembered, but not others at the expense of this one: nothing else would close
    /// them while no file can be opened.
    fn record_failure(&self, error: &OpenError) {
        let known = || self.files.shared.known();
        match error {
            OpenError::NotFound | OpenError::Forbidden => self.forget(),
            OpenError::Busy(error) | OpenError::Failed(error) => {
                known().drop_expired(self.time);
                if let Some(others) = FAILURES.try_pass(self.time) {
                    log::warn!(
                        "a file cannot be opened: {error} (before, {others} more could not)"
                    );
                }
            }
            OpenError::NoPage(error) => {
                self.forget();
                known().drop_expired(self.time);
                if let Some(others) = FAILURES.try_pass(self.time) {
                    log::warn!(
                        "the page for missing files cannot be opened: {error:?} (before, {others} \
                         more files could not)"
                    );
                }
            }
        }
    }
}

/// Has the file at a path opened on another thread, or the fallback if there is none. Returns `None`
/// if the pool has no room.
///
/// The result is a directory only if the path lacks the slash at its end, and there are index
/// pages.
fn open_file<C>(
    shared: &Arc<Shared>,
    path: Option<&FilePath<'_>>,
    scope: &Scope<'_, C>,
) -> Option<OpenFuture> {
    let index = shared.config.index_name();
    let name = path.and_then(|path| path.file_name(index));
    let is_redirected = index.is_some() && path.is_some_and(|path| !path.is_directory());
    // Read before the file is looked at, so that a change within the next second is never taken for
    // a settled one.
    let (shared, wall_time) = (shared.clone(), scope.wall_time());
    let work = move || {
        let name = name.ok_or(OpenError::NotFound);
        match name.and_then(|name| open(&shared, &name, wall_time)) {
            Ok(Some(file)) => return Ok(OpenedPath::File(file)),
            // Without the slash, relative links on its index page would lead elsewhere.
            Ok(None) if is_redirected => return Ok(OpenedPath::Directory),
            Ok(None) | Err(OpenError::NotFound) => {}
            Err(error) => return Err(error),
        }
        let fallback = shared.config.fallback_file().ok_or(OpenError::NotFound)?;
        let file = open(&shared, fallback.name.as_bytes(), wall_time)
            .and_then(|file| file.ok_or(OpenError::NotFound))
            // What is wrong with the page is not wrong with what was requested.
            .map_err(|error| OpenError::NoPage(Box::new(error)))?;
        Ok(match fallback.is_found {
            true => OpenedPath::Fallback(file),
            false => OpenedPath::NotFound(file),
        })
    };
    scope.offload(work).ok()
}

/// Opens a file and its siblings. Returns `None` for a directory.
fn open(
    shared: &Shared,
    name: &[u8],
    wall_time: SystemTime,
) -> Result<Option<Arc<KnownFile>>, OpenError> {
    let Entry::File(file, metadata) = shared.root.find(name)? else { return Ok(None) };
    let content_type = content_type(name, shared.config.charset_name());
    let known = |file, metadata: Metadata| -> io::Result<KnownVariant> {
        let content = Content::from_file(file, &metadata)?;
        let content_type = content_type.clone();
        Ok(KnownVariant::new(shared.tag_key, content, &metadata, content_type, wall_time))
    };
    let sibling = |&coding: &Precompressed| {
        let name = [name, coding.suffix().as_bytes()].concat();
        // A sibling that cannot be opened or read counts as missing: the file itself can be sent.
        match shared.root.find(&name) {
            Ok(Entry::File(file, metadata)) => Some((coding, known(file, metadata).ok()?)),
            _ => None,
        }
    };
    let coded = shared.config.codings().iter().filter_map(sibling).collect();
    Ok(Some(Arc::new(KnownFile::new(known(file, metadata)?, coded))))
}

fn send<C>(
    file: &KnownFile,
    conditions: &Conditions<'_>,
    accepted: AcceptedCodings,
    shared: &Shared,
    response: &mut Response<'_>,
    scope: &Scope<'_, C>,
) -> Result<(), MessageError> {
    let now = unix_seconds(scope.wall_time());
    let sent = file.for_client(&accepted);
    responses::send_file(sent, conditions, &shared.config, now, || scope.secure_random(), response)
}

/// Returns the target with a slash at the end of its path. A path that is served begins with only
/// one slash, and so does the mount path.
fn with_slash(head: &Head<'_>) -> String {
    match head.query() {
        Some(query) => format!("{}/?{query}", head.path()),
        None => format!("{}/", head.path()),
    }
}

/// Ends the response. A misuse of the writer would be a bug of this module; the connection is then
/// closed.
fn finish<C>(written: Result<(), MessageError>) -> Next<StaticFiles<C>> {
    if let Err(error) = written {
        log::error!("a file could not be sent: {error}");
    }
    Next::finished()
}

fn refuse<C>(status: Status, response: &mut Response<'_>) -> Next<StaticFiles<C>> {
    StaticFiles::<C>::emit_error_page(status, response);
    Next::finished()
}

impl<C> fmt::Debug for StaticFiles<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticFiles").field("path", &self.request.path).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rotor_stream::testing::Driver;

    use super::*;
    use crate::files::FilesConfig;
    use crate::server::{Connection, HttpSeed, ServerConfig};

    #[test]
    fn a_handler_is_small_and_may_move_to_another_thread() {
        fn is_send<T: Send>() {}
        fn is_shared<T: Send + Sync>() {}
        is_send::<StaticFiles<std::rc::Rc<()>>>();
        is_shared::<Files>();
        assert_eq!(size_of::<StaticFiles<[u64; 9]>>(), 2 * size_of::<usize>());
        assert_eq!(size_of::<Files>(), size_of::<usize>());
    }

    /// Puts a file into the cache, as a request does.
    fn insert_known(files: &Files, name: &str) {
        let Ok(Entry::File(file, metadata)) = files.shared.root.find(name.as_bytes()) else {
            panic!("it is there");
        };
        let content = Content::from_file(file, &metadata).expect("it can be read");
        let key = files.shared.tag_key;
        let known =
            KnownVariant::new(key, content, &metadata, "text/plain".into(), SystemTime::UNIX_EPOCH);
        let known = Arc::new(KnownFile::new(known, Vec::new()));
        files.shared.known().insert(name.as_bytes(), known, Time::ZERO);
    }

    #[test]
    fn head_and_body_of_a_small_file_are_one_write() {
        let files = FilesConfig::new(env!("CARGO_MANIFEST_DIR"))
            .renew_after(Duration::from_secs(1000))
            .open()
            .expect("a directory");
        insert_known(&files, "Cargo.toml");
        let seed = HttpSeed::new(files, ServerConfig::new());
        let mut driver = Driver::<Connection<StaticFiles<()>>>::new(seed, ());
        for count in 1..=3 {
            driver.send(b"GET /Cargo.toml HTTP/1.1\r\nHost: a\r\n\r\n");
            assert!(driver.take_received().ends_with(include_bytes!("../../Cargo.toml")));
            assert_eq!(driver.operations().writes, count);
        }
    }

    fn pending(files: &Files, path: &'static str, time: Time) -> PendingRequest {
        PendingRequest {
            files: files.clone(),
            path: Some(FilePath::parse(path, false).expect("a path")),
            conditions: Conditions::default(),
            accepted: AcceptedCodings::default(),
            location: String::new(),
            time,
        }
    }

    #[test]
    fn without_descriptors_files_that_are_known_no_more_are_closed() {
        let files = FilesConfig::new(env!("CARGO_MANIFEST_DIR")).open().expect("a directory");
        insert_known(&files, "Cargo.toml");
        let known =
            files.shared.known().get(b"Cargo.toml", Time::ZERO).map(|it| Arc::downgrade(&it));
        let known = known.expect("it was inserted");
        // It is known for a second, and for another one while it is looked up again.
        for (seconds, is_open) in [(1, true), (2, false)] {
            let request = pending(&files, "/other", Time::ZERO + Duration::from_secs(seconds));
            request.record_failure(&OpenError::Busy(std::io::Error::from_raw_os_error(24)));
            assert_eq!(known.strong_count() > 0, is_open, "{seconds}");
        }
    }

    #[test]
    fn a_missing_file_is_forgotten_but_a_busy_one_is_not() {
        let files = FilesConfig::new(env!("CARGO_MANIFEST_DIR")).open().expect("a directory");
        insert_known(&files, "Cargo.toml");
        let request = pending(&files, "/Cargo.toml", Time::ZERO);
        let is_known = || files.shared.known().get(b"Cargo.toml", Time::ZERO).is_some();
        request.record_failure(&OpenError::Busy(std::io::ErrorKind::Other.into()));
        request.record_failure(&OpenError::Failed(std::io::ErrorKind::Other.into()));
        assert!(is_known());
        request.record_failure(&OpenError::NotFound);
        assert!(!is_known());
    }

    #[test]
    fn a_missing_file_is_not_found_even_if_the_page_cannot_be_opened() {
        let io_error = || std::io::ErrorKind::Other.into();
        for cause in [
            OpenError::NotFound,
            OpenError::Forbidden,
            OpenError::Busy(io_error()),
            OpenError::Failed(io_error()),
        ] {
            let files = FilesConfig::new(env!("CARGO_MANIFEST_DIR")).open().expect("a directory");
            insert_known(&files, "Cargo.toml");
            let error = OpenError::NoPage(Box::new(cause));
            assert_eq!(error.status(), Status::NOT_FOUND);
            pending(&files, "/Cargo.toml", Time::ZERO).record_failure(&error);
            assert!(files.shared.known().get(b"Cargo.toml", Time::ZERO).is_none());
        }
    }
}
