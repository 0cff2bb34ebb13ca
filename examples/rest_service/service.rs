//! Turns requests into database queries, and their results into responses.

use std::sync::Arc;
use std::time::Duration;

use rotor::http::{Method, Status};
use rotor_async::http::{Answer, Request};
use rotor_service::{Pairs, PerThread, Rejection, RouteError, Routes, json};
use rusqlite::Connection;

use crate::notes::{self, NewNote};

/// The longest body, in bytes: a text and a little more.
const BODY_MAX: usize = 16 << 10;

/// The maximum number of notes in a list.
const LIST_MAX: u32 = 100;

#[derive(Clone, Copy)]
pub(crate) enum Route {
    List,
    Add,
    Show,
    Remove,
    Later,
}

pub(crate) fn routes() -> Result<Routes<Route>, RouteError> {
    let mut routes = Routes::new();
    routes.add(Method::Get, "/notes", Route::List)?;
    routes.add(Method::Post, "/notes", Route::Add)?;
    routes.add(Method::Get, "/notes/{id}", Route::Show)?;
    routes.add(Method::Delete, "/notes/{id}", Route::Remove)?;
    routes.add(Method::Get, "/later", Route::Later)?;
    Ok(routes)
}

pub(crate) async fn answer(
    request: Request,
    routes: Arc<Routes<Route>>,
    notes: PerThread<Connection>,
) -> Result<Answer, Rejection> {
    let (route, parameters) = routes.find(request.method(), request.path())?;
    match route {
        Route::List => {
            let limit = Pairs::read(request.query().unwrap_or_default())?.parse("limit")?;
            let limit = limit.unwrap_or(20).min(LIST_MAX);
            json::answer(Status::OK, &notes.ask(move |notes| notes::list(notes, limit)).await?)
        }
        Route::Add => {
            let new: NewNote = json::read_body(&request, BODY_MAX)?;
            let note = notes.ask(move |notes| notes::add(notes, &new)).await?;
            let answer = json::answer(Status::CREATED, &note)?;
            Ok(answer.field("Location", format!("/notes/{}", note.id)))
        }
        Route::Show => {
            let id = parameters.parse("id")?;
            let note = notes.ask(move |notes| notes::show(notes, id)).await?;
            json::answer(Status::OK, &note.ok_or_else(Rejection::not_found)?)
        }
        Route::Remove => {
            let id = parameters.parse("id")?;
            match notes.ask(move |notes| notes::remove(notes, id)).await? {
                true => Ok(Answer::new(Status::NO_CONTENT)),
                false => Err(Rejection::not_found()),
            }
        }
        Route::Later => {
            rotor_async::sleep(Duration::from_millis(100)).await;
            Ok(Answer::from("later\n"))
        }
    }
}
