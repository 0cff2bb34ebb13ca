//! What connected clients receive, and what disconnects them.

use std::time::Duration;

use rotor::stream::WithOutbox;
use rotor::stream::testing::{Driver, assert_cuts_agree};

use super::broker::Broker;
use super::limits::{CONNECT_TIME_MAX, Limits};
use super::machine::{Client, stream_config};
use super::talk::{
    CLEAN, DISCONNECT, PING, Shared, Talk, answer, connect, connect_with, hear, packet, publish,
    subscribe, unsubscribe, words,
};

#[test]
fn answers_do_not_depend_on_how_packets_are_split() {
    let input = [
        connect("me", CLEAN, 60),
        subscribe(1, &[("a/+", 2), ("b", 0)]),
        publish("a/1", "one", 0, 0),
        publish("a/2", "two", 2, 7),
        publish("a/3", "three", 4, 8),
        answer(4, 1),
        answer(6, 8),
        answer(5, 2),
        answer(7, 2),
        PING.to_vec(),
        unsubscribe(2, &["a/+"]),
        publish("a/1", "unheard", 0, 0),
        publish("b", "heard", 0, 0),
        DISCONNECT.to_vec(),
        publish("b", "too late", 0, 0),
    ]
    .concat();
    let expected = [
        "CONNACK 0",
        "SUBACK #1 [2, 0]",
        "a/1=one qos0",
        "PUBACK #7",
        "a/2=two qos1 #1",
        "PUBREC #8",
        "a/3=three qos2 #2",
        "PUBCOMP #8",
        "PUBREL #2",
        "PINGRESP",
        "UNSUBACK #2",
        "b=heard qos0",
    ];
    let make = || {
        let shared = Shared(Broker::new(Limits::default()));
        Driver::<WithOutbox<Client<Shared>>>::new(stream_config(), shared)
    };
    let transcript = assert_cuts_agree(make, &input);
    assert_eq!(words(&transcript.output), expected);
    assert!(transcript.has_ended && transcript.failures.is_empty());
}

#[test]
fn a_message_reaches_subscribers_at_the_lower_qos_of_both_sides() {
    let mut talk = Talk::new(Limits::default());
    let [first, second, third] = ["first", "second", "third"].map(|name| talk.client(name));
    assert_eq!(talk.say(&first, &subscribe(1, &[("rooms/+/heat", 0)])), ["SUBACK #1 [0]"]);
    assert_eq!(talk.say(&second, &subscribe(9, &[("rooms/#", 1)])), ["SUBACK #9 [1]"]);
    for (flags, id, answered, heard) in [
        (0, 0, None, ["x qos0", "x qos0"]),
        (2, 5, Some("PUBACK #5"), ["x qos0", "x qos1 #1"]),
        (4, 6, Some("PUBREC #6"), ["x qos0", "x qos1 #2"]),
    ] {
        let answers = talk.say(&third, &publish("rooms/1/heat", "x", flags, id));
        assert_eq!(answers, answered.as_slice());
        for (peer, heard) in [&first, &second].iter().zip(heard) {
            assert_eq!(hear(peer), [format!("rooms/1/heat={heard}")]);
        }
    }
    talk.say(&third, &publish("rooms/1/light", "x", 0, 0));
    assert_eq!((hear(&first).len(), hear(&second).len()), (0, 1));
    assert_eq!((talk.counts().published, talk.counts().delivered), (4, 7));
}

#[test]
fn a_retained_message_reaches_later_subscribers_until_it_is_removed() {
    let mut talk = Talk::new(Limits::default());
    let speaker = talk.client("speaker");
    for (topic, payload, flags) in
        [("a/1", "old", 1), ("a/1", "new", 3), ("a/2", "two", 5), ("b", "b", 1), ("a/3", "not", 0)]
    {
        talk.say(&speaker, &publish(topic, payload, flags, 1));
    }
    let hearer = talk.client("hearer");
    let expected = ["SUBACK #1 [1]", "a/1=new qos1 #1 retained", "a/2=two qos1 #2 retained"];
    assert_eq!(talk.say(&hearer, &subscribe(1, &[("a/+", 1)])), expected);
    // Connected subscribers get it without the retain flag.
    talk.say(&speaker, &publish("a/2", "three", 1, 0));
    assert_eq!(hear(&hearer), ["a/2=three qos0"]);
    talk.say(&speaker, &publish("a/1", "", 1, 0));
    assert_eq!(hear(&hearer), ["a/1= qos0"]);
    let late = talk.client("late");
    let expected = ["SUBACK #1 [0]", "a/2=three qos0 retained", "b=b qos0 retained"];
    assert_eq!(talk.say(&late, &subscribe(1, &[("#", 0)])), expected);
}

