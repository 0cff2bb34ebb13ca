//! What the fuzz targets run. The bodies live with the tests of the crate that they check, where
//! `cargo test` runs them on the saved corpora.
#![forbid(unsafe_code)]

#[path = "../../rotor-body/tests/fuzz_bodies/mod.rs"]
mod body;
#[path = "../../rotor-dns/tests/fuzz_bodies/mod.rs"]
mod dns;
#[path = "../../rotor-http/tests/fuzz_bodies/mod.rs"]
mod http;
#[path = "../../rotor-service/tests/fuzz_bodies/mod.rs"]
mod multipart;
#[path = "../../rotor-proxy-protocol/tests/fuzz_bodies/mod.rs"]
mod proxy_protocol;
#[path = "../../rotor-smoltcp/tests/fuzz_bodies/mod.rs"]
mod smoltcp_device;
#[path = "../../rotor-tls/tests/fuzz_bodies/mod.rs"]
mod tls;
#[path = "../../rotor-websocket/tests/fuzz_bodies/mod.rs"]
mod websocket;

/// Runs the body of the target of this name.
///
/// # Panics
///
/// If there is none, and if the body finds something.
pub fn run(name: &str, data: &[u8]) {
    let targets = http::TARGETS.iter().chain(&dns::TARGETS).chain(&body::TARGETS);
    let targets =
        targets.chain(&tls::TARGETS).chain(&websocket::TARGETS).chain(&proxy_protocol::TARGETS);
    let mut targets = targets.chain(&smoltcp_device::TARGETS).chain(&multipart::TARGETS);
    let (_, body) = targets.find(|(target, _)| *target == name).expect("a target of this name");
    body(data);
}
