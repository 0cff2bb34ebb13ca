//! `ResponseState`: the state of a response that is being written: what may follow, and what
//! happens to the connection afterwards.

mod whole;

use super::message::{self, ConnectionField, Framing, MessageState, Phase};
use super::sink::Sink;
use crate::semantics::date::DateCache;
use crate::semantics::error::MessageError;
use crate::semantics::grammar::{self, VALUE};
use crate::semantics::status::Status;
use crate::semantics::version::Version;

/// What the writer of a response has to know about the request; see `RequestSemantics::reply_to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyTo {
    /// The version of the peer: 1.0 gets neither chunks nor interim responses.
    pub version: Version,
    /// Whether the method is HEAD: the fields are sent, the body is only counted.
    pub is_head: bool,
    /// Whether the method is CONNECT: a 2xx has no body.
    pub is_connect: bool,
    /// Whether the status may be 101.
    pub wants_upgrade: bool,
    /// Whether the connection should persist.
    pub keep_alive: bool,
}

impl ReplyTo {
    /// Creates the value for a request that could not be read: its response closes the connection.
    pub const fn unreadable() -> ReplyTo {
        ReplyTo {
            version: Version::Http11,
            is_head: false,
            is_connect: false,
            wants_upgrade: false,
            keep_alive: false,
        }
    }
}

/// What happens to the connection when the handler has nothing more to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// No final status was written: an error page can still be sent.
    Unstarted,
    /// The response has begun and is incomplete: what was written may be sent, then the connection
    /// is cut off. If the body would end with the connection ([`add_chunked`] to a peer of 1.0),
    /// the connection must be reset, since a regular end would complete the body (RFC 9112 §8).
    ///
    /// [`add_chunked`]: ResponseState::add_chunked
    Unfinished,
    /// The response is complete; the next request may be read.
    KeepAlive,
    /// The response is complete; the connection closes when it has been sent.
    Close,
    /// The response is complete; from here on the connection uses another protocol, or is a tunnel.
    Switch,
}

/// Checks the writing of one response.
///
/// A call that would make the message invalid returns an error and changes nothing, neither the
/// sink nor the state, so the caller can still do the right thing instead. When the handler is
/// done, [`ending`](ResponseState::ending) says how the connection continues. The state is `Copy`:
/// a connection that keeps a copy and the length of its unsent output can take back a response of
/// which nothing has been sent.
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::h1::{DateCache, Ending, ReplyTo, ResponseState, Status};
///
/// let mut out = Vec::new();
/// let mut response = ResponseState::new(ReplyTo { keep_alive: true, ..ReplyTo::unreadable() });
/// response.status(&mut out, Status::OK)?;
/// response.add_header(&mut out, "Content-Type", b"text/plain")?;
/// response.add_length(&mut out, 2)?;
/// response.done_headers(&mut out, Some(&DateCache::new(784_111_777)), None)?;
/// response.write_body(&mut out, b"hi")?;
/// response.done(&mut out)?;
/// assert_eq!(response.ending(), Ending::KeepAlive);
/// assert!(out.starts_with(b"HTTP/1.1 200 OK\r\n") && out.ends_with(b"\r\n\r\nhi"));
/// # Ok::<(), rotor::http::h1::MessageError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ResponseState {
    message: MessageState,
    reply: ReplyTo,
    status: Status,
    has_date: bool,
    has_server: bool,
}

impl ResponseState {
    /// Creates the state before anything is written.
    #[inline]
    pub const fn new(reply: ReplyTo) -> ResponseState {
        ResponseState {
            message: MessageState::new(!reply.is_head),
            reply,
            status: Status::OK,
            has_date: false,
            has_server: false,
        }
    }

    /// Writes an interim response (1xx except 101) with its fields. Any number of them may precede
    /// the status.
    ///
    /// # Errors
    ///
    /// `NotInformational`; `InterimNotAllowed` to a peer of 1.0 or after the status; `FieldName`,
    /// `FieldValue`, `FieldReserved`.
    pub fn interim(
        &mut self,
        out: &mut impl Sink,
        status: Status,
        fields: &[(&str, &[u8])],
    ) -> Result<(), MessageError> {
        if !status.is_informational() || status == Status::SWITCHING_PROTOCOLS {
            return Err(MessageError::NotInformational(status));
        }
        // RFC 9110 §15.2: "a server MUST NOT send a 1xx response to an HTTP/1.0 client".
        if self.reply.version < Version::Http11 || self.message.phase != Phase::Start {
            return Err(MessageError::InterimNotAllowed);
        }
        // All fields are checked before the first byte: a call that is refused has written nothing.
        for (name, value) in fields {
            message::check_field(name, value)?;
            message::check_reserved(name).map_err(|_| {
                MessageError::FieldReserved(
                    "an interim response has no body and ends no connection",
                )
            })?;
        }
        put_status_line(out, status, None);
        for (name, value) in fields {
            out.put_all(&[name.as_bytes(), b": ", value, b"\r\n"]);
        }
        out.put(b"\r\n");
        Ok(())
    }

