//! `Engine`: one end of a TLS connection without a socket: it turns records into plaintext, and
//! plaintext into records.
//!
//! **Everything that depends on the API of rustls 0.23 is in this file.** Its unbuffered
//! connections leave the buffers to the caller, but make a vector of each record, which is copied
//! once. Version 0.24 replaces them by functions of the same shape as the methods here: it decrypts
//! in place and lends the payload (`process_new_packets` and `next_payload`), and appends records
//! to a buffer of the caller (`write_tls`).

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

use crate::alerts::CLOSE_NOTIFY;
use crate::record_sink::RecordSink;

/// The maximum plaintext of a record, in bytes (RFC 8446 §5.1).
pub(crate) const FRAGMENT_BYTES_MAX: usize = 16 * 1024;

/// The maximum number of bytes that a record adds to its plaintext, with a margin: the header, the
/// explicit nonce of TLS 1.2 or the type of TLS 1.3, and the tag. If this is too little, rustls
/// reports how much it needs.
const RECORD_OVERHEAD: usize = 40;

/// Room for records that wait in the connection: a new key, an alert.
const CONTROL_BYTES: usize = 128;

/// Returns the room for the records of so much plaintext, and for those before them.
pub(crate) const fn records_bytes(plaintext: usize) -> usize {
    let records = plaintext.div_ceil(FRAGMENT_BYTES_MAX);
    plaintext + records * RECORD_OVERHEAD + CONTROL_BYTES
}

/// One end of a connection.
pub(crate) enum Engine {
    Server(UnbufferedServerConnection),
    Client(UnbufferedClientConnection),
}

