//! The books of a pool, by hand: who gets which connection, and when one is to be made.

use super::*;

type Books = Origins<&'static str, u32, MemberId>;

fn books(per_origin: usize, in_all: usize, waiting: usize) -> Books {
    Origins::new(
        &PoolConfig::new()
            .connections_per_origin_max(per_origin)
            .connections_max(in_all)
            .waiting_per_origin_max(waiting),
        |name| name.starts_with("h2"),
    )
}

fn connect(books: &mut Books) -> (&'static str, MemberId) {
    match books.wanted(true) {
        Wanted::Connect(name, id) => (name, id),
        other => panic!("{other:?}"),
    }
}

fn take(books: &mut Books, name: &'static str, id: MemberId) -> Found<u32> {
    books.take(&name, id, || id)
}

#[test]
fn requests_wait_up_to_the_limit_and_are_taken_in_order() {
    let mut books = books(1, 9, 2);
    assert_eq!(books.add("a", 1, 1), Ok(()));
    assert_eq!(books.add("a", 2, 1), Ok(()));
    assert_eq!(books.add("a", 3, 1), Err(3));
    assert_eq!(books.add("b", 4, 1), Ok(()), "each origin has its own queue");
    let (name, id) = connect(&mut books);
    assert_eq!((name, connect(&mut books).0, books.wanted(true)), ("a", "b", Wanted::Nothing));
    assert_eq!(take(&mut books, "a", id), Found::Job(1));
    assert_eq!(books.add("a", 3, 1), Ok(()));
    assert_eq!(take(&mut books, "a", id), Found::Job(2));
    assert_eq!(take(&mut books, "a", id), Found::Job(3));
    assert_eq!(take(&mut books, "a", id), Found::Nothing);
}

#[test]
fn connections_are_made_up_to_the_limit_and_no_more_than_wait() {
    for (waiting, limit, expected) in [(0, 2, 0), (1, 2, 1), (2, 2, 2), (3, 2, 2), (3, 9, 3)] {
        let mut books = books(limit, 9, 9);
        for job in 0..waiting {
            books.add("a", job, 1).expect("there is room");
        }
        let mut made = 0;
        while let Wanted::Connect(..) = books.wanted(true) {
            made += 1;
        }
        assert_eq!(made, expected, "{waiting} wait, {limit} connections");
    }
}

#[test]
fn the_connection_used_last_is_used_next_and_no_other_is_made() {
    let mut books = books(9, 9, 9);
    books.add("a", 1, 1).expect("there is room");
    books.add("a", 2, 1).expect("there is room");
    let (_, first) = connect(&mut books);
    let (_, second) = connect(&mut books);
    for id in [first, second] {
        assert!(matches!(take(&mut books, "a", id), Found::Job(_)));
    }
    for id in [second, first] {
        assert_eq!(take(&mut books, "a", id), Found::Nothing);
    }
    books.add("a", 3, 1).expect("there is room");
    assert_eq!(books.wanted(true), Wanted::Wake(first));
    assert_eq!(books.wanted(true), Wanted::Nothing, "one is on its way");
    assert_eq!(take(&mut books, "a", second), Found::Nothing, "it was not asked");
    assert_eq!(take(&mut books, "a", first), Found::Job(3));
}

#[test]
fn a_woken_connection_that_dies_is_replaced() {
    let mut books = books(1, 9, 9);
    books.add("a", 1, 1).expect("there is room");
    let (_, first) = connect(&mut books);
    assert_eq!(take(&mut books, "a", first), Found::Job(1));
    assert_eq!(take(&mut books, "a", first), Found::Nothing);
    books.add("a", 2, 1).expect("there is room");
    assert_eq!(books.wanted(true), Wanted::Wake(first));
    books.remove(&"a", first);
    assert_eq!(take(&mut books, "a", first), Found::End);
    let (_, second) = connect(&mut books);
    assert_eq!(take(&mut books, "a", second), Found::Job(2));
}

#[test]
fn a_repeated_request_gets_a_new_connection_before_the_others() {
    let mut books = books(2, 9, 9);
    books.add("a", 1, 1).expect("there is room");
    let (_, first) = connect(&mut books);
    assert_eq!(take(&mut books, "a", first), Found::Job(1));
    assert_eq!(take(&mut books, "a", first), Found::Nothing);
    books.add_repeated("a", 7, 1);
    books.add("a", 8, 1).expect("there is room");
    let (_, second) = connect(&mut books);
    assert_eq!(books.wanted(true), Wanted::Wake(first), "for the other");
    assert_eq!(take(&mut books, "a", first), Found::Job(8));
    assert_eq!(take(&mut books, "a", second), Found::Job(7));
}

