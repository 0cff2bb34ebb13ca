//! The records of a pool, called directly: which request gets which connection, and when one is
//! opened.

mod agreement;
mod multiplexing;

use super::*;

type TestOrigins = Origins<&'static str, u32, MemberId>;

fn origins(per_origin: usize, in_all: usize, waiting: usize) -> TestOrigins {
    Origins::new(
        &PoolConfig::new()
            .connections_per_origin_max(per_origin)
            .connections_max(in_all)
            .waiting_per_origin_max(waiting),
        |name| name.starts_with("h2"),
    )
}

fn connect(origins: &mut TestOrigins) -> (&'static str, MemberId) {
    match origins.next_action(true) {
        PoolAction::Connect(name, id) => (name, id),
        other => panic!("{other:?}"),
    }
}

fn take(origins: &mut TestOrigins, name: &'static str, id: MemberId) -> TakeResult<u32> {
    origins.take(&name, id, || id)
}

#[test]
fn requests_wait_up_to_the_limit_and_are_taken_in_order() {
    let mut origins = origins(1, 9, 2);
    assert_eq!(origins.add("a", 1, 1), Ok(()));
    assert_eq!(origins.add("a", 2, 1), Ok(()));
    assert_eq!(origins.add("a", 3, 1), Err(3));
    assert_eq!(origins.add("b", 4, 1), Ok(()), "each origin has its own queue");
    let (name, id) = connect(&mut origins);
    assert_eq!(
        (name, connect(&mut origins).0, origins.next_action(true)),
        ("a", "b", PoolAction::Nothing)
    );
    assert_eq!(take(&mut origins, "a", id), TakeResult::Job(1));
    assert_eq!(origins.add("a", 3, 1), Ok(()));
    assert_eq!(take(&mut origins, "a", id), TakeResult::Job(2));
    assert_eq!(take(&mut origins, "a", id), TakeResult::Job(3));
    assert_eq!(take(&mut origins, "a", id), TakeResult::Nothing);
}

#[test]
fn connections_are_made_up_to_the_limit_and_no_more_than_wait() {
    for (waiting, limit, expected) in [(0, 2, 0), (1, 2, 1), (2, 2, 2), (3, 2, 2), (3, 9, 3)] {
        let mut origins = origins(limit, 9, 9);
        for job in 0..waiting {
            origins.add("a", job, 1).expect("there is room");
        }
        let mut made = 0;
        while let PoolAction::Connect(..) = origins.next_action(true) {
            made += 1;
        }
        assert_eq!(made, expected, "{waiting} wait, {limit} connections");
    }
}

#[test]
fn the_connection_used_last_is_used_next_and_no_other_is_made() {
    let mut origins = origins(9, 9, 9);
    origins.add("a", 1, 1).expect("there is room");
    origins.add("a", 2, 1).expect("there is room");
    let (_, first) = connect(&mut origins);
    let (_, second) = connect(&mut origins);
    for id in [first, second] {
        assert!(matches!(take(&mut origins, "a", id), TakeResult::Job(_)));
    }
    for id in [second, first] {
        assert_eq!(take(&mut origins, "a", id), TakeResult::Nothing);
    }
    origins.add("a", 3, 1).expect("there is room");
    assert_eq!(origins.next_action(true), PoolAction::Wake(first));
    assert_eq!(origins.next_action(true), PoolAction::Nothing, "one is on its way");
    assert_eq!(take(&mut origins, "a", second), TakeResult::Nothing, "it was not asked");
    assert_eq!(take(&mut origins, "a", first), TakeResult::Job(3));
}

#[test]
fn a_woken_connection_that_dies_is_replaced() {
    let mut origins = origins(1, 9, 9);
    origins.add("a", 1, 1).expect("there is room");
    let (_, first) = connect(&mut origins);
    assert_eq!(take(&mut origins, "a", first), TakeResult::Job(1));
    assert_eq!(take(&mut origins, "a", first), TakeResult::Nothing);
    origins.add("a", 2, 1).expect("there is room");
    assert_eq!(origins.next_action(true), PoolAction::Wake(first));
    origins.remove(&"a", first);
    assert_eq!(take(&mut origins, "a", first), TakeResult::End);
    let (_, second) = connect(&mut origins);
    assert_eq!(take(&mut origins, "a", second), TakeResult::Job(2));
}

