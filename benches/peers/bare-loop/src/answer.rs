//! `Answer`: the response to every request.

use std::env;
use std::error::Error;

/// The fields are those of rotor's hello server, so that both write the same number of bytes. The
/// date is constant, like the rest.
const FIELDS: &str = "Content-Type: text/plain\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n";

/// The response to every request.
pub(crate) struct Answer {
    pub(crate) bytes: Vec<u8>,
    /// Whether the connection ends after it.
    pub(crate) close: bool,
}

impl Answer {
    /// Makes the response that the environment asks for.
    pub(crate) fn from_env() -> Result<Answer, Box<dyn Error>> {
        let body = match env::var("BODY_BYTES") {
            Ok(bytes) => contract::letters(bytes.parse()?),
            Err(_) => contract::HELLO.to_owned(),
        };
        Ok(Answer::new(&body, env::var_os("CLOSE").is_some()))
    }

    fn new(body: &str, close: bool) -> Answer {
        let length = body.len();
        let closing = if close { "Connection: close\r\n" } else { "" };
        let text =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{FIELDS}{closing}\r\n{body}");
        Answer { bytes: text.into_bytes(), close }
    }
}