#[test]
fn a_repeated_request_has_an_idle_connection_make_room() {
    let mut books = books(2, 9, 9);
    for job in [1, 2] {
        books.add("a", job, 1).expect("there is room");
    }
    let ids = [connect(&mut books).1, connect(&mut books).1];
    assert_eq!(ids.map(|id| take(&mut books, "a", id)), [Found::Job(1), Found::Job(2)]);
    assert_eq!(ids.map(|id| take(&mut books, "a", id)), [Found::Nothing, Found::Nothing]);
    books.add_repeated("a", 7, 1);
    assert_eq!(books.wanted(true), Wanted::Wake(ids[0]), "the one that was used longest ago");
    assert_eq!(books.wanted(true), Wanted::Nothing, "one is enough");
    assert_eq!(take(&mut books, "a", ids[0]), Found::End);
    books.remove(&"a", ids[0]);
    let (_, new) = connect(&mut books);
    assert_eq!(take(&mut books, "a", new), Found::Job(7));
}

#[test]
fn a_repeated_request_has_a_connection_make_room_when_it_becomes_idle() {
    let mut books = books(1, 9, 9);
    books.add("a", 1, 1).expect("there is room");
    let (_, id) = connect(&mut books);
    assert_eq!(take(&mut books, "a", id), Found::Job(1));
    books.add_repeated("a", 7, 1);
    assert_eq!(books.wanted(true), Wanted::Nothing, "it is busy");
    assert_eq!(take(&mut books, "a", id), Found::Nothing);
    assert_eq!(books.wanted(true), Wanted::Wake(id));
    assert_eq!(take(&mut books, "a", id), Found::End);
}

#[test]
fn at_the_limit_of_all_an_idle_connection_elsewhere_makes_room_and_origins_take_turns() {
    let mut books = books(9, 2, 9);
    books.add("a", 1, 1).expect("there is room");
    let (_, idle) = connect(&mut books);
    assert_eq!(take(&mut books, "a", idle), Found::Job(1));
    assert_eq!(take(&mut books, "a", idle), Found::Nothing);
    for job in [2, 3] {
        books.add("b", job, 1).expect("there is room");
        books.add("c", job, 1).expect("there is room");
    }
    let (name, first) = connect(&mut books);
    assert_eq!(name, "b");
    assert_eq!(books.wanted(true), Wanted::Wake(idle));
    assert_eq!(books.wanted(true), Wanted::Nothing, "no other has nothing to do");
    assert_eq!(take(&mut books, "a", idle), Found::End);
    books.remove(&"a", idle);
    assert_eq!(connect(&mut books).0, "c", "b has one already");
    assert_eq!(books.wanted(true), Wanted::Nothing);
    assert_eq!(take(&mut books, "b", first), Found::Job(2));
    books.remove(&"b", first);
    assert_eq!(connect(&mut books).0, "b");
}

#[test]
fn at_the_limit_of_all_who_has_no_connection_is_given_one_of_those_that_a_busy_server_has() {
    let mut books = books(2, 2, 9);
    (1..=6).for_each(|job| books.add("a", job, 1).expect("there is room"));
    let (first, second) = (connect(&mut books).1, connect(&mut books).1);
    assert_eq!(take(&mut books, "a", first), Found::Job(1));
    assert_eq!(take(&mut books, "a", second), Found::Job(2));
    books.add("b", 7, 1).expect("there is room");
    books.add("b", 8, 1).expect("there is room");
    assert_eq!(books.wanted(true), Wanted::Nothing, "all are at work");
    assert_eq!(take(&mut books, "a", first), Found::End);
    assert_eq!(take(&mut books, "a", second), Found::Job(3), "one is enough");
    books.remove(&"a", first);
    let (name, other) = connect(&mut books);
    assert_eq!((name, books.wanted(true)), ("b", Wanted::Nothing));
    assert_eq!(take(&mut books, "b", other), Found::Job(7));
    // Each has one: neither gives it up, while there is work for it.
    books.add("c", 9, 1).expect("there is room");
    assert_eq!(books.wanted(true), Wanted::Nothing);
    assert_eq!(take(&mut books, "a", second), Found::Job(4));
    assert_eq!(take(&mut books, "b", other), Found::Job(8));
    assert_eq!(take(&mut books, "b", other), Found::Nothing);
    assert_eq!(books.wanted(true), Wanted::Wake(other));
    assert_eq!(take(&mut books, "b", other), Found::End);
    books.remove(&"b", other);
    assert_eq!(connect(&mut books).0, "c", "a has one, whoever's turn it was");
    // Nobody is without one any more.
    assert_eq!(books.wanted(true), Wanted::Nothing);
    assert_eq!(take(&mut books, "a", second), Found::Job(5));
}

