//! Building blocks for services on rotor's HTTP servers: routes, JSON, queries, forms with and
//! without files, server-sent events, compression, CORS, cookies.
//!
//! **Each turns a part of the request into a value of your own, or into a [`Rejection`] that tells
//! the client, in JSON, what is wrong.** None of them depends on connections, so they work in
//! handlers of any kind, including async ones.
//!
//! # A program
//!
//! Functions behind routes. The example `notes` is a service in 70 lines; `rest_service` has async
//! handlers, and SQLite behind them.
//!
//! ```no_run
//! # #[cfg(all(feature = "json", feature = "pairs", feature = "router"))] mod program {
//! # mod rotor { pub use rotor_http as http; }
//! use rotor::http::Status;
//! use rotor::http::server::{Reply, Response, Scope, Serve};
//! use rotor_service::{Json, Path, Query, Rejection, Router, json};
//!
//! fn greet(
//!     Path(name): Path<String>,
//!     response: &mut Response<'_>,
//!     _: &mut Scope<'_, ()>,
//! ) -> Reply {
//!     json::reply(response, Status::OK, &format!("Hello, {name}!"))
//! }
//!
//! fn multiply(
//!     Query(query): Query,
//!     Json(numbers): Json<Vec<f64>>,
//!     response: &mut Response<'_>,
//!     _: &mut Scope<'_, ()>,
//! ) -> Result<Reply, Rejection> {
//!     let by: f64 = query.parse("by")?.unwrap_or(1.0);
//!     let numbers: Vec<f64> = numbers.iter().map(|number| number * by).collect();
//!     Ok(json::reply(response, Status::OK, &numbers))
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let router = Router::new().get("/hello/{name}", greet)?.post("/multiplied", multiply)?;
//!     Ok(router.run(Serve::new("127.0.0.1:3000"), || ())?)
//! }
//! # }
//! ```
//!
//! # Where things are
//!
//! | | |
//! |--|--|
//! | [`Rejection`] | why a request is not served: status, reason, fields |
//! | `Routes`, `Parameters`, `RouteError` | a table from method and path to a value of your own; 404, 405, and 204 for OPTIONS |
//! | `Router`, `RouteHandler`, `RouteFn`, `RouteSeed` | functions behind routes |
//! | `FromHead`, `Path`, `Query`, `Cookies`, `Multipart`, `RequestParts`; `FromBody`, `Json`, `Form` | their arguments |
//! | `IntoNext`, `or_reject` | their answers |
//! | `IntoControlFlow` | results of functions that are called before those of the routes |
//! | `json` | bodies that are JSON: 400, 413, 415, 422 |
//! | `json_errors`, `JsonErrors` | errors of the connection as JSON, for async handlers |
//! | `Pairs` | queries and forms: 400, 413 |
//! | `Multipart`, `MultipartConfig`, `Piece`, `Part`, `PartHead` | forms with files, whole or as they arrive: 400, 413, 415 |
//! | `Compression`, `AcceptedCoding`, `Encoding`, `Encoder`, `Coding`, `CompressionLayer` | compressed responses |
//! | `event_stream` | server-sent events |
//! | `PerThread` | a database that blocks, with a connection for each thread |
//! | `Cookies`, `SetCookie`, `SameSite` | cookies, read and set |
//! | `Cors`, `OriginError`, `CorsDecision`, `CorsLayer` | requests from pages of other origins |
//!
//! # Limits
//!
//! JSON may be nested 128 arrays and objects deep, and may be as long as the call says. A query or
//! form has at most 1,000 pairs, and 200 cookies are read. A function of a `Router` gets a body of
//! up to 64 KiB, unless the router is configured otherwise. A form with files has 100 parts of 8
//! MiB, unless its `MultipartConfig` changes that. Bodies of up to 1 MiB are compressed in one
//! step, on the loop; the encoder of a stream holds 1 MiB at most. The connection limits the length
//! of targets and bodies ([`rotor_http::Limits`]). Bodies that the client has compressed are not
//! accepted, because the client would choose their decompressed length.
//!
//! # Versions and features
//!
//! Use it beside `rotor`; the examples use that name for the core, streams and HTTP:
//!
//! ```toml
//! rotor-service = { git = "https://github.com/rotor-rs/rotor" }
//! ```
//!
//! The program above needs `features = ["router", "json", "pairs"]`.
//!
//! Rust 1.88 or later, on Unix with 64-bit pointers (the tests run on Linux). No feature is on by
//! default.
//!
//! * `compression`: gzip for responses, by flate2 and zlib-rs.
//! * `cookies`: cookies, by the package `cookie`.
//! * `cors`: requests from pages of other origins.
//! * `async`: for the async handlers of rotor-async: `Rejection` as an answer, errors of the
//!   connection as JSON, CORS as a layer.
//! * `event-stream`: server-sent events.
//! * `json`: JSON bodies, by serde and serde_json.
//! * `multipart`: forms with files.
//! * `pairs`: queries and forms.
//! * `per-thread`: blocking resources, one for each thread of the pool.
//! * `router`: functions behind routes, whose arguments are read from the request.
//! * `routes`: tables of routes, by matchit.
//! * `zstd`: also zstd for responses. It compiles C.
//!
//! # The book
//!
//! * [A service](https://github.com/rotor-rs/rotor/blob/main/doc/guide/service.md)
//! * [An HTTP server](https://github.com/rotor-rs/rotor/blob/main/doc/guide/http-server.md)
//! * [All chapters](https://github.com/rotor-rs/rotor/blob/main/doc/README.md)
#![forbid(unsafe_code)]

