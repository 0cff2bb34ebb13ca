//! The handler: bodies that are written when there is room for them, or at given times.

use std::time::Duration;

use rotor::Time;
use rotor::http::server::{Head, Next, NoUpgrade, Response, Scope, Server};
use rotor::http::{MessageError, Method, Status};

const BYTES_DEFAULT: u64 = 1 << 30;

/// Written over and over. It has 64 bytes, so that a truncated body shows where it was cut.
const LINE: &[u8; 64] = b"All work and no play makes a server a dull machine, says rotor.\n";

/// What is written at once, 16 KiB: enough for one system call, and little compared with the
/// high-water mark.
static PIECE: [[u8; LINE.len()]; 256] = [*LINE; 256];

const INTERVAL: Duration = Duration::from_secs(1);

/// One response in progress.
pub(crate) enum Streaming {
    /// The number of bytes that are left.
    Big { left: u64 },
    /// The number of the next event, and when it is due.
    Events { number: u64, due: Time },
}

impl Server for Streaming {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        let is_get = matches!(head.method(), Method::Get | Method::Head);
        let begun = match (is_get, head.path()) {
            (true, "/big") => Streaming::begin_big(head, response),
            (true, "/events") => Streaming::begin_events(response, scope.now()),
            (true, _) => refuse(Status::NOT_FOUND, response),
            (false, _) => refuse(Status::METHOD_NOT_ALLOWED, response),
        };
        match begun {
            // The body is generated only if it is sent.
            Ok(Some(streaming)) if response.sends_body() => streaming.proceed(response),
            // HEAD: only the header is sent.
            Ok(Some(_)) => {
                let _complete = response.done();
                Next::finished()
            }
            Ok(None) | Err(_) => Next::finished(),
        }
    }

    /// Called when the client has taken most of the waiting output.
    fn response_flushed(self, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
        self.proceed(response)
    }

    /// The next event is due.
    fn timeout(self, response: &mut Response<'_>, scope: &mut Scope<'_, ()>) -> Next<Self> {
        let Streaming::Events { number, due } = self else { return self.proceed(response) };
        let event = format!("id: {number}\ndata: {} s\n\n", scope.now().as_nanos() / 1_000_000_000);
        // A slow client gets fewer events instead of old ones.
        if response.room() > 0 && response.write_body(event).is_err() {
            return Next::finished();
        }
        // Counted from when it was due, not from now: otherwise each event would drift a little.
        Streaming::Events { number: number + 1, due: due + INTERVAL }.proceed(response)
    }

    /// The events have no end of their own. The client will connect again, elsewhere.
    fn draining(self, _: Time, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
        match self {
            // This body has an end, and the drain a limit.
            Streaming::Big { .. } => Next::go_on(self).keep_deadline(),
            Streaming::Events { .. } => {
                let _complete = response.done();
                Next::finished()
            }
        }
    }
}

impl Streaming {
    fn begin_big(
        head: &Head<'_>,
        response: &mut Response<'_>,
    ) -> Result<Option<Streaming>, MessageError> {
        let left = match head.query().map(str::parse) {
            None => BYTES_DEFAULT,
            Some(Ok(bytes)) => bytes,
            Some(Err(_)) => return refuse(Status::BAD_REQUEST, response),
        };
        response.status(Status::OK)?;
        response.add_header("Content-Type", "text/plain")?;
        response.add_length(left)?;
        response.done_headers()?;
        Ok(Some(Streaming::Big { left }))
    }

    fn begin_events(
        response: &mut Response<'_>,
        now: Time,
    ) -> Result<Option<Streaming>, MessageError> {
        response.status(Status::OK)?;
        response.add_header("Content-Type", "text/event-stream")?;
        // A cache would collect the events, and pass them on at their end, which never comes.
        response.add_header("Cache-Control", "no-store")?;
        response.add_chunked()?;
        response.done_headers()?;
        Ok(Some(Streaming::Events { number: 0, due: now }))
    }

    /// Writes as much as there is room for, then waits for more room or for the next event.
    fn proceed(self, response: &mut Response<'_>) -> Next<Self> {
        match self {
            Streaming::Events { due, .. } => Next::go_on(self).deadline(due),
            Streaming::Big { mut left } => {
                while left > 0 && response.room() > 0 {
                    let piece = PIECE.as_flattened();
                    let count = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    if response.write_body(&piece[..count]).is_err() {
                        return Next::finished();
                    }
                    left -= count as u64;
                }
                if left > 0 {
                    // The stream has a time limit for clients that take nothing.
                    return Next::go_on(Streaming::Big { left }).no_deadline();
                }
                let _complete = response.done();
                Next::finished()
            }
        }
    }
}

fn refuse(status: Status, response: &mut Response<'_>) -> Result<Option<Streaming>, MessageError> {
    let line = format!("{} {}\n", status.code(), status.reason());
    response.status(status)?;
    if status == Status::METHOD_NOT_ALLOWED {
        response.add_header("Allow", "GET, HEAD")?;
    }
    response.add_header("Content-Type", "text/plain")?;
    response.add_length(line.len() as u64)?;
    response.done_headers()?;
    response.write_body(line)?;
    response.done()?;
    Ok(None)
}
