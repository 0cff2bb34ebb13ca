//! JSON bodies of requests and responses, by serde_json.

#[cfg(feature = "async")]
use rotor_async::http::{Answer, Request};
use rotor_http::Status;
use rotor_http::server::{Reply, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use crate::refused::Rejection;
#[cfg(feature = "async")]
use crate::uncoded::check_uncoded;

/// Reads bytes as JSON, whatever type was declared. For the body of a request, call [`check_type`]
/// first.
///
/// # Errors
///
/// The peer's mistake. Each error tells what is wrong and where:
///
/// | error | status |
/// |--|--|
/// | not JSON, not UTF-8, truncated, or followed by more; nested deeper than 128 arrays and objects, if `T` is that deep | 400 |
/// | more bytes than `bytes_max` | 413 |
/// | JSON that does not have the shape of `T` | 422 |
///
/// # Examples
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::Status;
/// use rotor_service::json;
///
/// let pair: (u32, String) = json::read(br#"[1, "one"]"#, 100)?;
/// assert_eq!(pair, (1, "one".to_owned()));
/// let refused = json::read::<(u32, String)>(b"[1]", 100).expect_err("one is missing");
/// assert_eq!(refused.status(), Status::UNPROCESSABLE_CONTENT);
/// # Ok::<(), rotor_service::Rejection>(())
/// ```
pub fn read<T: DeserializeOwned>(body: &[u8], bytes_max: usize) -> Result<T, Rejection> {
    if body.len() > bytes_max {
        return Err(Rejection::new(
            Status::CONTENT_TOO_LARGE,
            format!("more than {bytes_max} bytes"),
        ));
    }
    serde_json::from_slice(body).map_err(|error| {
        let status = match error.classify() {
            Category::Data => Status::UNPROCESSABLE_CONTENT,
            // A slice causes no `Io`.
            Category::Syntax | Category::Eof | Category::Io => Status::BAD_REQUEST,
        };
        Rejection::new(status, error)
    })
}

/// Reads the body of a request that is declared as JSON: calls [`check_type`], then [`read`].
///
/// # Errors
///
/// Those of both; and 415 if the body is compressed, because it is not decompressed here.
#[cfg(feature = "async")]
pub fn read_body<T: DeserializeOwned>(request: &Request, bytes_max: usize) -> Result<T, Rejection> {
    check_type(request.field("Content-Type"))?;
    let codings =
        request.fields().filter(|(name, _)| name.eq_ignore_ascii_case("Content-Encoding"));
    check_uncoded(codings.map(|(_, value)| value))?;
    read(request.body(), bytes_max)
}

/// Checks that a request's `Content-Type` is `application/json` or `application/..+json`. Its
/// parameters are ignored, since JSON is always UTF-8 (RFC 8259 §8.1).
///
/// Call it if cookies identify the user. A request that a page of another origin can send without a
/// preflight has no type, or one that is not JSON, so this check refuses it.
///
/// # Errors
///
/// 415: the type is another one, or missing.
pub fn check_type(content_type: Option<&[u8]>) -> Result<(), Rejection> {
    let essence = content_type.and_then(|value| value.split(|&byte| byte == b';').next());
    let essence = essence.unwrap_or_default().trim_ascii().to_ascii_lowercase();
    let is_json = match essence.strip_prefix(b"application/") {
        Some(subtype) => subtype == b"json" || subtype.ends_with(b"+json"),
        None => false,
    };
    match is_json {
        true => Ok(()),
        false => Err(Rejection::unsupported("a body of the type application/json is expected")),
    }
}

/// Responds with a value as JSON. If JSON cannot express the value (a map whose keys are not
/// strings), that is the caller's mistake: it is logged, and the peer gets 500.
pub fn reply(
    response: &mut Response<'_>,
    status: Status,
    value: &(impl Serialize + ?Sized),
) -> Reply {
    match serde_json::to_vec(value) {
        Ok(body) => response.reply(status, "application/json", &body),
        Err(error) => serialization_failed(&error).reply(response),
    }
}

/// Responds with a value as JSON and with more fields, like [`Response::reply_with`]. For example,
/// a 201 names the new resource in `Location`.
///
/// # Examples
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::Status;
/// use rotor::http::server::{Reply, Response};
/// use rotor_service::json;
///
/// fn created(id: u64, response: &mut Response<'_>) -> Reply {
///     let location = format!("/notes/{id}");
///     json::reply_with(response, Status::CREATED, &[("Location", location.as_bytes())], &id)
/// }
/// ```
pub fn reply_with(
    response: &mut Response<'_>,
    status: Status,
    fields: &[(&str, &[u8])],
    value: &(impl Serialize + ?Sized),
) -> Reply {
    match serde_json::to_vec(value) {
        Ok(body) => response.reply_with(status, fields, "application/json", &body),
        Err(error) => serialization_failed(&error).reply(response),
    }
}

/// Makes a response with a value as JSON, for an async handler.
///
/// # Errors
///
/// 500: JSON cannot express the value; see [`reply`].
#[cfg(feature = "async")]
pub fn answer(status: Status, value: &(impl Serialize + ?Sized)) -> Result<Answer, Rejection> {
    match serde_json::to_vec(value) {
        Ok(body) => Ok(Answer::new(status).body("application/json", body)),
        Err(error) => Err(serialization_failed(&error)),
    }
}

/// Logs the caller's mistake, which the peer need not know.
fn serialization_failed(error: &serde_json::Error) -> Rejection {
    log::error!("a value cannot be serialized as JSON: {error}");
    Rejection::new(Status::INTERNAL_SERVER_ERROR, "internal error")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize, Debug, PartialEq)]
    struct Pair {
        name: String,
        count: u8,
    }

    #[test]
    fn each_kind_of_invalid_body_has_its_status() {
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        let shape = Status::UNPROCESSABLE_CONTENT;
        let cases: [(&[u8], Status); 12] = [
            (b"", Status::BAD_REQUEST),
            (b"{", Status::BAD_REQUEST),
            (br#"{"name":"a","count":1"#, Status::BAD_REQUEST),
            (br#"{"name":"a","count":1} x"#, Status::BAD_REQUEST),
            (br#"{name:"a","count":1}"#, Status::BAD_REQUEST),
            (b"{\"name\":\"\xff\",\"count\":1}", Status::BAD_REQUEST),
            (b"{\"name\":\"\\ud800\",\"count\":1}", Status::BAD_REQUEST),
            (br#"{"name":"a"}"#, shape),
            (br#"{"name":"a","count":256}"#, shape),
            (br#"{"name":"a","count":1.5}"#, shape),
            (br#"{"name":7,"count":1}"#, shape),
            (br#"{"name":"a","count":1,"count":2}"#, shape),
        ];
        for (body, status) in cases {
            let refused = read::<Pair>(body, 1000).expect_err("it is wrong");
            assert_eq!(refused.status(), status, "{}: {refused}", body.escape_ascii());
        }
        let value = |text: &str| read::<serde_json::Value>(text.as_bytes(), 1 << 20);
        assert!(value(&deep(127)).is_ok());
        assert_eq!(value(&deep(128)).expect_err("too deep").status(), Status::BAD_REQUEST);
        assert!(value(&deep(100_000)).is_err());
    }

    #[test]
    fn a_body_over_the_length_limit_is_refused() {
        for (length, is_read) in [(9, true), (10, true), (11, false)] {
            let body = format!("\"{}\"", "x".repeat(length - 2));
            let read = read::<String>(body.as_bytes(), 10);
            let status = read.as_ref().err().map(Rejection::status);
            assert_eq!(status, (!is_read).then_some(Status::CONTENT_TOO_LARGE), "{length}");
        }
    }

    #[test]
    fn a_valid_body_is_parsed() {
        let pair = read::<Pair>(b" {\"count\":1,\"name\":\"\\u00e4\"} \n", 100);
        assert_eq!(pair, Ok(Pair { name: "ä".to_owned(), count: 1 }));
    }
}