#[test]
fn who_loses_its_only_connection_has_its_place_before_those_that_have_others() {
    let mut books = books(3, 3, 9);
    (1..=9).for_each(|job| books.add("a", job, 1).expect("there is room"));
    let of_a = [(); 3].map(|()| connect(&mut books).1);
    of_a.iter().for_each(|id| assert!(matches!(take(&mut books, "a", *id), Found::Job(_))));
    // Each of its connections takes one request, or cannot be made.
    (11..=15).for_each(|job| books.add("b", job, 1).expect("there is room"));
    assert_eq!(books.wanted(true), Wanted::Nothing);
    assert_eq!(take(&mut books, "a", of_a[0]), Found::End);
    books.remove(&"a", of_a[0]);
    for job in 11..=14 {
        let (name, id) = connect(&mut books);
        assert_eq!((name, books.wanted(true)), ("b", Wanted::Nothing), "{job}");
        match job % 2 {
            0 => assert_eq!(books.take_for_failure(&"b"), Some(job)),
            _ => assert_eq!(take(&mut books, "b", id), Found::Job(job)),
        }
        // No further one of the other server ends for it.
        assert!(matches!(take(&mut books, "a", of_a[1]), Found::Job(_)), "{job}");
        books.remove(&"b", id);
    }
}

#[test]
fn for_one_that_has_no_connection_one_ends_also_where_several_are_done_before_its_place_is_given() {
    let mut books = books(4, 4, 9);
    (1..=9).for_each(|job| books.add("a", job, 1).expect("there is room"));
    let of_a = [(); 4].map(|()| connect(&mut books).1);
    of_a.iter().for_each(|id| assert!(matches!(take(&mut books, "a", *id), Found::Job(_))));
    books.add("b", 11, 1).expect("there is room");
    assert_eq!(books.wanted(true), Wanted::Nothing);
    assert_eq!(take(&mut books, "a", of_a[0]), Found::End);
    books.remove(&"a", of_a[0]);
    for id in &of_a[1..] {
        assert!(matches!(take(&mut books, "a", *id), Found::Job(_)), "{id}");
    }
    assert_eq!(connect(&mut books).0, "b");
}

#[test]
fn where_there_is_no_place_the_one_used_longest_ago_makes_room_and_idle_ones_still_serve() {
    let mut books = books(9, 9, 9);
    let idle = |books: &mut Books, name| {
        books.add(name, 0, 1).expect("there is room");
        let (_, id) = connect(books);
        assert_eq!(take(books, name, id), Found::Job(0));
        id
    };
    let (a, b) = (idle(&mut books, "a"), idle(&mut books, "b"));
    for (name, id) in [("b", b), ("a", a)] {
        assert_eq!(take(&mut books, name, id), Found::Nothing);
    }
    books.add("c", 1, 1).expect("there is room");
    assert_eq!(books.wanted(false), Wanted::Wake(b), "b was used before a, whatever their names");
    assert_eq!(books.wanted(false), Wanted::Nothing, "one is enough");
    books.add("a", 2, 1).expect("there is room");
    assert_eq!(books.wanted(false), Wanted::Wake(a), "to serve");
    assert_eq!(take(&mut books, "a", a), Found::Job(2));
    assert_eq!(take(&mut books, "b", b), Found::End);
    books.remove(&"b", b);
    assert_eq!(books.wanted(false), Wanted::Nothing, "somebody else took the place");
    assert_eq!(connect(&mut books).0, "c");
}

#[test]
fn a_connection_that_becomes_idle_makes_room_for_those_that_are_held_up() {
    let mut books = books(9, 1, 9);
    books.add("a", 1, 1).expect("there is room");
    let (_, id) = connect(&mut books);
    assert_eq!(take(&mut books, "a", id), Found::Job(1));
    books.add("b", 2, 1).expect("there is room");
    assert_eq!(books.wanted(true), Wanted::Nothing, "it is busy");
    assert_eq!(take(&mut books, "a", id), Found::Nothing);
    assert_eq!(books.wanted(true), Wanted::Wake(id));
    assert_eq!(take(&mut books, "a", id), Found::End);
    books.remove(&"a", id);
    assert_eq!(connect(&mut books).0, "b");
}

#[test]
fn a_failed_connection_costs_the_request_that_waits_longest_and_others_try_anew() {
    let mut books = books(1, 9, 9);
    books.add("a", 1, 1).expect("there is room");
    books.add("a", 2, 1).expect("there is room");
    let (_, id) = connect(&mut books);
    assert_eq!(books.take_for_failure(&"a"), Some(1));
    books.remove(&"a", id);
    let (_, id) = connect(&mut books);
    assert_eq!(books.take_for_failure(&"a"), Some(2));
    books.remove(&"a", id);
    assert_eq!(books.take_for_failure(&"a"), None);
    assert_eq!(books.wanted(true), Wanted::Nothing);
    assert!(books.is_empty());
}

