//! The length of a message body: RFC 9112 §6.3 in one function, for requests and responses.

use crate::semantics::error::FramingError;
use crate::semantics::grammar;
use crate::semantics::method::Method;
use crate::semantics::status::Status;
use crate::semantics::token_list;
use crate::semantics::version::Version;

/// How the body of a message is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// There is no body, or its length is 0.
    Empty,
    /// This many bytes, at least one.
    Length(u64),
    /// Chunks, followed by a trailer section.
    Chunked,
    /// Everything until the peer closes. Responses only; such a connection is never reused.
    UntilClose,
}

/// The kind of message, which determines the length together with the fields.
#[derive(Debug, Clone, Copy)]
pub enum Message<'a> {
    /// A request.
    Request,
    /// The response to a request of this method.
    Response {
        /// The status of the response.
        status: Status,
        /// The method of the request.
        method: Method<'a>,
    },
}

/// The content of the lines of `Content-Length` and `Transfer-Encoding`, collected in one pass over
/// the fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FramingFields {
    length: Length,
    coding: Coding,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Length {
    #[default]
    Absent,
    Given(u64),
    Several,
    Bad,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Coding {
    #[default]
    Absent,
    Chunked,
    /// Well-formed codings that are not supported.
    Unknown,
    /// The same, with `chunked` as the last coding.
    UnknownChunked,
    Bad,
}

impl FramingFields {
    /// Creates the value for a message in which neither field has been seen.
    pub const fn new() -> FramingFields {
        FramingFields { length: Length::Absent, coding: Coding::Absent }
    }

    /// Returns whether the fields announce a body that is not empty. A length of 0 announces none.
    pub fn announces_body(&self) -> bool {
        self.coding != Coding::Absent || !matches!(self.length, Length::Absent | Length::Given(0))
    }

    /// Adds the value of a `Content-Length` line. A list, even of equal numbers, is not a number.
    #[inline]
    pub fn add_length(&mut self, value: &[u8]) {
        self.length = match (self.length, grammar::parse_decimal(value)) {
            (Length::Absent, Some(length)) => Length::Given(length),
            // RFC 9110 §8.6 allows a recipient to accept equal numbers as one. This is refused
            // here: a proxy in front that takes the first of several, or the last, does not check
            // whether they are equal.
            (Length::Absent, None) if value.contains(&b',') => Length::Several,
            (Length::Absent, None) => Length::Bad,
            _ => Length::Several,
        };
    }

    /// Adds the value of a `Transfer-Encoding` line; several lines make one list.
    #[inline]
    pub fn add_coding(&mut self, value: &[u8]) {
        // The usual case.
        if self.coding == Coding::Absent && value.eq_ignore_ascii_case(b"chunked") {
            self.coding = Coding::Chunked;
            return;
        }
        for element in token_list::list_elements(value) {
            self.coding = self.coding.followed_by(element);
        }
    }
}

impl Coding {
    /// RFC 9112 §6.1: "A sender MUST NOT apply the chunked transfer coding more than once to a
    /// message body", and chunked must be the last. Empty elements are refused, because not every
    /// proxy skips them.
    #[cold]
    fn followed_by(self, element: &[u8]) -> Coding {
        let name = element.split(|&byte| byte == b';').next().unwrap_or_default();
        let is_chunked = grammar::trim(name).eq_ignore_ascii_case(b"chunked");
        let is_plain = name.len() == element.len();
        match self {
            // Another coding follows chunked, which must be the last.
            Coding::Chunked | Coding::UnknownChunked | Coding::Bad => Coding::Bad,
            // RFC 9112 §7.1: chunked has no parameters; "their presence SHOULD be treated as an
            // error".
            _ if !grammar::is_token(grammar::trim(name)) || (is_chunked && !is_plain) => {
                Coding::Bad
            }
            Coding::Absent if is_chunked => Coding::Chunked,
            Coding::Unknown if is_chunked => Coding::UnknownChunked,
            Coding::Absent | Coding::Unknown => Coding::Unknown,
        }
    }
}

/// Returns the length of a message's body (RFC 9112 §6.3, whose rules are quoted in order).
///
/// # Errors
///
/// The peer's fault: the end of the message is not known, so the connection ends with it.
#[inline]
pub fn body_of(
    message: Message<'_>,
    version: Version,
    fields: &FramingFields,
) -> Result<Body, FramingError> {
    if let Message::Response { status, method } = message {
        let method = method.normalized();
        // 2. "Any 2xx (Successful) response to a CONNECT request implies that the connection will
        //    become a tunnel immediately after the empty line that concludes the header fields. A
        //    client MUST ignore any Content-Length or Transfer-Encoding header fields received in
        //    such a message."
        if method == Method::Connect && status.is_success() {
            return Ok(Body::Empty);
        }
        // 1. "Any response to a HEAD request and any response with a 1xx (Informational), 204 (No
        //    Content), or 304 (Not Modified) status code is always terminated by the first empty
        //    line after the header fields, regardless of the header fields present in the message".
        //    Here the fields frame nothing. But they may do so where the message is passed on or
        //    stored, so fields that could not frame a body are refused all the same.
        if method == Method::Head || status.forbids_body() {
            return announced_body(message, version, fields).map(|_| Body::Empty);
        }
    }
    announced_body(message, version, fields)
}

/// Returns the length that the fields announce, for a message that may have a body.
#[inline]
fn announced_body(
    message: Message<'_>,
    version: Version,
    fields: &FramingFields,
) -> Result<Body, FramingError> {
    match (fields.coding, fields.length) {
        (Coding::Absent, length) => body_without_coding(message, length),
        // §6.1: "A server or client that receives an HTTP/1.0 message containing a
        // Transfer-Encoding header field MUST treat the message as if the framing is faulty".
        _ if version == Version::Http10 => Err(FramingError::CodingInHttp10),
        // 3. "If a message is received with both a Transfer-Encoding and a Content-Length header
        //    field [...] ought to be handled as an error." A server "MUST close the connection
        //    after responding".
        (_, length) if length != Length::Absent => Err(FramingError::LengthAndCoding),
        // 4. "If a Transfer-Encoding header field is present and the chunked transfer coding is the
        //    final encoding, the message body length is determined by reading and decoding the
        //    chunked data".
        (Coding::Chunked, _) => Ok(Body::Chunked),
        // 4. "If a Transfer-Encoding header field is present in a request and the chunked transfer
        //    coding is not the final encoding, the message body length cannot be determined
        //    reliably; the server MUST respond with the 400 (Bad Request) status code and then
        //    close the connection."
        (Coding::Bad, _) => Err(FramingError::Coding),
        // §6.1: "A server that receives a request message with a transfer coding it does not
        // understand SHOULD respond with 501 (Not Implemented)."
        (Coding::Unknown | Coding::UnknownChunked, _) => Err(FramingError::CodingUnknown),
    }
}

#[inline]
fn body_without_coding(message: Message<'_>, length: Length) -> Result<Body, FramingError> {
    match length {
        // 5. "If a message is received without Transfer-Encoding and with an invalid Content-Length
        //    header field, then the message framing is invalid and the recipient MUST treat it as
        //    an unrecoverable error".
        Length::Bad => Err(FramingError::Length),
        Length::Several => Err(FramingError::SeveralLengths),
        // 6. "If a valid Content-Length header field is present without Transfer-Encoding, its
        //    decimal value defines the expected message body length in octets."
        Length::Given(0) => Ok(Body::Empty),
        Length::Given(length) => Ok(Body::Length(length)),
        Length::Absent => match message {
            // 7. "If this is a request message and none of the above are true, then the message
            //    body length is zero".
            Message::Request => Ok(Body::Empty),
            // 8. "Otherwise, this is a response message without a declared message body length, so
            //    the message body length is determined by the number of octets received prior to
            //    the server closing the connection."
            Message::Response { .. } => Ok(Body::UntilClose),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(version: Version, lengths: &[&str], codings: &[&str]) -> Result<Body, FramingError> {
        let mut fields = FramingFields::new();
        lengths.iter().for_each(|value| fields.add_length(value.as_bytes()));
        codings.iter().for_each(|value| fields.add_coding(value.as_bytes()));
        body_of(Message::Request, version, &fields)
    }

    fn response(
        status: u16,
        method: Method<'_>,
        length: Option<&str>,
    ) -> Result<Body, FramingError> {
        let mut fields = FramingFields::new();
        if let Some(length) = length {
            fields.add_length(length.as_bytes());
        }
        let status = Status::new(status).expect("a status");
        body_of(Message::Response { status, method }, Version::Http11, &fields)
    }

    #[test]
    fn a_request_is_framed_by_its_length_and_its_codings() {
        let http11 =
            |lengths: &[&str], codings: &[&str]| request(Version::Http11, lengths, codings);
        assert_eq!(http11(&[], &[]), Ok(Body::Empty));
        assert_eq!(http11(&["0"], &[]), Ok(Body::Empty));
        assert_eq!(http11(&["0012"], &[]), Ok(Body::Length(12)));
        assert_eq!(http11(&["18446744073709551615"], &[]), Ok(Body::Length(u64::MAX)));
        assert_eq!(http11(&["18446744073709551616"], &[]), Err(FramingError::Length));
        assert_eq!(http11(&["5", "5"], &[]), Err(FramingError::SeveralLengths));
        assert_eq!(http11(&["5, 5"], &[]), Err(FramingError::SeveralLengths));
        assert_eq!(http11(&["x", "5"], &[]), Err(FramingError::SeveralLengths));
        assert_eq!(http11(&[], &["CHUNKED"]), Ok(Body::Chunked));
        assert_eq!(http11(&["5"], &["chunked"]), Err(FramingError::LengthAndCoding));
        assert_eq!(http11(&["0"], &["gzip"]), Err(FramingError::LengthAndCoding));
        assert_eq!(http11(&["x"], &["chunked"]), Err(FramingError::LengthAndCoding));
        assert_eq!(request(Version::Http10, &[], &["chunked"]), Err(FramingError::CodingInHttp10));
    }

    #[test]
    fn codings_other_than_chunked_alone_are_refused() {
        for value in [
            "gzip",
            "identity",
            "xchunked",
            "chunkedx",
            "gzip, chunked",
            "gzip;level=1",
            "x-a,b,chunked",
        ] {
            assert_eq!(
                request(Version::Http11, &[], &[value]),
                Err(FramingError::CodingUnknown),
                "{value}"
            );
        }
        for value in [
            "",
            ",",
            ", chunked",
            "chunked,",
            "chunked, gzip",
            "chunked, chunked",
            "chunked;a=b",
            "chunked ;a",
            "\"chunked\"",
            "chun ked",
            "chunked chunked",
            "gzip,,chunked",
            "gzip, chunked, chunked",
            "gzip, chunked, br",
            "chunked;",
        ] {
            assert_eq!(
                request(Version::Http11, &[], &[value]),
                Err(FramingError::Coding),
                "{value}"
            );
        }
        assert_eq!(
            request(Version::Http11, &[], &["chunked", "chunked"]),
            Err(FramingError::Coding)
        );
        assert_eq!(
            request(Version::Http11, &[], &["chunked", "identity"]),
            Err(FramingError::Coding)
        );
        assert_eq!(
            request(Version::Http11, &[], &["gzip", "chunked"]),
            Err(FramingError::CodingUnknown)
        );
        assert_eq!(request(Version::Http11, &[], &["", "chunked"]), Err(FramingError::Coding));
    }

    #[test]
    fn a_response_may_have_no_body_or_end_with_the_connection() {
        assert_eq!(response(200, Method::Get, None), Ok(Body::UntilClose));
        assert_eq!(response(200, Method::Get, Some("3")), Ok(Body::Length(3)));
        assert_eq!(response(200, Method::Head, Some("3")), Ok(Body::Empty));
        assert_eq!(response(200, Method::Extension("HEAD"), Some("3")), Ok(Body::Empty));
        assert_eq!(response(200, Method::Connect, Some("3")), Ok(Body::Empty));
        assert_eq!(response(403, Method::Connect, Some("3")), Ok(Body::Length(3)));
        for status in [100, 199, 204, 304] {
            assert_eq!(response(status, Method::Get, Some("3")), Ok(Body::Empty), "{status}");
        }
        assert_eq!(response(205, Method::Get, Some("0")), Ok(Body::Empty));
    }

    #[test]
    fn framing_fields_are_checked_without_a_body_except_before_a_tunnel() {
        let head = |status, method, fields: &FramingFields| {
            let status = Status::new(status).expect("a status");
            body_of(Message::Response { status, method }, Version::Http11, fields)
        };
        let fields = |lengths: &[&str], codings: &[&str]| {
            let mut fields = FramingFields::new();
            lengths.iter().for_each(|value| fields.add_length(value.as_bytes()));
            codings.iter().for_each(|value| fields.add_coding(value.as_bytes()));
            fields
        };
        for (lengths, codings, error) in [
            (&["+5"][..], &[][..], FramingError::Length),
            (&["5 5"], &[], FramingError::Length),
            (&[""], &[], FramingError::Length),
            (&["5", "5"], &[], FramingError::SeveralLengths),
            (&["5, 5"], &[], FramingError::SeveralLengths),
            (&["5"], &["chunked"], FramingError::LengthAndCoding),
            (&[], &["chunked, gzip"], FramingError::Coding),
            (&[], &["\u{b}chunked"], FramingError::Coding),
            (&[], &["gzip"], FramingError::CodingUnknown),
        ] {
            let fields = fields(lengths, codings);
            for (status, method) in [
                (200, Method::Head),
                (404, Method::Head),
                (304, Method::Get),
                (204, Method::Get),
                (103, Method::Get),
            ] {
                assert_eq!(
                    head(status, method, &fields),
                    Err(error),
                    "{status} {lengths:?} {codings:?}"
                );
            }
            assert_eq!(
                head(200, Method::Connect, &fields),
                Ok(Body::Empty),
                "{lengths:?} {codings:?}"
            );
        }
        assert_eq!(head(304, Method::Get, &fields(&[], &["chunked"])), Ok(Body::Empty));
    }
}
