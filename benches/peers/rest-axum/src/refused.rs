//! The response to a request that is refused.

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Why a request is refused, as the response says in JSON.
pub struct Refused(pub StatusCode, pub String);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.0, Json(json!({ "error": self.1 }))).into_response()
    }
}

impl From<JsonRejection> for Refused {
    fn from(rejection: JsonRejection) -> Refused {
        Refused(rejection.status(), rejection.body_text())
    }
}

impl From<QueryRejection> for Refused {
    fn from(rejection: QueryRejection) -> Refused {
        Refused(rejection.status(), rejection.body_text())
    }
}

/// A path that is not a number: there is no such note.
impl From<PathRejection> for Refused {
    fn from(_: PathRejection) -> Refused {
        nothing()
    }
}

pub fn failed(error: &dyn std::error::Error) -> Refused {
    log::error!("a request failed: {error}");
    Refused(StatusCode::INTERNAL_SERVER_ERROR, "internal error".to_owned())
}

pub fn nothing() -> Refused {
    Refused(StatusCode::NOT_FOUND, "not found".to_owned())
}
