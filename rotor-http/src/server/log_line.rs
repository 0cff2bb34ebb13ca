//! `LogLine`: what the log wants to know of a request, which is gone from the input by the time
//! that its response is complete.

use std::net::SocketAddr;

use rotor_stream::ConnectionInfo;

use crate::h1::head::RequestHead;
use crate::semantics::version::Version;

/// What the log is told of a request.
pub(super) struct LogLine {
    pub(super) peer: Option<SocketAddr>,
    pub(super) method: Box<str>,
    pub(super) target: Box<str>,
    pub(super) version: Option<Version>,
}

impl LogLine {
    /// Of a request whose head was read, or could not be.
    #[cold]
    pub(super) fn of(
        head: Option<&RequestHead<'_>>,
        connection: ConnectionInfo<'_>,
    ) -> Box<LogLine> {
        Box::new(LogLine {
            peer: connection.peer_address(),
            method: head.map_or("", |head| head.method().as_str()).into(),
            target: head.map_or("", |head| head.target().as_str()).into(),
            version: head.map(RequestHead::version),
        })
    }
}