#[test]
fn a_repeated_request_gets_a_new_connection_before_the_others() {
    let mut origins = origins(2, 9, 9);
    origins.add("a", 1, 1).expect("there is room");
    let (_, first) = connect(&mut origins);
    assert_eq!(take(&mut origins, "a", first), TakeResult::Job(1));
    assert_eq!(take(&mut origins, "a", first), TakeResult::Nothing);
    origins.add_repeated("a", 7, 1);
    origins.add("a", 8, 1).expect("there is room");
    let (_, second) = connect(&mut origins);
    assert_eq!(origins.next_action(true), PoolAction::Wake(first), "for the other");
    assert_eq!(take(&mut origins, "a", first), TakeResult::Job(8));
    assert_eq!(take(&mut origins, "a", second), TakeResult::Job(7));
}

#[test]
fn a_repeated_request_has_an_idle_connection_make_room() {
    let mut origins = origins(2, 9, 9);
    for job in [1, 2] {
        origins.add("a", job, 1).expect("there is room");
    }
    let ids = [connect(&mut origins).1, connect(&mut origins).1];
    assert_eq!(ids.map(|id| take(&mut origins, "a", id)), [TakeResult::Job(1), TakeResult::Job(2)]);
    assert_eq!(
        ids.map(|id| take(&mut origins, "a", id)),
        [TakeResult::Nothing, TakeResult::Nothing]
    );
    origins.add_repeated("a", 7, 1);
    assert_eq!(
        origins.next_action(true),
        PoolAction::Wake(ids[0]),
        "the one that was used longest ago"
    );
    assert_eq!(origins.next_action(true), PoolAction::Nothing, "one is enough");
    assert_eq!(take(&mut origins, "a", ids[0]), TakeResult::End);
    origins.remove(&"a", ids[0]);
    let (_, new) = connect(&mut origins);
    assert_eq!(take(&mut origins, "a", new), TakeResult::Job(7));
}

#[test]
fn a_repeated_request_has_a_connection_make_room_when_it_becomes_idle() {
    let mut origins = origins(1, 9, 9);
    origins.add("a", 1, 1).expect("there is room");
    let (_, id) = connect(&mut origins);
    assert_eq!(take(&mut origins, "a", id), TakeResult::Job(1));
    origins.add_repeated("a", 7, 1);
    assert_eq!(origins.next_action(true), PoolAction::Nothing, "it is busy");
    assert_eq!(take(&mut origins, "a", id), TakeResult::Nothing);
    assert_eq!(origins.next_action(true), PoolAction::Wake(id));
    assert_eq!(take(&mut origins, "a", id), TakeResult::End);
}

#[test]
fn a_repeated_request_is_not_held_up_by_later_ones() {
    // At the limit of each server, and at that of all connections.
    for (per_origin, total) in [(2, 9), (3, 2)] {
        let mut origins = origins(per_origin, total, 9);
        (1..=2).for_each(|job| origins.add("a", job, 1).expect("there is room"));
        let ids = [connect(&mut origins).1, connect(&mut origins).1];
        assert_eq!(
            ids.map(|id| take(&mut origins, "a", id)),
            [TakeResult::Job(1), TakeResult::Job(2)]
        );
        // It comes from another way to the server, so no place of this one has become free.
        origins.add_repeated("a", 7, 1);
        (3..=5).for_each(|job| origins.add("a", job, 1).expect("there is room"));
        assert_eq!(origins.next_action(true), PoolAction::Nothing, "all are at work");
        assert_eq!(take(&mut origins, "a", ids[0]), TakeResult::End);
        assert_eq!(take(&mut origins, "a", ids[1]), TakeResult::Job(3), "one is enough");
        origins.remove(&"a", ids[0]);
        let (_, new) = connect(&mut origins);
        assert_eq!(take(&mut origins, "a", new), TakeResult::Job(7));
        assert_eq!(take(&mut origins, "a", ids[1]), TakeResult::Job(4));
    }
}

