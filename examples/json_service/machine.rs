//! `Front`: the handler of one request.

use std::time::Duration;

use rotor::http::server::{Head, Next, NoUpgrade, RecvMode, Response, Scope, Server};
use rotor::http::{MessageError, Method, Status};
use serde_json::{Value, json};

use super::city;
use super::desk::{LOOKUP_TIME_MAX, Weather};
use super::store::Notes;

/// The longest note, in bytes.
const NOTE_BYTES_MAX: usize = 4 << 10;

/// How long to wait for the desk. The desk has a time limit of its own; this one is for bugs.
const ANSWER_TIME_MAX: Duration = LOOKUP_TIME_MAX.saturating_add(Duration::from_secs(1));

/// A request whose body, a note, is arriving. All others are answered from their head, at once or
/// when the desk has answered.
pub(crate) struct Front;

/// The meaning of a path.
enum Page<'a> {
    Weather,
    Notes,
    Note(&'a str),
}

impl<'a> Page<'a> {
    fn of(path: &'a str) -> Option<Page<'a>> {
        match path {
            "/weather" => Some(Page::Weather),
            "/notes" => Some(Page::Notes),
            _ => path.strip_prefix("/notes/").map(Page::Note),
        }
    }

    fn allow(&self) -> &'static [u8] {
        match self {
            Page::Notes => b"POST",
            Page::Weather | Page::Note(_) => b"GET, HEAD",
        }
    }
}

impl Server for Front {
    type Context = Notes;
    type Seed = Weather;
    type Upgrade = NoUpgrade<Notes>;

    fn headers_received(
        weather: Weather,
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Notes>,
    ) -> Next<Self> {
        let Some(page) = Page::of(head.path()) else { return refuse(Status::NOT_FOUND, response) };
        match (head.method(), page) {
            (Method::Get | Method::Head, Page::Weather) => {
                let Some(city) = head.query().and_then(city::of_query) else {
                    return refuse(Status::BAD_REQUEST, response);
                };
                match weather.ask(city.into(), scope) {
                    Ok(answer) => {
                        let limit = scope.now() + ANSWER_TIME_MAX;
                        Next::wait(answer, limit, |answer, response, _| match answer {
                            Ok(Ok(page)) => finish(response.send(Status::OK, JSON, &page)),
                            Ok(Err(status)) => refuse(status, response),
                            Err(_desk_is_gone) => refuse(Status::SERVICE_UNAVAILABLE, response),
                        })
                    }
                    Err(_full_or_gone) => refuse(Status::SERVICE_UNAVAILABLE, response),
                }
            }
            (Method::Get | Method::Head, Page::Note(number)) => {
                match number.parse().ok().and_then(|number| scope.get(number)) {
                    Some(note) => finish(response.send(Status::OK, JSON, note)),
                    None => refuse(Status::NOT_FOUND, response),
                }
            }
            (Method::Post, Page::Notes) => {
                Next::recv(Front, RecvMode::Buffered(NOTE_BYTES_MAX)).keep_deadline()
            }
            (_, page) => {
                let status = Status::METHOD_NOT_ALLOWED;
                finish(response.send_with(
                    status,
                    &[("Allow", page.allow())],
                    JSON,
                    &error_page(status),
                ))
            }
        }
    }

    fn request_received(
        self,
        body: &[u8],
        response: &mut Response<'_>,
        notes: &mut Scope<'_, Notes>,
    ) -> Next<Self> {
        if serde_json::from_slice::<Value>(body).is_err() {
            return refuse(Status::BAD_REQUEST, response);
        }
        let Some(number) = notes.add(body) else {
            return refuse(Status::SERVICE_UNAVAILABLE, response);
        };
        let (location, page) = (format!("/notes/{number}"), json!({ "id": number }).to_string());
        let fields = [("Location", location.as_bytes())];
        finish(response.send_with(Status::CREATED, &fields, JSON, page.as_bytes()))
    }

    fn emit_error_page(status: Status, response: &mut Response<'_>) {
        // An incomplete response is replaced by an error page of the connection.
        response.reply(status, JSON, &error_page(status));
    }
}

const JSON: &str = "application/json";

fn error_page(status: Status) -> Vec<u8> {
    json!({ "status": status.code(), "error": status.reason() }).to_string().into_bytes()
}

/// Answers with an error page, which is the same for errors of the handler and of the connection.
fn refuse(status: Status, response: &mut Response<'_>) -> Next<Front> {
    Front::emit_error_page(status, response);
    Next::finished()
}

/// If the writer refuses a response, that is a bug of this program, and the response is 500.
fn finish(written: Result<(), MessageError>) -> Next<Front> {
    if let Err(error) = written {
        log::error!("a response was refused: {error}");
    }
    Next::finished()
}
