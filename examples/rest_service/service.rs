//! From requests to questions for the database, and from what comes back to answers.

use std::path::PathBuf;
use std::sync::Arc;

use rotor::http::{Method, Status};
use rotor::{BoxError, Scope};
use rotor_async::http::{Answer, Request};
use rotor_service::{Pairs, Refused, Routes, json};

use crate::notes::{self, NewNote};

/// The longest body, in octets: a text and a little more.
const BODY_MAX: usize = 16 << 10;

/// Notes in a list, at most.
const LIST_MAX: u32 = 100;

#[derive(Clone, Copy)]
enum Route {
    List,
    Add,
    Show,
    Remove,
}

/// What a request asks of the database.
enum Question {
    List(u32),
    Add(NewNote),
    Show(i64),
    Remove(i64),
}

#[derive(Clone)]
pub(crate) struct Service {
    routes: Arc<Routes<Route>>,
    file: Arc<PathBuf>,
}

impl Service {
    pub(crate) fn new(file: PathBuf) -> Result<Service, BoxError> {
        let mut routes = Routes::new();
        routes.add(Method::Get, "/notes", Route::List)?;
        routes.add(Method::Post, "/notes", Route::Add)?;
        routes.add(Method::Get, "/notes/{id}", Route::Show)?;
        routes.add(Method::Delete, "/notes/{id}", Route::Remove)?;
        Ok(Service { routes: Arc::new(routes), file: Arc::new(file) })
    }

    pub(crate) fn answer(
        &self,
        request: Request,
        scope: &mut Scope<'_, ()>,
    ) -> impl Future<Output = Answer> + use<> {
        let answer = self.question(&request).map(|question| {
            let file = self.file.clone();
            scope.offload(move || notes::with(&file, |notes| ask(question, notes)))
        });
        async {
            match answer {
                Err(refused) => refused.into(),
                // More wait already than the pool takes.
                Ok(Err(_full)) => {
                    Answer::new(Status::SERVICE_UNAVAILABLE).field("Retry-After", "1")
                }
                Ok(Ok(job)) => match rotor_async::wait(job).await {
                    Ok(Ok(answer)) => answer.into(),
                    Ok(Err(error)) => failed(&error),
                    Err(lost) => failed(&lost),
                },
            }
        }
    }

    fn question(&self, request: &Request) -> Result<Question, Refused> {
        let (route, parameters) = self.routes.find(request.method(), request.path())?;
        Ok(match route {
            Route::List => {
                let pairs = Pairs::read(request.query().unwrap_or_default())?;
                Question::List(pairs.parse("limit")?.unwrap_or(20).min(LIST_MAX))
            }
            Route::Add => Question::Add(json::read_body(request, BODY_MAX)?),
            Route::Show => Question::Show(parameters.parse("id")?),
            Route::Remove => Question::Remove(parameters.parse("id")?),
        })
    }
}

/// On a thread of the pool.
fn ask(
    question: Question,
    notes: &notes::Notes,
) -> Result<Result<Answer, Refused>, rusqlite::Error> {
    let note = |note: Option<notes::Note>| note.ok_or_else(Refused::not_found);
    Ok(match question {
        Question::List(limit) => Ok(as_json(Status::OK, &notes.list(limit)?)),
        Question::Add(new) => {
            let note = notes.add(&new)?;
            let location = format!("/notes/{}", note.id);
            Ok(as_json(Status::CREATED, &note).field("Location", location))
        }
        Question::Show(id) => note(notes.show(id)?).map(|note| as_json(Status::OK, &note)),
        Question::Remove(id) => match notes.remove(id)? {
            true => Ok(Answer::new(Status::NO_CONTENT)),
            false => Err(Refused::not_found()),
        },
    })
}

fn as_json(status: Status, value: &impl serde::Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(body) => Answer::new(status).body("application/json", body),
        Err(error) => failed(&error),
    }
}

/// Nobody but us is at fault, and the peer is not told why.
fn failed(error: &dyn std::error::Error) -> Answer {
    log::error!("a request failed: {error}");
    Refused::new(Status::INTERNAL_SERVER_ERROR, "internal error").into()
}
