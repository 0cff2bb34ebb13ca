//! HTTP over TLS, a pool of connections against a server of ours, under all faults: what holds in
//! clear holds here, and a run is a function of its seed, though the cryptography is the real one.
//!
//! Certificates have Ed25519 keys, whose signatures are all of one length; those of ECDSA are not,
//! and would put different bytes into the segments of two runs.

use std::net::SocketAddr;
use std::sync::OnceLock;

use rcgen::{CertificateParams, KeyPair, SerialNumber};
use rotor::BoxError;
use rotor::tls::{
    Identity, Roots, TlsClient, TlsClientConfig, TlsServer, TlsServerConfig, TlsStream,
};
use rotor_sim::net::SimTcpStream;
use rotor_sim::{Check, Sim};

use crate::http_pool::{self, Ledger, ScenarioConfig};
use crate::stage::{self, PORT};

/// The server's certificate, which is its own issuer, and the key: the same ones in each run.
pub(crate) fn identity() -> &'static (Identity, Vec<u8>) {
    static IDENTITY: OnceLock<(Identity, Vec<u8>)> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("there is randomness");
        let mut params = CertificateParams::new(["server".to_owned()]).expect("it is a name");
        // One made by chance may be a byte shorter.
        params.serial_number = Some(SerialNumber::from(1));
        let certificate = params.self_signed(&key).expect("it signs").der().to_vec();
        let identity = Identity::from_der(vec![certificate.clone()], key.serialize_der());
        (identity.expect("they belong together"), certificate)
    })
}

fn scenario(sim: &mut Sim) -> Result<(), BoxError> {
    let ledger = Ledger::default();
    let (identity, certificate) = identity();
    let tls = TlsServer::new(TlsServerConfig::new(identity.clone()))?;
    let roots = Roots::none().der(certificate.clone())?;
    let client = TlsClient::new(TlsClientConfig::new(roots))?;
    let counters = tls.counters().clone();
    let server = http_pool::serving_over(sim, &ledger, move |listener| tls.over(listener))?;
    let address = SocketAddr::new(sim.address(server), PORT);
    let target = client.to(address, "server")?;
    let demands = ScenarioConfig::new(http_pool::client());
    let heal = |sim: &mut Sim| stage::heal(sim, server);
    http_pool::ask::<TlsStream<SimTcpStream>>(sim, target, &ledger, &demands, heal)?;
    // A fault of the network may break a record no more than it may a request.
    let (failed, broken) = (counters.failed_by_peer() + counters.failed_here(), counters.broken());
    if failed + broken > 0 {
        return Err(
            format!("{failed} handshakes and {broken} connections broke: {counters:?}").into()
        );
    }
    Ok(())
}

#[test]
fn each_request_over_tls_has_one_outcome_of_its_own_and_runs_are_equal() {
    Check::new().seeds(30).twice().run(scenario);
}
