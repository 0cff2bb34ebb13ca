//! `Engine`: one end of a TLS connection that knows no socket: records in, plaintext out, and the
//! other way round.
//!
//! **All that depends on how rustls 0.23 does this is in this file.** Its unbuffered connections
//! leave the buffers to us, but make a vector of each record, which is copied once. Version 0.24
//! replaces them by calls of the same shape as the methods here: it decrypts in place and lends the
//! payload (`process_new_packets` and `next_payload`), and appends records to a buffer of the
//! caller's (`write_tls`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rotor_stream::Buf;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::pki_types::ServerName;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, UnbufferedConnectionCommon,
    UnbufferedStatus, WriteTraffic,
};
use rustls::{ClientConfig, CommonState, HandshakeKind, ProtocolVersion, ServerConfig};

use crate::last_words::CLOSE_NOTIFY;
use crate::record_sink::RecordSink;

/// What a record holds at most, in bytes of plaintext (RFC 8446 §5.1).
pub(crate) const FRAGMENT_BYTES_MAX: usize = 16 * 1024;

/// What a record adds to its plaintext at most, in bytes: the header, the explicit nonce of TLS 1.2
/// or the type of TLS 1.3, the tag; with something to spare. Where it is too little,
/// rustls says how much it needs.
const RECORD_OVERHEAD: usize = 40;

/// Room for records that wait inside: a new key, an alert.
const CONTROL_BYTES: usize = 128;

/// Room for the records of so much plaintext, and for what goes before them.
pub(crate) const fn records_bytes(plaintext: usize) -> usize {
    let records = plaintext.div_ceil(FRAGMENT_BYTES_MAX);
    plaintext + records * RECORD_OVERHEAD + CONTROL_BYTES
}

/// One end of a connection.
pub(crate) enum Engine {
    Server(UnbufferedServerConnection),
    Client(UnbufferedClientConnection),
}

/// Where the engine has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum At {
    /// It has handed out the plaintext of a record; there may be more.
    Plain,
    /// It has done all that it can with the records that came.
    NeedsInput,
    /// The peer has said that it will send no more.
    PeerClosed,
}

impl Engine {
    pub(crate) fn server(config: Arc<ServerConfig>) -> Result<Engine, rustls::Error> {
        UnbufferedServerConnection::new(config).map(Engine::Server)
    }

