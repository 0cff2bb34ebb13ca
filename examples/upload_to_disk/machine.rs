//! The handler: it gets each body as one value, and stores it on another thread.

use std::io::{self, ErrorKind};

use rotor::body::{Body, Dir, IfExists, SpoolError, StoreJob};
use rotor::http::server::{Head, Next, NoUpgrade, RecvMode, Reply, Response, Scope, Server};
use rotor::http::{BodyError, Method, Status};
use rotor::{Future, Outcome};

/// The number of bytes of an upload that may be in memory.
const RAM_MAX: usize = 64 << 10;

/// The maximum size of an upload, in bytes.
const MAX: u64 = 1 << 30;

/// One upload.
pub(crate) struct Upload {
    dir: Dir,
    name: String,
    /// Whether it must not replace an existing file.
    is_new: bool,
    state: State,
}

enum State {
    /// The body is arriving.
    Coming,
    /// This many bytes have arrived, and are being stored under their name.
    Storing(u64, Future<io::Result<StoreOutcome>>),
}

/// The result of storing it.
enum StoreOutcome {
    Created,
    Replaced,
}

impl Server for Upload {
    type Context = ();
    type Seed = Dir;
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        dir: Dir,
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        if !matches!(head.method(), Method::Put) {
            let allow: &[(&str, &[u8])] = &[("Allow", b"PUT")];
            let page = b"405 Method Not Allowed\n";
            return response
                .reply_with(Status::METHOD_NOT_ALLOWED, allow, "text/plain", page)
                .into();
        }
        let Some(name) = head.path().strip_prefix('/').filter(|name| is_acceptable_name(name))
        else {
            let page =
                b"a name has letters, digits, dots, dashes and underscores, and no dot first\n";
            return response.reply(Status::BAD_REQUEST, "text/plain", page).into();
        };
        // It would replace the whole file (RFC 9110 §14.5).
        if head.field("Content-Range").is_some() {
            let page = b"a part of a file cannot be sent\n";
            return response.reply(Status::BAD_REQUEST, "text/plain", page).into();
        }
        // Files have no tags here, so none matches; and `*` is treated like a tag, which is safe
        // (RFC 9110 §13.1.1).
        if head.field("If-Match").is_some() {
            return precondition_failed(response).into();
        }
        // No tag matches, so tags demand nothing (RFC 9110 §13.1.2).
        let is_new = head.field("If-None-Match") == Some(b"*");
        let store = Upload { dir, name: name.to_owned(), is_new, state: State::Coming };
        Next::recv(store, RecvMode::Stored { ram_max: RAM_MAX, max: MAX }).keep_deadline()
    }

    fn request_stored(
        mut self,
        body: Body,
        _: &mut Response<'_>,
        scope: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        let job = |how| body.store_in(&self.dir, self.name.as_str(), how);
        let (create, replace) =
            (job(IfExists::New), (!self.is_new).then(|| job(IfExists::Replace)));
        match scope.offload(move || store(create, replace)) {
            Ok(future) => {
                self.state = State::Storing(body.len(), future);
                Next::go_on(self).keep_deadline()
            }
            // There are too many others: the client should try again later.
            Err(_full) => Next::fail(Status::SERVICE_UNAVAILABLE),
        }
    }

    fn wakeup(mut self, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
        let State::Storing(bytes, future) = self.state else {
            return Next::go_on(self).keep_deadline();
        };
        match future.take() {
            Outcome::Pending(future) => {
                self.state = State::Storing(bytes, future);
                Next::go_on(self).keep_deadline()
            }
            Outcome::Value(Ok(kept)) => {
                // RFC 9110 §9.3.4 distinguishes the two.
                let status = match kept {
                    StoreOutcome::Created => Status::CREATED,
                    StoreOutcome::Replaced => Status::OK,
                };
                let line = format!("{bytes} bytes\n");
                response.reply(status, "text/plain", line.as_bytes()).into()
            }
            Outcome::Value(Err(error))
                if self.is_new && error.kind() == ErrorKind::AlreadyExists =>
            {
                precondition_failed(response).into()
            }
            Outcome::Value(Err(error)) => {
                log::error!("{} is not kept: {error}", self.name);
                Next::fail(status_of(error))
            }
            Outcome::Lost(lost) => {
                log::error!("{} is not kept: {lost}", self.name);
                Next::fail(Status::INTERNAL_SERVER_ERROR)
            }
        }
    }

    fn bad_request(self, error: BodyError, _: &mut Scope<'_, ()>) {
        log::debug!("{} does not come whole: {error}", self.name);
    }
}

/// The work of the other thread. It first tries to create the file, which fails if the name is
/// taken. Then it replaces the existing file in a second step.
fn store(create: StoreJob, replace: Option<StoreJob>) -> io::Result<StoreOutcome> {
    match (create.run(), replace) {
        (Err(error), Some(replace)) if error.kind() == ErrorKind::AlreadyExists => {
            replace.run().map(|()| StoreOutcome::Replaced)
        }
        (created, _) => created.map(|()| StoreOutcome::Created),
    }
}

/// Returns the status for a file that could not be stored. A short body is written only here, a longer
/// one while it arrives: both get the same status.
fn status_of(error: io::Error) -> Status {
    // The name belongs to a directory (RFC 9110 §15.5.10).
    if error.kind() == ErrorKind::IsADirectory {
        return Status::CONFLICT;
    }
    match SpoolError::from(error) {
        SpoolError::DiskFull(_) => Status::INSUFFICIENT_STORAGE,
        SpoolError::NoDescriptor(_) => Status::SERVICE_UNAVAILABLE,
        SpoolError::TooLarge => Status::CONTENT_TOO_LARGE,
        _ => Status::INTERNAL_SERVER_ERROR,
    }
}

fn precondition_failed(response: &mut Response<'_>) -> Reply {
    response.reply(Status::PRECONDITION_FAILED, "text/plain", b"412 Precondition Failed\n")
}

/// Returns whether a name is acceptable: no path, nothing hidden, and nothing that has a meaning in
/// a shell.
fn is_acceptable_name(name: &str) -> bool {
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    (1..=100).contains(&name.len()) && !name.starts_with(['.', '-']) && name.bytes().all(is_usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_to_store_has_the_status_of_its_cause() {
        for (error, status) in [
            (ErrorKind::StorageFull.into(), Status::INSUFFICIENT_STORAGE),
            (ErrorKind::QuotaExceeded.into(), Status::INSUFFICIENT_STORAGE),
            // EMFILE, which has no kind.
            (io::Error::from_raw_os_error(24), Status::SERVICE_UNAVAILABLE),
            (ErrorKind::FileTooLarge.into(), Status::CONTENT_TOO_LARGE),
            (ErrorKind::IsADirectory.into(), Status::CONFLICT),
            (ErrorKind::PermissionDenied.into(), Status::INTERNAL_SERVER_ERROR),
        ] {
            let text = error.to_string();
            assert_eq!(status_of(error), status, "{text}");
        }
    }
}
