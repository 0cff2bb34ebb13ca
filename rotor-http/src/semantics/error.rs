//! Every error of the pure modules. Errors of the peer and of the caller are never in one enum. One
//! function beside each enum maps its errors to the status of the response.

use std::fmt;

use quick_error::quick_error;

use super::status::Status;

quick_error! {
    /// A head that is malformed, or larger than the limits. The peer's fault. Nothing more can be
    /// read from the connection.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum HeadError {
        /// More empty lines before the request line than the limit.
        EmptyLines { display("too many empty lines before the request line") }
        /// A CR without LF, or an LF without CR (RFC 9112 §2.2).
        LineEnd { display("a line does not end with CR LF") }
        /// TLS where HTTP without TLS is expected. Usually the client was given an `https` URL for
        /// an `http` port (if a server gets this error), or an `http` URL for an `https` port (if
        /// the client itself gets it).
        Tls { display("this is TLS, but plain HTTP was expected") }
        /// The method is empty or not a token, or something precedes it.
        Method { display("the method is not a token") }
        /// The method is a token, but longer than any known method.
        MethodTooLong { display("the method is too long") }
        /// The target is empty or contains a byte that is not allowed in a target.
        Target { display("the request target is empty or contains a byte that is not allowed") }
        /// The target is longer than the limit.
        TargetTooLong { display("the request target is too long") }
        /// The version is missing, not `HTTP/` digit `.` digit, or 0.x; or a space in the target
        /// has put something else in its place.
        Version { display("the protocol version is malformed") }
        /// The version has another major number.
        VersionUnsupported { display("the major protocol version is not supported") }
        /// The status code is not three digits, or the reason phrase contains a control byte.
        StatusLine { display("the status line is malformed") }
        /// A field name is empty or not a token, or no colon follows it.
        FieldName { display("a field name is not a token followed by a colon") }
        /// A line begins with whitespace: an obsolete line folding, or whitespace before the first
        /// field.
        Folding { display("a field line begins with whitespace") }
        /// A field value contains a control byte.
        FieldValue { display("a field value holds a control byte") }
        /// A field line is longer than the limit.
        FieldTooLong { display("a field line is too long") }
        /// There are more field lines than the limit.
        TooManyFields { display("too many fields") }
        /// The head as a whole is larger than the limit.
        TooLarge { display("the head is too large") }
    }
}

