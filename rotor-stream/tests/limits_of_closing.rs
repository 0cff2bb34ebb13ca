//! How long, and for how many bytes, a stream whose protocol is done still serves its peer.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rotor_core::Scope;
use rotor_stream::testing::Driver;
use rotor_stream::{AbortReason, Intent, Matched, Protocol, StreamConfig, Transport};

const CLOSE: Duration = Duration::from_secs(5);

/// The reasons why connections were aborted.
type AbortLog = Arc<Mutex<Vec<AbortReason>>>;

/// Answers each byte with fifty thousand bytes; `d` is the last one that it answers.
struct BulkProtocol;

impl Protocol for BulkProtocol {
    type Context = ();
    type Seed = AbortLog;
    fn config(aborts: &AbortLog) -> Arc<StreamConfig> {
        let aborts = aborts.clone();
        StreamConfig::new()
            .on_abort(move |reason| aborts.lock().expect("no panic").push(reason))
            .flush_timeout(CLOSE * 10)
            .flush_step(100)
            .close_timeout(CLOSE)
            .linger_bytes(1000)
            .share()
    }
    fn create(_: AbortLog, _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
        Intent::of(BulkProtocol).bytes(1).no_deadline()
    }
    fn bytes_read(
        self,
        _: Matched,
        transport: &mut Transport<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Intent<Self> {
        match transport.output.write_all(&[b'a'; 50_000]) {
            Ok(()) if transport.input[0] == b'd' => Intent::done(),
            _ => {
                transport.input.clear();
                Intent::of(self).bytes(1).no_deadline()
            }
        }
    }
}

#[test]
fn a_peer_that_reads_none_of_the_last_bytes_is_dropped() {
    let mut driver =
        Driver::<BulkProtocol>::with(AbortLog::default(), (), |peer| peer.limit_room(10));
    driver.send(b"d");
    driver.advance(CLOSE - Duration::from_millis(1));
    assert!(!driver.is_dropped());
    driver.advance(Duration::from_millis(1));
    assert!(driver.is_dropped());
}

#[test]
fn a_peer_that_reads_steadily_gets_all_of_the_last_bytes() {
    let mut driver =
        Driver::<BulkProtocol>::with(AbortLog::default(), (), |peer| peer.limit_room(10));
    driver.send(b"d");
    for _ in 0..500 {
        driver.advance(CLOSE - Duration::from_millis(1));
        driver.make_room(100);
    }
    assert_eq!(driver.received_len(), 50_000);
    assert!(driver.is_ended() && !driver.is_dropped());
}

#[test]
fn output_queued_before_the_end_gets_no_extra_time() {
    let mut driver =
        Driver::<BulkProtocol>::with(AbortLog::default(), (), |peer| peer.limit_room(10));
    driver.send(b"a");
    driver.advance(CLOSE * 5);
    assert!(!driver.is_dropped());
    driver.send(b"d");
    driver.advance(CLOSE);
    assert!(driver.is_dropped());
}

#[test]
fn bytes_after_the_end_are_discarded_up_to_a_limit() {
    for (count, is_dropped) in [(999, false), (1000, false), (1001, true)] {
        let mut driver = Driver::<BulkProtocol>::new(AbortLog::default(), ());
        driver.send(b"d");
        assert_eq!(driver.received_len(), 50_000);
        driver.send(&[b'x'; 500]);
        driver.send(&vec![b'x'; count - 500]);
        assert_eq!(driver.is_dropped(), is_dropped, "after {count}");
    }
}

#[test]
fn the_abort_hook_receives_the_reason_of_an_abort() {
    const LINGER: Duration = Duration::from_secs(2);
    type Act = fn(&mut Driver<BulkProtocol>);
    let cases: [(Act, &[AbortReason]); 5] = [
        (|driver| driver.advance(CLOSE), &[AbortReason::NotTaken]),
        (
            |driver| {
                driver.make_room(50_000);
                driver.advance(LINGER);
            },
            &[AbortReason::NotEnded],
        ),
        (
            |driver| {
                driver.make_room(50_000);
                driver.send(&[b'x'; 1001]);
            },
            &[AbortReason::StillSending],
        ),
        (
            |driver| {
                driver.make_room(50_000);
                driver.end();
            },
            &[],
        ),
        (|driver| driver.reset(), &[]),
    ];
    for (number, (act, expected)) in cases.into_iter().enumerate() {
        let aborts = AbortLog::default();
        let mut driver =
            Driver::<BulkProtocol>::with(aborts.clone(), (), |peer| peer.limit_room(10));
        driver.send(b"d");
        assert!(!driver.is_dropped());
        act(&mut driver);
        assert!(driver.is_dropped(), "case {number}");
        assert_eq!(*aborts.lock().expect("no panic"), expected, "case {number}");
    }
}

#[test]
fn a_protocol_that_takes_over_a_stream_keeps_no_earlier_expectation() {
    let intent: Intent<u8> = Intent::of(1).keep().keep_deadline().as_first();
    assert_eq!(
        format!("{intent:?}"),
        "Wait(Some(WaitCondition { input: Nothing, flush: None }), Never)"
    );
    let intent: Intent<u8> = Intent::of(1).bytes(3).keep_deadline().as_first();
    assert_eq!(
        format!("{intent:?}"),
        "Wait(Some(WaitCondition { input: Bytes(3), flush: None }), Never)"
    );
}