    pub(crate) fn client(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Engine, rustls::Error> {
        UnbufferedClientConnection::new(config, name).map(Engine::Client)
    }

    /// Takes records, up to the first that has plaintext: that goes to `plain`, and what the peer
    /// is to be told for it is appended to `out`.
    ///
    /// What is left of the records is to come again, with more behind it: a message may be spread
    /// over several of them.
    ///
    /// # Errors
    ///
    /// What the peer has done, or what has failed here. [`last_words`](Engine::last_words) has the
    /// alert for it.
    #[inline]
    pub(crate) fn take(
        &mut self,
        records: &mut Buf,
        plain: &mut dyn FnMut(&[u8]),
        out: &mut Buf,
    ) -> Result<At, rustls::Error> {
        match self {
            Engine::Server(connection) => take(&mut **connection, records, plain, out),
            Engine::Client(connection) => take(&mut **connection, records, plain, out),
        }
    }

    /// The same behind `close_notify`, which rustls counts as our last word: an alert about what
    /// cannot be read would be another, and it asserts that there is none, in builds that assert.
    /// It is the peer's fault there, too, and no panic.
    #[cold]
    pub(crate) fn take_behind_close(
        &mut self,
        records: &mut Buf,
        plain: &mut dyn FnMut(&[u8]),
        out: &mut Buf,
    ) -> Result<At, rustls::Error> {
        let take = AssertUnwindSafe(|| self.take(records, plain, out));
        catch_unwind(take).unwrap_or(Err(rustls::Error::DecryptError))
    }

    /// Appends the records of some plaintext to `out`, all of it. Records that have come meanwhile
    /// may have to be taken first: their plaintext goes to `plain`. Returns whether the peer has
    /// said meanwhile that it will send no more, which is said only once.
    ///
    /// # Errors
    ///
    /// As for `take`; also where the keys have been used as often as they may be.
    pub(crate) fn put(
        &mut self,
        bytes: &[u8],
        records: &mut Buf,
        plain: &mut dyn FnMut(&[u8]),
        out: &mut impl RecordSink,
    ) -> Result<bool, rustls::Error> {
        let mut encrypt = Encrypt { bytes };
        match self {
            Engine::Server(connection) => {
                write(&mut **connection, records, plain, out, &mut encrypt)
            }
            Engine::Client(connection) => {
                write(&mut **connection, records, plain, out, &mut encrypt)
            }
        }
    }

    /// Appends `close_notify` to `out`, after which nothing may be put any more. Returns what `put`
    /// does.
    ///
    /// # Errors
    ///
    /// As for `take`.
    pub(crate) fn close(
        &mut self,
        records: &mut Buf,
        plain: &mut dyn FnMut(&[u8]),
        out: &mut Buf,
    ) -> Result<bool, rustls::Error> {
        match self {
            Engine::Server(connection) => write(&mut **connection, records, plain, out, &mut Close),
            Engine::Client(connection) => write(&mut **connection, records, plain, out, &mut Close),
        }
    }

    /// Appends to `out` what the peer is still to be told after an error: the alert. Returns whether
    /// there is one.
    pub(crate) fn last_words(&mut self, records: &mut Buf, out: &mut Buf) -> bool {
        let before = out.len();
        // One at a time, and none too many: what is told comes before anything is taken, and to
        // take what has failed once more is an error of ours.
        while self.wants_write() {
            let is_over = match self {
                Engine::Server(connection) => tell(&mut **connection, records, out),
                Engine::Client(connection) => tell(&mut **connection, records, out),
            };
            if is_over {
                break;
            }
        }
        out.len() > before
    }

    /// Appends `close_notify` to `out` in the midst of a handshake: in clear or encrypted, as the
    /// peer expects it by then. Returns whether it could.
    ///
    /// rustls encrypts one only where application data might be sent as well, which a server of TLS
    /// 1.3 does behind its flight unless it asks for a certificate. In the few other places the
    /// peer meets an end without one, since in clear it would be taken for a broken record there.
    pub(crate) fn cancel(&mut self, records: &mut Buf, out: &mut Buf) -> bool {
        if self.speaks_in_clear() {
            out.extend(&CLOSE_NOTIFY);
            return true;
        }
        self.close(records, &mut |_| {}, out).is_ok()
    }

    /// Whether nothing that was sent in this handshake is encrypted, as far as that can be known.
    fn speaks_in_clear(&self) -> bool {
        let common = self.common();
        match (self, common.protocol_version()) {
            (_, None) => true,
            // Its Finished is the last message, except in a resumed session (RFC 5246 §7.3).
            (Engine::Server(_), Some(ProtocolVersion::TLSv1_2)) => {
                common.handshake_kind() == Some(HandshakeKind::Full)
            }
            _ => false,
        }
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.common().is_handshaking()
    }

    /// Whether it has something to tell the peer by itself.
    pub(crate) fn wants_write(&self) -> bool {
        self.common().wants_write()
    }

    /// Whether this is a client that has not understood anything of the server yet.
    pub(crate) fn awaits_server(&self) -> bool {
        matches!(self, Engine::Client(_)) && self.common().protocol_version().is_none()
    }

    pub(crate) fn common(&self) -> &CommonState {
        match self {
            Engine::Server(connection) => connection,
            Engine::Client(connection) => connection,
        }
    }
}

/// A connection of one of the two sides, which differ in the type of their data.
trait Side {
    type Data;

    fn process<'c, 'i>(&'c mut self, records: &'i mut [u8])
    -> UnbufferedStatus<'c, 'i, Self::Data>;
}

impl Side for UnbufferedConnectionCommon<ServerConnectionData> {
    type Data = ServerConnectionData;

    #[inline]
    fn process<'c, 'i>(
        &'c mut self,
        records: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, ServerConnectionData> {
        self.process_tls_records(records)
    }
}

impl Side for UnbufferedConnectionCommon<ClientConnectionData> {
    type Data = ClientConnectionData;

