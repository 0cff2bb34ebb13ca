//! Each field of a configuration at its extremes, with small real exchanges: at an extreme that
//! restricts nothing they end as the peer wishes, and at any other with the code that says why.

use std::time::Duration;

use rotor_websocket::{Deflate, WebSocketConfig};

use crate::kit::{BINARY, CLOSE, DEFLATE, PING, TEXT, close_payload, frame, open_with};

type Set<V> = fn(WebSocketConfig, V) -> WebSocketConfig;

const SIZES: [(&str, Set<usize>); 7] = [
    ("message_max", WebSocketConfig::message_max),
    ("messages_bytes_max", WebSocketConfig::messages_bytes_max),
    ("fragments_max", |config, n| config.fragments_max(n as u32)),
    ("control_max", |config, n| config.control_max(n as u32)),
    ("control_rate", |config, n| config.control_rate(n as u32)),
    ("unsent_high_water", WebSocketConfig::unsent_high_water),
    ("inflated_max", WebSocketConfig::inflated_max),
];

const TIMES: [(&str, Set<Duration>); 3] = [
    ("ping_after", WebSocketConfig::ping_after),
    ("pong_within", WebSocketConfig::pong_within),
    ("close_within", WebSocketConfig::close_within),
];

/// Each field with each of its extremes, and whether that restricts nothing; then all of them
/// together.
fn extremes() -> Vec<(String, WebSocketConfig, bool)> {
    let mut all = Vec::new();
    let new = || WebSocketConfig::new().deflate(Deflate::new());
    let [mut least, mut greatest] = [new(), new()];
    for (name, set) in SIZES {
        for size in [0, 1, usize::MAX] {
            all.push((format!("{name}({size})"), set(new(), size), size == usize::MAX));
        }
        (least, greatest) = (set(least, 0), set(greatest, usize::MAX));
    }
    for (name, set) in TIMES {
        for time in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            all.push((format!("{name}({time:?})"), set(new(), time), time == Duration::MAX));
        }
        (least, greatest) = (set(least, Duration::ZERO), set(greatest, Duration::MAX));
    }
    all.push(("the least of all".to_owned(), least, false));
    all.push(("the greatest of all".to_owned(), greatest, true));
    all
}

fn messages() -> Vec<(&'static str, Vec<u8>)> {
    let large = frame(BINARY, vec![b'x'; 100_000]);
    let text = |text| frame(TEXT, text);
    let fragments = [frame(0x01, "one "), frame(0x00, "two "), frame(0x80, "three")];
    vec![
        ("a text", text("hello")),
        ("three texts", [text("1"), text("2"), text("3")].concat()),
        ("fragments", fragments.concat()),
        ("a large message", large.clone()),
        ("pieces", [text("pieces"), large, text("whole"), text("back")].concat()),
        ("a ping", frame(PING, "p")),
        ("much output", text("owe 300000")),
        ("fragments of output", text("fragments a b c d")),
    ]
}

#[test]
fn with_any_field_at_its_extremes_a_connection_ends_in_good_order() {
    for (name, config, is_greatest) in extremes() {
        for ((message, bytes), fields) in
            messages().into_iter().flat_map(|each| [(each.clone(), ""), (each, DEFLATE)])
        {
            let case = format!("{name}, {message}, {fields:?}");
            let (mut driver, _) = open_with(config.clone(), "/", fields);
            bytes.chunks(5_000).for_each(|piece| driver.send(piece));
            driver.advance(Duration::from_millis(50));
            driver.send(&frame(CLOSE, close_payload(1000, "")));
            driver.end();
            let last = driver.context().events.last().cloned().unwrap_or_default();
            let codes: &[&str] =
                if is_greatest { &["1000"] } else { &["1000", "1008", "1009", "1013"] };
            let is_known = codes.iter().any(|code| last.starts_with(&format!("closed {code}")));
            assert!(is_known && driver.is_dropped(), "{case}: {last}");
            assert_eq!(driver.failures(), [""; 0], "{case}");
        }
    }
}