impl HeadError {
    /// Returns the status with which a server responds.
    pub fn status(&self) -> Status {
        match self {
            // RFC 9112 §3: a method longer than any that is implemented gets 501.
            HeadError::MethodTooLong => Status::NOT_IMPLEMENTED,
            HeadError::TargetTooLong => Status::URI_TOO_LONG,
            HeadError::VersionUnsupported => Status::HTTP_VERSION_NOT_SUPPORTED,
            HeadError::FieldTooLong | HeadError::TooManyFields | HeadError::TooLarge => {
                Status::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            HeadError::EmptyLines
            | HeadError::LineEnd
            | HeadError::Tls
            | HeadError::Method
            | HeadError::Target
            | HeadError::Version
            | HeadError::StatusLine
            | HeadError::FieldName
            | HeadError::Folding
            | HeadError::FieldValue => Status::BAD_REQUEST,
        }
    }

    /// Returns whether the head is over a limit, rather than malformed.
    pub fn is_limit(&self) -> bool {
        match self {
            HeadError::EmptyLines
            | HeadError::MethodTooLong
            | HeadError::TargetTooLong
            | HeadError::FieldTooLong
            | HeadError::TooManyFields
            | HeadError::TooLarge => true,
            HeadError::LineEnd
            | HeadError::Tls
            | HeadError::Method
            | HeadError::Target
            | HeadError::Version
            | HeadError::VersionUnsupported
            | HeadError::StatusLine
            | HeadError::FieldName
            | HeadError::Folding
            | HeadError::FieldValue => false,
        }
    }
}

quick_error! {
    /// Fields from which the length of a message cannot be determined, or not safely (RFC 9112
    /// §6.3). The peer's fault. The end of the message is unknown, so nothing more can be read from
    /// the connection.
    #[doc(alias = "request smuggling")]
    #[doc(alias = "Content-Length")]
    #[doc(alias = "Transfer-Encoding")]
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum FramingError {
        /// A `Content-Length` that is not a number, or one that is too large.
        Length { display("Content-Length is not a decimal number below 2^64") }
        /// More than one `Content-Length`, in one line or several, equal or not.
        SeveralLengths { display("more than one Content-Length") }
        /// `Content-Length` together with `Transfer-Encoding`.
        LengthAndCoding { display("both Content-Length and Transfer-Encoding") }
        /// `Transfer-Encoding` in a message of HTTP/1.0.
        CodingInHttp10 { display("Transfer-Encoding in an HTTP/1.0 message") }
        /// A `Transfer-Encoding` that is malformed, or in which `chunked` is not last or appears
        /// more than once.
        Coding { display("Transfer-Encoding is malformed, or chunked is not its last coding") }
        /// A transfer coding other than `chunked`.
        CodingUnknown { display("a transfer coding other than chunked") }
    }
}

impl FramingError {
    /// Returns the status with which a server responds.
    pub fn status(&self) -> Status {
        match self {
            // RFC 9112 §6.1. The request is never read with a length from elsewhere, or without a
            // body: a proxy in front that knows the coding would see other requests than we do.
            FramingError::CodingUnknown => Status::NOT_IMPLEMENTED,
            FramingError::Length
            | FramingError::SeveralLengths
            | FramingError::LengthAndCoding
            | FramingError::CodingInHttp10
            | FramingError::Coding => Status::BAD_REQUEST,
        }
    }
}

quick_error! {
    /// A request that a server refuses. The peer's fault. No handler has seen it, or, if the body is
    /// what is wrong, the handler was told ([`bad_request`](crate::server::Server::bad_request)). The
    /// response has the status from `status()` and `Connection: close`, and nothing more is read as
    /// a request.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum RequestError {
        /// The head itself is malformed or too large.
        Head(err: HeadError) { from() source(err) display("the head is malformed or too large") }
        /// The length of the body cannot be determined.
        Framing(err: FramingError) { from() source(err) display("the length of the body cannot be determined") }
        /// The form of the target does not match the method (RFC 9112 §3.2).
        TargetForm { display("the form of the request target does not fit the method") }
        /// CONNECT with a body (RFC 9110 §9.3.6).
        ConnectBody { display("CONNECT has a body") }
        /// HTTP/1.1 without `Host`.
        HostMissing { display("Host is missing") }
        /// More than one `Host`, equal or not.
        SeveralHosts { display("more than one Host") }
        /// A `Host` that is not a host with an optional port.
        Host { display("Host is not a host with an optional port") }
        /// An expectation other than `100-continue`.
        Expectation { display("an expectation other than 100-continue") }
        /// The head did not end within [`head_timeout`](crate::Limits::head_timeout).
        TooSlow { display("the head arrives too slowly") }
        /// The body violates its framing or a limit, or arrives too slowly.
        Body(err: BodyError) { source(err) display("the body is malformed, too large or too slow") }
    }
}

impl RequestError {
    /// Returns what is wrong, for an error page: the innermost cause, which is the most specific.
    /// The error itself prints without its cause.
    pub fn reason(&self) -> &dyn fmt::Display {
        match self {
            RequestError::Head(err) => err,
            RequestError::Framing(err) => err,
            RequestError::Body(err) => err.innermost(),
            other => other,
        }
    }

    /// Returns the status with which the server responds.
    pub fn status(&self) -> Status {
        match self {
            RequestError::Head(err) => err.status(),
            RequestError::Framing(err) => err.status(),
            RequestError::Body(err) => err.status(),
            RequestError::Expectation => Status::EXPECTATION_FAILED,
            RequestError::TooSlow => Status::REQUEST_TIMEOUT,
            RequestError::TargetForm
            | RequestError::ConnectBody
            | RequestError::HostMissing
            | RequestError::SeveralHosts
            | RequestError::Host => Status::BAD_REQUEST,
        }
    }
}

quick_error! {
    /// A response head that a client refuses. The peer's fault; the connection is closed and never
    /// reused.
    #[doc(alias = "response splitting")]
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum ResponseHeadError {
        /// The head itself is malformed or too large.
        Head(err: HeadError) { from() source(err) display("the head is malformed or too large") }
        /// The length of the body cannot be determined.
        Framing(err: FramingError) { from() source(err) display("the length of the body cannot be determined") }
        /// A 101, although the request did not ask to switch protocols, or was not sent completely.
        UnexpectedSwitch { display("101 to a request without an Upgrade, or before its end") }
    }
}