#[test]
fn a_repeated_request_keeps_the_place_of_its_lost_connection() {
    for others in [0, 1] {
        let mut origins = origins(9, 2, 9);
        (1..=2).for_each(|job| origins.add("a", job, 1).expect("there is room"));
        let (first, second) = (connect(&mut origins).1, connect(&mut origins).1);
        assert_eq!(take(&mut origins, "a", first), TakeResult::Job(1));
        assert_eq!(take(&mut origins, "a", second), TakeResult::Job(2));
        origins.add("b", 3, 1).expect("there is room");
        (0..others).for_each(|job| origins.add("a", 4 + job, 1).expect("there is room"));
        assert_eq!(origins.next_action(true), PoolAction::Nothing, "all are at work");
        origins.add_repeated("a", 1, 1);
        origins.remove(&"a", first);
        let (name, new) = connect(&mut origins);
        assert_eq!((name, origins.next_action(true)), ("a", PoolAction::Nothing), "{others}");
        assert_eq!(take(&mut origins, "a", new), TakeResult::Job(1), "it precedes the others");
        // The other server gets the next place, as before.
        assert_eq!(take(&mut origins, "a", second), TakeResult::End);
        origins.remove(&"a", second);
        assert_eq!(connect(&mut origins).0, "b");
    }
}

#[test]
fn a_place_kept_for_a_cancelled_retry_goes_to_others() {
    let mut origins = origins(9, 1, 9);
    origins.add("a", 1, 1).expect("there is room");
    let (_, id) = connect(&mut origins);
    assert_eq!(take(&mut origins, "a", id), TakeResult::Job(1));
    origins.add("b", 2, 1).expect("there is room");
    assert_eq!(origins.next_action(true), PoolAction::Nothing, "it is at work");
    origins.add_repeated("a", 1, 1);
    origins.remove(&"a", id);
    assert_eq!(origins.remove_where(|job| *job == 1), [1]);
    assert_eq!(connect(&mut origins).0, "b");
}

#[test]
fn at_the_total_limit_an_idle_connection_of_another_origin_makes_room() {
    let mut origins = origins(9, 2, 9);
    origins.add("a", 1, 1).expect("there is room");
    let (_, idle) = connect(&mut origins);
    assert_eq!(take(&mut origins, "a", idle), TakeResult::Job(1));
    assert_eq!(take(&mut origins, "a", idle), TakeResult::Nothing);
    for job in [2, 3] {
        origins.add("b", job, 1).expect("there is room");
        origins.add("c", job, 1).expect("there is room");
    }
    let (name, first) = connect(&mut origins);
    assert_eq!(name, "b");
    assert_eq!(origins.next_action(true), PoolAction::Wake(idle));
    assert_eq!(origins.next_action(true), PoolAction::Nothing, "no other has nothing to do");
    assert_eq!(take(&mut origins, "a", idle), TakeResult::End);
    origins.remove(&"a", idle);
    assert_eq!(connect(&mut origins).0, "c", "b has one already");
    assert_eq!(origins.next_action(true), PoolAction::Nothing);
    assert_eq!(take(&mut origins, "b", first), TakeResult::Job(2));
    origins.remove(&"b", first);
    assert_eq!(connect(&mut origins).0, "b");
}

