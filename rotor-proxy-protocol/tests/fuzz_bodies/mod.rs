//! The body of the fuzz target on the PROXY protocol, as an ordinary function: `fuzz/fuzz_targets/`
//! runs it under libFuzzer, `tests/corpus.rs` calls it on every saved input.

#[path = "../kit/mod.rs"]
mod kit;

use kit::{Log, Test, add_server, config, nonzero_counters};
use rotor_proxy_protocol::{ProxyHeader, ProxyProtocol};

/// A fuzz target: the name of its corpus, and its body.
pub(super) type Target = (&'static str, fn(&[u8]));

pub(super) const TARGETS: [Target; 1] = [("proxy_protocol", proxy_protocol)];

/// A server's connection from a balancer, with any bytes. Whole and in pieces of any length, it has
/// the same outcome, which agrees with the reader without a socket. It ends and is counted once.
fn proxy_protocol(data: &[u8]) {
    let Some((&mode, data)) = data.split_first() else { return };
    let header_bytes_max = if mode & 1 == 0 { 1_024 } else { 64 };
    let whole = transcript(data, usize::MAX, header_bytes_max);
    for piece in [1, usize::from(mode) + 1] {
        assert_eq!(transcript(data, piece, header_bytes_max), whole);
    }
    let (received, _, counts) = &whole;
    assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), 1, "{counts:?}");
    match ProxyHeader::parse(data, header_bytes_max) {
        Ok(Some((header, len))) => {
            assert!(len <= header_bytes_max);
            let said = ProxyHeader::parse(&header.to_bytes(), usize::MAX);
            assert!(said.is_ok_and(|said| said.is_some_and(|(again, _)| again == header)));
            // The protocol answers as long as no line is too long for it.
            let lines = data[len..].split_inclusive(|byte| *byte == b'\n');
            let lines = lines.take_while(|line| line.ends_with(b"\n") && line.len() <= 1_000);
            let lines = lines.filter(|line| str::from_utf8(line).is_ok()).count();
            assert!(received.split(|byte| *byte == b'\n').count() > lines);
        }
        Ok(None) => assert_eq!(counts[..], [("abandoned", 1)]),
        Err(_) => assert!(received.is_empty()),
    }
}

type Transcript = (Vec<u8>, Log, Vec<(&'static str, u64)>);

fn transcript(data: &[u8], piece: usize, header_bytes_max: usize) -> Transcript {
    let behind = ProxyProtocol::new(config().header_bytes_max(header_bytes_max));
    let mut test = Test::new(Log::new());
    test.world().narrow_edges();
    let peer = add_server(&mut test, &behind, Some("10.0.0.1"));
    for piece in data.chunks(piece) {
        peer.send(piece);
        test.settle();
    }
    peer.end();
    test.settle();
    assert!(peer.is_dropped() && test.machines() == 0, "it ends");
    (peer.take_received(), test.context().clone(), nonzero_counters(&behind))
}
