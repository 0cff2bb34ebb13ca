//! The books of a pool, by hand: who gets which connection, and when one is to be made.

mod sharing;

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
fn at_the_total_limit_an_idle_connection_of_another_origin_makes_room() {
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
fn at_the_total_limit_a_starving_origin_gets_a_connection_of_a_busy_one() {
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
fn an_origin_that_loses_its_only_connection_gets_the_place_back() {
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
fn only_one_connection_ends_for_a_starving_origin() {
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
fn without_free_slots_the_longest_idle_makes_room_and_others_still_serve() {
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
fn a_connection_that_becomes_idle_makes_room_for_blocked_origins() {
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
fn a_failed_connection_fails_the_oldest_request_and_others_retry() {
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
fn removed_requests_leave_the_queue_and_an_empty_origin_is_dropped() {
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
fn waiting_requests_and_origins_are_bounded_over_all_servers() {
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
fn waiting_requests_are_bounded_by_their_bytes() {
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
fn room_returns_however_a_waiting_request_leaves() {
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
fn a_repeated_request_is_never_rejected() {
    let mut books = bounded(1, 10);
    assert_eq!(books.add("a", 1, 10), Ok(()));
    books.add_repeated("b", 2, 10);
    books.add_repeated("c", 3, 10);
    assert_eq!(books.waiting, Load { jobs: 3, bytes: 30 });
}
