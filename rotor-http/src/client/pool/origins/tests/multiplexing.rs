//! Servers that may accept many requests on one connection.

use super::*;

fn room(under_way: u32, further: u32) -> Room {
    Room { under_way, further }
}

#[test]
fn an_unknown_server_that_may_multiplex_gets_one_connection() {
    let mut origins = origins(8, 9, 20);
    (0..10).for_each(|job| assert_eq!(origins.add("h2", job, 1), Ok(())));
    let (_, id) = connect(&mut origins);
    assert_eq!(origins.next_action(true), PoolAction::Nothing, "the others wait for what it says");
    origins.set_room(&"h2", id, room(0, 4), || id);
    assert_eq!(
        (0..5).map(|_| take(&mut origins, "h2", id)).collect::<Vec<_>>(),
        [
            TakeResult::Job(0),
            TakeResult::Job(1),
            TakeResult::Job(2),
            TakeResult::Job(3),
            TakeResult::Nothing
        ]
    );
    // Six requests are left: two more connections, each of which is expected to take four.
    let (_, second) = connect(&mut origins);
    let (_, _third) = connect(&mut origins);
    assert_eq!(origins.next_action(true), PoolAction::Nothing);
    // A request that ends on the first connection makes room there. If one more connection were
    // needed, the first would be woken instead.
    origins.set_room(&"h2", id, room(3, 1), || id);
    assert_eq!(origins.next_action(true), PoolAction::Nothing, "the two that are made take them");
    origins.set_room(&"h2", second, room(0, 4), || second);
    assert_eq!(take(&mut origins, "h2", second), TakeResult::Job(4));
}

#[test]
fn a_server_that_turns_out_serial_gets_a_connection_per_request() {
    for fails in [false, true] {
        let mut origins = origins(8, 9, 20);
        (0..5).for_each(|job| assert_eq!(origins.add("h2", job, 1), Ok(())));
        let (name, id) = connect(&mut origins);
        assert_eq!(origins.next_action(true), PoolAction::Nothing);
        match fails {
            false => assert_eq!(take(&mut origins, name, id), TakeResult::Job(0)),
            true => {
                assert_eq!(origins.take_for_failure(&name), Some(0));
                origins.remove(&name, id);
            }
        }
        (0..4).for_each(|_| assert_eq!(connect(&mut origins).0, "h2"));
    }
}

#[test]
fn a_serial_connection_of_a_multiplexing_server_strands_no_request() {
    // One name with an HTTP/2 server and HTTP/1.1 servers behind it.
    let mut origins = origins(8, 9, 20);
    origins.add("h2", 0, 1).expect("there is room");
    let (name, first) = connect(&mut origins);
    origins.set_room(&name, first, room(0, 4), || first);
    assert_eq!(take(&mut origins, name, first), TakeResult::Job(0));
    origins.remove(&name, first);
    (1..5).for_each(|job| assert_eq!(origins.add("h2", job, 1), Ok(())));
    let (_, second) = connect(&mut origins);
    assert_eq!(
        origins.next_action(true),
        PoolAction::Nothing,
        "it takes all of them, as the first did"
    );
    assert_eq!(take(&mut origins, name, second), TakeResult::Job(1));
    let (_, third) = connect(&mut origins);
    origins.set_room(&name, third, room(0, 4), || third);
    assert_eq!(take(&mut origins, name, third), TakeResult::Job(2));
}

#[test]
fn a_server_that_stops_multiplexing_gets_a_connection_per_request() {
    for is_removed in [true, false] {
        let mut origins = origins(8, 20, 20);
        assert_eq!(origins.add("h2", 0, 1), Ok(()));
        let (name, first) = connect(&mut origins);
        origins.set_room(&name, first, room(0, 9), || first);
        assert_eq!(take(&mut origins, name, first), TakeResult::Job(0));
        match is_removed {
            true => origins.remove(&name, first),
            false => origins.set_room(&name, first, room(1, 0), || first),
        }
        let jobs = |origins: &mut TestOrigins| {
            (1..6).for_each(|job| assert_eq!(origins.add("h2", job, 1), Ok(())));
        };
        jobs(&mut origins);
        // The server was reconfigured meanwhile; the client learns that only from its next
        // connection.
        let (_, second) = connect(&mut origins);
        assert_eq!(origins.next_action(true), PoolAction::Nothing);
        assert_eq!(take(&mut origins, name, second), TakeResult::Job(1));
        let others: Vec<_> = (0..4).map(|_| connect(&mut origins).1).collect();
        assert_eq!(origins.next_action(true), PoolAction::Nothing, "the old one {is_removed}");
        for id in others {
            assert!(matches!(take(&mut origins, name, id), TakeResult::Job(_)));
            origins.remove(&name, id);
        }
        // The reports of the old connection say nothing about new ones.
        origins.set_room(&name, first, room(1, 0), || first);
        origins.set_room(&name, first, room(0, 9), || first);
        origins.set_room(&name, first, room(9, 0), || first);
        jobs(&mut origins);
        (0..5).for_each(|_| assert_eq!(connect(&mut origins).0, name));
        assert_eq!(origins.next_action(true), PoolAction::Nothing, "the old one {is_removed}");
    }
}

