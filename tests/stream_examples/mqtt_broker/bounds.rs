//! The limits, and what happens beyond them.

use rotor::stream::testing::Peer;

use super::limits::{
    FILTER_BYTES_MAX, Limits, OUTBOX_BYTES_MAX, PACKET_BYTES_MAX, RECEIVED_MAX, SCANNED_MAX,
    UNANSWERED_MAX,
};
use super::retained::Max;
use super::talk::{
    CLEAN, DISCONNECT, PING, Talk, answer, connect, hear, publish, subscribe, unsubscribe, words,
};
use super::topic::LEVELS_MAX;

fn limits() -> Limits {
    Limits::default()
}

#[test]
fn the_longest_packet_is_accepted_and_one_byte_more_ends_its_sender() {
    for (more, is_heard) in [(0, true), (1, false)] {
        let mut talk = Talk::new(limits());
        let hearer = talk.client("hearer");
        talk.say(&hearer, &subscribe(1, &[("a", 0)]));
        let speaker = talk.client("speaker");
        let head = publish("a", &"x".repeat(20_000), 0, 0).len() - 20_000;
        let packet = publish("a", &"x".repeat(PACKET_BYTES_MAX - head + more), 0, 0);
        assert_eq!(packet.len(), PACKET_BYTES_MAX + more);
        talk.say(&speaker, &packet);
        assert!(hearer.take_received() == if is_heard { packet } else { Vec::new() });
        assert_eq!((speaker.is_ended(), talk.counts().malformed), (!is_heard, more as u64));
    }
}

#[test]
fn a_burst_of_short_messages_reaches_a_subscriber_that_reads() {
    let mut talk = Talk::new(limits());
    let hearer = talk.client("hearer");
    talk.say(&hearer, &subscribe(1, &[("a", 0)]));
    let speaker = talk.client("speaker");
    let burst = publish("a", "x", 0, 0).repeat(5_000);
    talk.say(&speaker, &burst);
    assert!(hearer.take_received() == burst);
    assert_eq!(talk.counts().dropped, 0);
}

#[test]
fn the_session_limit_evicts_the_session_that_is_offline_longest() {
    let mut talk = Talk::new(Limits { sessions_max: 3, ..limits() });
    for name in ["first", "second"] {
        let (peer, _) = talk.lasting(name);
        peer.end();
        talk.test.settle();
    }
    // The first returns and leaves again. Now the second has been away longest.
    let (first, answers) = talk.lasting("first");
    assert_eq!(answers, ["CONNACK 0 known"]);
    first.end();
    talk.test.settle();
    let (_third, _) = talk.lasting("third");
    let (_fourth, answers) = talk.lasting("fourth");
    assert_eq!(answers, ["CONNACK 0"]);
    assert_eq!(talk.test.context().0.len(), (3, 1, 0));
    let (_first, answers) = talk.lasting("first");
    assert_eq!(answers, ["CONNACK 0 known"]);
    let (refused, answers) = talk.lasting("second");
    assert_eq!(answers, ["CONNACK 3"]);
    assert!(refused.is_ended());
}

#[test]
fn filters_beyond_the_limits_or_refused_are_not_subscribed() {
    let refused = vec!["secret/#".to_owned()];
    let mut talk = Talk::new(Limits { subscriptions_max: 2, refused, ..limits() });
    let peer = talk.client("me");
    let deep = |levels: usize| vec!["a"; levels].join("/");
    let (within, beyond) = (deep(LEVELS_MAX), deep(LEVELS_MAX + 1));
    let filters = [("secret/#", 0), (&*beyond, 0), ("a", 0), (&*within, 1), ("b", 1), ("a", 2)];
    let answers = talk.say(&peer, &subscribe(1, &filters));
    assert_eq!(answers, ["SUBACK #1 [80, 80, 0, 1, 80, 2]"]);
    talk.say(&peer, &unsubscribe(2, &["a", "not had"]));
    assert_eq!(talk.say(&peer, &subscribe(3, &[("b", 1)])), ["SUBACK #3 [1]"]);
    // A topic name may have more levels than any filter.
    talk.say(&peer, &publish(&deep(30_000), "x", 0, 0));
    talk.say(&peer, &subscribe(4, &[("b", 0)]));
    assert_eq!(talk.say(&peer, &PING), ["PINGRESP"]);
}