    /// Writes the status line with the usual reason phrase. Its version is always HTTP/1.1
    /// (RFC 9112 §2.3). After a status that refuses a CONNECT of HTTP/1.1, the connection closes.
    ///
    /// # Errors
    ///
    /// `StartLineTwice`, `AlreadyDone`; `InformationalStatus` for 1xx, except for 101 if the
    /// request offers an upgrade.
    #[inline]
    pub fn status(&mut self, out: &mut impl Sink, status: Status) -> Result<(), MessageError> {
        self.begin(status)?;
        put_status_line(out, status, None);
        Ok(())
    }

    /// Writes the status line with a reason phrase of the caller's.
    ///
    /// # Errors
    ///
    /// As [`status`](ResponseState::status), and `StartLine` for a phrase with a control byte.
    pub fn status_with_reason(
        &mut self,
        out: &mut impl Sink,
        status: Status,
        reason: &str,
    ) -> Result<(), MessageError> {
        // First of all, since a call that is refused leaves the response unchanged.
        if !grammar::all(reason.as_bytes(), VALUE) {
            return Err(MessageError::StartLine);
        }
        self.begin(status)?;
        put_status_line(out, status, Some(reason));
        Ok(())
    }

    #[inline]
    fn begin(&mut self, status: Status) -> Result<(), MessageError> {
        self.message.expect_start()?;
        // RFC 9110 §7.8: a server must not switch to a protocol that the client has not requested.
        let is_switch = status == Status::SWITCHING_PROTOCOLS && self.reply.wants_upgrade;
        if status.is_informational() && !is_switch {
            return Err(MessageError::InformationalStatus(status));
        }
        self.status = status;
        self.message.phase = Phase::Fields;
        // RFC 9931: with its CONNECT, a client may already send the first bytes for the tunnel, and
        // these may come from somebody whom it does not trust. If no tunnel is made, they would be
        // read as requests of the client. In HTTP/2 they are on a stream of their own.
        if self.reply.is_connect && !status.is_success() && self.reply.version < Version::Http2 {
            self.reply.keep_alive = false;
        }
        Ok(())
    }

    /// Checks a field that may be passed to [`add_header`](ResponseState::add_header) later.
    pub(crate) fn check_field(name: &str, value: &[u8]) -> Result<(), MessageError> {
        message::check_reserved(name)?;
        message::check_field(name, value)
    }

    /// Writes a field. `Date` and `Server` replace those of the connection. For `Upgrade`, the
    /// matching `Connection` is added.
    ///
    /// # Errors
    ///
    /// `FieldName`, `FieldValue`; `FieldReserved` for fields that other methods write;
    /// `StartLineMissing`, `FieldTooLate`, `AlreadyDone`.
    #[inline]
    pub fn add_header(
        &mut self,
        out: &mut impl Sink,
        name: &str,
        value: &[u8],
    ) -> Result<(), MessageError> {
        message::check_reserved(name)?;
        self.message.put_field(out, name, value)?;
        self.has_date |= name.len() == 4 && name.eq_ignore_ascii_case("Date");
        self.has_server |= name.len() == 6 && name.eq_ignore_ascii_case("Server");
        Ok(())
    }

    /// Announces the length of the body. For 304, it is the length that the response to GET would
    /// have.
    ///
    /// # Errors
    ///
    /// `LengthTwice`; `BodyForbidden` with 1xx, 204, 205 (unless the length is 0), and 2xx to
    /// CONNECT; `StartLineMissing`, `FieldTooLate`, `AlreadyDone`.
    #[inline]
    pub fn add_length(&mut self, out: &mut impl Sink, length: u64) -> Result<(), MessageError> {
        self.message.expect_length()?;
        let is_not_modified = self.status == Status::NOT_MODIFIED;
        let is_reset = self.status == Status::RESET_CONTENT;
        // RFC 9110 §8.6: no length with 1xx, 204 and 2xx to CONNECT; a client would wait for a
        // body, or take the tunnel's first bytes as one.
        if (self.forbids_body() && !is_not_modified) || (is_reset && length > 0) {
            return Err(MessageError::BodyForbidden(self.status));
        }
        self.message.put_length(out, length);
        // RFC 9110 §8.6: with 304 it is the length that a 200 would have, and no body follows.
        if is_not_modified {
            self.message.framing = Framing::Empty;
        }
        Ok(())
    }

