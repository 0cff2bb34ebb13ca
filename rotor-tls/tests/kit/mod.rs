//! Certificates, and both ends of connections, for the test suites.
#![allow(dead_code, reason = "each suite uses a part of it")]

mod issuer;

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};

use rotor_core::{Machine, Scope};
use rotor_stream::testing::{Peer, ScriptedSocket, TestLoop, pair};
use rotor_stream::{Exception, Fatal, Intent, Matched, Protocol, Stream, StreamConfig, Transport};
use rotor_tls::{TlsClient, TlsCounters, TlsServer, TlsSession, TlsStream};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    ActiveKeyExchange, CryptoProvider, SharedSecret, SupportedKxGroup, WebPkiSupportedAlgorithms,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

pub(crate) use issuer::Issuer;

/// The counters that are not zero.
pub(crate) fn nonzero_counters(counters: &TlsCounters) -> Vec<(&'static str, u64)> {
    counters.iter().filter(|(_, count)| *count > 0).collect()
}

/// What happened, in order.
pub(crate) type Log = Vec<String>;

/// A line protocol. A server sends each line back in upper case, except [`REPORT_UNSENT`], for
/// which it logs how many bytes are unsent. A client sends lines and logs the answers.
pub(crate) enum Lines {
    Server,
    Client { left: usize },
}

/// A line on which a server logs how many bytes wait to be written.
pub(crate) const REPORT_UNSENT: &[u8] = b"how much waits?\n";

/// How many lines a client sends; `None` for a server.
pub(crate) type Seed = Option<usize>;

impl Lines {
    fn send(left: usize, transport: &mut Transport<'_>) -> Intent<Lines> {
        if left == 0 {
            return Intent::done();
        }
        writeln!(transport.output, "line {left}").expect("it is open");
        Intent::of(Lines::Client { left: left - 1 }).delimiter(b"\n", 1 << 20).no_deadline()
    }
}

impl Protocol for Lines {
    type Context = Log;
    type Seed = Seed;

    fn config(_: &Seed) -> Arc<StreamConfig> {
        StreamConfig::new().input_max(1 << 20).share()
    }

    fn create(
        seed: Seed,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        let session = transport.session::<TlsSession>().expect("it has completed the handshake");
        assert!(transport.is_secure());
        let name = String::from_utf8_lossy(transport.negotiated().unwrap_or(b"-")).into_owned();
        let host = session.server_name().unwrap_or("-").to_owned();
        scope.push(format!("{:?} {name} {host}", session.version()));
        match seed {
            None => Intent::of(Lines::Server).delimiter(b"\n", 1 << 20).no_deadline(),
            Some(left) => Lines::send(left, transport),
        }
    }

    fn bytes_read(
        self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        match self {
            Lines::Server if transport.input[..matched.len()] == *REPORT_UNSENT => {
                scope.push(transport.unsent_len().to_string());
                matched.consume(transport.input);
                Intent::of(self).keep().no_deadline()
            }
            Lines::Server => {
                let line = transport.input[..matched.len()].to_ascii_uppercase();
                transport.output.write_all(&line).expect("it is open");
                matched.consume(transport.input);
                Intent::of(self).keep().no_deadline()
            }
            Lines::Client { left } => {
                let line = String::from_utf8_lossy(&transport.input[..matched.len()]).into_owned();
                scope.push(line.trim_end().to_owned());
                matched.consume(transport.input);
                Lines::send(left, transport)
            }
        }
    }

    fn exception(
        self,
        exception: Exception,
        _: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        scope.push(rotor_core::with_causes(&exception).to_string());
        Intent::done()
    }

    fn fatal(self, error: Fatal, scope: &mut Scope<'_, Log>) {
        scope.push(format!("fatal: {}", rotor_core::with_causes(&error)));
    }

    fn not_connected(_: Seed, error: Fatal, scope: &mut Scope<'_, Log>) {
        scope.push(rotor_core::with_causes(&error).to_string());
    }
}

