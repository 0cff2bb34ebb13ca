//! The key-value store.

#[path = "../../examples/key_value/command.rs"]
mod command;
#[path = "../../examples/key_value/machine.rs"]
mod machine;
#[path = "../../examples/key_value/operator.rs"]
mod operator;
#[path = "../../examples/key_value/shared.rs"]
mod shared;
#[path = "../../examples/key_value/store.rs"]
mod store;

use std::time::Duration;

use command::{Command, KEY_BYTES_MAX, LINE_BYTES_MAX, TTL_SECONDS_MAX, VALUE_BYTES_MAX};
use machine::{Client, IDLE_TIME_MAX, LINE_TIME_MAX, LISTED_BYTES, LISTED_KEYS};
use operator::Operator;
use rotor::stream::testing::{Driver, assert_cuts_agree};
use shared::{Counts, Shared};
use store::Store;

const PAIRS_MAX: usize = 10_000;

fn shared() -> Shared {
    Shared::new(Store::new(PAIRS_MAX, 64 << 20), 2)
}

fn client() -> Driver<Client> {
    Driver::new((), shared())
}

/// What a client receives for these lines.
fn answers(driver: &mut Driver<Client>, lines: &str) -> String {
    driver.send(lines.as_bytes());
    String::from_utf8(driver.take_received()).expect("it was text that was stored")
}

#[test]
fn answers_do_not_depend_on_how_lines_are_split() {
    let lines = "SET a x  y\r\nget a\nDEL a\nDEL a\nGET a\n\nINCR n\nINCR n\nSET nothing \nGET nothing\nKEYS n\nKEYS \nNO\n\
        TTL n 0\nGET n\nTTL n 1\nSET a\nKEYS\nQUIT\nGET a\n";
    let expected = "OK\nVALUE x  y\n1\n0\nNONE\nERR an unknown command\n1\n2\nOK\nVALUE \n\
        KEY n\nKEY nothing\nEND 2\nKEY n\nKEY nothing\nEND 2\nERR an unknown command\n1\nNONE\n0\n\
        ERR a wrong number of arguments\nKEY nothing\nEND 1\nBYE\n";
    let transcript = assert_cuts_agree(client, lines.as_bytes());
    assert_eq!(String::from_utf8_lossy(&transcript.output), expected);
    assert!(transcript.has_ended && transcript.failures.is_empty());
    let transcript = assert_cuts_agree(
        || Driver::<Operator>::new((), shared()),
        b"stats\r\nwhat\nQUIT\nSTATS\n",
    );
    let expected = "keys 0\nbytes 0\nexpired 0\nclients 0\nrefused 0\nlate 0\ncommands 0\nerrors 0\nEND\n\
        ERR an unknown command\n";
    assert_eq!(String::from_utf8_lossy(&transcript.output), expected);
}

#[test]
fn keys_expire_and_are_removed_at_their_deadline() {
    let mut driver = client();
    assert_eq!(
        answers(&mut driver, "SET a 1\nTTL a 9\nTTL a 5\nSET b 1\nTTL b 5\nSET b 2\n"),
        "OK\n1\n1\nOK\n1\nOK\n"
    );
    driver.advance(Duration::from_millis(4_999));
    assert_eq!(answers(&mut driver, "INCR a\n"), "2\n");
    driver.advance(Duration::from_millis(1));
    let now = driver.now();
    driver.context_mut().store.reap(now, 10);
    assert_eq!((driver.context().store.len(), driver.context().store.expired()), (1, 1));
    assert_eq!(
        answers(&mut driver, "GET a\nGET b\nKEYS\nTTL a 1\n"),
        "NONE\nVALUE 2\nKEY b\nEND 1\n0\n"
    );
    assert_eq!(answers(&mut driver, "DEL b\n"), "1\n");
    assert_eq!(driver.context().store.bytes(), 0);
}

