//! Async functions as handlers for rotor-http.
//!
//! **A handler is a function from a request to a response; the connection does the rest**: it
//! collects the body first, enforces limits and times, polls the future on the loop, and writes the
//! response. A program:
//!
//! ```no_run
//! # mod rotor { pub use rotor_http as http; }
//! use std::time::Duration;
//!
//! use rotor_async::http::{Answer, Request, serve};
//! use rotor::http::Status;
//!
//! async fn hello(request: Request) -> Answer {
//!     rotor_async::sleep(Duration::from_millis(10)).await;
//!     Answer::text(Status::OK, format!("{} {}\n", request.method(), request.path()))
//! }
//!
//! fn main() -> Result<(), rotor::http::server::ServeError> {
//!     serve("127.0.0.1:3000", hello)
//! }
//! ```
//!
//! * **Time.** [`handler_timeout`](rotor_http::Limits::handler_timeout) applies, even if the future
//!   wants to sleep for longer. When it passes, the peer gets 503, and the future is dropped.
//! * **Cancellation.** If the connection breaks or the stream is reset, the future is dropped,
//!   wherever it is. A peer that only ends its sending side still waits for its response.
//! * **Panics.** A panic in the future is one in a handler: the peer gets 500, and nothing else is
//!   affected.
//! * **Bodies** of requests are collected in memory before the function is called, up to
//!   [`buffered_body_bytes_max`](rotor_http::Limits::buffered_body_bytes_max) (beyond it, the peer
//!   gets 413); responses are complete. To stream, write a [`Server`](rotor_http::server::Server)
//!   of your own, or a tower service (`rotor-tower`).
//! * **The context** of the loop is available when the future is made ([`with_scope`]), not in the
//!   future. Time, other threads and other machines are available in the future as well
//!   ([`sleep`](crate::sleep), [`offload`](crate::offload), [`wait`](crate::wait)).
//! * **Files** can be served beside a function: [`run_with_files`].

mod answer;
mod handler;
mod request;
mod server;

pub use self::answer::Answer;
pub use self::handler::{Handler, WithScope, with_scope};
pub use self::request::Request;
pub use self::server::{AsyncServer, run, run_with_files, serve};
