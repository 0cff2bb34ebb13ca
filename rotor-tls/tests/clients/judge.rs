//! A client that records its verdict on a server's certificate.

use rotor_core::Scope;
use rotor_stream::testing::{ScriptedSocket, TestLoop, pair};
use rotor_stream::{Fatal, Intent, Matched, Protocol, Stream, Transport};
use rotor_tls::{CertificateFault, TlsClient, TlsError, TlsStream};

use crate::raw_server::RawServer;

/// Whether the certificate is accepted and, if not, why.
pub(crate) type Judgement = Option<Result<(), Option<CertificateFault>>>;

struct Judge;

impl Protocol for Judge {
    type Context = Judgement;
    type Seed = ();

    fn create(_: (), _: &mut Transport<'_>, scope: &mut Scope<'_, Judgement>) -> Intent<Self> {
        **scope = Some(Ok(()));
        Intent::done()
    }

    fn bytes_read(
        self,
        _: Matched,
        _: &mut Transport<'_>,
        _: &mut Scope<'_, Judgement>,
    ) -> Intent<Self> {
        Intent::done()
    }

    fn not_connected(_: (), error: Fatal, scope: &mut Scope<'_, Judgement>) {
        **scope = Some(Err(TlsError::of(&error).and_then(TlsError::certificate_fault)));
    }
}

/// A client's verdict on a server, three days after the start of 1970.
pub(crate) fn judge(tls: &TlsClient, name: &str, chain: &str, key: &str) -> Judgement {
    let mut test = TestLoop::<Stream<Judge, TlsStream<ScriptedSocket>>>::new(None);
    test.advance(crate::DAY * 3);
    let (socket, peer) = pair(test.world());
    let socket = TlsStream::client(socket, &tls.to((), name).expect("it is a name"));
    test.add(|scope| Stream::connected(socket, (), scope));
    RawServer::new(rustls::ALL_VERSIONS, chain, key).talk(&mut test, &peer);
    *test.context()
}