#[test]
fn limits_of_lines_keys_and_values_are_exact_to_the_byte() {
    let set = |key: usize, value: usize| {
        [b"SET ", &vec![b'k'; key][..], b" ", &vec![b'v'; value]].concat()
    };
    assert!(matches!(
        Command::parse(&set(KEY_BYTES_MAX, VALUE_BYTES_MAX)),
        Ok(Command::Set { .. })
    ));
    assert_eq!(Command::parse(&set(KEY_BYTES_MAX + 1, 1)), Err("the key is too long"));
    assert_eq!(Command::parse(&set(1, VALUE_BYTES_MAX + 1)), Err("the value is too long"));
    let too_much = Err("seconds are not a number, or too many");
    let ttl = |seconds: u64| format!("TTL k {seconds}");
    assert!(matches!(Command::parse(ttl(TTL_SECONDS_MAX).as_bytes()), Ok(Command::Expire { .. })));
    assert_eq!(Command::parse(ttl(TTL_SECONDS_MAX + 1).as_bytes()), too_much);
    assert_eq!(Command::parse(b"TTL k -1"), too_much);
    for line in ["GET", "QUIT now", "SET a", "TTL a", "GET a b", "KEYS a b"] {
        assert_eq!(Command::parse(line.as_bytes()), Err("a wrong number of arguments"), "{line}");
    }
    assert_eq!(Command::parse(b"GET "), Err("the key is empty"));
    assert_eq!(Command::parse(b"GET \x01"), Err("the key has control characters"));

    let mut driver = client();
    let longest = [set(KEY_BYTES_MAX, VALUE_BYTES_MAX), b"\r\n".to_vec()].concat();
    assert_eq!(longest.len(), LINE_BYTES_MAX);
    driver.send(&longest);
    assert_eq!(driver.take_received(), b"OK\n");
    driver.send(&vec![b'x'; LINE_BYTES_MAX]);
    let expected = format!("ERR a line of more than {LINE_BYTES_MAX} bytes\n");
    assert_eq!(driver.take_received(), expected.as_bytes());
    assert!(driver.peer().is_ended() && driver.failures().is_empty());
}

#[test]
fn the_store_bounds_pairs_and_bytes_and_expired_pairs_free_room() {
    let mut shared = shared();
    shared.store = Store::new(3, 3 * 128 + 8);
    let mut driver = Driver::<Client>::new((), shared);
    assert_eq!(answers(&mut driver, "SET a 1\nSET b 9\nSET c 22\n"), "OK\nOK\nOK\n");
    assert_eq!(
        answers(&mut driver, "SET d 1\nSET a 333\nSET a 22\n"),
        "ERR the store is full\n".repeat(2) + "OK\n"
    );
    assert_eq!(answers(&mut driver, "INCR b\nGET b\n"), "ERR the store is full\nVALUE 9\n");
    assert_eq!(answers(&mut driver, "TTL c 1\n"), "1\n");
    driver.advance(Duration::from_secs(1));
    assert_eq!(
        answers(&mut driver, "INCR b\nSET d 1\nKEYS\n"),
        "10\nOK\nKEY a\nKEY b\nKEY d\nEND 3\n"
    );
    let max = format!("SET a {}\nINCR a\n", i64::MAX);
    driver.context_mut().store = Store::new(3, 1_000);
    assert_eq!(answers(&mut driver, &max), "OK\nERR the number is too large\n");
    assert_eq!(answers(&mut driver, "SET a one\nINCR a\n"), "OK\nERR the value is not a number\n");
}

/// Fills the store with keys of eight bytes. Returns the expected listing.
fn fill(driver: &mut Driver<Client>, keys: usize) -> Vec<u8> {
    let now = driver.now();
    let mut listing = Vec::new();
    for number in 0..keys {
        let key = format!("k{number:07}");
        driver.context_mut().store.set(key.as_bytes(), b"1", now).expect("there is place");
        listing.extend_from_slice(format!("KEY {key}\n").as_bytes());
    }
    listing.extend_from_slice(format!("END {keys}\n").as_bytes());
    listing
}

#[test]
fn a_long_listing_is_complete_and_paced_by_its_reader() {
    let mut driver = client();
    let listing = fill(&mut driver, PAIRS_MAX);
    driver.limit_room(0);
    driver.send(b"KEYS\nGET nothing\n");
    let waiting = |driver: &mut Driver<Client>| {
        let machines = driver.test().instance().machines();
        machines.iter().map(|(_, stream)| stream.output_len()).sum::<usize>()
    };
    assert!(
        (1..=2 * LISTED_BYTES + KEY_BYTES_MAX).contains(&waiting(&mut driver)),
        "{} bytes",
        waiting(&mut driver)
    );
    // Meanwhile the loop is drained.
    driver.drain(Duration::from_secs(60));
    driver.make_room(1 << 20);
    let expected = [listing, b"NONE\n".to_vec()].concat();
    assert!(driver.take_received() == expected);
    assert!(driver.peer().is_ended() && driver.failures().is_empty());
}

