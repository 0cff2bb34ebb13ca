//! Servers that may take many requests on one connection.

use super::*;

fn room(under_way: u32, further: u32) -> Room {
    Room { under_way, further }
}

#[test]
fn an_unknown_server_that_may_multiplex_gets_one_connection() {
    let mut books = books(8, 9, 20);
    (0..10).for_each(|job| assert_eq!(books.add("h2", job, 1), Ok(())));
    let (_, id) = connect(&mut books);
    assert_eq!(books.wanted(true), Wanted::Nothing, "the others wait for what it says");
    books.share(&"h2", id, room(0, 4), || id);
    assert_eq!(
        (0..5).map(|_| take(&mut books, "h2", id)).collect::<Vec<_>>(),
        [Found::Job(0), Found::Job(1), Found::Job(2), Found::Job(3), Found::Nothing]
    );
    // Six are left: two connections more, of which each is known to take four.
    let (_, second) = connect(&mut books);
    let (_, _third) = connect(&mut books);
    assert_eq!(books.wanted(true), Wanted::Nothing);
    // One that ends there makes room, and is woken before another is made.
    books.share(&"h2", id, room(3, 1), || id);
    assert_eq!(books.wanted(true), Wanted::Nothing, "the two that are made take them");
    books.share(&"h2", second, room(0, 4), || second);
    assert_eq!(take(&mut books, "h2", second), Found::Job(4));
}

#[test]
fn a_server_that_turns_out_serial_gets_a_connection_per_request() {
    for fails in [false, true] {
        let mut books = books(8, 9, 20);
        (0..5).for_each(|job| assert_eq!(books.add("h2", job, 1), Ok(())));
        let (name, id) = connect(&mut books);
        assert_eq!(books.wanted(true), Wanted::Nothing);
        match fails {
            false => assert_eq!(take(&mut books, name, id), Found::Job(0)),
            true => {
                assert_eq!(books.take_for_failure(&name), Some(0));
                books.remove(&name, id);
            }
        }
        (0..4).for_each(|_| assert_eq!(connect(&mut books).0, "h2"));
    }
}

#[test]
fn a_serial_connection_of_a_multiplexing_server_strands_no_request() {
    // One name, and behind it a server of HTTP/2 beside others of HTTP/1.1.
    let mut books = books(8, 9, 20);
    books.add("h2", 0, 1).expect("there is room");
    let (name, first) = connect(&mut books);
    books.share(&name, first, room(0, 4), || first);
    assert_eq!(take(&mut books, name, first), Found::Job(0));
    books.remove(&name, first);
    (1..5).for_each(|job| assert_eq!(books.add("h2", job, 1), Ok(())));
    let (_, second) = connect(&mut books);
    assert_eq!(books.wanted(true), Wanted::Nothing, "it takes all of them, as the first did");
    assert_eq!(take(&mut books, name, second), Found::Job(1));
    let (_, third) = connect(&mut books);
    books.share(&name, third, room(0, 4), || third);
    assert_eq!(take(&mut books, name, third), Found::Job(2));
}

#[test]
fn a_server_that_stops_multiplexing_gets_a_connection_per_request() {
    for goes in [true, false] {
        let mut books = books(8, 20, 20);
        assert_eq!(books.add("h2", 0, 1), Ok(()));
        let (name, first) = connect(&mut books);
        books.share(&name, first, room(0, 9), || first);
        assert_eq!(take(&mut books, name, first), Found::Job(0));
        match goes {
            true => books.remove(&name, first),
            false => books.share(&name, first, room(1, 0), || first),
        }
        let jobs = |books: &mut Books| {
            (1..6).for_each(|job| assert_eq!(books.add("h2", job, 1), Ok(())));
        };
        jobs(&mut books);
        // The server was set up anew meanwhile, which nobody knows before it has said so.
        let (_, second) = connect(&mut books);
        assert_eq!(books.wanted(true), Wanted::Nothing);
        assert_eq!(take(&mut books, name, second), Found::Job(1));
        let others: Vec<_> = (0..4).map(|_| connect(&mut books).1).collect();
        assert_eq!(books.wanted(true), Wanted::Nothing, "the old one {goes}");
        for id in others {
            assert!(matches!(take(&mut books, name, id), Found::Job(_)));
            books.remove(&name, id);
        }
        // What the old one says of itself is no news of the others.
        books.share(&name, first, room(1, 0), || first);
        books.share(&name, first, room(0, 9), || first);
        books.share(&name, first, room(9, 0), || first);
        jobs(&mut books);
        (0..5).for_each(|_| assert_eq!(connect(&mut books).0, name));
        assert_eq!(books.wanted(true), Wanted::Nothing, "the old one {goes}");
    }
}