#[cfg(feature = "async")]
mod answers;
#[cfg(feature = "compression")]
mod compression;
#[cfg(feature = "cookies")]
mod cookies;
#[cfg(feature = "cors")]
mod cors;
#[cfg(feature = "async")]
mod cors_layer;
#[cfg(feature = "event-stream")]
pub mod event_stream;
#[cfg(feature = "json")]
pub mod json;
#[cfg(feature = "async")]
mod json_errors;
#[cfg(feature = "multipart")]
mod multipart;
#[cfg(feature = "cors")]
mod origin;
#[cfg(feature = "pairs")]
mod pairs;
/// The programs of the book's chapter are tests.
#[cfg(all(
    doctest,
    feature = "async",
    feature = "compression",
    feature = "cookies",
    feature = "json",
    feature = "multipart",
    feature = "pairs",
    feature = "per-thread",
    feature = "router"
))]
#[doc = include_str!("../../doc/guide/service.md")]
mod guide {}
#[cfg(feature = "per-thread")]
mod per_thread;
mod refused;
#[cfg(feature = "router")]
mod router;
#[cfg(feature = "routes")]
mod routes;
#[cfg(any(
    all(feature = "async", feature = "json"),
    all(feature = "router", any(feature = "json", feature = "multipart", feature = "pairs"))
))]
mod uncoded;

#[cfg(all(feature = "async", feature = "compression"))]
pub use self::compression::CompressionLayer;
#[cfg(feature = "compression")]
pub use self::compression::{
    AcceptedCoding, COMPRESSED_BYTES_MIN, Coding, Compression, ENCODER_BYTES_MAX, Encoder,
    Encoding, WHOLE_BYTES_MAX,
};
#[cfg(feature = "cookies")]
pub use self::cookies::{COOKIES_MAX, Cookies, SameSite, SetCookie};
#[cfg(feature = "cors")]
pub use self::cors::{Cors, CorsDecision};
#[cfg(feature = "async")]
pub use self::cors_layer::CorsLayer;
#[cfg(feature = "async")]
pub use self::json_errors::{JsonErrors, json_errors};
#[cfg(feature = "multipart")]
pub use self::multipart::{Multipart, MultipartConfig, Part, PartHead, Piece};
#[cfg(feature = "cors")]
pub use self::origin::OriginError;
#[cfg(feature = "pairs")]
pub use self::pairs::{PAIRS_MAX, Pairs};
#[cfg(feature = "per-thread")]
pub use self::per_thread::PerThread;
pub use self::refused::{REASON_CHARS_MAX, Rejection};
#[cfg(all(feature = "json", feature = "router"))]
pub use self::router::Json;
#[cfg(all(feature = "pairs", feature = "router"))]
pub use self::router::{Form, Query};
#[cfg(feature = "router")]
pub use self::router::{
    FromBody, FromHead, IntoControlFlow, IntoNext, Path, ROUTE_BODY_BYTES_MAX, RequestParts,
    RouteFn, RouteHandler, RouteSeed, Router, or_reject,
};
#[cfg(feature = "routes")]
pub use self::routes::{Parameters, RouteError, Routes};