    /// Announces a body of unknown length: it is sent in chunks, or, to a peer of 1.0, until close.
    ///
    /// # Errors
    ///
    /// `LengthTwice`; `BodyForbidden` with 1xx, 204, 205, 304, and 2xx to CONNECT;
    /// `StartLineMissing`, `FieldTooLate`, `AlreadyDone`.
    pub fn add_chunked(&mut self, out: &mut impl Sink) -> Result<(), MessageError> {
        self.message.expect_length()?;
        if self.forbids_body() || self.status == Status::RESET_CONTENT {
            return Err(MessageError::BodyForbidden(self.status));
        }
        // RFC 9112 §6.1: no Transfer-Encoding to a peer that may not support it; the close ends the
        // body.
        match self.reply.version {
            Version::Http10 => {
                self.reply.keep_alive = false;
                self.message.framing = Framing::UntilClose;
            }
            Version::Http11 => self.message.put_chunked(out),
            // Frames mark the end of the body (RFC 9113 §8.2.2).
            Version::Http2 => self.message.framing = Framing::UntilClose,
        }
        Ok(())
    }

    /// Makes the connection close after this response; before `done_headers`, the peer is told.
    /// After a response that leaves a part of the request unread, this keeps the connection from
    /// reading that part as a request.
    pub fn close(&mut self) {
        self.reply.keep_alive = false;
    }

    /// Returns whether the head was written, and did not announce that the connection closes.
    pub(crate) fn has_promised_keep_alive(&self) -> bool {
        self.reply.keep_alive && self.message.is_head_done()
    }

    /// Sets whether the status may be 101, which it may not be before the whole request has been
    /// received (RFC 9110 §7.8: "A client cannot begin using an upgraded protocol on the connection
    /// until it has completely sent the request message").
    pub(crate) fn allow_switch(&mut self, yes: bool) {
        self.reply.wants_upgrade = yes;
    }

    /// Ends the fields, and writes `Date`, `Server` and `Connection` if the response has none and
    /// needs them.
    ///
    /// # Errors
    ///
    /// `LengthMissing` if neither `add_length` nor `add_chunked` was called and the status has a
    /// body; `UpgradeMissing` with 101 and 426; `FieldValue` for an invalid `server`;
    /// `StartLineMissing`, `FieldsDoneTwice`, `AlreadyDone`.
    #[inline]
    pub fn done_headers(
        &mut self,
        out: &mut impl Sink,
        date: Option<&DateCache>,
        server: Option<&str>,
    ) -> Result<(), MessageError> {
        self.message.expect_fields_end()?;
        // RFC 9110 §7.8, §15.5.22: with both, `Upgrade` names the protocol.
        let needs_upgrade =
            matches!(self.status, Status::SWITCHING_PROTOCOLS | Status::UPGRADE_REQUIRED);
        if needs_upgrade && !self.message.has_upgrade {
            return Err(MessageError::UpgradeMissing(self.status));
        }
        let is_unset = self.message.framing == Framing::Unset;
        let is_reset = self.status == Status::RESET_CONTENT;
        if is_unset && !self.forbids_body() && !is_reset {
            return Err(MessageError::LengthMissing);
        }
        // After the checks: a call that is refused has written nothing.
        if let Some(server) = server.filter(|_| !self.has_server) {
            self.message.put_field(out, "Server", server.as_bytes())?;
        }
        // 205 has no content but is framed like other responses (RFC 9110 §15.3.6), so it needs a
        // length.
        if is_unset && is_reset && !self.forbids_body() {
            self.message.put_length(out, 0);
        } else if is_unset {
            self.message.framing = Framing::Empty;
        }
        let connection = match self.reply.version {
            // 101 has `Connection: upgrade` because of its Upgrade; the ends of a tunnel decide
            // when it closes.
            _ if self.switches() => ConnectionField::Absent,
            // RFC 9113 §8.2.2: HTTP/2 has no such field.
            Version::Http2 => ConnectionField::Absent,
            _ if !self.reply.keep_alive => ConnectionField::Close,
            // RFC 9112 §9.3: a peer of 1.0 expects the connection to close unless it is told
            // otherwise.
            Version::Http10 => ConnectionField::KeepAlive,
            Version::Http11 => ConnectionField::Absent,
        };
        let date = date.filter(|_| !self.has_date).map_or(&b""[..], DateCache::line);
        self.message.put_fields_end(out, connection, date);
        Ok(())
    }

    /// Writes a part of the body. For HEAD it is counted and not sent.
    ///
    /// # Errors
    ///
    /// `BodyTooLong`, `BodyForbidden`, `StartLineMissing`, `FieldsNotDone`, `AlreadyDone`.
    #[inline]
    pub fn write_body(&mut self, out: &mut impl Sink, bytes: &[u8]) -> Result<(), MessageError> {
        self.write_body_with(out, bytes.len() as u64, |out| out.put(bytes))
    }

