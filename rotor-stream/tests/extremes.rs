//! Each field of a configuration at its extremes, with a small real exchange: at an extreme that
//! restricts nothing it succeeds, and at any other it succeeds or the stream ends.

mod probe;

use std::net::SocketAddr;
use std::time::Duration;

use probe::{Log, Probe, echo_lines, probe_with, seed};
use rotor_core::{Config, Time};
use rotor_stream::testing::{Peer, ScriptedListener, ScriptedSocket, Target, TestLoop, listener};
use rotor_stream::{
    Accept, AcceptConfig, LeastRate, Persistent, PersistentConfig, PersistentSeed, RateWatch,
    Stream, StreamConfig,
};

type Set<V> = fn(StreamConfig, V) -> StreamConfig;

const TIMES: [Duration; 3] = [Duration::ZERO, Duration::from_nanos(1), Duration::MAX];

const SIZE_FIELDS: [(&str, Set<usize>); 9] = [
    ("input_max", StreamConfig::input_max),
    ("output_high_water", StreamConfig::output_high_water),
    ("read_budget", StreamConfig::read_budget),
    ("collect_budget", StreamConfig::collect_budget),
    ("write_budget", StreamConfig::write_budget),
    ("calls_budget", |config, n| config.calls_budget(n as u32)),
    ("flush_step", StreamConfig::flush_step),
    ("linger_bytes", |config, n| config.linger_bytes(n as u64)),
    ("unsent_max", |config, n| config.unsent_max(Some(n as u32))),
];

const TIME_FIELDS: [(&str, Set<Duration>); 6] = [
    ("flush_timeout", StreamConfig::flush_timeout),
    ("close_timeout", StreamConfig::close_timeout),
    ("linger_timeout", StreamConfig::linger_timeout),
    ("connect_timeout", StreamConfig::connect_timeout),
    ("handshake_timeout", StreamConfig::handshake_timeout),
    ("keepalive", |config, time| config.keepalive(Some(time))),
];

/// Each field with each of its extremes, and whether that restricts nothing; then all of them
/// together.
fn extremes() -> Vec<(String, StreamConfig, bool)> {
    let mut all = Vec::new();
    let [mut least, mut greatest] = [StreamConfig::new(), StreamConfig::new()];
    for (name, set) in SIZE_FIELDS {
        for size in [0, 1, usize::MAX] {
            let is_greatest = size == if name == "flush_step" { 0 } else { usize::MAX };
            all.push((format!("{name}({size})"), set(StreamConfig::new(), size), is_greatest));
        }
        (least, greatest) = (set(least, 0), set(greatest, usize::MAX));
    }
    for (name, set) in TIME_FIELDS {
        for time in TIMES {
            let is_greatest = time == Duration::MAX;
            all.push((format!("{name}({time:?})"), set(StreamConfig::new(), time), is_greatest));
        }
        (least, greatest) = (set(least, Duration::ZERO), set(greatest, Duration::MAX));
    }
    all.push(("the least of all".to_owned(), least, false));
    all.push(("the greatest of all".to_owned(), greatest, true));
    all
}

#[test]
fn with_any_field_at_its_extremes_lines_are_echoed_or_the_stream_ends() {
    for (name, config, is_greatest) in extremes() {
        for room in [usize::MAX, 100] {
            let before = |peer: &Peer| {
                if room < usize::MAX {
                    peer.limit_room(room);
                }
            };
            let mut driver = probe_with::<false>(config.clone(), before, echo_lines);
            let lines = b"a line of text\n".repeat(1_000);
            lines.chunks(999).for_each(|piece| driver.send(piece));
            driver.end();
            let mut received = 0;
            for _ in 0..=lines.len() / 100 {
                let len = driver.take_received().len();
                received += len;
                if room < usize::MAX {
                    driver.make_room(len);
                }
                driver.advance(Duration::from_millis(10));
            }
            assert!(received == lines.len() || !is_greatest, "{name}: {received}");
            assert!(driver.is_dropped(), "{name}: it waits, with {received} received");
        }
    }
}

#[test]
fn with_any_field_at_its_extremes_a_listener_accepts_one_connection_after_the_other() {
    type Server = Accept<Stream<Probe, ScriptedSocket>, ScriptedListener>;
    let sizes = [0, 1, usize::MAX];
    let configs = sizes.into_iter().flat_map(|size| {
        let config = AcceptConfig::new();
        [config.clone().connections_max(size), config.accept_budget(size as u32)]
    });
    let configs = configs.chain(TIMES.into_iter().flat_map(|time| {
        let config = AcceptConfig::new();
        [config.clone().pause(time), config.idle_min(time)]
    }));
    for accept in configs {
        // There is room for one connection at a time, and for the listener.
        let config = Config::new().machines_max(2);
        let mut test = TestLoop::<Server>::with_config(Log::new(), config);
        let (listener, door) = listener(test.world());
        let seed = seed(StreamConfig::new(), echo_lines);
        let case = format!("{accept:?}");
        test.add(|scope| Accept::listen(listener, seed, accept, scope));
        let peers = [(); 5].map(|()| door.connect());
        for peer in peers {
            peer.send(b"hello\n");
            test.settle();
            assert_eq!(peer.take_received(), b"hello\n", "{case}");
            peer.end();
            test.settle();
        }
    }
}

#[test]
fn with_any_times_at_their_extremes_a_lost_connection_is_made_again() {
    let address = SocketAddr::from(([10, 0, 0, 1], 1));
    for (min, max) in TIMES.into_iter().flat_map(|min| TIMES.map(|max| (min, max))) {
        for stable in TIMES {
            let config =
                PersistentConfig::new().backoff_min(min).backoff_max(max).stable_after(stable);
            let case = format!("{config:?}");
            let mut test = TestLoop::<Persistent<Probe, ScriptedSocket>>::new(Log::new());
            test.world().target(address, Target::Accepts);
            let seed = seed(StreamConfig::new(), echo_lines);
            let seed = PersistentSeed::new(address, seed).config(config);
            test.add(|scope| Persistent::new(seed, scope));
            let peer = test.world().take_connections().remove(0);
            peer.end();
            test.settle();
            let lost = test.world().now();
            let again = test.advance_to_deadline();
            let is_endless = min.min(max) == Duration::MAX;
            assert_eq!(again.is_none(), is_endless, "{case}");
            assert!(again.is_none_or(|again| again > lost), "{case}: not at once");
            let connections = test.world().take_connections().len();
            assert_eq!(connections, usize::from(!is_endless), "{case}");
        }
    }
}

#[test]
fn a_rate_at_its_extremes_is_watched_without_overflow() {
    let now = Time::ZERO + Duration::from_secs(1);
    for bytes in [0, 1, u64::MAX] {
        for time in TIMES {
            for slack in TIMES {
                let rate = LeastRate::new(bytes, time).slack(slack);
                let mut watch = RateWatch::new(rate, now);
                for passed in [0, 1, u64::MAX] {
                    watch.pass(passed, rate, now);
                    assert!(watch.until() >= now, "{rate:?}");
                }
                watch.put_off(Duration::MAX);
                watch.require_by(now);
            }
        }
    }
}