/// The state of the engine after a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EngineState {
    /// It has returned the plaintext of a record; there may be more.
    Plaintext,
    /// It has processed the existing records as far as possible.
    NeedsInput,
    /// The peer has ended its side.
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

    /// Processes records, up to the first one with plaintext, which is passed to `plain`. Records
    /// for the peer that result from this are appended to `out`.
    ///
    /// The remaining records must be passed again, with more bytes added: a message may be spread
    /// over several records.
    ///
    /// # Errors
    ///
    /// What the peer did wrong, or what failed here. [`append_alert`](Engine::append_alert) appends
    /// the alert for it.
    #[inline]
    pub(crate) fn process_records(
        &mut self,
        records: &mut Buf,
        plain: &mut dyn FnMut(&[u8]),
        out: &mut Buf,
    ) -> Result<EngineState, rustls::Error> {
        match self {
            Engine::Server(connection) => process_records(&mut **connection, records, plain, out),
            Engine::Client(connection) => process_records(&mut **connection, records, plain, out),
        }
    }

    /// Does the same after `close_notify`, in debug builds. rustls treats that as the last record it
    /// sends: an alert about a record that cannot be read would be another one, and debug builds
    /// assert that there is none. That panic is caught here, because the peer caused it.
    #[cold]
    pub(crate) fn process_after_close(
        &mut self,
        records: &mut Buf,
        plain: &mut dyn FnMut(&[u8]),
        out: &mut Buf,
    ) -> Result<EngineState, rustls::Error> {
        let process = AssertUnwindSafe(|| self.process_records(records, plain, out));
        catch_unwind(process).unwrap_or(Err(rustls::Error::DecryptError))
    }

    /// Appends the records of some plaintext to `out`, all of it. Records that have arrived
    /// meanwhile may have to be processed first; their plaintext is passed to `plain`. Returns
    /// whether the peer has ended its side meanwhile, which is reported only once.
    ///
    /// # Errors
    ///
    /// As for `process_records`; also if the keys have been used as often as allowed.
    pub(crate) fn encrypt(
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

    /// Appends `close_notify` to `out`, after which nothing may be encrypted any more. Returns the
    /// same as `encrypt`.
    ///
    /// # Errors
    ///
    /// As for `process_records`.
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

    /// Appends the alert for an error to `out`. Returns whether there is one.
    pub(crate) fn append_alert(&mut self, records: &mut Buf, out: &mut Buf) -> bool {
        let before = out.len();
        // One record at a time, and not too many calls: waiting records are returned before others
        // are processed, and processing the failed record once more would be an error of ours.
        while self.wants_write() {
            let is_over = match self {
                Engine::Server(connection) => append_next_record(&mut **connection, records, out),
                Engine::Client(connection) => append_next_record(&mut **connection, records, out),
            };
            if is_over {
                break;
            }
        }
        out.len() > before
    }

    /// Appends `close_notify` to `out` during a handshake: unencrypted or encrypted, as the peer
    /// expects it at that time. Returns whether that was possible.
    ///
    /// rustls encrypts it only when application data could be sent as well. A server of TLS 1.3 can
    /// do that after its flight, unless it requests a certificate. In the few other cases the peer
    /// sees an end without it, since it would take an unencrypted one for a damaged record.
    pub(crate) fn cancel(&mut self, records: &mut Buf, out: &mut Buf) -> bool {
        if self.sends_unencrypted() {
            out.extend(&CLOSE_NOTIFY);
            return true;
        }
        self.close(records, &mut |_| {}, out).is_ok()
    }

    /// Returns whether everything sent in this handshake was unencrypted, as far as that is known.
    fn sends_unencrypted(&self) -> bool {
        let common = self.common();
        match (self, common.protocol_version()) {
            (_, None) => true,
            // The server's Finished is the last message, except in a resumed session (RFC 5246
            // §7.3).
            (Engine::Server(_), Some(ProtocolVersion::TLSv1_2)) => {
                common.handshake_kind() == Some(HandshakeKind::Full)
            }
            _ => false,
        }
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.common().is_handshaking()
    }

    /// Returns whether it has records of its own for the peer.
    pub(crate) fn wants_write(&self) -> bool {
        self.common().wants_write()
    }

    /// Returns whether this is a client that has not processed any message of the server yet.
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

/// A connection of one of the two sides, whose data have different types.
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

/// The result of handling one state of a connection.
enum Step {
    /// Continue.
    Continue,
    Stop(EngineState),
}

fn process_records<S: Side>(
    connection: &mut S,
    records: &mut Buf,
    plain: &mut dyn FnMut(&[u8]),
    out: &mut Buf,
) -> Result<EngineState, rustls::Error> {
    loop {
        let UnbufferedStatus { mut discard, state, .. } = connection.process(records);
        let step = state.map(|state| step(state, plain, out, &mut discard));
        records.consume(discard);
        if let Step::Stop(state) = step? {
            return Ok(state);
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
            Step::Stop(EngineState::Plaintext)
        }
        ConnectionState::EncodeTlsData(mut record) => {
            encode(&mut record, out);
            Step::Continue
        }
        // The record is in our buffer, and is sent before anything that is appended later.
        ConnectionState::TransmitTlsData(record) => {
            record.done();
            Step::Continue
        }
        ConnectionState::PeerClosed | ConnectionState::Closed => {
            Step::Stop(EngineState::PeerClosed)
        }
        // The other states include early data, which the configuration refuses, because it can be
        // replayed (RFC 8446 §8).
        _ => Step::Stop(EngineState::NeedsInput),
    }
}

/// Appends the next record for the peer. Returns whether there was none.
fn append_next_record<S: Side>(connection: &mut S, records: &mut Buf, out: &mut Buf) -> bool {
    let UnbufferedStatus { mut discard, state, .. } = connection.process(records);
    let is_over = state.map(|state| step(state, &mut |_| {}, out, &mut discard)).is_err();
    records.consume(discard);
    is_over
}

fn encode<D>(record: &mut EncodeTlsData<'_, D>, out: &mut impl RecordSink) {
    // Without any room, it reports how much it needs.
    if let Err(EncodeError::InsufficientSize(error)) = record.encode(&mut []) {
        // That is enough, since nothing else has been encoded in between.
        let _is_encoded = out.append(error.required_size, |room| record.encode(room));
    }
}

/// An operation that is done once the connection allows writing.
trait WriteOperation {
    /// Returns how much room it usually needs.
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

impl WriteOperation for Encrypt<'_> {
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

impl WriteOperation for Close {
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
    what: &mut impl WriteOperation,
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
                peer_has_closed |= matches!(step, Step::Stop(EngineState::PeerClosed));
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
    what: &mut impl WriteOperation,
) -> Result<(), rustls::Error> {
    let mut needed = what.room();
    loop {
        match out.append(needed, |room| what.write(traffic, room)) {
            Ok(()) => return Ok(()),
            // Nothing was written, and the second time there is enough room.
            Err(EncryptError::InsufficientSize(error)) if error.required_size > needed => {
                needed = error.required_size
            }
            Err(_) => return Err(rustls::Error::EncryptError),
        }
    }
}