pub(crate) type Test = TestLoop<Stream<Lines, TlsStream<ScriptedSocket>>>;

/// A server on a scripted socket.
pub(crate) fn add_server(test: &mut Test, tls: &TlsServer) -> Peer {
    let (socket, peer) = pair(test.world());
    test.add(|scope| Stream::connected(tls.wrap(socket), None, scope));
    peer
}

/// A client on a scripted socket that expects a server of this name and sends `lines` lines.
pub(crate) fn add_client(test: &mut Test, tls: &TlsClient, name: &str, lines: usize) -> Peer {
    let (socket, peer) = pair(test.world());
    let socket = TlsStream::client(socket, &tls.to((), name).expect("it is a name"));
    test.add(|scope| Stream::connected(socket, Some(lines), scope));
    peer
}

/// Carries bytes between two scripted sockets until neither has any left.
pub(crate) fn exchange(test: &mut Test, a: &Peer, b: &Peer) {
    exchange_by(test, a, b, usize::MAX);
}

/// The same, with at most `piece` bytes at a time.
pub(crate) fn exchange_by(test: &mut Test, a: &Peer, b: &Peer, piece: usize) {
    let (mut a_ended, mut b_ended) = (false, false);
    loop {
        test.settle();
        let mut moved = false;
        for (from, to, ended) in [(a, b, &mut a_ended), (b, a, &mut b_ended)] {
            let bytes = from.take_received();
            for piece in bytes.chunks(piece) {
                to.send(piece);
                test.settle();
            }
            moved |= !bytes.is_empty();
            if from.is_ended() && bytes.is_empty() && !*ended {
                *ended = true;
                to.end();
                moved = true;
            }
        }
        if !moved {
            return;
        }
    }
}

/// The peer of a server under test: a client that uses rustls directly, with its own buffers.
pub(crate) struct RawClient {
    pub(crate) tls: rustls::ClientConnection,
    /// The decrypted bytes that it has read.
    pub(crate) plain: Vec<u8>,
    pub(crate) failure: Option<rustls::Error>,
    pub(crate) is_closed: bool,
}

impl RawClient {
    pub(crate) fn new(config: rustls::ClientConfig, name: &str) -> RawClient {
        let name = ServerName::try_from(name).expect("it is a name").to_owned();
        let mut tls =
            rustls::ClientConnection::new(Arc::new(config), name).expect("it is well made");
        // It may write any amount before it sends.
        tls.set_buffer_limit(None);
        RawClient { tls, plain: Vec::new(), failure: None, is_closed: false }
    }

    /// Takes the records that it has to send.
    pub(crate) fn take_records(&mut self) -> Vec<u8> {
        let mut records = Vec::new();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut records).expect("a vector takes all");
        }
        records
    }

    /// Processes records from the server.
    pub(crate) fn receive(&mut self, mut records: &[u8]) {
        while !records.is_empty() {
            self.tls.read_tls(&mut records).expect("a slice gives all");
            match self.tls.process_new_packets() {
                Ok(state) => self.is_closed |= state.peer_has_closed(),
                Err(error) => {
                    self.failure = Some(error);
                    return;
                }
            }
            let mut plain = [0; 1024];
            while let Ok(count @ 1..) = self.tls.reader().read(&mut plain) {
                self.plain.extend(&plain[..count]);
            }
        }
    }

    /// Exchanges bytes with a server until neither sends anything.
    pub(crate) fn talk<M: Machine>(&mut self, test: &mut TestLoop<M>, peer: &Peer) {
        loop {
            let records = self.take_records();
            let is_quiet = records.is_empty();
            if !is_quiet {
                peer.send(&records);
            }
            test.settle();
            let records = peer.take_received();
            if is_quiet && records.is_empty() {
                return;
            }
            self.receive(&records);
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.tls.writer().write_all(bytes).expect("it takes all");
    }
}