    /// Writes a part of the body that is not available as bytes (a shared block, a part of a file):
    /// `push` must put exactly `len` bytes into the sink, and is called only if they are to be
    /// sent.
    ///
    /// # Errors
    ///
    /// As [`write_body`](ResponseState::write_body).
    #[inline]
    pub fn write_body_with<S: Sink>(
        &mut self,
        out: &mut S,
        len: u64,
        push: impl FnOnce(&mut S),
    ) -> Result<(), MessageError> {
        // An empty part is no body: a handler may write what it has, even if that is nothing.
        if self.message.framing == Framing::Empty && len > 0 && self.message.phase == Phase::Body {
            return Err(MessageError::BodyForbidden(self.status));
        }
        self.message.put_body(out, len, push)
    }

    /// Ends the response.
    ///
    /// # Errors
    ///
    /// `BodyTooShort`: write the rest, or let the connection be cut off. `StartLineMissing`,
    /// `FieldsNotDone`, `AlreadyDone`.
    #[inline]
    pub fn done(&mut self, out: &mut impl Sink) -> Result<(), MessageError> {
        self.message.put_done(out)
    }

    /// Ends the response with trailer fields. For HEAD, and for a peer of 1.0, they are checked and
    /// not sent.
    ///
    /// # Errors
    ///
    /// `TrailersNotChunked` if a length was announced, except on HTTP/2; `FieldName`, `FieldValue`;
    /// `FieldReserved` for fields that have no effect after the body; `StartLineMissing`,
    /// `FieldsNotDone`, `AlreadyDone`.
    pub fn done_with_trailers(
        &mut self,
        out: &mut impl Sink,
        fields: &[(&str, &[u8])],
    ) -> Result<(), MessageError> {
        self.message.put_trailers(out, fields, self.is_framed())
    }

    /// Returns how many bytes of the output are trailer fields (HTTP/2 only).
    pub(crate) fn trailers_len(&self) -> usize {
        match self.message.framing {
            // No more than fits in memory.
            Framing::Trailers(len) => len as usize,
            _ => 0,
        }
    }

    /// Returns whether this is a response of HTTP/2, where a message never ends its connection.
    pub(crate) fn is_framed(&self) -> bool {
        self.reply.version == Version::Http2
    }

    /// Returns how the connection continues if nothing more is written.
    pub fn ending(&self) -> Ending {
        match self.message.phase {
            Phase::Start => Ending::Unstarted,
            Phase::Fields | Phase::Body => Ending::Unfinished,
            // Checked before `keep_alive`: the connection does not use HTTP any more, so it must
            // not be closed.
            Phase::Done if self.switches() => Ending::Switch,
            Phase::Done if self.reply.keep_alive => Ending::KeepAlive,
            Phase::Done => Ending::Close,
        }
    }

    /// Returns whether the body has the announced length, so that the response can only end.
    pub(crate) fn is_length_reached(&self) -> bool {
        self.message.phase == Phase::Body
            && self.message.framing == Framing::Length(0)
            && !self.is_framed()
    }

    /// Returns whether the response is incomplete, but the peer would take it as complete if the
    /// connection ended regularly.
    pub(crate) fn appears_complete_at_close(&self) -> bool {
        self.message.phase == Phase::Body
            && self.message.framing == Framing::UntilClose
            && self.sends_body()
            && !self.is_framed()
    }

    /// Returns whether the fields have ended.
    pub fn is_head_done(&self) -> bool {
        matches!(self.message.phase, Phase::Body | Phase::Done)
    }

    /// Returns whether the body is sent: not for HEAD, and not with a status that has no body.
    pub fn sends_body(&self) -> bool {
        self.message.sends_body && !self.forbids_body() && self.status != Status::RESET_CONTENT
    }

    /// Returns the final status, once it has been written.
    pub fn final_status(&self) -> Option<Status> {
        (self.message.phase != Phase::Start).then_some(self.status)
    }

    fn switches(&self) -> bool {
        self.status == Status::SWITCHING_PROTOCOLS
            || (self.reply.is_connect && self.status.is_success())
    }

    fn forbids_body(&self) -> bool {
        self.status.forbids_body() || (self.reply.is_connect && self.status.is_success())
    }
}

#[inline]
fn put_status_line(out: &mut impl Sink, status: Status, reason: Option<&str>) {
    match (status.line(), reason) {
        (Some(line), None) => out.put(line.as_bytes()),
        (_, reason) => {
            let code = status.code();
            let digits = [code / 100, code / 10 % 10, code % 10].map(|digit| b'0' + digit as u8);
            out.put_all(&[
                b"HTTP/1.1 ",
                &digits,
                b" ",
                reason.unwrap_or_default().as_bytes(),
                b"\r\n",
            ]);
        }
    }
}
