//! Protocols whose limits change while they run, as HTTP's do on an upgrade.
#![forbid(unsafe_code)]

mod probe;

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use probe::{Event, Log, Probe, probe_with};
use rotor_stream::testing::Driver;
use rotor_stream::{ByteCounts, BytesHeld, Intent, StreamConfig};

/// Waits for lines of up to 500 bytes; writes a kilobyte for each. The line `change` switches to
/// the other limits.
fn driver_with_change(before: StreamConfig, after: Arc<StreamConfig>) -> Driver<Probe> {
    probe_with(
        before,
        |_| (),
        move |me, event, transport, _| match event {
            Event::Create => Intent::of(me).delimiter(b"\n", 500).no_deadline(),
            Event::Read(line) => {
                if line.content(transport.input) == b"change" {
                    transport.set_config(after.clone());
                }
                line.consume(transport.input);
                transport.output.write_all(&[b'x'; 1024]).expect("open");
                Intent::of(me).keep().keep_deadline()
            }
            Event::Exception(_) => Intent::done(),
            _ => Intent::of(me).keep().keep_deadline(),
        },
    )
}

/// The calls that follow from a line of 200 bytes after the change.
fn calls_after_change(before: StreamConfig, after: Arc<StreamConfig>) -> Log {
    let mut driver = driver_with_change(before, after);
    driver.send(b"change\n");
    driver.context_mut().clear();
    driver.send(&[&[b'l'; 199][..], b"\n"].concat());
    driver.context_mut().split_off(0)
}

#[test]
fn the_limits_of_the_last_change_apply() {
    let limit = "exception: the expected input is longer than 100 bytes";
    let whole = format!("read {:?}", "l".repeat(199));
    let [narrow, wide] = [100, 1000].map(|bytes| StreamConfig::new().input_max(bytes));
    assert_eq!(calls_after_change(narrow.clone(), wide.clone().share()), [&whole[..]]);
    assert_eq!(calls_after_change(wide.clone(), narrow.clone().share()), [limit]);
    assert_eq!(
        calls_after_change(narrow, StreamConfig::standard()),
        [limit],
        "which has nothing to say"
    );
}

#[test]
fn a_peer_has_unlimited_time_after_a_change_to_no_flush_step() {
    for (step, is_alive) in [(16_384, false), (0, true)] {
        let after = StreamConfig::new().flush_step(step).output_high_water(1 << 20).share();
        let mut driver = driver_with_change(StreamConfig::new(), after);
        driver.limit_room(0);
        driver.send(b"a line\n");
        driver.advance(Duration::from_secs(20));
        driver.send(b"change\n");
        driver.advance(Duration::from_secs(20));
        assert_eq!(driver.is_alive(), is_alive, "{step}");
    }
}

#[test]
fn held_bytes_are_returned_to_the_total_they_were_taken_from() {
    let [one, other] = [(); 2].map(|()| BytesHeld::new(1 << 20));
    let config = |held: &Arc<BytesHeld>| StreamConfig::new().held(Some(held.clone()));
    let mut driver = driver_with_change(config(&one), config(&other).share());
    driver.limit_room(0);
    driver.send(b"a line\n");
    let held = one.bytes();
    assert!(held >= 1024 && other.bytes() == 0);
    driver.send(b"change\n");
    assert!(one.bytes() == 0 && other.bytes() >= held.max(2048));
    driver.reset();
    assert_eq!((one.bytes(), other.bytes()), (0, 0));
}

#[test]
fn bytes_are_counted_as_before_unless_the_change_names_other_counts() {
    let [one, other] = [(); 2].map(|()| Arc::new(ByteCounts::new()));
    let config = |counts: &Arc<ByteCounts>| StreamConfig::new().count_bytes(counts.clone());
    let counted = |counts: &ByteCounts| (counts.read(), counts.written());
    let mut driver = driver_with_change(config(&one), StreamConfig::new().input_max(1_000).share());
    driver.send(b"change\n");
    driver.send(b"a line\n");
    assert_eq!(counted(&one), (14, 2 * 1024));
    let mut driver = driver_with_change(config(&one), config(&other).share());
    driver.send(b"change\n");
    driver.send(b"a line\n");
    assert_eq!((counted(&one), counted(&other)), ((14, 2 * 1024), (14, 2 * 1024)));
}

#[test]
fn options_that_a_change_leaves_open_stay_as_they_were() {
    let (held, aborts) = (BytesHeld::new(1 << 20), Arc::new(Mutex::new(0)));
    let count = aborts.clone();
    let before = StreamConfig::new()
        .held(Some(held.clone()))
        .on_abort(move |_| *count.lock().expect("no panic") += 1);
    let after = StreamConfig::new().close_timeout(Duration::from_secs(1)).share();
    let mut driver = driver_with_change(before, after);
    driver.limit_room(0);
    driver.send(b"change\n");
    assert!(held.bytes() >= 1024);
    // It is done, and the peer does not read its last bytes.
    driver.end();
    driver.advance(Duration::from_secs(2));
    assert!(driver.is_dropped());
    assert_eq!((held.bytes(), *aborts.lock().expect("no panic")), (0, 1));
}