/// A server, and a rustls client that has completed the handshake with it.
pub(crate) fn connected(
    test: &mut Test,
    tls: &TlsServer,
    config: rustls::ClientConfig,
) -> (Peer, RawClient) {
    let peer = add_server(test, tls);
    let mut client = RawClient::new(config, "localhost");
    client.talk(test, &peer);
    assert!(!client.tls.is_handshaking(), "{:?}", client.failure);
    test.context_mut().clear();
    (peer, client)
}

/// A client that trusts any server, for tests of the certificate that it receives.
pub(crate) fn trusting_client() -> rustls::ClientConfig {
    trusting_client_of(&[&rustls::version::TLS13, &rustls::version::TLS12])
}

pub(crate) fn trusting_client_of(
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> rustls::ClientConfig {
    trusting_client_with(rustls::crypto::ring::default_provider(), versions, Arc::default())
}

/// A trusting client that verifies RSA signatures only.
pub(crate) fn rsa_only_client(
    version: &'static rustls::SupportedProtocolVersion,
) -> rustls::ClientConfig {
    let mut provider = rustls::crypto::ring::default_provider();
    let algorithms = &mut provider.signature_verification_algorithms;
    let of_rsa =
        |scheme: SignatureScheme| scheme.as_str().is_some_and(|name| name.starts_with("RSA_"));
    let rsa = algorithms.mapping.iter().filter(|(scheme, _)| of_rsa(*scheme));
    algorithms.mapping = rsa.copied().collect::<Vec<_>>().leak();
    trusting_client_with(provider, &[version], Arc::default())
}

/// A trusting client that gets a HelloRetryRequest: it sends a key share of a group that servers do
/// not accept.
pub(crate) fn retrying_client() -> rustls::ClientConfig {
    let mut provider = rustls::crypto::ring::default_provider();
    provider.kx_groups.insert(0, &UnknownGroup);
    trusting_client_with(provider, &[&rustls::version::TLS13], Arc::default())
}

/// A trusting client that records what is stapled to certificates.
pub(crate) fn collecting_staples() -> (rustls::ClientConfig, Staples) {
    let staples = Staples::default();
    let provider = rustls::crypto::ring::default_provider();
    let versions = [&rustls::version::TLS13];
    (trusting_client_with(provider, &versions, staples.clone()), staples)
}

pub(crate) type Staples = Arc<Mutex<Vec<Vec<u8>>>>;

fn trusting_client_with(
    provider: CryptoProvider,
    versions: &[&'static rustls::SupportedProtocolVersion],
    staples: Staples,
) -> rustls::ClientConfig {
    let algorithms = provider.signature_verification_algorithms;
    rustls::ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(versions)
        .expect("they are versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AcceptAnyVerifier { algorithms, staples }))
        .with_no_client_auth()
}

#[derive(Debug)]
struct AcceptAnyVerifier {
    algorithms: WebPkiSupportedAlgorithms,
    staples: Staples,
}

impl ServerCertVerifier for AcceptAnyVerifier {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        staple: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if !staple.is_empty() {
            self.staples.lock().expect("nobody panicked").push(staple.to_vec());
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// A key exchange group that no server knows.
#[derive(Debug)]
struct UnknownGroup;

impl SupportedKxGroup for UnknownGroup {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, rustls::Error> {
        Ok(Box::new(UnknownGroup))
    }

    fn name(&self) -> rustls::NamedGroup {
        rustls::NamedGroup::Unknown(0xfefe)
    }
}

impl ActiveKeyExchange for UnknownGroup {
    fn complete(self: Box<Self>, _: &[u8]) -> Result<SharedSecret, rustls::Error> {
        Err(rustls::Error::General("nobody knows it".into()))
    }

    fn pub_key(&self) -> &[u8] {
        &[7; 32]
    }

    fn group(&self) -> rustls::NamedGroup {
        rustls::NamedGroup::Unknown(0xfefe)
    }
}