#[test]
fn at_the_total_limit_a_starving_origin_gets_a_connection_of_a_busy_one() {
    let mut origins = origins(2, 2, 9);
    (1..=6).for_each(|job| origins.add("a", job, 1).expect("there is room"));
    let (first, second) = (connect(&mut origins).1, connect(&mut origins).1);
    assert_eq!(take(&mut origins, "a", first), TakeResult::Job(1));
    assert_eq!(take(&mut origins, "a", second), TakeResult::Job(2));
    origins.add("b", 7, 1).expect("there is room");
    origins.add("b", 8, 1).expect("there is room");
    assert_eq!(origins.next_action(true), PoolAction::Nothing, "all are at work");
    assert_eq!(take(&mut origins, "a", first), TakeResult::End);
    assert_eq!(take(&mut origins, "a", second), TakeResult::Job(3), "one is enough");
    origins.remove(&"a", first);
    let (name, other) = connect(&mut origins);
    assert_eq!((name, origins.next_action(true)), ("b", PoolAction::Nothing));
    assert_eq!(take(&mut origins, "b", other), TakeResult::Job(7));
    // Each server has one connection, and keeps it while it has requests.
    origins.add("c", 9, 1).expect("there is room");
    assert_eq!(origins.next_action(true), PoolAction::Nothing);
    assert_eq!(take(&mut origins, "a", second), TakeResult::Job(4));
    assert_eq!(take(&mut origins, "b", other), TakeResult::Job(8));
    assert_eq!(take(&mut origins, "b", other), TakeResult::Nothing);
    assert_eq!(origins.next_action(true), PoolAction::Wake(other));
    assert_eq!(take(&mut origins, "b", other), TakeResult::End);
    origins.remove(&"b", other);
    assert_eq!(connect(&mut origins).0, "c", "a has one, whoever's turn it was");
    // No server with requests lacks a connection any more.
    assert_eq!(origins.next_action(true), PoolAction::Nothing);
    assert_eq!(take(&mut origins, "a", second), TakeResult::Job(5));
}

#[test]
fn an_origin_that_loses_its_only_connection_gets_the_place_back() {
    let mut origins = origins(3, 3, 9);
    (1..=9).for_each(|job| origins.add("a", job, 1).expect("there is room"));
    let of_a = [(); 3].map(|()| connect(&mut origins).1);
    of_a.iter().for_each(|id| assert!(matches!(take(&mut origins, "a", *id), TakeResult::Job(_))));
    // Each connection of b takes one request, or cannot be opened.
    (11..=15).for_each(|job| origins.add("b", job, 1).expect("there is room"));
    assert_eq!(origins.next_action(true), PoolAction::Nothing);
    assert_eq!(take(&mut origins, "a", of_a[0]), TakeResult::End);
    origins.remove(&"a", of_a[0]);
    for job in 11..=14 {
        let (name, id) = connect(&mut origins);
        assert_eq!((name, origins.next_action(true)), ("b", PoolAction::Nothing), "{job}");
        match job % 2 {
            0 => assert_eq!(origins.take_for_failure(&"b"), Some(job)),
            _ => assert_eq!(take(&mut origins, "b", id), TakeResult::Job(job)),
        }
        // No second connection of a ends for b.
        assert!(matches!(take(&mut origins, "a", of_a[1]), TakeResult::Job(_)), "{job}");
        origins.remove(&"b", id);
    }
}

#[test]
fn only_one_connection_ends_for_a_starving_origin() {
    let mut origins = origins(4, 4, 9);
    (1..=9).for_each(|job| origins.add("a", job, 1).expect("there is room"));
    let of_a = [(); 4].map(|()| connect(&mut origins).1);
    of_a.iter().for_each(|id| assert!(matches!(take(&mut origins, "a", *id), TakeResult::Job(_))));
    origins.add("b", 11, 1).expect("there is room");
    assert_eq!(origins.next_action(true), PoolAction::Nothing);
    assert_eq!(take(&mut origins, "a", of_a[0]), TakeResult::End);
    origins.remove(&"a", of_a[0]);
    for id in &of_a[1..] {
        assert!(matches!(take(&mut origins, "a", *id), TakeResult::Job(_)), "{id}");
    }
    assert_eq!(connect(&mut origins).0, "b");
}