#[test]
fn a_server_that_starts_multiplexing_gets_one_connection_for_many() {
    let mut books = books(8, 20, 20);
    for job in 0..3 {
        assert_eq!(books.add("h2", job, 1), Ok(()));
    }
    let (name, first) = connect(&mut books);
    assert_eq!(take(&mut books, name, first), Found::Job(0));
    let (_, second) = connect(&mut books);
    let (_, third) = connect(&mut books);
    books.share(&name, second, room(0, 1), || second);
    assert_eq!(take(&mut books, name, second), Found::Job(1));
    // At first it does not know how many it takes.
    books.share(&name, third, room(0, 0), || third);
    books.share(&name, third, room(0, 4), || third);
    assert_eq!(take(&mut books, name, third), Found::Job(2));
    (3..8).for_each(|job| assert_eq!(books.add("h2", job, 1), Ok(())));
    assert_eq!(books.wanted(true), Wanted::Wake(third));
    assert_eq!(connect(&mut books).0, name);
    assert_eq!(books.wanted(true), Wanted::Nothing, "it takes the two that the third does not");
}

#[test]
fn the_fullest_with_room_is_woken_once_and_repeated_requests_go_first() {
    let mut books = books(8, 9, 20);
    let make = |books: &mut Books, job| {
        assert_eq!(books.add("h2", job, 1), Ok(()));
        let (name, id) = connect(books);
        books.share(&name, id, room(0, 0), || id);
        id
    };
    let (first, second) = (make(&mut books, 0), make(&mut books, 1));
    books.share(&"h2", first, room(1, 9), || first);
    books.share(&"h2", second, room(8, 2), || second);
    assert_eq!(books.wanted(true), Wanted::Wake(second));
    assert_eq!(books.wanted(true), Wanted::Nothing, "it takes both");
    books.add_repeated("h2", 2, 1);
    assert_eq!(books.wanted(true), Wanted::Wake(first), "there are three now");
    assert_eq!(take(&mut books, "h2", second), Found::Job(2));
    assert_eq!(take(&mut books, "h2", second), Found::Job(0));
    assert_eq!(take(&mut books, "h2", second), Found::Nothing, "it is full");
    assert_eq!(take(&mut books, "h2", first), Found::Job(1));
}

#[test]
fn only_a_connection_without_requests_ends_to_make_room() {
    let mut books = books(8, 1, 20);
    assert_eq!(books.add("h2", 0, 1), Ok(()));
    let (_, id) = connect(&mut books);
    books.share(&"h2", id, room(0, 9), || id);
    assert_eq!(take(&mut books, "h2", id), Found::Job(0));
    assert_eq!(books.add("b", 1, 1), Ok(()));
    assert_eq!(books.wanted(true), Wanted::Nothing, "it is at work");
    books.share(&"h2", id, room(0, 9), || id);
    assert_eq!(books.wanted(true), Wanted::Wake(id));
    assert_eq!(take(&mut books, "h2", id), Found::End);
    books.remove(&"h2", id);
    assert_eq!(connect(&mut books).0, "b");
    // One that takes nothing more ends by itself.
    assert_eq!(books.wanted(true), Wanted::Nothing);
}
