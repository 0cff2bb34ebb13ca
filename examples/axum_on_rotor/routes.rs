//! The routes, which use only axum and tower-http.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{ConnectInfo, Path, Query, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch, post};
use axum::{Json, Router};
use futures_util::{Stream, StreamExt, stream};
use serde::{Deserialize, Serialize};
use tower_http::compression::CompressionLayer;
use tower_http::services::ServeDir;

/// The maximum number of things to do.
const TODOS_MAX: usize = 10_000;

/// The longest text of one of them, in bytes, and the limit for all texts together.
const TEXT_BYTES_MAX: usize = 1_000;
const TEXTS_BYTES_MAX: usize = 4 << 20;

/// How often an event is sent.
const PACE: Duration = Duration::from_millis(50);

pub(crate) fn routes(directory: &str) -> Router {
    Router::new()
        .route("/", get(hello))
        .route("/todos", get(list).post(add))
        .route("/todos/{id}", patch(change).delete(remove))
        .route("/events", get(events))
        .route("/count", post(count))
        .nest_service("/files", ServeDir::new(directory))
        .with_state(Todos::default())
        .layer(CompressionLayer::new())
}

async fn hello(ConnectInfo(peer): ConnectInfo<SocketAddr>) -> String {
    format!("Hello, {}!\n", peer.ip())
}

#[derive(Clone, Default)]
struct Todos(Arc<RwLock<List>>);

#[derive(Default)]
struct List {
    todos: BTreeMap<u64, Todo>,
    texts_bytes: usize,
}

impl List {
    /// Stores a thing to do, if its text is not too long.
    fn put(&mut self, todo: Todo) -> Result<(), StatusCode> {
        let before = self.todos.get(&todo.id).map_or(0, |before| before.text.len());
        let bytes = self.texts_bytes - before + todo.text.len();
        if todo.text.len() > TEXT_BYTES_MAX {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        let is_one_more = !self.todos.contains_key(&todo.id);
        if bytes > TEXTS_BYTES_MAX || is_one_more && self.todos.len() >= TODOS_MAX {
            return Err(StatusCode::INSUFFICIENT_STORAGE);
        }
        self.texts_bytes = bytes;
        self.todos.insert(todo.id, todo);
        Ok(())
    }
}

#[derive(Clone, Serialize)]
struct Todo {
    id: u64,
    text: String,
    completed: bool,
}

#[derive(Deserialize)]
struct Window {
    offset: Option<usize>,
    limit: Option<usize>,
}

async fn list(Query(window): Query<Window>, State(todos): State<Todos>) -> impl IntoResponse {
    let list = todos.0.read().unwrap_or_else(PoisonError::into_inner);
    let (skipped, taken) = (window.offset.unwrap_or(0), window.limit.unwrap_or(usize::MAX));
    Json(list.todos.values().skip(skipped).take(taken).cloned().collect::<Vec<_>>())
}

#[derive(Deserialize)]
struct NewTodo {
    text: String,
}

async fn add(State(todos): State<Todos>, Json(new): Json<NewTodo>) -> Response {
    let mut list = todos.0.write().unwrap_or_else(PoisonError::into_inner);
    let id = list.todos.last_key_value().map_or(1, |(id, _)| id + 1);
    let todo = Todo { id, text: new.text, completed: false };
    if let Err(full) = list.put(todo.clone()) {
        return full.into_response();
    }
    (StatusCode::CREATED, Json(todo)).into_response()
}

#[derive(Deserialize)]
struct Change {
    text: Option<String>,
    completed: Option<bool>,
}

async fn change(
    Path(id): Path<u64>,
    State(todos): State<Todos>,
    Json(change): Json<Change>,
) -> Result<Json<Todo>, StatusCode> {
    let mut list = todos.0.write().unwrap_or_else(PoisonError::into_inner);
    let mut todo = list.todos.get(&id).ok_or(StatusCode::NOT_FOUND)?.clone();
    if let Some(text) = change.text {
        todo.text = text;
    }
    if let Some(completed) = change.completed {
        todo.completed = completed;
    }
    list.put(todo.clone())?;
    Ok(Json(todo))
}

async fn remove(Path(id): Path<u64>, State(todos): State<Todos>) -> StatusCode {
    let mut list = todos.0.write().unwrap_or_else(PoisonError::into_inner);
    let Some(todo) = list.todos.remove(&id) else { return StatusCode::NOT_FOUND };
    list.texts_bytes -= todo.text.len();
    StatusCode::NO_CONTENT
}

/// Sends a number at regular intervals, as long as the client listens.
async fn events() -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let numbers = stream::unfold(0_u64, |number| async move {
        tokio::time::sleep(PACE).await;
        Some((Ok(Event::default().data(number.to_string())), number + 1))
    });
    Sse::new(numbers).keep_alive(KeepAlive::default())
}

/// Returns the number of bytes in the body, which is not kept.
async fn count(body: Body) -> Result<String, StatusCode> {
    let mut pieces = body.into_data_stream();
    let mut count = 0;
    while let Some(piece) = pieces.next().await {
        count += piece.map_err(|_| StatusCode::BAD_REQUEST)?.len();
    }
    Ok(format!("{count}\n"))
}
