//! The line echo server.

#[path = "../../examples/line_echo/machine.rs"]
mod machine;

use std::time::Duration;

use machine::{IDLE_TIME_MAX, LINE_BYTES_MAX, LINE_TIME_MAX, LineEcho};
use rotor::stream::testing::{Driver, assert_cuts_agree};

fn echo() -> Driver<LineEcho<()>> {
    Driver::new((), ())
}

#[test]
fn lines_are_echoed_however_they_are_split() {
    let transcript = assert_cuts_agree(echo, b"one\n\ntwo\r\nthree\nhalf");
    assert_eq!(transcript.output, b"one\n\ntwo\r\nthree\n");
    assert!(transcript.has_ended && transcript.failures.is_empty());
}

#[test]
fn the_longest_line_is_echoed_and_one_byte_more_ends_the_connection() {
    for (len, comes_back) in
        [(LINE_BYTES_MAX - 1, true), (LINE_BYTES_MAX, true), (LINE_BYTES_MAX + 1, false)]
    {
        let mut driver = echo();
        let line = [vec![b'x'; len - 1], b"\n".to_vec()].concat();
        driver.send(&line);
        assert!(
            driver.take_received() == if comes_back { line } else { Vec::new() },
            "{len} bytes"
        );
        assert_eq!(driver.peer().is_ended(), !comes_back);
    }
}

#[test]
fn dripped_bytes_do_not_extend_the_deadline_of_a_line() {
    let mut driver = echo();
    for _ in 0..LINE_TIME_MAX.as_secs() {
        driver.send(b"x");
        assert!(!driver.peer().is_ended());
        driver.advance(Duration::from_secs(1));
    }
    assert!(driver.peer().is_ended());
    let mut driver = echo();
    for _ in 0..3 {
        driver.advance(IDLE_TIME_MAX - Duration::from_millis(1));
        driver.send(b"line\n");
        assert_eq!(driver.take_received(), b"line\n");
    }
    driver.advance(IDLE_TIME_MAX);
    assert!(driver.peer().is_ended());
}

#[test]
fn a_drain_echoes_arrived_lines_and_ends_idle_clients_after_the_grace() {
    let mut silent = echo();
    silent.drain(Duration::from_secs(10));
    silent.advance(Duration::from_millis(999));
    assert!(!silent.peer().is_ended());
    silent.advance(Duration::from_millis(1));
    assert!(silent.peer().is_ended());
    // The line was in flight when the drain began.
    let mut late = echo();
    late.drain(Duration::from_secs(10));
    late.advance(Duration::from_millis(999));
    late.send(b"la");
    late.advance(Duration::from_secs(1));
    late.send(b"te\n");
    assert_eq!(late.take_received(), b"late\n");
    assert!(late.peer().is_ended() && late.failures().is_empty());
    // More than the output holds (64 KiB), by no more than one block of the input holds (16 KiB).
    let lines = [&[b'x'; 999][..], b"\n"].concat().repeat(80);
    let mut slow = echo();
    slow.limit_room(0);
    slow.send(&lines);
    slow.drain(Duration::from_secs(10));
    slow.make_room(lines.len());
    assert!(slow.take_received() == lines);
    assert!(slow.peer().is_ended() && slow.failures().is_empty());
}
