//! What the writers of requests and responses share: the order of a message's parts, its fields,
//! its body.

use super::decimal::Number;
use super::sink::Sink;
use crate::semantics::error::MessageError;
use crate::semantics::grammar;
use crate::semantics::swar;
use crate::semantics::trailers;

/// How far a message has come.
///
/// ```text
/// Start ─start line─▶ Fields ─done_headers─▶ Body ─done─▶ Done
///                      ↺ add_header            ↺ write_body
///                      ↺ add_length, add_chunked (one of them, once)
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Start,
    Fields,
    Body,
    Done,
}

/// What has been said about the length of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Unsaid,
    /// A length was said, but the message has no body whatever it is (304).
    Empty,
    /// So many octets are left.
    Length(u64),
    Chunked,
    UntilClose,
    /// Of HTTP/2, and done: the last so many octets that were written are trailer fields.
    Trailers(u64),
}

/// The part of a writer's state that requests and responses have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageState {
    pub(super) phase: Phase,
    pub(super) framing: Framing,
    /// Whether body octets go out; if not (HEAD) they are only counted.
    pub(super) sends_body: bool,
    pub(super) has_upgrade: bool,
}

impl MessageState {
    pub(super) const fn new(sends_body: bool) -> MessageState {
        MessageState {
            phase: Phase::Start,
            framing: Framing::Unsaid,
            sends_body,
            has_upgrade: false,
        }
    }

    /// Checks that a start line may come.
    pub(super) fn expect_start(&self) -> Result<(), MessageError> {
        match self.phase {
            Phase::Start => Ok(()),
            Phase::Fields | Phase::Body => Err(MessageError::StartLineTwice),
            Phase::Done => Err(MessageError::AlreadyDone),
        }
    }

    /// Checks that fields may come.
    #[inline]
    pub(super) fn expect_fields(&self) -> Result<(), MessageError> {
        match self.phase {
            Phase::Fields => Ok(()),
            Phase::Start => Err(MessageError::StartLineMissing),
            Phase::Body => Err(MessageError::FieldTooLate),
            Phase::Done => Err(MessageError::AlreadyDone),
        }
    }

    /// Checks that the fields may end.
    pub(super) fn expect_fields_end(&self) -> Result<(), MessageError> {
        match self.phase {
            Phase::Body => Err(MessageError::FieldsDoneTwice),
            _ => self.expect_fields(),
        }
    }

    /// Whether the fields have ended.
    pub(super) fn is_head_done(&self) -> bool {
        matches!(self.phase, Phase::Body | Phase::Done)
    }

    /// Checks that the length is still to be said.
    pub(super) fn expect_length(&self) -> Result<(), MessageError> {
        self.expect_fields()?;
        if self.framing == Framing::Unsaid { Ok(()) } else { Err(MessageError::LengthTwice) }
    }

    fn expect_body(&self) -> Result<(), MessageError> {
        match self.phase {
            Phase::Body => Ok(()),
            Phase::Start => Err(MessageError::StartLineMissing),
            Phase::Fields => Err(MessageError::FieldsNotDone),
            Phase::Done => Err(MessageError::AlreadyDone),
        }
    }

    /// Writes a field that the caller chose.
    #[inline]
    pub(super) fn put_field(
        &mut self,
        out: &mut impl Sink,
        name: &str,
        value: &[u8],
    ) -> Result<(), MessageError> {
        self.expect_fields()?;
        check_field(name, value)?;
        // By length first: nearly no field is as long.
        self.has_upgrade |= name.len() == 7 && name.eq_ignore_ascii_case("Upgrade");
        out.put_all(&[name.as_bytes(), b": ", value, b"\r\n"]);
        Ok(())
    }

    /// Writes `Content-Length`, and expects so many octets.
    #[inline]
    pub(super) fn put_length(&mut self, out: &mut impl Sink, length: u64) {
        out.put_all(&[b"Content-Length: ", Number::decimal(length).as_bytes(), b"\r\n"]);
        self.framing = Framing::Length(length);
    }

    /// Writes `Transfer-Encoding: chunked`.
    pub(super) fn put_chunked(&mut self, out: &mut impl Sink) {
        out.put(b"Transfer-Encoding: chunked\r\n");
        self.framing = Framing::Chunked;
    }

    /// Ends the fields with `Connection` (as far as one is needed), then `last`.
    #[inline]
    pub(super) fn put_end(&mut self, out: &mut impl Sink, connection: Connection, last: &[u8]) {
        // RFC 9110 §7.8: who sends `Upgrade` names it in `Connection`, or a proxy passes it on.
        let connection: &[u8] = match (connection, self.has_upgrade) {
            (Connection::Unsaid, false) => b"",
            (Connection::Unsaid, true) => b"Connection: upgrade\r\n",
            (Connection::Close, false) => b"Connection: close\r\n",
            (Connection::Close, true) => b"Connection: close, upgrade\r\n",
            (Connection::KeepAlive, false) => b"Connection: keep-alive\r\n",
            (Connection::KeepAlive, true) => b"Connection: keep-alive, upgrade\r\n",
        };
        if !connection.is_empty() {
            out.put(connection);
        }
        out.put_all(&[last, b"\r\n"]);
        self.phase = Phase::Body;
    }