#[test]
fn a_listing_continues_past_a_batch_of_expired_keys() {
    let mut driver = client();
    fill(&mut driver, 5 * LISTED_KEYS);
    let now = driver.now();
    for number in 0..5 * LISTED_KEYS {
        let key = format!("k{number:07}");
        assert!(driver.context_mut().store.expire(key.as_bytes(), Duration::from_secs(1), now));
    }
    driver.advance(Duration::from_secs(1));
    assert_eq!(answers(&mut driver, "SET last 1\n"), "OK\n");
    let turns = driver.test().instance().stats().read().turns;
    assert_eq!(answers(&mut driver, "KEYS\n"), "KEY last\nEND 1\n");
    let turns = driver.test().instance().stats().read().turns - turns;
    assert!(turns >= 5 && driver.failures().is_empty(), "{turns} turns, {:?}", driver.failures());
}

#[test]
fn lines_and_idle_clients_time_out_but_slow_readers_do_not() {
    for (sent, time) in [(&b""[..], IDLE_TIME_MAX), (b"GET", LINE_TIME_MAX)] {
        let mut driver = client();
        driver.send(sent);
        driver.advance(time - Duration::from_millis(1));
        assert!(!driver.peer().is_ended());
        driver.send(sent);
        driver.advance(Duration::from_millis(1));
        assert_eq!(driver.take_received(), b"ERR too late\n");
        assert!(driver.peer().is_ended() && driver.context().counts.late == 1);
    }
    let mut driver = client();
    let value = [b'v'; VALUE_BYTES_MAX];
    driver.send(&[b"SET a ", &value[..], b"\n"].concat());
    assert_eq!(driver.take_received(), b"OK\n");
    driver.limit_room(0);
    driver.send(&b"GET a\n".repeat(100));
    driver.advance(2 * LINE_TIME_MAX);
    driver.make_room(1 << 20);
    assert!(driver.take_received() == [b"VALUE ", &value[..], b"\n"].concat().repeat(100));
    assert_eq!(driver.context().counts, Counts { commands: 101, ..Counts::default() });
}

#[test]
fn a_drain_answers_lines_that_arrive_within_the_grace_period() {
    let mut idle = client();
    idle.drain(Duration::from_secs(10));
    idle.advance(Duration::from_millis(999));
    assert!(!idle.peer().is_ended());
    idle.advance(Duration::from_millis(1));
    assert!(idle.peer().is_ended() && idle.take_received().is_empty());
    assert_eq!(idle.context().counts.late, 0);
    let mut late = client();
    late.drain(Duration::from_secs(10));
    late.advance(Duration::from_millis(999));
    late.send(b"SET");
    late.advance(Duration::from_secs(1));
    late.send(b" a 1\n");
    assert_eq!(late.take_received(), b"OK\n");
    assert!(late.peer().is_ended() && late.failures().is_empty());
    let mut busy = client();
    busy.send(b"SET a 1\nGET");
    busy.drain(Duration::from_secs(10));
    busy.send(b" a\n");
    assert_eq!(busy.take_received(), b"OK\nVALUE 1\n");
    assert!(busy.peer().is_ended());
    let mut slow = client();
    slow.send(&[b"SET a ", &[b'v'; VALUE_BYTES_MAX][..], b"\n"].concat());
    slow.take_received();
    slow.limit_room(0);
    slow.send(&b"GET a\n".repeat(20));
    slow.drain(Duration::from_secs(10));
    slow.make_room(1 << 20);
    assert_eq!(slow.take_received().len(), 20 * (VALUE_BYTES_MAX + "VALUE \n".len()));
    assert!(slow.peer().is_ended() && slow.failures().is_empty());
}

#[test]
fn a_client_beyond_the_limit_is_refused_and_places_are_released() {
    let shared = shared();
    let places = [shared.places.take(), shared.places.take()];
    assert!(places.iter().all(Option::is_some));
    let refused = Driver::<Client>::new((), shared);
    assert_eq!(refused.take_received(), b"ERR too many clients\n");
    assert!(refused.peer().is_ended());
    assert_eq!((refused.context().places.taken(), refused.context().counts.refused), (2, 1));
    drop(places);
    assert_eq!(refused.context().places.taken(), 0);
    for end in ["QUIT\n", "x"] {
        let mut driver = client();
        assert_eq!(driver.context().places.taken(), 1);
        driver.limit_room(0);
        driver.send(end.as_bytes());
        if end == "x" {
            driver.reset();
        }
        // The place is released as soon as the connection has ended, not when its peer has read the
        // last line.
        assert_eq!(driver.context().places.taken(), 0, "{end:?}");
    }
}
