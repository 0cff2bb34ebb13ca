//! Turns requests into database queries, and their results into responses.

use std::time::Duration;

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use crate::notes::{self, NewNote, Note, Notes};
use crate::refused::{Refused, nothing};

/// The maximum number of notes in a list.
const LIST_MAX: u32 = 100;

#[derive(Deserialize)]
pub struct Window {
    limit: Option<u32>,
}

pub async fn list(
    State(notes): State<Notes>,
    window: Result<Query<Window>, QueryRejection>,
) -> Result<Json<Vec<Note>>, Refused> {
    let limit = window?.limit.unwrap_or(20).min(LIST_MAX);
    Ok(Json(notes.ask(move |notes| notes::list(notes, limit)).await?))
}

pub async fn add(
    State(notes): State<Notes>,
    new: Result<Json<NewNote>, JsonRejection>,
) -> Result<Response, Refused> {
    let Json(new) = new?;
    let note = notes.ask(move |notes| notes::add(notes, &new)).await?;
    let location = [(LOCATION, format!("/notes/{}", note.id))];
    Ok((StatusCode::CREATED, location, Json(note)).into_response())
}

pub async fn show(
    State(notes): State<Notes>,
    id: Result<Path<i64>, PathRejection>,
) -> Result<Json<Note>, Refused> {
    let Path(id) = id?;
    let note = notes.ask(move |notes| notes::show(notes, id)).await?;
    Ok(Json(note.ok_or_else(nothing)?))
}

pub async fn remove(
    State(notes): State<Notes>,
    id: Result<Path<i64>, PathRejection>,
) -> Result<StatusCode, Refused> {
    let Path(id) = id?;
    match notes.ask(move |notes| notes::remove(notes, id)).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(nothing()),
    }
}

pub async fn later() -> &'static str {
    tokio::time::sleep(Duration::from_millis(100)).await;
    "later\n"
}

pub async fn not_found() -> Refused {
    nothing()
}

pub async fn not_allowed() -> Refused {
    Refused(StatusCode::METHOD_NOT_ALLOWED, "method not allowed".to_owned())
}