#[test]
fn the_total_of_filters_is_bounded_across_clients() {
    let mut talk = Talk::new(Limits { levels_max: 5, ..limits() });
    let long = |bytes: usize| subscribe(1, &[(&"x".repeat(bytes), 0)]);
    let (first, _) = talk.lasting("first");
    assert_eq!(talk.say(&first, &long(FILTER_BYTES_MAX + 1)), ["SUBACK #1 [80]"]);
    assert_eq!(talk.say(&first, &long(FILTER_BYTES_MAX)), ["SUBACK #1 [0]"]);
    talk.say(&first, &unsubscribe(2, &[&"x".repeat(FILTER_BYTES_MAX), "not had"]));
    let three = [("a/b/c", 0), ("a/b/c", 1)];
    assert_eq!(talk.say(&first, &subscribe(3, &three)), ["SUBACK #3 [0, 1]"], "one filter");
    let second = talk.client("second");
    let more = [("a/b/c", 0), ("a/#", 0), ("a", 0)];
    assert_eq!(talk.say(&second, &subscribe(1, &more)), ["SUBACK #1 [80, 0, 80]"]);
    // Space that is freed in any way can be used by others.
    talk.say(&second, &DISCONNECT);
    talk.connect(&connect("first", CLEAN, 0));
    let third = talk.client("third");
    assert_eq!(talk.say(&third, &subscribe(1, &[("a/b/c/d/e", 0)])), ["SUBACK #1 [0]"]);
    assert_eq!(talk.say(&third, &subscribe(2, &[("a", 0)])), ["SUBACK #2 [80]"]);
}

#[test]
fn retained_messages_beyond_their_limits_are_not_stored() {
    let retained_max = Max { messages: 2, bytes: 30 };
    let mut talk = Talk::new(Limits { retained_max, ..limits() });
    let peer = talk.client("me");
    let retain = |talk: &mut Talk, topic: &str, payload: &str| {
        talk.say(&peer, &publish(topic, payload, 1, 0));
        (talk.test.context().0.len().2, talk.counts().dropped)
    };
    // Six bytes each, including the overhead.
    assert_eq!(retain(&mut talk, "a", "x"), (1, 0));
    assert_eq!(retain(&mut talk, "b", "x"), (2, 0));
    assert_eq!(retain(&mut talk, "c", "x"), (2, 1), "a third");
    assert_eq!(retain(&mut talk, "a", &"x".repeat(19)), (2, 1), "30 bytes");
    assert_eq!(retain(&mut talk, "a", &"x".repeat(20)), (1, 2), "31 bytes");
    assert_eq!(retain(&mut talk, "b", ""), (0, 2));
    assert_eq!(retain(&mut talk, "b", &"x".repeat(25)), (1, 2), "30 bytes");
}

#[test]
fn a_client_that_does_not_acknowledge_has_a_bounded_queue() {
    for (waiting_max, waiting_bytes_max, kept) in [(3, usize::MAX, 3), (1_000, 5 * 6 + 5, 5)] {
        let mut talk = Talk::new(Limits { waiting_max, waiting_bytes_max, ..limits() });
        let hearer = talk.client("hearer");
        talk.say(&hearer, &subscribe(1, &[("a", 1)]));
        let speaker = talk.client("speaker");
        let sent = UNANSWERED_MAX + kept + 4;
        for _ in 0..sent {
            talk.say(&speaker, &publish("a", "x", 2, 1));
        }
        assert_eq!(hear(&hearer).len(), UNANSWERED_MAX);
        assert_eq!(talk.counts().dropped, 4);
        let mut heard = UNANSWERED_MAX;
        for id in 1..=sent as u16 {
            heard += talk.say(&hearer, &answer(4, id)).len();
        }
        assert_eq!(heard, UNANSWERED_MAX + kept);
    }
}

#[test]
fn a_client_with_too_many_unreleased_packet_ids_is_ended() {
    let mut talk = Talk::new(limits());
    let peer = talk.client("me");
    for id in 1..=RECEIVED_MAX as u16 {
        assert_eq!(talk.say(&peer, &publish("a", "x", 4, id)), [format!("PUBREC #{id}")]);
    }
    assert_eq!(talk.say(&peer, &publish("a", "x", 4, 1)), ["PUBREC #1"], "again");
    talk.say(&peer, &publish("a", "x", 4, RECEIVED_MAX as u16 + 1));
    assert!(peer.is_ended());
    assert_eq!(talk.counts().malformed, 1);
}