#[test]
fn those_that_are_over_are_taken_out_and_what_is_empty_is_forgotten() {
    let mut books = books(1, 9, 9);
    for job in 1..=4 {
        books.add("a", job, 1).expect("there is room");
    }
    books.add_repeated("b", 6, 1);
    assert_eq!(books.take_out(|job| job % 2 == 0), [2, 4, 6]);
    assert_eq!(books.waiting().copied().collect::<Vec<_>>(), [1, 3]);
    assert_eq!(books.take_out(|_| true), [1, 3]);
    assert_eq!(books.wanted(true), Wanted::Nothing);
    assert!(books.is_empty());
}

/// Books that bound what waits in all, and what it takes.
fn bounded(jobs: usize, bytes: usize) -> Books {
    Origins::new(&PoolConfig::new().waiting_max(jobs).waiting_bytes_max(bytes), |_| false)
}

const SERVERS: [&str; 4] = ["a", "b", "c", "d"];

#[test]
fn what_waits_is_bounded_over_all_servers_and_so_are_they() {
    let mut books = bounded(3, 1_000);
    for (job, name) in (0..).zip(SERVERS) {
        let expected = if job < 3 { Ok(()) } else { Err(job) };
        assert_eq!(books.add(name, job, 1), expected, "{name}");
    }
    assert_eq!(books.by_name.len(), 3, "one that was refused is not in the books");
    assert_eq!(books.take_for_failure(&"b"), Some(1));
    assert_eq!(books.add("d", 3, 1), Ok(()), "there is room again");
    assert_eq!(books.add("b", 1, 1), Err(1));
}

#[test]
fn what_waits_is_bounded_by_its_bytes() {
    for (bytes, is_taken) in [(29, true), (30, true), (31, false)] {
        let mut books = bounded(9, 100);
        assert_eq!(books.add("a", 1, 70), Ok(()));
        assert_eq!(books.add("b", 2, bytes).is_ok(), is_taken, "{bytes}");
    }
    for alone in [100, 101, usize::MAX] {
        let mut books = bounded(9, 100);
        assert_eq!(books.add("a", 1, alone), Ok(()), "there is nothing else");
        assert_eq!(books.add("b", 2, 1), Err(2), "{alone}");
    }
}

#[test]
fn room_comes_back_whatever_becomes_of_what_waited() {
    type Goes = fn(&mut Books);
    let goes: [(&str, Goes); 4] = [
        ("taken", |books| {
            let (name, id) = connect(books);
            assert_eq!(take(books, name, id), Found::Job(1));
        }),
        ("failed", |books| assert_eq!(books.take_for_failure(&"a"), Some(1))),
        ("over", |books| assert_eq!(books.take_out(|_| true), [1])),
        ("repeated, and taken", |books| {
            let (_, id) = connect(books);
            assert_eq!(take(books, "a", id), Found::Job(1));
            books.add_repeated("a", 1, 100);
            assert_eq!(books.add("b", 2, 1), Err(2), "it counts while it waits");
            books.remove(&"a", id);
            let (_, id) = connect(books);
            assert_eq!(take(books, "a", id), Found::Job(1));
        }),
    ];
    for (name, goes) in goes {
        let mut books = bounded(1, 100);
        assert_eq!(books.add("a", 1, 100), Ok(()));
        assert_eq!(books.add("b", 2, 1), Err(2));
        goes(&mut books);
        assert_eq!(books.waiting, Load::default(), "{name}");
        assert_eq!(books.add("b", 2, 1), Ok(()), "{name}");
    }
}

#[test]
fn what_is_made_again_is_never_refused() {
    let mut books = bounded(1, 10);
    assert_eq!(books.add("a", 1, 10), Ok(()));
    books.add_repeated("b", 2, 10);
    books.add_repeated("c", 3, 10);
    assert_eq!(books.waiting, Load { jobs: 3, bytes: 30 });
}

fn room(under_way: u32, further: u32) -> Room {
    Room { under_way, further }
}

#[test]
fn an_unknown_server_that_may_take_many_is_connected_to_once() {
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
fn a_server_that_may_take_many_and_does_not_is_connected_to_for_each() {
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
fn a_connection_that_takes_one_where_others_took_many_leaves_nobody_waiting_for_it() {
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
fn a_server_that_takes_one_where_it_took_many_is_connected_to_for_each_from_then_on() {
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
fn a_server_that_takes_many_where_it_took_one_is_connected_to_once_for_many() {
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
fn the_fullest_that_has_room_is_woken_once_and_those_that_are_repeated_go_first() {
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
fn one_with_something_under_way_never_ends_for_its_place_and_one_without_does() {
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
