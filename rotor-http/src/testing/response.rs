//! `TestResponse`: a whole response as a value.

use std::fmt;

use crate::h1::body::BodyDecoder;
use crate::h1::field_storage::FieldStorage;
use crate::h1::framing::Body;
use crate::h1::head::HeadReader;
use crate::h1::response_semantics::ResponseSemantics;
use crate::limits::Limits;
use crate::semantics::method::Method;
use crate::semantics::status::Status;

/// A response that a [`TestClient`](super::TestClient) has received: its status, its fields, and
/// its body without chunks.
#[derive(Clone, PartialEq, Eq)]
pub struct TestResponse {
    status: Status,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
}

impl TestResponse {
    /// Takes the first final response from the beginning of `input`, with the interim ones before
    /// it. Returns `None`, and takes nothing, if it is not complete.
    pub(super) fn take(
        input: &mut Vec<u8>,
        is_ended: bool,
        method: Method<'_>,
    ) -> Option<TestResponse> {
        let (limits, mut at) = (wide_limits(), 0);
        loop {
            let mut storage = FieldStorage::new();
            let head = HeadReader::default().read_response(&input[at..], &mut storage, &limits);
            let head = head.expect("the server writes correct heads")?;
            let semantics = ResponseSemantics::from_head(&head, method, true);
            let semantics = semantics.expect("the server frames its responses correctly");
            at += head.input_len();
            if semantics.is_interim {
                continue;
            }
            let field = |(name, value): (&str, &[u8])| {
                (name.to_owned(), String::from_utf8_lossy(value).into_owned())
            };
            let status = head.status();
            let fields =
                head.fields().iter().map(|it| field((it.name, it.value))).collect::<Vec<_>>();
            let (body, len) = decode(semantics.body, &input[at..], is_ended, &limits)?;
            input.drain(..at + len);
            return Some(TestResponse { status, fields, body });
        }
    }

    /// Returns the status.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Returns the value of the first field of this name. The case of the name does not matter.
    /// Bytes that are not UTF-8 are replaced.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Returns all fields, in order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the body.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Returns the body as text.
    ///
    /// # Panics
    ///
    /// If it is not UTF-8.
    pub fn text(&self) -> &str {
        str::from_utf8(&self.body).unwrap_or_else(|_| panic!("the body is not UTF-8: {self:?}"))
    }
}

/// Shows the body as text, with escapes for bytes that are no text.
impl fmt::Debug for TestResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestResponse")
            .field("status", &self.status)
            .field("fields", &self.fields)
            .field("body", &format_args!("\"{}\"", self.body.escape_ascii()))
            .finish()
    }
}

/// Returns limits that protect nobody: what the server under test sends is correct.
fn wide_limits() -> Limits {
    let any = 16 << 20;
    let heads = Limits::new().head_bytes_max(any).field_bytes_max(any).fields_max(any);
    let trailers = heads.trailer_bytes_max(any).trailers_max(any);
    trailers.chunk_line_bytes_max(any).extension_bytes_max(any)
}

/// Returns a whole body, and the length of its form on the wire.
fn decode(body: Body, input: &[u8], is_ended: bool, limits: &Limits) -> Option<(Vec<u8>, usize)> {
    let mut decoder = BodyDecoder::new(body, u64::MAX, limits).expect("there is no limit");
    let (mut data, mut at) = (Vec::new(), 0);
    while !decoder.is_end() {
        let decoded = decoder.decode(&input[at..]).expect("the server writes correct bodies");
        data.extend_from_slice(&input[at + decoded.skip..at + decoded.consumed()]);
        at += decoded.consumed();
        if decoded.needs_input() {
            // Only a body that lasts until the connection ends is complete then.
            return (is_ended && decoder.finish().is_ok()).then_some((data, at));
        }
    }
    Some((data, at))
}