#[test]
fn without_free_slots_the_longest_idle_makes_room_and_others_still_serve() {
    let mut origins = origins(9, 9, 9);
    let idle = |origins: &mut TestOrigins, name| {
        origins.add(name, 0, 1).expect("there is room");
        let (_, id) = connect(origins);
        assert_eq!(take(origins, name, id), TakeResult::Job(0));
        id
    };
    let (a, b) = (idle(&mut origins, "a"), idle(&mut origins, "b"));
    for (name, id) in [("b", b), ("a", a)] {
        assert_eq!(take(&mut origins, name, id), TakeResult::Nothing);
    }
    origins.add("c", 1, 1).expect("there is room");
    assert_eq!(
        origins.next_action(false),
        PoolAction::Wake(b),
        "b was used before a, whatever their names"
    );
    assert_eq!(origins.next_action(false), PoolAction::Nothing, "one is enough");
    origins.add("a", 2, 1).expect("there is room");
    assert_eq!(origins.next_action(false), PoolAction::Wake(a), "to serve");
    assert_eq!(take(&mut origins, "a", a), TakeResult::Job(2));
    assert_eq!(take(&mut origins, "b", b), TakeResult::End);
    origins.remove(&"b", b);
    assert_eq!(origins.next_action(false), PoolAction::Nothing, "somebody else took the place");
    assert_eq!(connect(&mut origins).0, "c");
}

#[test]
fn a_connection_that_becomes_idle_makes_room_for_blocked_origins() {
    let mut origins = origins(9, 1, 9);
    origins.add("a", 1, 1).expect("there is room");
    let (_, id) = connect(&mut origins);
    assert_eq!(take(&mut origins, "a", id), TakeResult::Job(1));
    origins.add("b", 2, 1).expect("there is room");
    assert_eq!(origins.next_action(true), PoolAction::Nothing, "it is busy");
    assert_eq!(take(&mut origins, "a", id), TakeResult::Nothing);
    assert_eq!(origins.next_action(true), PoolAction::Wake(id));
    assert_eq!(take(&mut origins, "a", id), TakeResult::End);
    origins.remove(&"a", id);
    assert_eq!(connect(&mut origins).0, "b");
}

#[test]
fn a_failed_connection_fails_the_oldest_request_and_others_retry() {
    let mut origins = origins(1, 9, 9);
    origins.add("a", 1, 1).expect("there is room");
    origins.add("a", 2, 1).expect("there is room");
    let (_, id) = connect(&mut origins);
    assert_eq!(origins.take_for_failure(&"a"), Some(1));
    origins.remove(&"a", id);
    let (_, id) = connect(&mut origins);
    assert_eq!(origins.take_for_failure(&"a"), Some(2));
    origins.remove(&"a", id);
    assert_eq!(origins.take_for_failure(&"a"), None);
    assert_eq!(origins.next_action(true), PoolAction::Nothing);
    assert!(origins.is_empty());
}

#[test]
fn removed_requests_leave_the_queue_and_an_empty_origin_is_dropped() {
    let mut origins = origins(1, 9, 9);
    for job in 1..=4 {
        origins.add("a", job, 1).expect("there is room");
    }
    origins.add_repeated("b", 6, 1);
    assert_eq!(origins.remove_where(|job| job % 2 == 0), [2, 4, 6]);
    assert_eq!(origins.waiting().copied().collect::<Vec<_>>(), [1, 3]);
    assert_eq!(origins.remove_where(|_| true), [1, 3]);
    assert_eq!(origins.next_action(true), PoolAction::Nothing);
    assert!(origins.is_empty());
}

/// Records that limit the number of all waiting requests, and their bytes.
fn bounded(jobs: usize, bytes: usize) -> TestOrigins {
    Origins::new(&PoolConfig::new().waiting_max(jobs).waiting_bytes_max(bytes), |_| false)
}

const SERVERS: [&str; 4] = ["a", "b", "c", "d"];

#[test]
fn waiting_requests_and_origins_are_bounded_over_all_servers() {
    let mut origins = bounded(3, 1_000);
    for (job, name) in (0..).zip(SERVERS) {
        let expected = if job < 3 { Ok(()) } else { Err(job) };
        assert_eq!(origins.add(name, job, 1), expected, "{name}");
    }
    assert_eq!(origins.by_name.len(), 3, "one that was refused is not in the books");
    assert_eq!(origins.take_for_failure(&"b"), Some(1));
    assert_eq!(origins.add("d", 3, 1), Ok(()), "there is room again");
    assert_eq!(origins.add("b", 1, 1), Err(1));
}

