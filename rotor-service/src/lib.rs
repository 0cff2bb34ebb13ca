//! What a service of small requests needs around rotor's HTTP servers: routes, JSON, queries, forms with
//! and without files, compression, CORS, cookies.
//!
//! **Each is a function from what has come to a value of yours, or to a [`Refused`] that says to the
//! peer, in JSON, what is wrong with it.** None of them knows connections: they serve handlers of any
//! kind, async ones too.
//!
//! # A program
//!
//! Whole in a function; with a body it is a `Server` or an async handler. The example `rest_service`
//! has SQLite behind it.
//!
//! ```
//! # #[cfg(all(feature = "json", feature = "pairs", feature = "routes"))] mod program {
//! # mod rotor { pub use rotor_http as http; }
//! use rotor::http::server::{Head, Reply, Response, Scope};
//! use rotor::http::{Method, Status};
//! use rotor_service::{Pairs, Refused, Routes, json};
//!
//! #[derive(Clone, Copy)]
//! enum Wish {
//!     Greet,
//!     Add,
//! }
//!
//! fn routes() -> Result<Routes<Wish>, rotor_service::RouteError> {
//!     let mut routes = Routes::new();
//!     routes.add(Method::Get, "/hello/{name}", Wish::Greet)?;
//!     routes.add(Method::Get, "/sum", Wish::Add)?;
//!     Ok(routes)
//! }
//!
//! fn text(routes: &Routes<Wish>, head: &Head<'_>) -> Result<String, Refused> {
//!     let (wish, parameters) = routes.find(head.method(), head.path())?;
//!     match wish {
//!         Wish::Greet => Ok(format!("Hello, {}!", parameters.text("name")?)),
//!         Wish::Add => {
//!             let pairs = Pairs::read(head.query().unwrap_or_default())?;
//!             let numbers = (pairs.parse::<u32>("a")?, pairs.parse::<u32>("b")?);
//!             Ok((u64::from(numbers.0.unwrap_or(0)) + u64::from(numbers.1.unwrap_or(0))).to_string())
//!         }
//!     }
//! }
//!
//! fn answer(
//!     head: &Head<'_>,
//!     response: &mut Response<'_>,
//!     routes: &mut Scope<'_, Routes<Wish>>,
//! ) -> Reply {
//!     match text(routes, head) {
//!         Ok(text) => json::reply(response, Status::OK, &text),
//!         Err(refused) => refused.reply(response),
//!     }
//! }
//! # }
//! ```
//!
//! # Where things are
//!
//! | | |
//! |--|--|
//! | [`Refused`] | why a request is not served: status, reason, `Allow` |
//! | `Routes`, `Parameters`, `RouteError` | method and path to a value of yours; 404, 405, and 204 for OPTIONS |
//! | `json` | bodies that are JSON: 400, 413, 415, 422 |
//! | `Pairs` | queries and forms: 400, 413 |
//! | `Multipart`, `MultipartConfig`, `Piece`, `Part`, `PartHead` | forms with files, whole or as they come: 400, 413, 415 |
//! | `Compression`, `Taken`, `Encoding`, `Encoder`, `Coding`, `CompressionLayer` | answers made smaller |
//! | `PerThread` | a database that blocks, with a connection for each thread |
//! | `Cookies`, `SetCookie`, `SameSite` | what browsers keep |
//! | `Cors`, `Crossing`, `CorsLayer` | which pages of other origins may ask |
//!
//! # Limits
//!
//! JSON is read up to 128 arrays and objects deep, and as long as its reader is told; a query or form
//! has at most 1,000 pairs, and 200 cookies are read. A form with files has 100 parts of 8 MiB, unless its `MultipartConfig` says
//! otherwise. Bodies of up to 1 MiB are compressed at once, on the loop; the encoder of a stream holds 1 MiB at most. How long
//! targets and bodies may be at all are limits of the connection ([`rotor_http::Limits`]). What is compressed by the peer is not
//! read: its decompressed length would be the peer's to choose.
//!
//! # Versions and features
//!
//! It stands beside `rotor`, as which examples here know the core, streams and HTTP:
//!
//! ```toml
//! rotor-service = { git = "https://github.com/rotor-rs/rotor" }
//! ```
//!
//! Rust 1.88 or later, on Unix with 64-bit pointers (Linux is what the tests run on). None is on by
//! itself.
//!
//! * `compression`: answers as gzip, by flate2 and zlib-rs.
//! * `cookies`: cookies, by the package `cookie`.
//! * `cors`: pages of other origins.
//! * `async`: for the async handlers of rotor-async: `Refused` as an answer, CORS as a layer.
//! * `json`: bodies that are JSON, by serde and serde_json.
//! * `multipart`: forms with files.
//! * `pairs`: queries and forms.
//! * `per-thread`: what blocks, one for each thread of the pool.
//! * `routes`: tables of routes, by matchit.
//! * `zstd`: answers as zstd too. It compiles C.
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
#[cfg(feature = "json")]
pub mod json;
#[cfg(feature = "multipart")]
mod multipart;
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
    feature = "routes"
))]
#[doc = include_str!("../../doc/guide/service.md")]
mod guide {}
#[cfg(feature = "per-thread")]
mod per_thread;
mod refused;
#[cfg(feature = "routes")]
mod routes;

#[cfg(all(feature = "async", feature = "compression"))]
pub use self::compression::CompressionLayer;
#[cfg(feature = "compression")]
pub use self::compression::{
    COMPRESSED_BYTES_MIN, Coding, Compression, ENCODER_BYTES_MAX, Encoder, Encoding, Taken,
    WHOLE_BYTES_MAX,
};
#[cfg(feature = "cookies")]
pub use self::cookies::{COOKIES_MAX, Cookies, SameSite, SetCookie};
#[cfg(feature = "cors")]
pub use self::cors::{Cors, Crossing};
#[cfg(feature = "async")]
pub use self::cors_layer::CorsLayer;
#[cfg(feature = "multipart")]
pub use self::multipart::{Multipart, MultipartConfig, Part, PartHead, Piece};
#[cfg(feature = "pairs")]
pub use self::pairs::{PAIRS_MAX, Pairs};
#[cfg(feature = "per-thread")]
pub use self::per_thread::PerThread;
pub use self::refused::{REASON_CHARS_MAX, Refused};
#[cfg(feature = "routes")]
pub use self::routes::{Parameters, RouteError, Routes};
