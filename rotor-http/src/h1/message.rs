//! What the writers of requests and responses share: the order of a message's parts, its fields,
//! its body.

use super::decimal::Number;
use super::sink::Sink;
use crate::semantics::error::MessageError;
use crate::semantics::grammar;
use crate::semantics::swar;
use crate::semantics::trailers;

/// The progress of writing a message.
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

/// What has been set about the length of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Unset,
    /// A message with this status has no body, even if a length was set (304).
    Empty,
    /// This many bytes are left.
    Length(u64),
    Chunked,
    UntilClose,
    /// HTTP/2 only, and the message is done: the last bytes that were written, this many, are
    /// trailer fields.
    Trailers(u64),
}

/// The part of a writer's state that requests and responses share.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageState {
    pub(super) phase: Phase,
    pub(super) framing: Framing,
    /// Whether the body is sent; if not (HEAD), its bytes are only counted.
    pub(super) sends_body: bool,
    pub(super) has_upgrade: bool,
}

impl MessageState {
    pub(super) const fn new(sends_body: bool) -> MessageState {
        MessageState {
            phase: Phase::Start,
            framing: Framing::Unset,
            sends_body,
            has_upgrade: false,
        }
    }

    /// Checks that a start line may follow.
    pub(super) fn expect_start(&self) -> Result<(), MessageError> {
        match self.phase {
            Phase::Start => Ok(()),
            Phase::Fields | Phase::Body => Err(MessageError::StartLineTwice),
            Phase::Done => Err(MessageError::AlreadyDone),
        }
    }

    /// Checks that fields may follow.
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

    /// Returns whether the fields have ended.
    pub(super) fn is_head_done(&self) -> bool {
        matches!(self.phase, Phase::Body | Phase::Done)
    }

    /// Checks that the length has not been set yet.
    pub(super) fn expect_length(&self) -> Result<(), MessageError> {
        self.expect_fields()?;
        if self.framing == Framing::Unset { Ok(()) } else { Err(MessageError::LengthTwice) }
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
        // The length is compared first: hardly any other field has the same length.
        self.has_upgrade |= name.len() == 7 && name.eq_ignore_ascii_case("Upgrade");
        out.put_all(&[name.as_bytes(), b": ", value, b"\r\n"]);
        Ok(())
    }

    /// Writes `Content-Length`, and expects this many bytes.
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

    /// Ends the fields with `Connection` (if one is needed), then `last`.
    #[inline]
    pub(super) fn put_fields_end(
        &mut self,
        out: &mut impl Sink,
        connection: ConnectionField,
        last: &[u8],
    ) {
        // RFC 9110 §7.8: a sender of `Upgrade` must name it in `Connection`, or a proxy would pass
        // it on.
        let connection: &[u8] = match (connection, self.has_upgrade) {
            (ConnectionField::Absent, false) => b"",
            (ConnectionField::Absent, true) => b"Connection: upgrade\r\n",
            (ConnectionField::Close, false) => b"Connection: close\r\n",
            (ConnectionField::Close, true) => b"Connection: close, upgrade\r\n",
            (ConnectionField::KeepAlive, false) => b"Connection: keep-alive\r\n",
            (ConnectionField::KeepAlive, true) => b"Connection: keep-alive, upgrade\r\n",
        };
        if !connection.is_empty() {
            out.put(connection);
        }
        out.put_all(&[last, b"\r\n"]);
        self.phase = Phase::Body;
    }

    /// Does the same for a request with `TE`, which is named in `Connection` as well (RFC 9110
    /// §10.1.4).
    #[cold]
    pub(super) fn put_fields_end_with_te(
        &mut self,
        out: &mut impl Sink,
        connection: ConnectionField,
        last: &[u8],
    ) {
        let persists: &[u8] = match connection {
            ConnectionField::Absent => b"",
            ConnectionField::Close => b"close, ",
            ConnectionField::KeepAlive => b"keep-alive, ",
        };
        let upgrade: &[u8] = if self.has_upgrade { b"upgrade, " } else { b"" };
        out.put_all(&[b"Connection: ", persists, upgrade, b"TE\r\n", last, b"\r\n"]);
        self.phase = Phase::Body;
    }

    /// Writes `len` bytes of body through `push`, which is called only if they are sent.
    #[inline]
    pub(super) fn put_body<S: Sink>(
        &mut self,
        out: &mut S,
        len: u64,
        push: impl FnOnce(&mut S),
    ) -> Result<(), MessageError> {
        self.expect_body()?;
        // For HEAD too, where nothing is sent: a length that would break the response to GET is
        // found here as well.
        if let Framing::Length(left) = &mut self.framing {
            *left = left.checked_sub(len).ok_or(MessageError::BodyTooLong(*left))?;
        }
        // A chunk of length 0 would end the body (RFC 9112 §7.1).
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
            // For HEAD, a length may be announced without producing a body.
            Framing::Length(left) if left > 0 && self.sends_body => {
                return Err(MessageError::BodyTooShort(left));
            }
            Framing::Chunked if self.sends_body => out.put(b"0\r\n\r\n"),
            _ => {}
        }
        self.phase = Phase::Done;
        Ok(())
    }

    /// Ends a message with trailer fields. In HTTP/1.1 only chunked bodies can have them; in
    /// HTTP/2, bodies of any length can (RFC 9113 §8.1). All fields are checked before the first
    /// one is written.
    pub(super) fn put_trailers(
        &mut self,
        out: &mut impl Sink,
        fields: &[(&str, &[u8])],
        is_framed: bool,
    ) -> Result<(), MessageError> {
        self.expect_body()?;
        match self.framing {
            // A body until close replaces chunks for a peer of 1.0. The handler need not know that;
            // the fields are dropped.
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

    /// Writes the checked trailer fields of a message that is sent in frames. Frames separate them
    /// from the body, so they follow it directly.
    fn put_framed_trailers(&mut self, out: &mut impl Sink, fields: &[(&str, &[u8])]) {
        let mut len = 0;
        for (name, value) in fields {
            out.put_all(&[name.as_bytes(), b": ", value, b"\r\n"]);
            len += name.len() + value.len() + 4;
        }
        self.framing = Framing::Trailers(len as u64);
    }
}

/// The options that `Connection` contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionField {
    Absent,
    Close,
    KeepAlive,
}

/// Checks that a field may be sent as it is: the name is a token, and the value has no control byte
/// (RFC 9110 §5.5).
#[inline]
pub(crate) fn check_field(name: &str, value: &[u8]) -> Result<(), MessageError> {
    if !grammar::is_token(name.as_bytes()) {
        return Err(MessageError::FieldName);
    }
    if !swar::is_value(value) {
        return Err(MessageError::FieldValue);
    }
    Ok(())
}

/// Refuses the fields that frame the message or govern the connection: other calls write them.
#[inline]
pub(crate) fn check_reserved(name: &str) -> Result<(), MessageError> {
    let is = |reserved: &str| name.eq_ignore_ascii_case(reserved);
    // The length is compared first: nearly no field of a handler is one of these.
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
