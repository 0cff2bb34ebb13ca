//! HTTPS: a pool of connections to a server of ours, under all faults. The guarantees are the same
//! as without TLS, and a run depends only on its seed, although the cryptography is real.
//!
//! The certificates have Ed25519 keys, because their signatures all have the same length. ECDSA
//! signatures do not, so the segments of two runs would differ.

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

/// The server's self-signed certificate and its key. They are the same in each run.
pub(crate) fn identity() -> &'static (Identity, Vec<u8>) {
    static IDENTITY: OnceLock<(Identity, Vec<u8>)> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("there is randomness");
        let mut params = CertificateParams::new(["server".to_owned()]).expect("it is a name");
        // A random serial number may be a byte shorter.
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
    // A network fault may not break a record, just as it may not break a request.
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