quick_error! {
    /// A body that violates its framing or its limits. The peer's fault, except for `NoRoom`,
    /// `DiskFull` and `Disk`. Nothing more can be read from the connection.
    #[doc(alias = "chunked")]
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum BodyError {
        /// A chunk size that is not hexadecimal digits followed by an extension or the line end.
        ChunkSize { display("a chunk size is not a hexadecimal number") }
        /// A chunk size, or a whole body, of 2^64 bytes or more.
        ChunkSizeOverflow { display("a chunk size is 2^64 or more") }
        /// A chunk-size line that is longer than the limit.
        ChunkLineTooLong { display("a chunk-size line is too long") }
        /// A chunk extension that is malformed.
        Extension { display("a chunk extension is malformed") }
        /// The chunk extensions of one body are longer than the limit.
        ExtensionsTooLong { display("the chunk extensions of the body are too long") }
        /// A CR or LF where none belongs, or something else where CR LF belongs.
        LineEnd { display("a line of the chunked framing does not end with CR LF") }
        /// A trailer field that is malformed or exceeds a limit.
        Trailer(err: HeadError) { source(err) display("the trailer section is malformed or too large") }
        /// The body is larger than the caller allows.
        TooLarge { display("the body is larger than its limit") }
        /// The body was received more slowly than its least rate, or not before its deadline.
        TooSlow { display("the body arrives too slowly") }
        /// The stream ended before the body was complete. The handler of a server also gets this if
        /// its peer has gone later, or if there is no body.
        Truncated { display("the stream ended before the body did") }
        /// The bodies of all connections together hold as much as they may: of memory, or of a
        /// spool's bytes, files, descriptors and jobs. Nobody's fault: more arrives at a time than
        /// this side can hold.
        NoRoom { display("all bodies together have reached their limit") }
        /// There is no space left on the disk where bodies are stored. Nobody's fault. With the
        /// feature `body`.
        #[cfg(feature = "body")]
        DiskFull { display("no space is left on the disk for the body") }
        /// The disk where bodies are stored has failed, or the thread that writes to it. This
        /// side's fault; the log has the reason. With the feature `body`.
        #[cfg(feature = "body")]
        Disk { display("the body could not be stored on the disk") }
    }
}

impl BodyError {
    /// Returns whether the peer could have done something about it, rather than this side.
    pub(crate) fn is_peers_fault(&self) -> bool {
        match self {
            BodyError::NoRoom => false,
            #[cfg(feature = "body")]
            BodyError::DiskFull | BodyError::Disk => false,
            _ => true,
        }
    }

    /// Returns the most specific cause.
    fn innermost(&self) -> &dyn fmt::Display {
        match self {
            BodyError::Trailer(err) => err,
            other => other,
        }
    }

    /// Returns the status with which a server responds, if its response has not begun.
    pub fn status(&self) -> Status {
        match self {
            BodyError::TooLarge => Status::CONTENT_TOO_LARGE,
            BodyError::TooSlow => Status::REQUEST_TIMEOUT,
            BodyError::NoRoom => Status::SERVICE_UNAVAILABLE,
            #[cfg(feature = "body")]
            BodyError::DiskFull => Status::INSUFFICIENT_STORAGE,
            #[cfg(feature = "body")]
            BodyError::Disk => Status::INTERNAL_SERVER_ERROR,
            BodyError::Trailer(err) => err.status(),
            BodyError::ChunkSize
            | BodyError::ChunkSizeOverflow
            | BodyError::ChunkLineTooLong
            | BodyError::Extension
            | BodyError::ExtensionsTooLong
            | BodyError::LineEnd
            | BodyError::Truncated => Status::BAD_REQUEST,
        }
    }

    /// Returns whether the body exceeds a limit of bytes or lines for one body, rather than being
    /// malformed, slow, truncated or without room.
    pub fn is_limit(&self) -> bool {
        match self {
            BodyError::TooLarge | BodyError::ChunkLineTooLong | BodyError::ExtensionsTooLong => {
                true
            }
            BodyError::Trailer(err) => err.is_limit(),
            BodyError::ChunkSize
            | BodyError::ChunkSizeOverflow
            | BodyError::Extension
            | BodyError::LineEnd
            | BodyError::TooSlow
            | BodyError::Truncated
            | BodyError::NoRoom => false,
            #[cfg(feature = "body")]
            BodyError::DiskFull | BodyError::Disk => false,
        }
    }
}

