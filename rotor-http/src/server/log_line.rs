//! `LogLine`: the parts of a request that the log needs, copied because the input no longer has
//! them when the response is complete.

use std::net::SocketAddr;

use rotor_stream::ConnectionInfo;

use crate::h1::head::RequestHead;
use crate::semantics::version::Version;

/// The parts of a request that the log needs.
pub(super) struct LogLine {
    pub(super) peer: Option<SocketAddr>,
    pub(super) method: Box<str>,
    pub(super) target: Box<str>,
    pub(super) version: Option<Version>,
    /// Bytes of the response so far, sent or not.
    pub(super) bytes: u64,
    pub(super) fields: Fields,
}

/// The fields of a request that the log may show, as far as the request has them.
#[derive(Default, Debug)]
pub(super) struct Fields(Box<[Field]>);

/// A name, and the value as it was sent.
type Field = (&'static str, Box<[u8]>);

impl LogLine {
    /// Copies the parts of a request whose head was read, or could not be, with those of the named
    /// fields that it has.
    #[cold]
    pub(super) fn from_head(
        head: Option<&RequestHead<'_>>,
        names: &[&'static str],
        connection: ConnectionInfo<'_>,
    ) -> Box<LogLine> {
        let field = |name: &'static str| Some((name, head?.fields().get(name)?.into()));
        Box::new(LogLine {
            peer: connection.peer_address(),
            method: head.map_or("", |head| head.method().as_str()).into(),
            target: head.map_or("", |head| head.target().as_str()).into(),
            version: head.map(RequestHead::version),
            bytes: 0,
            fields: Fields(names.iter().filter_map(|name| field(name)).collect()),
        })
    }
}

impl Fields {
    pub(super) fn get(&self, name: &str) -> Option<&[u8]> {
        let found = self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| &**value)
    }

    #[cfg(test)]
    pub(super) fn from_pairs(pairs: &[(&'static str, &[u8])]) -> Fields {
        Fields(pairs.iter().map(|(name, value)| (*name, (*value).into())).collect())
    }
}
