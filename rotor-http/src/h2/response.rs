//! Makes the head of a response from the fields of a block (RFC 9113 §8.2, §8.3.2). A malformed one
//! fails its request, so that nothing of it reaches a client of HTTP/1.1 in front of this one.

use super::hpack::FieldList;
use super::request::check_field;
use crate::h1::framing::Body;
use crate::h1::response_semantics::ResponseSemantics;
use crate::limits::Limits;
use crate::semantics::error::{FramingError, HeadError, ResponseHeadError};
use crate::semantics::grammar;
use crate::semantics::method::Method;
use crate::semantics::status::Status;

/// A response whose fields have been checked. Only the regular fields are left in its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedResponse {
    /// The status.
    pub status: Status,
    /// What follows from the head: how the body is delimited, and whether another head follows.
    pub terms: ResponseSemantics,
    /// How many bytes of DATA must follow, if that is known.
    pub length: Option<u64>,
}

impl CheckedResponse {
    /// Checks the fields of a response to a request of this method. `is_end` says whether the
    /// stream ends with them.
    ///
    /// # Errors
    ///
    /// The server's fault: the stream ends with PROTOCOL_ERROR, the others continue.
    pub fn check(
        list: &mut FieldList,
        method: Method<'_>,
        is_end: bool,
        limits: &Limits,
    ) -> Result<CheckedResponse, ResponseHeadError> {
        let status = take_status(list)?;
        let length = check_fields(list)?;
        // For the list and for each field: one limit holds for both versions.
        if list.is_truncated() {
            return Err(HeadError::TooLarge.into());
        }
        if list.len() > limits.fields_max {
            return Err(HeadError::TooManyFields.into());
        }
        let line_len = |(name, value): (&[u8], &[u8])| name.len() + value.len() + 2;
        if list.fields().iter_bytes().any(|field| line_len(field) > limits.field_bytes_max) {
            return Err(HeadError::FieldTooLong.into());
        }
        // RFC 9113 §8.6: HTTP/2 has no 101.
        if status == Status::SWITCHING_PROTOCOLS {
            return Err(ResponseHeadError::UnexpectedSwitch);
        }
        let is_interim = status.is_informational();
        if is_interim && is_end {
            return Err(HeadError::StatusLine.into());
        }
        let has_no_body = method.normalized() == Method::Head || status.forbids_body();
        let (body, length) = match (has_no_body, length) {
            (true, _) => (Body::Empty, Some(0)),
            // RFC 9113 §8.1.1: otherwise a client of HTTP/1.1 in front would wait for a body that
            // will not arrive, or read the body as the next response.
            (false, Some(length)) if is_end && length > 0 => {
                return Err(FramingError::Length.into());
            }
            (false, length) if is_end => (Body::Empty, length),
            (false, Some(length)) if length > 0 => (Body::Length(length), Some(length)),
            // Frames mark its end.
            (false, length) => (Body::UntilClose, length),
        };
        let terms =
            ResponseSemantics { body, keep_alive: true, keep_alive_timeout: None, is_interim };
        Ok(CheckedResponse { status, terms, length })
    }
}

impl CheckedResponse {
    /// Turns this into the 101 of HTTP/1.1: the response agrees to another protocol (RFC 8441 §5),
    /// and its DATA is not a body.
    pub fn switch(&mut self) {
        self.status = Status::SWITCHING_PROTOCOLS;
        (self.terms.body, self.length) = (Body::Empty, None);
    }
}

/// Takes `:status`, the only pseudo-field of a response, out of the list.
fn take_status(list: &mut FieldList) -> Result<Status, HeadError> {
    let fields = list.fields();
    let Some((b":status", value)) = fields.iter_bytes().next() else {
        return Err(HeadError::StatusLine);
    };
    // Exactly three digits (RFC 9110 §15).
    let code = (value.len() == 3).then(|| grammar::parse_decimal(value)).flatten();
    let status = code.and_then(|code| u16::try_from(code).ok()).and_then(Status::new);
    let status = status.ok_or(HeadError::StatusLine)?;
    list.spans.drain(..1);
    Ok(status)
}