#[test]
fn a_will_is_published_at_every_end_except_a_disconnect() {
    type End = fn(&mut Talk, &rotor::stream::testing::Peer);
    let ends: [(&str, End, bool); 7] = [
        ("disconnect", |talk, peer| drop(talk.say(peer, &DISCONNECT)), false),
        ("end", |_, peer| peer.end(), true),
        ("reset", |_, peer| peer.reset(), true),
        ("malformed", |talk, peer| drop(talk.say(peer, &[0xf0, 0])), true),
        ("second", |talk, peer| drop(talk.say(peer, &connect("x", CLEAN, 0))), true),
        ("silence", |talk, _| talk.test.advance(Duration::from_secs(15)), true),
        ("taken over", |talk, _| drop(talk.connect(&connect("mortal", CLEAN, 0))), true),
    ];
    for (how, end, is_published) in ends {
        let mut talk = Talk::new(Limits::default());
        let heir = talk.client("heir");
        talk.say(&heir, &subscribe(1, &[("wills/#", 2)]));
        // A will, retained, at QoS 1, with a keep-alive of ten seconds.
        let mut connect = connect_with("mortal", CLEAN | 0x28, ("wills/me", "gone"));
        connect[11] = 10;
        let (mortal, answer) = talk.connect(&connect);
        assert_eq!(answer, ["CONNACK 0"]);
        end(&mut talk, &mortal);
        talk.test.settle();
        let heard = hear(&heir);
        assert_eq!(heard.len(), usize::from(is_published), "{how}: {heard:?}");
        assert!(mortal.is_ended() || mortal.is_dropped(), "{how}");
        if is_published {
            assert_eq!(heard, ["wills/me=gone qos1 #1"], "{how}");
            let late = talk.client("late");
            let retained = talk.say(&late, &subscribe(1, &[("wills/me", 0)]));
            assert_eq!(retained[1..], ["wills/me=gone qos0 retained"], "{how}");
        }
        assert_eq!(talk.counts().wills, u64::from(is_published), "{how}");
    }
}

#[test]
fn a_client_may_be_silent_for_one_and_a_half_times_its_keep_alive() {
    for (keep_alive, patience) in [(2, 3_000), (60, 90_000)] {
        let mut talk = Talk::new(Limits::default());
        let (peer, _) = talk.connect(&connect("me", CLEAN, keep_alive));
        for _ in 0..3 {
            talk.test.advance(Duration::from_millis(patience - 2));
            assert_eq!(talk.say(&peer, &PING), ["PINGRESP"]);
        }
        // An incomplete packet does not count, and neither do messages sent to the client.
        talk.say(&peer, &[0x30]);
        talk.test.advance(Duration::from_millis(patience - 2));
        assert!(!peer.is_ended());
        talk.test.advance(Duration::from_millis(4));
        assert!(peer.is_ended());
        assert_eq!(talk.counts().late, 1);
    }
    let mut talk = Talk::new(Limits::default());
    let peer = talk.client("no keep-alive");
    talk.test.advance(Duration::from_secs(1_000_000));
    assert_eq!(talk.say(&peer, &PING), ["PINGRESP"]);
    let stranger = talk.stranger();
    talk.test.advance(CONNECT_TIME_MAX + Duration::from_millis(2));
    assert!(stranger.is_ended());
}

#[test]
fn a_malformed_packet_is_counted_and_ends_only_its_sender() {
    let hello = connect("me", CLEAN, 0);
    let after = |packet: &[u8]| [&hello, packet].concat();
    let malformed = [
        PING.to_vec(),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        b"G".to_vec(),
        vec![0x10, 0xff, 0xff, 0xff, 0xff, 1],
        after(&[0xf0, 0]),
        after(&[0x30, 0xff, 0xff, 0xff, 0xff]),
        after(&connect("me", CLEAN, 0)),
        after(&publish("a/+", "x", 0, 0)),
        after(&publish("a", "x", 6, 1)),
        after(&subscribe(0, &[("a", 0)])),
        after(&subscribe(1, &[("a", 3)])),
        after(&packet(0x82, &[&[0, 1]])),
    ];
    let mut talk = Talk::new(Limits::default());
    let witness = talk.client("witness");
    talk.say(&witness, &subscribe(1, &[("#", 0)]));
    for (number, bytes) in malformed.iter().enumerate() {
        let peer = talk.stranger();
        let answers = talk.say(&peer, bytes);
        assert!(answers.len() <= 1 && peer.is_ended(), "{bytes:x?}: {answers:?}");
        assert_eq!(talk.counts().malformed, number as u64 + 1, "{bytes:x?}");
    }
    assert!(talk.test.failures().is_empty());
    assert_eq!(talk.say(&witness, &PING), ["PINGRESP"]);
}

#[test]
fn a_refused_client_receives_the_reason() {
    let mut talk = Talk::new(Limits::default());
    let level = |level: u8, name: &str| {
        packet(0x10, &[&super::talk::string(name), &[level, CLEAN], &[0, 0, 0, 2], b"me"])
    };
    for (connect, answer) in [
        (level(3, "MQIsdp"), "CONNACK 1"),
        (level(5, "MQTT"), "CONNACK 1"),
        (connect("", 0, 0), "CONNACK 2"),
        (connect(&"x".repeat(257), CLEAN, 0), "CONNACK 2"),
    ] {
        let (peer, answers) = talk.connect(&connect);
        assert_eq!(answers, [answer]);
        assert!(peer.is_ended());
    }
    assert_eq!((talk.counts().refused, talk.counts().connected), (4, 0));
    for name in ["", "", &"x".repeat(256)] {
        let _stays = talk.client(name);
    }
    assert_eq!(talk.test.context().0.len(), (3, 0, 0));
}

#[test]
fn a_drain_answers_packets_that_have_arrived() {
    let mut talk = Talk::new(Limits::default());
    let (idle, busy) = (talk.client("idle"), talk.client("busy"));
    busy.send(&publish("a", "x", 2, 1));
    talk.test.drain(Duration::from_secs(10));
    assert!(idle.is_ended() && busy.is_ended());
    assert_eq!(hear(&busy), ["PUBACK #1"]);
}
