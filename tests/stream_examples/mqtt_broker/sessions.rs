//! What a client gets that reconnects to its session.

use rotor::stream::testing::Peer;

use super::limits::Limits;
use super::talk::{CLEAN, DISCONNECT, Talk, answer, connect, hear, publish, subscribe};

fn leave(talk: &mut Talk, peer: &Peer) {
    peer.reset();
    talk.test.settle();
}

/// Creates a client that has subscribed to everything at QoS 2 and is away. Returns a connected
/// one.
fn away(talk: &mut Talk) -> Peer {
    let (peer, answers) = talk.lasting("sub");
    assert_eq!(answers, ["CONNACK 0"]);
    assert_eq!(talk.say(&peer, &subscribe(1, &[("#", 2)])), ["SUBACK #1 [2]"]);
    talk.say(&peer, &DISCONNECT);
    talk.client("pub")
}

#[test]
fn messages_for_an_offline_client_are_queued_except_at_qos_0() {
    let mut talk = Talk::new(Limits::default());
    let speaker = away(&mut talk);
    for (payload, flags) in [("none", 0), ("one", 2), ("two", 4)] {
        talk.say(&speaker, &publish("a", payload, flags, 1));
    }
    assert_eq!(talk.test.context().0.len(), (2, 1, 0));
    let (_peer, answers) = talk.lasting("sub");
    assert_eq!(answers, ["CONNACK 0 known", "a=one qos1 #1", "a=two qos2 #2"]);
    assert_eq!(talk.test.context().0.len(), (2, 0, 0));
}

#[test]
fn unacknowledged_messages_are_resent_in_order_from_their_last_step() {
    let mut talk = Talk::new(Limits::default());
    let speaker = away(&mut talk);
    let (peer, _) = talk.lasting("sub");
    for (id, payload, flags) in [(1, "one", 2), (2, "two", 4), (3, "three", 4), (4, "four", 2)] {
        talk.say(&speaker, &publish("a", payload, flags, id));
    }
    assert_eq!(hear(&peer).len(), 4);
    // The client has acknowledged `one`, and confirmed the receipt of `two`. For `three` and `four`
    // the broker knows nothing.
    assert_eq!(talk.say(&peer, &answer(5, 2)), ["PUBREL #2"]);
    talk.say(&peer, &answer(4, 1));
    leave(&mut talk, &peer);
    let (peer, answers) = talk.lasting("sub");
    let again = ["CONNACK 0 known", "PUBREL #2", "a=three qos2 #3 again", "a=four qos1 #4 again"];
    assert_eq!(answers, again);
    leave(&mut talk, &peer);
    let (peer, answers) = talk.lasting("sub");
    assert_eq!(answers, again, "once more");
    for (kind, id, answered) in
        [(7, 2, None), (5, 3, Some("PUBREL #3")), (7, 3, None), (4, 4, None)]
    {
        assert_eq!(talk.say(&peer, &answer(kind, id)), answered.as_slice());
    }
    leave(&mut talk, &peer);
    assert_eq!(talk.lasting("sub").1, ["CONNACK 0 known"]);
}

#[test]
fn acknowledgements_of_the_wrong_kind_or_id_are_ignored() {
    let mut talk = Talk::new(Limits::default());
    let speaker = away(&mut talk);
    let (peer, _) = talk.lasting("sub");
    talk.say(&speaker, &publish("a", "one", 2, 1));
    talk.say(&speaker, &publish("a", "two", 4, 1));
    hear(&peer);
    for (kind, id) in [(4, 2), (4, 9), (7, 1), (7, 2), (6, 2)] {
        talk.say(&peer, &answer(kind, id));
    }
    // The client waits for this answer, whether or not the broker knows the id.
    assert_eq!(talk.say(&peer, &answer(5, 9)), ["PUBREL #9"]);
    leave(&mut talk, &peer);
    let (_, answers) = talk.lasting("sub");
    assert_eq!(answers[1..], ["a=one qos1 #1 again", "a=two qos2 #2 again"]);
}

#[test]
fn a_repeated_qos_2_message_is_published_once_until_it_is_released() {
    let mut talk = Talk::new(Limits::default());
    let hearer = talk.client("hearer");
    talk.say(&hearer, &subscribe(1, &[("#", 0)]));
    let (peer, _) = talk.lasting("pub");
    assert_eq!(talk.say(&peer, &publish("a", "x", 4, 7)), ["PUBREC #7"]);
    assert_eq!(talk.say(&peer, &publish("a", "x", 4 | 8, 7)), ["PUBREC #7"]);
    leave(&mut talk, &peer);
    let (peer, _) = talk.lasting("pub");
    assert_eq!(talk.say(&peer, &publish("a", "x", 4 | 8, 7)), ["PUBREC #7"]);
    assert_eq!(talk.say(&peer, &answer(6, 7)), ["PUBCOMP #7"]);
    assert_eq!(talk.say(&peer, &answer(6, 7)), ["PUBCOMP #7"]);
    assert_eq!(hear(&hearer), ["a=x qos0"]);
    assert_eq!(talk.say(&peer, &publish("a", "y", 4, 7)), ["PUBREC #7"]);
    assert_eq!(hear(&hearer), ["a=y qos0"]);
}

#[test]
fn a_second_connection_of_a_client_takes_over_the_session_of_the_first() {
    let mut talk = Talk::new(Limits::default());
    let speaker = away(&mut talk);
    let (first, _) = talk.lasting("sub");
    talk.say(&speaker, &publish("a", "one", 2, 1));
    assert_eq!(hear(&first), ["a=one qos1 #1"]);
    let (second, answers) = talk.lasting("sub");
    assert!(first.is_ended());
    assert_eq!(answers, ["CONNACK 0 known", "a=one qos1 #1 again"]);
    talk.say(&speaker, &publish("a", "two", 2, 1));
    assert_eq!((hear(&first).len(), hear(&second)), (0, vec!["a=two qos1 #2".to_owned()]));
    // The end of the old connection does not end the session.
    first.end();
    talk.test.settle();
    talk.say(&speaker, &publish("a", "three", 0, 0));
    assert_eq!(hear(&second), ["a=three qos0"]);
}

#[test]
fn a_clean_session_discards_earlier_state_and_leaves_none() {
    let mut talk = Talk::new(Limits::default());
    let speaker = away(&mut talk);
    talk.say(&speaker, &publish("a", "one", 2, 1));
    let (peer, answers) = talk.connect(&connect("sub", CLEAN, 0));
    assert_eq!(answers, ["CONNACK 0"]);
    talk.say(&speaker, &publish("a", "two", 2, 1));
    assert_eq!(hear(&peer).len(), 0, "its subscriptions are gone");
    talk.say(&peer, &subscribe(1, &[("#", 2)]));
    leave(&mut talk, &peer);
    assert_eq!(talk.test.context().0.len(), (1, 0, 0));
    assert_eq!(talk.lasting("sub").1, ["CONNACK 0"]);
    // A lasting session does not inherit the state of a clean one either.
    let (peer, _) = talk.connect(&connect("other", CLEAN, 0));
    talk.say(&peer, &subscribe(1, &[("#", 2)]));
    assert_eq!(talk.lasting("other").1, ["CONNACK 0"]);
}