    #[inline]
    fn process<'c, 'i>(
        &'c mut self,
        records: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, ClientConnectionData> {
        self.process_tls_records(records)
    }
}

/// What becomes of one state of a connection.
enum Step {
    /// It goes on.
    On,
    At(At),
}

fn take<S: Side>(
    connection: &mut S,
    records: &mut Buf,
    plain: &mut dyn FnMut(&[u8]),
    out: &mut Buf,
) -> Result<At, rustls::Error> {
    loop {
        let UnbufferedStatus { mut discard, state, .. } = connection.process(records);
        let step = state.map(|state| step(state, plain, out, &mut discard));
        records.consume(discard);
        if let Step::At(at) = step? {
            return Ok(at);
        }
    }
}

fn step<D>(
    state: ConnectionState<'_, '_, D>,
    plain: &mut dyn FnMut(&[u8]),
    out: &mut impl RecordSink,
    discard: &mut usize,
) -> Step {
    match state {
        ConnectionState::ReadTraffic(mut traffic) => {
            while let Some(Ok(record)) = traffic.next_record() {
                *discard += record.discard;
                plain(record.payload);
            }
            Step::At(At::Plain)
        }
        ConnectionState::EncodeTlsData(mut record) => {
            encode(&mut record, out);
            Step::On
        }
        // The record is with us now, and goes out before whatever is appended later.
        ConnectionState::TransmitTlsData(record) => {
            record.done();
            Step::On
        }
        ConnectionState::PeerClosed | ConnectionState::Closed => Step::At(At::PeerClosed),
        // The others include early data, which the configuration refuses: anybody may replay it
        // (RFC 8446 §8).
        _ => Step::At(At::NeedsInput),
    }
}

/// Appends what is to be told next. Returns whether there is nothing.
fn tell<S: Side>(connection: &mut S, records: &mut Buf, out: &mut Buf) -> bool {
    let UnbufferedStatus { mut discard, state, .. } = connection.process(records);
    let is_over = state.map(|state| step(state, &mut |_| {}, out, &mut discard)).is_err();
    records.consume(discard);
    is_over
}

fn encode<D>(record: &mut EncodeTlsData<'_, D>, out: &mut impl RecordSink) {
    // Asked without any room, it tells how much it needs.
    if let Err(EncodeError::InsufficientSize(error)) = record.encode(&mut []) {
        // That much is enough, and nobody but us has asked meanwhile.
        let _is_encoded = out.append(error.required_size, |room| record.encode(room));
    }
}

/// What is written once the connection takes it.
trait WriteInto {
    /// How much room that needs, as a rule.
    fn room(&self) -> usize;

    fn write<D>(
        &mut self,
        traffic: &mut WriteTraffic<'_, D>,
        room: &mut [u8],
    ) -> Result<usize, EncryptError>;
}

struct Encrypt<'a> {
    bytes: &'a [u8],
}

impl WriteInto for Encrypt<'_> {
    fn room(&self) -> usize {
        records_bytes(self.bytes.len())
    }

    fn write<D>(
        &mut self,
        traffic: &mut WriteTraffic<'_, D>,
        room: &mut [u8],
    ) -> Result<usize, EncryptError> {
        traffic.encrypt(self.bytes, room)
    }
}

struct Close;

impl WriteInto for Close {
    fn room(&self) -> usize {
        CONTROL_BYTES
    }

    fn write<D>(
        &mut self,
        traffic: &mut WriteTraffic<'_, D>,
        room: &mut [u8],
    ) -> Result<usize, EncryptError> {
        traffic.queue_close_notify(room)
    }
}

fn write<S: Side>(
    connection: &mut S,
    records: &mut Buf,
    plain: &mut dyn FnMut(&[u8]),
    out: &mut impl RecordSink,
    what: &mut impl WriteInto,
) -> Result<bool, rustls::Error> {
    let mut peer_has_closed = false;
    loop {
        let UnbufferedStatus { mut discard, state, .. } = connection.process(records);
        let written = match state {
            Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                write_into(&mut traffic, out, what).map(|()| true)
            }
            // Both sides have closed.
            Ok(ConnectionState::Closed) => Ok(true),
            Ok(ConnectionState::BlockedHandshake) => Err(rustls::Error::HandshakeNotComplete),
            Ok(state) => {
                let step = step(state, plain, out, &mut discard);
                peer_has_closed |= matches!(step, Step::At(At::PeerClosed));
                Ok(false)
            }
            Err(error) => Err(error),
        };
        records.consume(discard);
        if written? {
            return Ok(peer_has_closed);
        }
    }
}

fn write_into<D>(
    traffic: &mut WriteTraffic<'_, D>,
    out: &mut impl RecordSink,
    what: &mut impl WriteInto,
) -> Result<(), rustls::Error> {
    let mut needed = what.room();
    loop {
        match out.append(needed, |room| what.write(traffic, room)) {
            Ok(()) => return Ok(()),
            // Nothing was written, and the second time there is room enough.
            Err(EncryptError::InsufficientSize(error)) if error.required_size > needed => {
                needed = error.required_size
            }
            Err(_) => return Err(rustls::Error::EncryptError),
        }
    }
}