    /// The same for a request with `TE`, which is named in `Connection` as well (RFC 9110 §10.1.4).
    #[cold]
    pub(super) fn put_end_with_te(
        &mut self,
        out: &mut impl Sink,
        connection: Connection,
        last: &[u8],
    ) {
        let persists: &[u8] = match connection {
            Connection::Unsaid => b"",
            Connection::Close => b"close, ",
            Connection::KeepAlive => b"keep-alive, ",
        };
        let upgrade: &[u8] = if self.has_upgrade { b"upgrade, " } else { b"" };
        out.put_all(&[b"Connection: ", persists, upgrade, b"TE\r\n", last, b"\r\n"]);
        self.phase = Phase::Body;
    }

    /// Writes `len` octets of body through `push`, which is called only if they go on the wire.
    #[inline]
    pub(super) fn put_body<S: Sink>(
        &mut self,
        out: &mut S,
        len: u64,
        push: impl FnOnce(&mut S),
    ) -> Result<(), MessageError> {
        self.expect_body()?;
        // To HEAD as well, where nothing is sent: a length that would break GET shows here, too.
        if let Framing::Length(left) = &mut self.framing {
            *left = left.checked_sub(len).ok_or(MessageError::BodyTooLong(*left))?;
        }
        // A chunk of no octets would end the body (RFC 9112 §7.1).
        if len == 0 || !self.sends_body {
            return Ok(());
        }
        if self.framing == Framing::Chunked {
            out.put(Number::chunk_size(len).as_bytes());
            push(out);
            out.put(b"\r\n");
        } else {
            push(out);
        }
        Ok(())
    }

    /// Ends the message.
    #[inline]
    pub(super) fn put_done(&mut self, out: &mut impl Sink) -> Result<(), MessageError> {
        self.expect_body()?;
        match self.framing {
            // To HEAD a length may be announced without a body being made for it.
            Framing::Length(left) if left > 0 && self.sends_body => {
                return Err(MessageError::BodyTooShort(left));
            }
            Framing::Chunked if self.sends_body => out.put(b"0\r\n\r\n"),
            _ => {}
        }
        self.phase = Phase::Done;
        Ok(())
    }

    /// Ends a message with trailer fields. In HTTP/1.1 only chunks can carry them; frames can behind
    /// a body of any length (RFC 9113 §8.1). All are checked before the first is written.
    pub(super) fn put_trailers(
        &mut self,
        out: &mut impl Sink,
        fields: &[(&str, &[u8])],
        is_framed: bool,
    ) -> Result<(), MessageError> {
        self.expect_body()?;
        match self.framing {
            // Until close is for a peer of 1.0, in the place of chunks: the handler need not know,
            // and the fields are dropped.
            Framing::Chunked | Framing::UntilClose => {}
            Framing::Length(left) if is_framed && left > 0 && self.sends_body => {
                return Err(MessageError::BodyTooShort(left));
            }
            Framing::Length(_) if is_framed => {}
            _ => return Err(MessageError::TrailersNotChunked),
        }
        for (name, value) in fields {
            check_field(name, value)?;
            if !trailers::is_allowed(name) {
                return Err(MessageError::FieldReserved(
                    "it has no effect in a trailer, add it before the body",
                ));
            }
        }
        if is_framed && self.sends_body {
            self.put_framed_trailers(out, fields);
        } else if self.sends_body && self.framing == Framing::Chunked {
            out.put(b"0\r\n");
            for (name, value) in fields {
                out.put_all(&[name.as_bytes(), b": ", value, b"\r\n"]);
            }
            out.put(b"\r\n");
        }
        self.phase = Phase::Done;
        Ok(())
    }

    /// Writes trailer fields, which were checked, of a message that goes out in frames: frames tell
    /// them from the body, and what they are follows it.
    fn put_framed_trailers(&mut self, out: &mut impl Sink, fields: &[(&str, &[u8])]) {
        let mut len = 0;
        for (name, value) in fields {
            out.put_all(&[name.as_bytes(), b": ", value, b"\r\n"]);
            len += name.len() + value.len() + 4;
        }
        self.framing = Framing::Trailers(len as u64);
    }
}

/// What `Connection` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Connection {
    Unsaid,
    Close,
    KeepAlive,
}

/// Checks that a field may stand on the wire as it is: its name a token, no control byte in the
/// value (RFC 9110 §5.5).
#[inline]
pub(super) fn check_field(name: &str, value: &[u8]) -> Result<(), MessageError> {
    if !grammar::is_token(name.as_bytes()) {
        return Err(MessageError::FieldName);
    }
    if !swar::is_value(value) {
        return Err(MessageError::FieldValue);
    }
    Ok(())
}

/// Refuses the fields that frame the message or govern the connection: they follow from other
/// calls.
#[inline]
pub(super) fn check_reserved(name: &str) -> Result<(), MessageError> {
    let is = |reserved: &str| name.eq_ignore_ascii_case(reserved);
    // By length first: nearly every field of a handler is none of these.
    let advice = match name.len() {
        14 if is("Content-Length") => "call `add_length`",
        17 if is("Transfer-Encoding") => "call `add_chunked`",
        10 if is("Connection") => "call `close`, or add Upgrade",
        10 if is("Keep-Alive") => "whether the connection persists is not for one message to say",
        16 if is("Proxy-Connection") => "no proxy reads it",
        _ => return Ok(()),
    };
    Err(MessageError::FieldReserved(advice))
}
