//! What a cable does to packets.

use super::*;

/// Receives all packets at one end of a cable.
fn receive_all(end: &mut MemoryDevice) -> Vec<Vec<u8>> {
    let (mut packets, mut buffer) = (Vec::new(), [0; 2_000]);
    loop {
        match end.receive(&mut buffer) {
            Ok(len) => packets.push(buffer[..len].to_vec()),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                return packets;
            }
        }
    }
}

fn numbered(count: u8) -> Vec<Vec<u8>> {
    (0..count).map(|number| vec![number; 20]).collect()
}

fn cable_with_packets(config: &MemoryConfig) -> (MemoryDevice, MemoryDevice) {
    let (mut left, right) = MemoryDevice::pair(config).expect("there are descriptors");
    for packet in numbered(200) {
        left.send(&packet).expect("a cable takes all");
    }
    (left, right)
}

#[test]
fn packets_arrive_once_in_order_and_as_they_were() {
    let (_, mut right) = cable_with_packets(&MemoryConfig::new());
    assert_eq!(receive_all(&mut right), numbered(200));
    let mut alone = MemoryDevice::loopback(&MemoryConfig::new()).expect("there are descriptors");
    alone.send(b"me").expect("a cable takes all");
    assert_eq!(receive_all(&mut alone), [b"me"]);
}

#[test]
fn packets_are_lost_doubled_delayed_and_changed_by_a_seed() {
    let clock = ManualClock::new();
    let rules = |seed| {
        let rules = MemoryConfig::new().clock(&clock).seed(seed).lost(100).doubled(100);
        rules.delayed(100, Duration::from_millis(5)).corrupted(100)
    };
    let run = |seed| {
        let (_, mut right) = cable_with_packets(&rules(seed));
        let mut packets = receive_all(&mut right);
        clock.advance(Duration::from_millis(5));
        packets.extend(receive_all(&mut right));
        (packets, right.stats())
    };
    let (packets, stats) = run(7);
    assert_eq!(run(7), (packets.clone(), stats), "the same seed is the same cable");
    assert_ne!(run(8).0, packets);
    assert_eq!(stats.sent, 200);
    assert_eq!(packets.len() as u64, stats.sent - stats.lost + stats.doubled);
    let hits = [stats.lost, stats.doubled, stats.delayed, stats.corrupted];
    assert!(hits.iter().all(|hits| (5..60).contains(hits)), "a tenth of 200 or so: {stats:?}");
    let changed = packets.iter().filter(|packet| packet.iter().any(|byte| *byte != packet[0]));
    assert_eq!(changed.count() as u64, stats.corrupted);
}

#[test]
fn a_cable_limits_the_number_and_length_of_packets() {
    for (packets, overflowed) in [(199, 1), (200, 0)] {
        let (_, right) = cable_with_packets(&MemoryConfig::new().packets_max(packets));
        assert_eq!(right.stats().overflowed, overflowed);
    }
    for (medium, longest) in [(Medium::Ip, 576), (Medium::Ethernet, 590)] {
        let config = MemoryConfig::new().mtu(576).medium(medium);
        let (mut left, mut right) = MemoryDevice::pair(&config).expect("there are descriptors");
        left.send(&vec![1; longest]).expect("it fits");
        left.send(&vec![2; longest + 1]).expect("it is lost");
        assert_eq!(receive_all(&mut right), [vec![1; longest]]);
        assert_eq!(right.stats().oversized, 1);
    }
}

#[test]
fn a_packet_with_latency_arrives_when_its_alarm_says() {
    let clock = ManualClock::new();
    let config = MemoryConfig::new().clock(&clock).latency(Duration::from_millis(30));
    let (mut left, mut right) = MemoryDevice::pair(&config).expect("there are descriptors");
    left.send(b"later").expect("a cable takes all");
    assert_eq!(receive_all(&mut right), Vec::<Vec<u8>>::new());
    let at = Time::ZERO + Duration::from_millis(30);
    assert_eq!(right.next_arrival(), Some(at));
    assert!(clock.step());
    assert_eq!(clock.now(), at);
    assert_eq!(receive_all(&mut right), [b"later"]);
    assert!(!clock.step(), "nothing is on its way");
}

#[test]
fn a_receiver_is_woken_once_until_it_reads() {
    let (mut left, mut right) =
        MemoryDevice::pair(&MemoryConfig::new()).expect("there are descriptors");
    let rings = |end: &MemoryDevice| {
        let mut rung = [0; 8];
        let count = (&end.wake_receiver).read(&mut rung).unwrap_or(0);
        assert!((&end.wake_receiver).read(&mut rung).is_err(), "and no second time");
        count
    };
    left.send(b"one").expect("a cable takes all");
    left.send(b"two").expect("a cable takes all");
    assert_eq!(rings(&right), 1);
    (&right.incoming.wake_sender).write_all(&[1]).expect("there is room");
    assert_eq!(receive_all(&mut right).len(), 2);
    assert_eq!(rings(&right), 0);
    left.send(b"three").expect("a cable takes all");
    assert_eq!(rings(&right), 1);
}

#[test]
fn an_unplugged_cable_reports_an_error() {
    let (left, mut right) =
        MemoryDevice::pair(&MemoryConfig::new()).expect("there are descriptors");
    left.unplug();
    let error = right.receive(&mut [0; 9]).expect_err("it is out");
    assert_eq!(error.kind(), ErrorKind::NotConnected);
    drop(left);
    right.send(b"nobody hears").expect("it is lost, as packets are");
}