#[test]
fn a_server_that_starts_multiplexing_gets_one_connection_for_many() {
    let mut origins = origins(8, 20, 20);
    for job in 0..3 {
        assert_eq!(origins.add("h2", job, 1), Ok(()));
    }
    let (name, first) = connect(&mut origins);
    assert_eq!(take(&mut origins, name, first), TakeResult::Job(0));
    let (_, second) = connect(&mut origins);
    let (_, third) = connect(&mut origins);
    origins.set_room(&name, second, room(0, 1), || second);
    assert_eq!(take(&mut origins, name, second), TakeResult::Job(1));
    // At first the connection does not know how many requests it may take.
    origins.set_room(&name, third, room(0, 0), || third);
    origins.set_room(&name, third, room(0, 4), || third);
    assert_eq!(take(&mut origins, name, third), TakeResult::Job(2));
    (3..8).for_each(|job| assert_eq!(origins.add("h2", job, 1), Ok(())));
    assert_eq!(origins.next_action(true), PoolAction::Wake(third));
    assert_eq!(connect(&mut origins).0, name);
    assert_eq!(
        origins.next_action(true),
        PoolAction::Nothing,
        "it takes the two that the third does not"
    );
}

#[test]
fn the_fullest_with_room_is_woken_once_and_repeated_requests_go_first() {
    let mut origins = origins(8, 9, 20);
    let make = |origins: &mut TestOrigins, job| {
        assert_eq!(origins.add("h2", job, 1), Ok(()));
        let (name, id) = connect(origins);
        origins.set_room(&name, id, room(0, 0), || id);
        id
    };
    let (first, second) = (make(&mut origins, 0), make(&mut origins, 1));
    origins.set_room(&"h2", first, room(1, 9), || first);
    origins.set_room(&"h2", second, room(8, 2), || second);
    assert_eq!(origins.next_action(true), PoolAction::Wake(second));
    assert_eq!(origins.next_action(true), PoolAction::Nothing, "it takes both");
    origins.add_repeated("h2", 2, 1);
    assert_eq!(origins.next_action(true), PoolAction::Wake(first), "there are three now");
    assert_eq!(take(&mut origins, "h2", second), TakeResult::Job(2));
    assert_eq!(take(&mut origins, "h2", second), TakeResult::Job(0));
    assert_eq!(take(&mut origins, "h2", second), TakeResult::Nothing, "it is full");
    assert_eq!(take(&mut origins, "h2", first), TakeResult::Job(1));
}

#[test]
fn only_a_connection_without_requests_ends_to_make_room() {
    let mut origins = origins(8, 1, 20);
    assert_eq!(origins.add("h2", 0, 1), Ok(()));
    let (_, id) = connect(&mut origins);
    origins.set_room(&"h2", id, room(0, 9), || id);
    assert_eq!(take(&mut origins, "h2", id), TakeResult::Job(0));
    assert_eq!(origins.add("b", 1, 1), Ok(()));
    assert_eq!(origins.next_action(true), PoolAction::Nothing, "it is at work");
    origins.set_room(&"h2", id, room(0, 9), || id);
    assert_eq!(origins.next_action(true), PoolAction::Wake(id));
    assert_eq!(take(&mut origins, "h2", id), TakeResult::End);
    origins.remove(&"h2", id);
    assert_eq!(connect(&mut origins).0, "b");
    // A connection that accepts no more requests ends by itself.
    assert_eq!(origins.next_action(true), PoolAction::Nothing);
}

#[test]
fn a_connection_that_was_woken_for_a_request_does_not_make_room() {
    let mut origins = origins(8, 1, 20);
    assert_eq!(origins.add("h2", 0, 1), Ok(()));
    let (_, id) = connect(&mut origins);
    origins.set_room(&"h2", id, room(0, 9), || id);
    assert_eq!(take(&mut origins, "h2", id), TakeResult::Job(0));
    origins.set_room(&"h2", id, room(0, 9), || id);
    assert_eq!(origins.add("h2", 1, 1), Ok(()));
    assert_eq!(origins.next_action(true), PoolAction::Wake(id));
    assert_eq!(origins.add("b", 2, 1), Ok(()));
    assert_eq!(origins.next_action(true), PoolAction::Nothing);
    // Unless there is no request any more.
    assert_eq!(origins.remove_where(|job| *job == 1), [1]);
    assert_eq!(take(&mut origins, "h2", id), TakeResult::Nothing);
    assert_eq!(origins.next_action(true), PoolAction::Wake(id));
    assert_eq!(take(&mut origins, "h2", id), TakeResult::End);
}
