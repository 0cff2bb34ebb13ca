//! Conversion of refusals into the responses of async handlers.

use rotor_async::http::Answer;

use crate::refused::Rejection;

/// Makes the response that [`Rejection::reply`] writes, so that async handlers can use `?`.
impl From<Rejection> for Answer {
    fn from(refused: Rejection) -> Answer {
        let answer = match refused.status() {
            status if status.forbids_body() => Answer::new(status),
            status => Answer::new(status).body("application/json", refused.to_json()),
        };
        let allow = refused.allow().map(|allow| ("Allow", allow.as_bytes()));
        let fields = allow.into_iter().chain(refused.fields());
        fields.fold(answer, |answer, (name, value)| answer.field(name, value))
    }
}
