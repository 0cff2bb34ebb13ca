//! `TlsError`: what went wrong on a connection, and whose fault it is.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use quick_error::quick_error;
use rustls::AlertDescription;

use crate::counters::TlsCounters;

/// The cause of an error, from rustls.
pub type Cause = Box<dyn Error + Send + Sync>;

quick_error! {
    /// What went wrong on a connection. It is inside the [`io::Error`] of a
    /// [`TlsStream`](crate::TlsStream); [`TlsError::of`] finds it there.
    ///
    /// The connection is closed after each of these errors. The peer gets an alert, if TLS has one
    /// for the error and the peer would understand it.
    #[derive(Debug)]
    #[non_exhaustive]
    pub enum TlsError {
        /// The peer sent an unencrypted HTTP request. This is the peer's fault; it got an
        /// unencrypted response with status 400.
        PlainHttp {
            display("the client speaks plain HTTP, but this port expects HTTPS")
        }
        /// The server answers in unencrypted HTTP. Either the caller has used `https://` for an
        /// `http://` server or has the wrong port, or the server is at fault.
        PlainHttpServer {
            display("the server speaks plain HTTP: use http://, or another port")
        }
        /// The first bytes are not TLS. This is the peer's fault.
        NotTls {
            display("the peer does not speak TLS")
        }
        /// The client's hello is longer than 64 KiB. This is the peer's fault.
        HelloTooLarge {
            display("the ClientHello is too long")
        }
        /// The client requests a name that is not served, and
        /// [`UnknownName::Refuse`](crate::UnknownName::Refuse) is set. This is the peer's fault, or
        /// a certificate is missing here.
        UnknownName(name: Box<str>) {
            display("there is no certificate for {name:?}, the name that the client asked for")
        }
        /// The two ends have no version, cipher, signature or protocol (ALPN) in common. The end
        /// that is too old, or too strict, is at fault.
        NothingInCommon(cause: Cause) {
            display("there is no version, cipher or protocol that both ends support")
            source(&**cause)
        }
        /// The peer's certificate is not accepted: it has expired, is for another name, or comes
        /// from an issuer that is not trusted; [`certificate_fault`](TlsError::certificate_fault)
        /// tells which. This is the peer's fault, or the roots are wrong.
        Certificate(cause: Cause) {
            display("the certificate of the peer was not accepted")
            source(&**cause)
        }
        /// The peer has ended the connection and sent the reason in an alert (RFC 8446 §6.2).
        /// `unknown_ca`, `bad_certificate` and similar ones concern our certificate.
        Refused(alert: Cause) {
            display("the peer refused the connection")
            source(&**alert)
        }
        /// The peer violated the protocol, or its bytes were changed on the way. This is the peer's
        /// fault.
        Peer(cause: Cause) {
            display("the peer violated TLS")
            source(&**cause)
        }
        /// The peer sent more than 256 KiB of records without a byte of data, during its handshake
        /// or later. This is the peer's fault.
        Empty {
            display("the peer sent too many empty records")
        }
        /// Something failed at this end: no randomness is available, a key cannot sign, or a
        /// revocation list is not signed by its issuer. This is not the peer's fault. The log has a
        /// warning, at most one in ten seconds.
        Here(cause: Cause) {
            display("TLS failed on this side")
            source(&**cause)
        }
    }
}

impl TlsError {
    /// Finds the error of a [`TlsStream`](crate::TlsStream) in the error that its user received:
    /// the socket's own, or one that has it as a cause, such as [`rotor_stream::Fatal`].
    ///
    /// ```
    /// # mod rotor { pub use rotor_stream as stream; pub use rotor_tls as tls; }
    /// use rotor::stream::Fatal;
    /// use rotor::tls::TlsError;
    ///
    /// fn is_about_a_certificate(error: &Fatal) -> bool {
    ///     matches!(TlsError::of(error), Some(TlsError::Certificate(_)))
    /// }
    /// ```
    pub fn of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a TlsError> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            // One that several have, such as the requests on a connection of HTTP/2.
            let shared = error.downcast_ref::<Arc<io::Error>>().map(|shared| &**shared);
            // The source of an `io::Error` is not the error in it, but the source of that.
            next = match shared.or(error.downcast_ref()).and_then(io::Error::get_ref) {
                Some(inner) => Some(inner),
                None => error.source(),
            };
        }
        None
    }

    /// Returns the counter for handshakes that end with this error.
    pub(crate) fn counter<'a>(&self, counters: &'a TlsCounters) -> &'a AtomicU64 {
        match self {
            TlsError::PlainHttp | TlsError::PlainHttpServer => &counters.plain_http,
            TlsError::NotTls => &counters.not_tls,
            TlsError::HelloTooLarge => &counters.hellos_too_large,
            TlsError::UnknownName(_) => &counters.unknown_names,
            TlsError::Refused(_) => &counters.refused_by_peer,
            TlsError::Here(_) => &counters.failed_here,
            TlsError::NothingInCommon(_)
            | TlsError::Certificate(_)
            | TlsError::Peer(_)
            | TlsError::Empty => &counters.failed_by_peer,
        }
    }
}

impl From<rustls::Error> for TlsError {
    fn from(error: rustls::Error) -> TlsError {
        use rustls::Error::*;
        match &error {
            AlertReceived(alert) => TlsError::Refused(alert_name(*alert).into()),
            // An empty certificate message means that the client has no certificate (RFC 8446
            // §4.4.2.4).
            NoCertificatesPresented | InvalidCertificate(_) => TlsError::Certificate(error.into()),
            PeerIncompatible(_) | NoApplicationProtocol => TlsError::NothingInCommon(error.into()),
            // In TLS 1.2: the client cannot check any signature of our key.
            General(text) if text == "incompatible signing key" => {
                TlsError::NothingInCommon(error.into())
            }
            // Names were checked before. If the two readers of a hello ever disagreed, the client
            // would still request a name that does not exist.
            General(text) if text == "no server certificate chain resolved" => {
                TlsError::NothingInCommon(error.into())
            }
            EncryptError
            | General(_)
            | FailedToGetCurrentTime
            | FailedToGetRandomBytes
            | HandshakeNotComplete
            | BadMaxFragmentSize
            | InconsistentKeys(_)
            | InvalidCertRevocationList(_)
            | Other(_) => TlsError::Here(error.into()),
            _ => TlsError::Peer(error.into()),
        }
    }
}

/// Returns the name of an alert, approximately as in the RFC.
fn alert_name(alert: AlertDescription) -> String {
    match alert.as_str() {
        Some(name) => format!("alert {name}"),
        None => format!("alert {}", u8::from(alert)),
    }
}

impl From<TlsError> for io::Error {
    fn from(error: TlsError) -> io::Error {
        let kind = match error {
            // The peer is gone, so nothing can be told.
            TlsError::Refused(_) => io::ErrorKind::ConnectionAborted,
            TlsError::Here(_) => io::ErrorKind::Other,
            _ => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, error)
    }
}

/// Returns whether an error of the inner socket means that the operation can continue later.
pub(crate) fn is_retryable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
