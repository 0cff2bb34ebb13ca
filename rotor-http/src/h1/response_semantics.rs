//! `ResponseSemantics`: what a client has to know about a response's head, collected in one pass
//! over its fields.

use std::time::Duration;

use super::connection_options::{ConnectionOptions, keep_alive_timeout};
use super::framing::{self, Body, FramingFields, Message};
use super::head::ResponseHead;
use crate::semantics::error::ResponseHeadError;
use crate::semantics::method::Method;
use crate::semantics::status::Status;

/// What the fields of one response mean for its connection.
#[doc(alias = "ResponseTerms")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResponseSemantics {
    /// How the body is delimited.
    pub body: Body,
    /// Whether the connection may carry another request once the body has ended, as far as the peer
    /// decides. False for a body until close, a tunnel, 101, and for 1xx and 204 that announce a
    /// body, which they cannot have.
    pub keep_alive: bool,
    /// How long the peer keeps the connection open without a request, if its `Keep-Alive` says so.
    pub keep_alive_timeout: Option<Duration>,
    /// Whether the final response is still to come: true for 1xx except 101.
    pub is_interim: bool,
}

impl ResponseSemantics {
    /// Collects the semantics of a head, in one pass over its fields. `method` is that of the
    /// request; `offered_upgrade` says whether the request offered to switch protocols.
    ///
    /// # Errors
    ///
    /// `Framing` and `UnexpectedSwitch`, the peer's fault: close, and never reuse the connection.
    #[doc(alias = "of")]
    pub fn from_head(
        head: &ResponseHead<'_>,
        method: Method<'_>,
        offered_upgrade: bool,
    ) -> Result<ResponseSemantics, ResponseHeadError> {
        let (version, status, method) = (head.version(), head.status(), method.normalized());
        let mut framing = FramingFields::new();
        let mut options = ConnectionOptions::default();
        let mut timeout = None;
        for (name, value) in head.fields().iter_bytes() {
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            match name.len() {
                10 if is("Connection") => options.add(value),
                10 if is("Keep-Alive") => timeout = keep_alive_timeout(value).or(timeout),
                14 if is("Content-Length") => framing.add_length(value),
                17 if is("Transfer-Encoding") => framing.add_coding(value),
                _ => {}
            }
        }
        let is_switch = status == Status::SWITCHING_PROTOCOLS;
        // RFC 9110 §7.8: a server must not switch to a protocol that the request did not offer.
        if is_switch && !offered_upgrade {
            return Err(ResponseHeadError::UnexpectedSwitch);
        }
        let body = framing::body_of(Message::Response { status, method }, version, &framing)?;
        let is_tunnel = method == Method::Connect && status.is_success();
        // RFC 9110 §8.6, RFC 9112 §6.1: these must not announce a body. A server that does so may
        // send it, and it would be read as the next response. A length of 0 is as wrong, but
        // harmless, and many servers send it with 204.
        let has_impossible_body =
            framing.announces_body() && (status.is_informational() || status == Status::NO_CONTENT);
        Ok(ResponseSemantics {
            body,
            keep_alive: options.is_persistent(version)
                && body != Body::UntilClose
                && !is_switch
                && !is_tunnel
                && !has_impossible_body,
            keep_alive_timeout: timeout,
            is_interim: status.is_informational() && !is_switch,
        })
    }
}
