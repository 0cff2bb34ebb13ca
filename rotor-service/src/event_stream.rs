//! Server-sent events (HTML Living Standard, section 9.2): what a page receives by an `EventSource`.
//!
//! A response of events is written piece by piece, so its handler is a
//! [`Server`](rotor_http::server::Server): [`begin`] writes the head, and each
//! [`ServerSentEvent`] is a piece of the body, for
//! [`Response::write_body`](rotor_http::server::Response::write_body). A page that was cut off
//! connects again and says which event it has seen last: [`last_event_id`].
//!
//! # Examples
//!
//! ```
//! # mod rotor { pub use rotor_core::*; pub use rotor_http as http; pub use rotor_stream as stream; }
//! use std::time::Duration;
//! use rotor::http::Status;
//! use rotor::http::server::{Head, Next, NoUpgrade, Response, Scope, Server};
//! use rotor_service::event_stream::{self, ServerSentEvent};
//!
//! const SILENCE_MAX: Duration = Duration::from_secs(15);
//!
//! /// One event, and a comment whenever there was nothing for a while.
//! struct News;
//!
//! impl Server for News {
//!     type Context = ();
//!     type Seed = ();
//!     type Upgrade = NoUpgrade<()>;
//!
//!     fn headers_received(
//!         _: (),
//!         _: &Head<'_>,
//!         response: &mut Response<'_>,
//!         scope: &mut Scope<'_, ()>,
//!     ) -> Next<Self> {
//!         if event_stream::begin(response).is_err() {
//!             return Next::fail(Status::INTERNAL_SERVER_ERROR);
//!         }
//!         if !response.sends_body() {
//!             let _complete = response.done(); // HEAD
//!             return Next::finished();
//!         }
//!         let _room = response.write_body(ServerSentEvent::new("two\nlines"));
//!         Next::go_on(News).deadline(scope.now() + SILENCE_MAX)
//!     }
//!
//!     fn timeout(self, response: &mut Response<'_>, scope: &mut Scope<'_, ()>) -> Next<Self> {
//!         // Writing is also how the server notices that the page is gone.
//!         if response.room() > 0 && response.write_body(ServerSentEvent::comment("")).is_err() {
//!             return Next::finished();
//!         }
//!         Next::go_on(self).deadline(scope.now() + SILENCE_MAX)
//!     }
//! }
//! # use rotor::http::server::{Connection, HttpSeed, ServerConfig};
//! # use rotor::stream::testing::Driver;
//! # let mut driver = Driver::<Connection<News>>::new(HttpSeed::new((), ServerConfig::new()), ());
//! # driver.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
//! # assert!(driver.take_received().ends_with(b"\r\ndata: two\ndata: lines\n\n\r\n"));
//! # driver.advance(SILENCE_MAX);
//! # assert_eq!(driver.take_received(), b"3\r\n:\n\n\r\n");
//! ```

use std::fmt;
use std::time::Duration;

use rotor_http::server::{Head, Response};
use rotor_http::{MessageError, Status};

/// Writes the head of a stream of events: 200, its content type, and that no cache may store it,
/// because a cache would pass the events on at their end.
///
/// # Errors
///
/// Those of the methods of [`Response`]: a head was already begun, for example.
pub fn begin(response: &mut Response<'_>) -> Result<(), MessageError> {
    response.status(Status::OK)?;
    response.add_header("Content-Type", "text/event-stream")?;
    response.add_header("Cache-Control", "no-store")?;
    response.add_chunked()?;
    response.done_headers()
}

/// Returns the id of the last event that the page has seen before it was cut off, if it says so.
/// The text comes from the client.
pub fn last_event_id<'a>(head: &Head<'a>) -> Option<&'a str> {
    head.field("Last-Event-ID").and_then(|id| std::str::from_utf8(id).ok())
}

/// One event, as a piece of a response's body.
///
/// Whatever text it is made of, it is one event: a line end in the text starts no other field.
/// `\r\n` and `\r` reach the page as `\n`.
#[doc(alias = "sse")]
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerSentEvent {
    /// Whole lines, and the empty one that ends the event.
    text: String,
}

/// A name or id of an event that contains a line end or U+0000: the caller's mistake. A page would
/// take the first for another field, and ignore the second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventFieldError;

impl ServerSentEvent {
    /// Makes an event with this text, which the page gets as `event.data`.
    pub fn new(data: &str) -> ServerSentEvent {
        ServerSentEvent::of_lines("data: ", data)
    }

    /// Makes a comment, which the page ignores. Send one while there are no events, so that
    /// proxies do not give the connection up, and the server notices that a page is gone.
    pub fn comment(text: &str) -> ServerSentEvent {
        ServerSentEvent::of_lines(if text.is_empty() { ":" } else { ": " }, text)
    }

    fn of_lines(prefix: &str, text: &str) -> ServerSentEvent {
        let mut lines = String::with_capacity(prefix.len() + text.len() + 2);
        // A `\r\n` is one line end.
        for line in text.replace("\r\n", "\n").split(['\n', '\r']) {
            lines.push_str(prefix);
            lines.push_str(line);
            lines.push('\n');
        }
        lines.push('\n');
        ServerSentEvent { text: lines }
    }