/// Checks the other fields, and returns the length that they announce.
fn check_fields(list: &FieldList) -> Result<Option<u64>, ResponseHeadError> {
    let mut length = None;
    for (name, value) in list.fields().iter_bytes() {
        check_field(name, value).map_err(|why| {
            log::debug!("a response is malformed: {why}");
            if why.contains("value") { HeadError::FieldValue } else { HeadError::FieldName }
        })?;
        if name == b"content-length" {
            let announced = grammar::parse_decimal(value).ok_or(FramingError::Length)?;
            if length.replace(announced).is_some() {
                return Err(FramingError::SeveralLengths.into());
            }
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h2::hpack::{Bounds, HpackDecoder, HpackEncoder};

    fn checked(fields: &[(&str, &str)], method: Method<'_>, is_end: bool) -> String {
        let bounds = Bounds { list_bytes_max: 4096, decoded_bytes_max: 65_536 };
        let (mut block, mut list) = (Vec::new(), FieldList::new());
        for (name, value) in fields {
            // Encoded here, since an encoder would write names in lower case.
            block.extend_from_slice(&[0, name.len() as u8]);
            block.extend_from_slice(name.as_bytes());
            crate::h2::hpack::encode_integer(&mut block, 0, 7, value.len());
            block.extend_from_slice(value.as_bytes());
        }
        HpackEncoder::new().start_block(&mut block);
        HpackDecoder::new(0).decode(&block, &mut list, &bounds).expect("it is well-formed");
        match CheckedResponse::check(&mut list, method, is_end, &Limits::new()) {
            Ok(response) => {
                let CheckedResponse { status, terms, length } = response;
                assert_eq!(list.len() + 1, fields.len());
                format!("{} {:?} {length:?} {}", status.code(), terms.body, terms.is_interim)
            }
            Err(ResponseHeadError::Head(error)) => format!("{error:?}"),
            Err(ResponseHeadError::Framing(error)) => format!("{error:?}"),
            Err(error) => format!("{error:?}"),
        }
    }

    #[test]
    fn a_response_is_classified_by_its_fields() {
        let (get, head) = (Method::Get, Method::Head);
        let long = "x".repeat(9000);
        for (fields, method, is_end, expected) in [
            (&[(":status", "200")][..], get, true, "200 Empty None false"),
            (&[(":status", "200")], get, false, "200 UntilClose None false"),
            (
                &[(":status", "200"), ("content-length", "0")],
                get,
                false,
                "200 UntilClose Some(0) false",
            ),
            (
                &[(":status", "200"), ("content-length", "5")],
                get,
                false,
                "200 Length(5) Some(5) false",
            ),
            (&[(":status", "200"), ("content-length", "5")], get, true, "Length"),
            (&[(":status", "200"), ("content-length", "5")], head, true, "200 Empty Some(0) false"),
            (&[(":status", "304"), ("content-length", "5")], get, true, "304 Empty Some(0) false"),
            (&[(":status", "204")], get, false, "204 Empty Some(0) false"),
            (&[(":status", "103"), ("link", "a")], get, false, "103 Empty Some(0) true"),
            (&[(":status", "100")], get, true, "StatusLine"),
            (&[(":status", "101")], get, false, "UnexpectedSwitch"),
            (&[(":status", "20")], get, true, "StatusLine"),
            (&[(":status", "0200")], get, true, "StatusLine"),
            (&[(":status", "2x0")], get, true, "StatusLine"),
            (&[(":status", "")], get, true, "StatusLine"),
            (&[], get, true, "StatusLine"),
            (&[("a", "b"), (":status", "200")], get, true, "StatusLine"),
            (&[(":status", "200"), (":status", "200")], get, true, "FieldName"),
            (&[(":status", "200"), (":path", "/")], get, true, "FieldName"),
            (&[(":status", "200"), ("A", "b")], get, true, "FieldName"),
            (&[(":status", "200"), ("a b", "b")], get, true, "FieldName"),
            (&[(":status", "200"), ("a", "b\r\nc: d")], get, true, "FieldValue"),
            (&[(":status", "200"), ("a", " b")], get, true, "FieldValue"),
            (&[(":status", "200"), ("connection", "close")], get, true, "FieldName"),
            (&[(":status", "200"), ("transfer-encoding", "chunked")], get, true, "FieldName"),
            (&[(":status", "200"), ("content-length", "+5")], get, false, "Length"),
            (
                &[(":status", "200"), ("content-length", "5"), ("content-length", "5")],
                get,
                false,
                "SeveralLengths",
            ),
            (&[(":status", "200"), ("a", &long)], get, true, "TooLarge"),
        ] {
            assert_eq!(checked(fields, method, is_end), expected, "{fields:?}");
        }
    }
}
