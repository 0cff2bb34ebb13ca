//! A ready-made handler for static files.
//!
//! **It sends regular files from one directory and its subdirectories, and nothing else, whatever
//! the path says.** No path leads out of the directory, and a FIFO or a device in it is never
//! opened.
//!
//! ```no_run
//! # mod rotor { pub use rotor_core::*; pub use rotor_http as http; }
//! use rotor::net::{ListenOptions, Listener, TcpListener};
//! use rotor::{Config, Loop, Response};
//! use rotor::http::files::{FilesConfig, StaticFiles};
//! use rotor::http::server::{self, HttpAccept, HttpSeed, ServerConfig};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let files = FilesConfig::new("/srv/www").open()?;
//! let mut creator = Loop::<HttpAccept<StaticFiles<()>, TcpListener>>::new(&Config::new())?;
//! creator.add_machine_with(|scope| {
//!     Response::attempt(|| {
//!         let listener = TcpListener::bind(&"127.0.0.1:8080".parse()?, &ListenOptions::new(), scope)?;
//!         Ok(server::listen(listener, HttpSeed::new(files, ServerConfig::new()), scope))
//!     })
//! })?;
//! creator.instantiate(()).run()?;
//! # Ok(())
//! # }
//! ```
//!
//! # What is sent
//!
//! | request | response |
//! |--|--|
//! | GET or HEAD of a file | 200 with `Content-Type`, `ETag`, `Last-Modified`, `Accept-Ranges` |
//! | GET or HEAD of a directory | its index page; if the path lacks the slash at its end, 301 to the path with it |
//! | with conditions | 304 or 412, as RFC 9110 §13.2.2 evaluates them |
//! | GET with a range | 206; several ranges as `multipart/byteranges` (of a compressed sibling: 200 with all of it); 416 if the file has none of them |
//! | with more than 16 ranges, or malformed ones | as without a range |
//! | from a client that accepts the coding of a [compressed sibling](FilesConfig::precompressed) | the sibling, with `Content-Encoding` |
//! | anything that is not a regular file, or is hidden, outside, or a link | 404, with [a page](FilesConfig::not_found_page) if there is one; or [another file](FilesConfig::fallback) |
//! | a file that the process may not read | 403 |
//! | a file for which the process has no descriptor or memory left; one that the disk cannot read | 503; 500 |
//! | a malformed path (bad escapes, control characters) | 400 |
//! | OPTIONS; POST, PUT, PATCH, DELETE | 204; 405, both with `Allow` |
//! | TRACE, CONNECT, unknown methods | 501, as from any [`Server`](crate::server::Server::supports) |
//!
//! # What it costs
//!
//! A file that is not known yet is opened on another thread
//! ([`Scope::offload`](rotor_core::Scope::offload)). If the pool has no room for that, the response
//! is 503.
//!
//! An opened file stays known for [a short time](FilesConfig::renew_after). A file of up to 16 KiB
//! is kept in memory and sent in one write with the head of its response. A larger file is kept
//! open, and the kernel sends its contents. What it does not have in its cache, it reads from the
//! disk then, and the loop's other connections wait for that: so if much more is served than fits
//! into memory, use several loops. If a file becomes shorter while it is sent, the connection ends,
//! with all its streams of HTTP/2, because a longer body was announced, and that is logged. If it
//! becomes longer, it is sent with its old length.
//!
//! A larger file also stays open until its last response is sent. So a connection of HTTP/1.1 needs
//! up to two descriptors, and one of HTTP/2 up to one more for each of its streams
//! (`Http2Config::streams_max`) if they send different files. A peer can keep them for as long as it
//! reads at the [minimum rate](crate::Limits::response_rate_min). With many large files, lower that
//! maximum, or let the process have more descriptors.
//!
//! # Modules
//!
//! | module | contents |
//! |--|--|
//! | `path`, `entity_tag`, `conditions`, `range`, `multipart`, `content_type`, `precompressed`, `cache` | pure modules: each implements one set of rules |
//! | `open`, `walk` | the system calls |
//! | `config`, `known`, `responses`, `handler` | the configuration, a known file, the writing of responses, the handler |

mod cache;
mod conditions;
mod config;
mod content_type;
mod entity_tag;
mod entry;
mod handler;
mod kernel_lookup;
mod known;
mod multipart;
mod open;
mod path;
mod precompressed;
mod range;
mod responses;
mod tag_key;
mod walk;

#[cfg(test)]
mod open_tests;

pub use self::conditions::{Conditions, Evaluation, Validators};
pub use self::config::{Files, FilesConfig};
pub use self::entity_tag::EntityTag;
pub use self::handler::StaticFiles;
pub use self::precompressed::Precompressed;