/// Two subscribers. The first does not read, the second does.
fn slow_and_quick(talk: &mut Talk, qos: u8) -> [Peer; 2] {
    ["slow", "quick"].map(|name| {
        let peer = talk.client(name);
        talk.say(&peer, &subscribe(1, &[("#", qos)]));
        peer
    })
}

#[test]
fn a_client_that_does_not_read_loses_messages_and_no_other_does() {
    let mut talk = Talk::new(limits());
    let [slow, quick] = slow_and_quick(&mut talk, 0);
    slow.limit_room(0);
    let speaker = talk.client("speaker");
    let message = publish("a", &"x".repeat(10_000), 0, 0);
    let sent = 2 * OUTBOX_BYTES_MAX / message.len();
    for _ in 0..sent {
        talk.say(&speaker, &message);
        assert!(quick.take_received() == message);
    }
    let lost = talk.counts().dropped as usize;
    assert!((sent / 3..sent).contains(&lost), "{lost} of {sent}");
    slow.make_room(usize::MAX);
    talk.test.settle();
    assert_eq!(words(&slow.take_received()).len(), sent - lost, "the rest, whole");
    talk.say(&speaker, &message);
    assert!(slow.take_received() == message, "and it hears again");
}

#[test]
fn messages_above_qos_0_wait_for_room_and_are_not_lost() {
    let mut talk = Talk::new(limits());
    let [slow, _quick] = slow_and_quick(&mut talk, 1);
    slow.limit_room(0);
    let speaker = talk.client("speaker");
    // More at a time than its outbox takes.
    let payload = "x".repeat(PACKET_BYTES_MAX - 100);
    for _ in 0..UNANSWERED_MAX {
        let answers = talk.say(&speaker, &publish("a", &payload, 2, 1));
        assert_eq!(answers, ["PUBACK #1"]);
    }
    slow.make_room(usize::MAX);
    talk.test.settle();
    let heard = words(&slow.take_received());
    // A megabyte of the queued messages is kept.
    assert!(heard.len() > 6 && talk.counts().dropped as usize <= UNANSWERED_MAX - heard.len());
    for (number, heard) in heard.iter().enumerate() {
        assert!(heard.ends_with(&format!(" #{}", number + 1)), "in order, once");
    }
}

#[test]
fn all_retained_messages_arrive_however_many_and_slow_the_reader() {
    let count = SCANNED_MAX * 2 + 1;
    for (qos, room) in [(0, usize::MAX), (0, 5_000), (1, usize::MAX)] {
        let mut talk = Talk::new(limits());
        let speaker = talk.client("speaker");
        for number in 0..count {
            talk.say(&speaker, &publish(&format!("a/{number:05}"), &"x".repeat(600), 3, 1));
        }
        let hearer = talk.client("hearer");
        hearer.limit_room(room);
        hearer.send(&subscribe(1, &[("a/#", qos)]));
        talk.test.settle();
        let mut heard = Vec::new();
        loop {
            let came = hearer.take_received();
            if came.is_empty() {
                break;
            }
            heard.extend(came);
            if room < usize::MAX {
                hearer.make_room(room);
            }
            if qos > 0 {
                for id in 1..=count as u16 {
                    hearer.send(&answer(4, id));
                }
            }
            talk.test.settle();
        }
        let heard = words(&heard);
        assert_eq!(heard.len(), 1 + count, "QoS {qos}, {room} bytes");
        for (number, heard) in heard[1..].iter().enumerate() {
            assert!(heard.starts_with(&format!("a/{number:05}=")), "{number}: {heard:.20}");
        }
        assert_eq!(talk.counts().dropped, 0);
    }
}

#[test]
fn one_turn_scans_a_bounded_number_of_retained_messages() {
    let mut talk = Talk::new(limits());
    let speaker = talk.client("speaker");
    for number in 0..SCANNED_MAX * 3 {
        talk.say(&speaker, &publish(&format!("a/{number}"), "x", 1, 1));
    }
    let hearer = talk.client("hearer");
    hearer.send(&subscribe(1, &[("+/none", 0)]));
    let mut turns = 0;
    while talk.test.turn() {
        turns += 1;
    }
    assert!(turns >= 3, "{turns} turns");
    // Other clients are answered in between, and a client that disconnects leaves nothing behind.
    hearer.send(&subscribe(2, &[("+/none", 0)]));
    talk.test.turn();
    hearer.reset();
    assert_eq!(talk.say(&speaker, &PING), ["PINGRESP"]);
    let (_peer, answers) = talk.connect(&connect("hearer", CLEAN, 0));
    assert_eq!(answers, ["CONNACK 0"]);
}