    /// Sets the name of the event, for which the page has listeners of its own. Default:
    /// `message`.
    ///
    /// # Errors
    ///
    /// The name contains a line end or U+0000.
    pub fn name(self, name: &str) -> Result<ServerSentEvent, EventFieldError> {
        self.with_field("event: ", name)
    }

    /// Sets the id, which the page sends when it connects again ([`last_event_id`]).
    ///
    /// # Errors
    ///
    /// The id contains a line end or U+0000.
    pub fn id(self, id: &str) -> Result<ServerSentEvent, EventFieldError> {
        self.with_field("id: ", id)
    }

    /// Sets how long the page waits before it connects again after the stream has broken off, in
    /// whole milliseconds. Default: the browser's, some seconds.
    pub fn retry(mut self, pause: Duration) -> ServerSentEvent {
        self.put_field("retry: ", &pause.as_millis().to_string());
        self
    }

    fn with_field(mut self, field: &str, value: &str) -> Result<ServerSentEvent, EventFieldError> {
        if value.contains(['\n', '\r', '\0']) {
            return Err(EventFieldError);
        }
        self.put_field(field, value);
        Ok(self)
    }

    /// Puts a field in front, in place of an earlier one with this name: of two, a page takes the
    /// last.
    fn put_field(&mut self, field: &str, value: &str) {
        let mut begin = 0;
        let fields = self.text.split_inclusive('\n').map(|line| {
            let end = begin + line.len();
            (std::mem::replace(&mut begin, end)..end, line)
        });
        // They precede the text.
        let mut fields =
            fields.take_while(|(_, line)| !line.starts_with("data: ") && !line.starts_with(':'));
        let earlier = fields.find(|(_, line)| line.starts_with(field)).map(|(range, _)| range);
        if let Some(range) = earlier {
            self.text.replace_range(range, "");
        }
        self.text.insert_str(0, &format!("{field}{value}\n"));
    }

    /// Returns the event as it is sent: for a `Block` that many responses share.
    pub fn into_string(self) -> String {
        self.text
    }
}

impl AsRef<[u8]> for ServerSentEvent {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

impl fmt::Display for EventFieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name or id of an event contains a line end or U+0000")
    }
}

impl std::error::Error for EventFieldError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a page makes of bytes: comments, and events as their fields (HTML, section 9.2.6).
    fn parse(text: &str) -> Vec<Vec<(String, String)>> {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let blocks = text.strip_suffix("\n\n").expect("it ends with an empty line").split("\n\n");
        let field = |line: &str| match line.split_once(':') {
            Some((name, value)) => {
                (name.to_owned(), value.strip_prefix(' ').unwrap_or(value).to_owned())
            }
            None => (line.to_owned(), String::new()),
        };
        blocks.map(|block| block.split('\n').map(field).collect()).collect()
    }

    fn data(text: &str) -> String {
        let events = parse(&ServerSentEvent::new(text).into_string());
        assert_eq!(events.len(), 1, "{text:?}");
        assert!(events[0].iter().all(|(name, _)| name == "data"), "{text:?}: {events:?}");
        events[0].iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn any_text_is_the_data_of_one_event() {
        for text in
            ["", "a", " a", "a\nb", "a\n", "\n", "\n\nid: 7", "a\revent: x", "a\n\n\nb", ":c"]
        {
            assert_eq!(data(text), text.replace('\r', "\n"), "{text:?}");
        }
        assert_eq!(data("a\r\nb\r\n"), "a\nb\n");
    }

    #[test]
    fn a_comment_has_no_fields() {
        assert_eq!(ServerSentEvent::comment("").into_string(), ":\n\n");
        assert_eq!(ServerSentEvent::comment("a\ndata: b").into_string(), ": a\n: data: b\n\n");
    }

    #[test]
    fn a_field_that_is_set_again_replaces_the_first() {
        let set = |event: ServerSentEvent, name: &str, id: &str, millis| {
            let event = event.name(name).and_then(|event| event.id(id)).expect("both are good");
            event.retry(Duration::from_millis(millis))
        };
        let event = set(ServerSentEvent::new("event: x\nid: 1"), "price", "7", 100);
        let lines = "retry: 5\nid: \nevent: news\ndata: event: x\ndata: id: 1\n\n";
        assert_eq!(set(event, "news", "", 5).into_string(), lines);
    }

    #[test]
    fn fields_are_written_or_refused() {
        let event = ServerSentEvent::new("x").name("price").and_then(|event| event.id("7"));
        let event = event.expect("both are good").retry(Duration::from_millis(1_500));
        assert_eq!(event.into_string(), "retry: 1500\nid: 7\nevent: price\ndata: x\n\n");
        for bad in ["a\nb", "\r", "a\0"] {
            assert_eq!(ServerSentEvent::new("x").name(bad), Err(EventFieldError));
            assert_eq!(ServerSentEvent::new("x").id(bad), Err(EventFieldError));
        }
    }
}
