//! Networks that lose, duplicate, delay and corrupt packets: the bytes read are exactly the bytes
//! written, and every run is a function of its seed.
#![forbid(unsafe_code)]

mod rig;

use std::net::Shutdown;
use std::time::Duration;

use rig::{Rig, config, fill, not_yet, text};
use rotor_core::net::StreamSocket;
use rotor_smoltcp::{Medium, MemoryConfig, StackConfig};

/// The number of bytes that the client sends, and the server.
const FORTH: usize = 4 << 20;
const BACK: usize = 1 << 20;

/// Sends in both directions until both sides have received everything. Returns the time that this
/// took, and the numbers of packets.
fn converse(
    cable: MemoryConfig,
    of_hosts: impl Fn(StackConfig) -> StackConfig,
) -> (Duration, [u64; 2]) {
    let mut rig = Rig::with(cable, of_hosts(config(1)), of_hosts(config(2)));
    let (mut server, mut client) = rig.pair();
    let (forth, back) = (text(FORTH), text(BACK));
    let (mut sent_forth, mut sent_back) = (0, 0);
    let (mut got_forth, mut got_back) = (Vec::new(), Vec::new());
    let (mut ended_forth, mut ended_back) = (false, false);
    let mut chunk = vec![0; 64 << 10];
    rig.until(|_| {
        for (socket, bytes, sent, got, ended) in [
            (&mut client, &forth, &mut sent_forth, &mut got_back, &mut ended_back),
            (&mut server, &back, &mut sent_back, &mut got_forth, &mut ended_forth),
        ] {
            if *sent < bytes.len() {
                *sent += fill(socket, &bytes[*sent..]);
                if *sent == bytes.len() {
                    socket.shutdown(Shutdown::Write).expect("it is connected");
                }
            }
            while !*ended && let Some(count) = not_yet(std::io::Read::read(socket, &mut chunk)) {
                got.extend_from_slice(&chunk[..count]);
                *ended = count == 0;
            }
        }
        ended_forth && ended_back
    });
    assert!(got_forth == forth, "{} bytes of {FORTH} came, or others", got_forth.len());
    assert!(got_back == back, "{} bytes of {BACK} came, or others", got_back.len());
    let time = rig.clock.now() - rotor_core::Time::ZERO;
    (time, [rig.server.stats().sent, rig.client.stats().sent])
}

fn rough(seed: u64) -> MemoryConfig {
    MemoryConfig::new().latency(Duration::from_millis(5)).seed(seed)
}

#[test]
fn all_bytes_arrive_when_a_tenth_of_the_packets_is_lost() {
    converse(rough(1).lost(100), |config| config);
}

#[test]
fn all_bytes_arrive_once_and_in_order_despite_reordering() {
    converse(rough(2).delayed(200, Duration::from_millis(20)).doubled(100), |config| config);
}

#[test]
fn corrupted_packets_change_no_byte() {
    converse(rough(3).corrupted(50), |config| config);
}

#[test]
fn all_bytes_arrive_with_all_faults_and_the_smallest_packets() {
    let cable = rough(4).lost(30).doubled(30).delayed(100, Duration::from_millis(10)).corrupted(10);
    let four = |config: StackConfig| config;
    converse(cable.mtu(1_280).medium(Medium::Ethernet), four);
}

#[test]
fn the_smallest_and_the_largest_mtu_transfer_the_same_bytes() {
    let [small, large] = [576, 65_535].map(|mtu| {
        let clock = rotor_smoltcp::ManualClock::new();
        let cable = MemoryConfig::new().mtu(mtu).clock(&clock);
        // IPv6 requires a larger MTU than 576.
        let only_four =
            |last| StackConfig::new().address(std::net::IpAddr::from([10, 0, 0, last]), 24).seed(1);
        let mut rig = Rig::with(cable, only_four(1), only_four(2));
        let (mut server, mut client) = rig.pair();
        let sent = text(60_000);
        assert_eq!(fill(&mut client, &sent), sent.len());
        assert_eq!(rig.read(&mut server, Some(sent.len())), sent);
        rig.client.stats().sent
    });
    assert!(small > 60_000 / 536 && large < 20, "{small} packets, {large} packets");
}

#[test]
fn a_run_is_a_function_of_its_seed() {
    let run = |seed| converse(rough(seed).lost(20).doubled(20), |config| config);
    assert_eq!(run(11), run(11));
    assert_ne!(run(11), run(12));
}

/// Pseudorandom bytes, the same in each run.
struct Noise(u64);

impl Noise {
    fn fill(&mut self, bytes: &mut [u8]) {
        for eight in bytes.chunks_mut(8) {
            // Marsaglia's xorshift.
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            eight.copy_from_slice(&self.0.to_le_bytes()[..eight.len()]);
        }
    }
}

/// `ROTOR_TRANSFER_MIB` sets the length; `tests/long/smoltcp-gigabyte` sets it to a gibibyte.
#[test]
fn a_long_transfer_over_a_faulty_network_is_complete() {
    const PIECE: usize = 64 << 10;
    let asked = std::env::var("ROTOR_TRANSFER_MIB").ok().and_then(|text| text.parse().ok());
    let pieces = asked.unwrap_or(4) * ((1 << 20) / PIECE);
    let cable = rough(5).mtu(576).lost(100).doubled(20).delayed(100, Duration::from_millis(10));
    // IPv6 requires a larger MTU than 576.
    // The interval between retransmissions grows to a minute. One attempt in five is lost, in one
    // direction or the other, so some of the two million packets of a gibibyte need more attempts
    // than fit into five minutes.
    let host = |last: u8| {
        let config = StackConfig::new().address([10, 0, 0, last].into(), 24);
        config.seed(last.into()).user_timeout(Duration::MAX)
    };
    let mut rig = Rig::with(cable.corrupted(5), host(1), host(2));
    let (mut server, mut client) = rig.pair();
    let (mut sends, mut expects) = (Noise(7), Noise(7));
    let (mut piece, mut at, mut sent) = (vec![0; PIECE], PIECE, 0);
    let (mut came, mut expected, mut got) = (vec![0; PIECE], vec![0; PIECE], 0);
    while got < pieces * PIECE {
        while sent < pieces || at < PIECE {
            if at == PIECE {
                sends.fill(&mut piece);
                (at, sent) = (0, sent + 1);
            }
            let taken = fill(&mut client, &piece[at..]);
            at += taken;
            if taken == 0 {
                break;
            }
        }
        loop {
            let from = got % PIECE;
            let read = not_yet(std::io::Read::read(&mut server, &mut came[from..]));
            let Some(count) = read else { break };
            assert!(count > 0, "it ended after {got} bytes");
            if from == 0 {
                expects.fill(&mut expected);
            }
            let range = from..from + count;
            assert!(came[range.clone()] == expected[range], "behind {got} bytes");
            got += count;
        }
        assert!(rig.turn() || got == pieces * PIECE, "nothing happens any more: {rig:?}");
    }
}
