//! `Status`: status codes, with their reason phrases and complete status lines.

use std::fmt;

/// A status code, from 100 to 999.
#[doc(alias = "StatusCode")]
#[doc(alias = "reason phrase")]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(u16);

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $code:literal $reason:literal;)+) => {
        impl Status {
            $($(#[$doc])* pub const $name: Status = Status($code);)+

            /// Returns the whole status line and the beginning of the `Content-Type` field, which
            /// nearly always follows, for codes that have a constant here.
            #[inline]
            pub(crate) fn line_and_type(self) -> Option<&'static str> {
                match self.0 {
                    $($code => Some(concat!("HTTP/1.1 ", $code, " ", $reason, "\r\nContent-Type: ")),)+
                    _ => None,
                }
            }
        }
    };
}

statuses! {
    /// 100: the client should send the body.
    CONTINUE = 100 "Continue";
    /// 101: from here on the connection uses the protocol in `Upgrade`.
    SWITCHING_PROTOCOLS = 101 "Switching Protocols";
    /// 103 (RFC 8297)
    EARLY_HINTS = 103 "Early Hints";
    /// 200
    OK = 200 "OK";
    /// 201
    CREATED = 201 "Created";
    /// 202
    ACCEPTED = 202 "Accepted";
    /// 203
    NON_AUTHORITATIVE_INFORMATION = 203 "Non-Authoritative Information";
    /// 204: never has a body.
    NO_CONTENT = 204 "No Content";
    /// 205: never has content.
    RESET_CONTENT = 205 "Reset Content";
    /// 206
    PARTIAL_CONTENT = 206 "Partial Content";
    /// 300
    MULTIPLE_CHOICES = 300 "Multiple Choices";
    /// 301
    MOVED_PERMANENTLY = 301 "Moved Permanently";
    /// 302
    FOUND = 302 "Found";
    /// 303
    SEE_OTHER = 303 "See Other";
    /// 304: never has a body. Its length, if given, is that of the response to GET.
    NOT_MODIFIED = 304 "Not Modified";
    /// 307
    TEMPORARY_REDIRECT = 307 "Temporary Redirect";
    /// 308
    PERMANENT_REDIRECT = 308 "Permanent Redirect";
    /// 400
    BAD_REQUEST = 400 "Bad Request";
    /// 401
    UNAUTHORIZED = 401 "Unauthorized";
    /// 402
    PAYMENT_REQUIRED = 402 "Payment Required";
    /// 403
    FORBIDDEN = 403 "Forbidden";
    /// 404
    NOT_FOUND = 404 "Not Found";
    /// 405: `Allow` lists the supported methods.
    METHOD_NOT_ALLOWED = 405 "Method Not Allowed";
    /// 406
    NOT_ACCEPTABLE = 406 "Not Acceptable";
    /// 407
    PROXY_AUTHENTICATION_REQUIRED = 407 "Proxy Authentication Required";
    /// 408
    REQUEST_TIMEOUT = 408 "Request Timeout";
    /// 409
    CONFLICT = 409 "Conflict";
    /// 410
    GONE = 410 "Gone";
    /// 411
    LENGTH_REQUIRED = 411 "Length Required";
    /// 412
    PRECONDITION_FAILED = 412 "Precondition Failed";
    /// 413
    CONTENT_TOO_LARGE = 413 "Content Too Large";
    /// 414
    URI_TOO_LONG = 414 "URI Too Long";
    /// 415
    UNSUPPORTED_MEDIA_TYPE = 415 "Unsupported Media Type";
    /// 416
    RANGE_NOT_SATISFIABLE = 416 "Range Not Satisfiable";
    /// 417
    EXPECTATION_FAILED = 417 "Expectation Failed";
    /// 421
    MISDIRECTED_REQUEST = 421 "Misdirected Request";
    /// 422
    UNPROCESSABLE_CONTENT = 422 "Unprocessable Content";
    /// 426: `Upgrade` names the protocol.
    UPGRADE_REQUIRED = 426 "Upgrade Required";
    /// 428 (RFC 6585)
    PRECONDITION_REQUIRED = 428 "Precondition Required";
    /// 429 (RFC 6585)
    TOO_MANY_REQUESTS = 429 "Too Many Requests";
    /// 431 (RFC 6585)
    REQUEST_HEADER_FIELDS_TOO_LARGE = 431 "Request Header Fields Too Large";
    /// 500
    INTERNAL_SERVER_ERROR = 500 "Internal Server Error";
    /// 501
    NOT_IMPLEMENTED = 501 "Not Implemented";
    /// 502
    BAD_GATEWAY = 502 "Bad Gateway";
    /// 503
    SERVICE_UNAVAILABLE = 503 "Service Unavailable";
    /// 504
    GATEWAY_TIMEOUT = 504 "Gateway Timeout";
    /// 505
    HTTP_VERSION_NOT_SUPPORTED = 505 "HTTP Version Not Supported";
    /// 507 (RFC 4918)
    INSUFFICIENT_STORAGE = 507 "Insufficient Storage";
}

impl Status {
    /// Returns the status with this code; `None` if it is below 100 or above 999.
    pub const fn new(code: u16) -> Option<Status> {
        // RFC 9110 §15: codes above 599 are invalid, but clients treat them as 5xx, so they can be
        // used.
        if code >= 100 && code <= 999 { Some(Status(code)) } else { None }
    }

    /// Returns the code as a number.
    pub const fn code(self) -> u16 {
        self.0
    }

    /// Returns the whole status line with its line end, for codes that have a constant here.
    #[inline]
    pub(crate) fn line(self) -> Option<&'static str> {
        self.line_and_type().map(|line| &line[..line.len() - "Content-Type: ".len()])
    }

    /// Returns the standard reason phrase; empty for a code without a constant.
    pub fn reason(self) -> &'static str {
        self.line().map_or("", |line| line["HTTP/1.1 200 ".len()..].trim_ascii_end())
    }

    /// Returns whether it is 1xx: an interim response, which is followed by another response
    /// (except after 101).
    pub const fn is_informational(self) -> bool {
        self.0 < 200
    }

    /// Returns whether it is 2xx.
    pub const fn is_success(self) -> bool {
        self.0 / 100 == 2
    }

    /// Returns whether a response with this status never has a body, whatever its fields say: 1xx,
    /// 204, 304 (RFC 9112 §6.3).
    pub const fn forbids_body(self) -> bool {
        self.is_informational() || matches!(self.0, 204 | 304)
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Status({})", self.0)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, self.reason())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_three_digits() {
        assert_eq!(Status::new(99), None);
        assert_eq!(Status::new(100), Some(Status::CONTINUE));
        assert_eq!(Status::new(999).map(Status::code), Some(999));
        assert_eq!(Status::new(1000), None);
    }

    #[test]
    fn lines_and_reasons_agree() {
        assert_eq!(Status::OK.line(), Some("HTTP/1.1 200 OK\r\n"));
        assert_eq!(Status::NOT_FOUND.to_string(), "404 Not Found");
        assert_eq!(Status::new(299).map(Status::reason), Some(""));
    }
}