quick_error! {
    /// A call that would have made a message malformed. The caller's fault. The call wrote nothing
    /// and changed nothing, so the caller may continue as if it had not been made.
    #[doc(alias = "response splitting")]
    #[doc(alias = "header injection")]
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum MessageError {
        /// A field, a length or a body before the start line.
        StartLineMissing { display("the message has not begun: call `status` (for a request, `start`) first") }
        /// A second start line.
        StartLineTwice { display("the message has begun already: call `status` (for a request, `start`) once") }
        /// A 1xx status as the final status.
        InformationalStatus(status: Status) {
            display("{} is not a final status: use `interim`; or, once all of a request with an upgrade has arrived, `status` with 101",
                    status)
        }
        /// A status that is not informational, used for an interim response; or 101, which is
        /// final.
        NotInformational(status: Status) { display("{} is not an interim status: use `status`", status) }
        /// An interim response to HTTP/1.0, which does not support them, or after the final status.
        InterimNotAllowed { display("no interim response is possible: the peer is HTTP/1.0 or the final status is out") }
        /// A 100 that a handler wrote: the connection sends it, once, when the handler asks for the
        /// body.
        ContinueReserved {
            display("100 is sent by the connection to a peer that waits for it: return `Next::recv` to get the body")
        }
        /// A method, target or reason phrase that violates the grammar.
        StartLine { display("the method, target or reason phrase contains a byte that is not allowed") }
        /// A field after the end of the fields.
        FieldTooLate { display("the fields have ended: add fields before `done_headers`") }
        /// A field name that is not a token.
        FieldName { display("the field name is not a token") }
        /// A field value with CR, LF, NUL or another control byte.
        FieldValue { display("the field value holds a control byte (CR, LF and NUL would break the message)") }
        /// A field that the writer writes itself, or that cannot be in this place.
        FieldReserved(advice: &'static str) { display("the field cannot be added like this: {}", advice) }
        /// A second `Host`, or one that is not a host with an optional port.
        HostField { display("Host must be one host with an optional port, once") }
        /// A request without `Host`.
        HostMissing {
            display("a request needs one Host field: `Fetch::host`, or `add_header` before `done_headers`")
        }
        /// A second length, or a length and chunks.
        LengthTwice { display("the length is set already: call `add_length` or `add_chunked` once") }
        /// The end of the fields, although no length was set.
        LengthMissing { display("the length is not set: call `add_length` or `add_chunked` before `done_headers`") }
        /// A length or a body for a status that has none.
        BodyForbidden(status: Status) { display("{} has no body: add neither a length nor a body", status) }
        /// 101 or 426 without `Upgrade`.
        UpgradeMissing(status: Status) { display("{} needs an Upgrade field: add it before `done_headers`", status) }
        /// A body, or the end of the message, before the end of the fields.
        FieldsNotDone { display("the fields have not ended: call `done_headers` before the body") }
        /// The fields were ended twice.
        FieldsDoneTwice { display("the fields have ended already: call `done_headers` once") }
        /// More body than the announced length, or than can wait in an output.
        BodyTooLong(left: u64) { display("the body is longer than its announced length, or than an output can hold: only {} bytes are left", left) }
        /// Less body than the announced length.
        BodyTooShort(left: u64) { display("the body is shorter than its announced length: {} bytes are missing", left) }
        /// Trailers on a message that is not chunked.
        TrailersNotChunked { display("only a chunked message has trailers: use `add_chunked`, or `done`") }
        /// Anything after the end of the message.
        AlreadyDone { display("the message is complete: nothing can be added to it") }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    #[test]
    fn every_cause_is_retained_and_not_printed_twice() {
        let error = RequestError::from(HeadError::TooLarge);
        assert_eq!(error.to_string(), "the head is malformed or too large");
        assert_eq!(error.reason().to_string(), "the head is too large");
        let trailer = RequestError::Body(BodyError::Trailer(HeadError::FieldName));
        assert_eq!(trailer.reason().to_string(), "a field name is not a token followed by a colon");
        assert_eq!(
            RequestError::Body(BodyError::ChunkSize).reason().to_string(),
            BodyError::ChunkSize.to_string()
        );
        let error_without = RequestError::HostMissing;
        assert_eq!(error_without.reason().to_string(), error_without.to_string());
        assert_eq!(
            error.source().map(ToString::to_string).as_deref(),
            Some("the head is too large")
        );
        assert_eq!(error.status(), Status::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }

    #[test]
    fn misuse_says_what_to_do() {
        assert_eq!(
            MessageError::BodyForbidden(Status::NO_CONTENT).to_string(),
            "204 No Content has no body: add neither a length nor a body"
        );
        assert!(MessageError::BodyTooShort(7).to_string().contains("7 bytes are missing"));
    }
}