/// The size of a message with a topic and a payload of one byte each.
const SHORT: usize = 6;

#[test]
fn the_total_of_queued_bytes_is_bounded_and_evicts_the_longest_offline() {
    let mut talk = Talk::new(Limits { held_bytes_max: 5 * SHORT, ..limits() });
    for name in ["nothing", "first", "second"] {
        let (peer, _) = talk.lasting(name);
        talk.say(&peer, &subscribe(1, &[(["a", "none"][usize::from(name == "nothing")], 1)]));
        talk.say(&peer, &DISCONNECT);
    }
    let speaker = talk.client("speaker");
    let say = |talk: &mut Talk, times: usize| {
        for _ in 0..times {
            assert_eq!(talk.say(&speaker, &publish("a", "x", 2, 1)), ["PUBACK #1"]);
        }
        (talk.counts().forgotten, talk.counts().dropped, talk.test.context().0.len().1)
    };
    assert_eq!(say(&mut talk, 2), (0, 0, 3), "four of five");
    assert_eq!(say(&mut talk, 1), (1, 0, 2), "the third of each is the first to be one too many");
    // A session without queued messages occupies no space that others need.
    assert_eq!(talk.lasting("nothing").1, ["CONNACK 0 known"]);
    assert_eq!(talk.lasting("first").1, ["CONNACK 0"]);
    let (second, answers) = talk.lasting("second");
    assert_eq!(answers[0], "CONNACK 0 known");
    assert_eq!(answers.len(), 1 + 3);
    // The client is connected and does not acknowledge. Its session is not dropped, but only five
    // messages fit.
    assert_eq!(say(&mut talk, 3), (1, 1, 0));
    assert_eq!(hear(&second).len(), 2);
    // Each acknowledgement frees space, at QoS 2 the first one.
    for id in 1..=5 {
        talk.say(&second, &answer(4, id));
    }
    talk.say(&second, &subscribe(2, &[("a", 2)]));
    for (id, dropped) in (1..=7).zip([1, 1, 1, 1, 1, 2, 3]) {
        talk.say(&speaker, &publish("a", "x", 4, id));
        assert_eq!(talk.counts().dropped, dropped, "{id}");
    }
    for id in 6..=10 {
        assert_eq!(talk.say(&second, &answer(5, id)).last().unwrap(), &format!("PUBREL #{id}"));
    }
    assert_eq!(say(&mut talk, 5), (1, 3, 0));
    // The end of the session frees all its space.
    talk.connect(&connect("second", CLEAN, 0));
    let (third, _) = talk.lasting("third");
    talk.say(&third, &subscribe(1, &[("a", 1)]));
    assert_eq!(say(&mut talk, 5), (1, 3, 0));
}

#[test]
fn a_client_with_too_large_a_queue_may_itself_be_evicted() {
    let mut talk = Talk::new(Limits { held_bytes_max: SHORT, ..limits() });
    let (peer, _) = talk.lasting("away");
    talk.say(&peer, &subscribe(1, &[("a", 1)]));
    talk.say(&peer, &DISCONNECT);
    let speaker = talk.client("speaker");
    for (forgotten, dropped) in [(0, 0), (1, 1), (1, 1)] {
        talk.say(&speaker, &publish("a", "x", 2, 1));
        assert_eq!((talk.counts().forgotten, talk.counts().dropped), (forgotten, dropped));
    }
}

#[test]
fn a_retained_message_without_room_in_the_queue_is_dropped_and_counted() {
    let mut talk = Talk::new(Limits { held_bytes_max: 2 * SHORT, ..limits() });
    let speaker = talk.client("speaker");
    for topic in ["a", "b", "c"] {
        talk.say(&speaker, &publish(topic, "x", 1 | 2, 1));
    }
    let hearer = talk.client("hearer");
    let heard = talk.say(&hearer, &subscribe(1, &[("+", 1)]));
    assert_eq!(heard[1..], ["a=x qos1 #1 retained", "b=x qos1 #2 retained"]);
    assert_eq!(talk.counts().dropped, 1);
}
