//! The refusals of a form.

use std::fmt;

use rotor_http::Status;

use crate::refused::Rejection;

pub(super) fn malformed(reason: impl fmt::Display) -> Rejection {
    Rejection::new(Status::BAD_REQUEST, reason)
}

pub(super) fn too_large(reason: impl fmt::Display) -> Rejection {
    Rejection::new(Status::CONTENT_TOO_LARGE, reason)
}