#[test]
fn waiting_requests_are_bounded_by_their_bytes() {
    for (bytes, is_taken) in [(29, true), (30, true), (31, false)] {
        let mut origins = bounded(9, 100);
        assert_eq!(origins.add("a", 1, 70), Ok(()));
        assert_eq!(origins.add("b", 2, bytes).is_ok(), is_taken, "{bytes}");
    }
    for alone in [100, 101, usize::MAX] {
        let mut origins = bounded(9, 100);
        assert_eq!(origins.add("a", 1, alone), Ok(()), "there is nothing else");
        assert_eq!(origins.add("b", 2, 1), Err(2), "{alone}");
    }
}

#[test]
fn room_returns_however_a_waiting_request_leaves() {
    type Removal = fn(&mut TestOrigins);
    let removals: [(&str, Removal); 4] = [
        ("taken", |origins| {
            let (name, id) = connect(origins);
            assert_eq!(take(origins, name, id), TakeResult::Job(1));
        }),
        ("failed", |origins| assert_eq!(origins.take_for_failure(&"a"), Some(1))),
        ("over", |origins| assert_eq!(origins.remove_where(|_| true), [1])),
        ("repeated, and taken", |origins| {
            let (_, id) = connect(origins);
            assert_eq!(take(origins, "a", id), TakeResult::Job(1));
            origins.add_repeated("a", 1, 100);
            assert_eq!(origins.add("b", 2, 1), Err(2), "it counts while it waits");
            origins.remove(&"a", id);
            let (_, id) = connect(origins);
            assert_eq!(take(origins, "a", id), TakeResult::Job(1));
        }),
    ];
    for (name, remove) in removals {
        let mut origins = bounded(1, 100);
        assert_eq!(origins.add("a", 1, 100), Ok(()));
        assert_eq!(origins.add("b", 2, 1), Err(2));
        remove(&mut origins);
        assert_eq!(origins.waiting, Load::default(), "{name}");
        assert_eq!(origins.add("b", 2, 1), Ok(()), "{name}");
    }
}

#[test]
fn a_repeated_request_is_never_rejected() {
    let mut origins = bounded(1, 10);
    assert_eq!(origins.add("a", 1, 10), Ok(()));
    origins.add_repeated("b", 2, 10);
    origins.add_repeated("c", 3, 10);
    assert_eq!(origins.waiting, Load { jobs: 3, bytes: 30 });
}

/// Otherwise each connection that ends would cost a step for each server that waits.
#[test]
fn an_origin_that_waits_for_a_place_is_not_looked_at_before_something_changes() {
    let mut origins = origins(9, 1, 9);
    (1..=3).for_each(|job| origins.add("a", job, 1).expect("there is room"));
    let (_, id) = connect(&mut origins);
    assert_eq!(take(&mut origins, "a", id), TakeResult::Job(1));
    ["b", "c", "d"].into_iter().for_each(|name| origins.add(name, 9, 1).expect("there is room"));
    assert_eq!(origins.next_action(true), PoolAction::Nothing);
    assert!(!origins.has_due());
    // The one whose need has changed is looked at.
    assert_eq!(take(&mut origins, "a", id), TakeResult::Job(2));
    assert_eq!(origins.due, ["a"]);
    // One that loses its only connection gets the place back.
    for (name, next, job) in [("a", "a", 3), ("a", "b", 9), ("b", "c", 9), ("c", "d", 9)] {
        let id = origins.next_id - 1;
        origins.remove(&name, id);
        assert_eq!(connect(&mut origins).0, next);
        assert_eq!(take(&mut origins, next, id + 1), TakeResult::Job(job));
        assert_eq!(origins.next_action(true), PoolAction::Nothing);
    }
}
