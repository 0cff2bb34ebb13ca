//! `Limits` with each limit at its extremes, for the tests of the server and of the client.
#![allow(dead_code, reason = "each suite uses a part of it")]

use std::time::Duration;

use rotor_http::Limits;

type Set<V> = fn(Limits, V) -> Limits;

const TIMES: [(&str, Set<Duration>); 12] = [
    ("connection_age_max", Limits::connection_age_max),
    ("idle_timeout", Limits::idle_timeout),
    ("head_timeout", Limits::head_timeout),
    ("body_grace", Limits::body_grace),
    ("handshake_timeout", Limits::handshake_timeout),
    ("handler_timeout", Limits::handler_timeout),
    ("response_grace", Limits::response_grace),
    ("shutdown_timeout", Limits::shutdown_timeout),
    ("linger_timeout", Limits::linger_timeout),
    ("response_timeout", Limits::response_timeout),
    ("continue_timeout", Limits::continue_timeout),
    ("unused_timeout", Limits::unused_timeout),
];

const SIZES: [(&str, Set<usize>); 11] = [
    ("head_bytes_max", Limits::head_bytes_max),
    ("field_bytes_max", Limits::field_bytes_max),
    ("fields_max", Limits::fields_max),
    ("target_bytes_max", Limits::target_bytes_max),
    ("empty_lines_max", |limits, n| limits.empty_lines_max(n as u8)),
    ("chunk_line_bytes_max", Limits::chunk_line_bytes_max),
    ("extension_bytes_max", Limits::extension_bytes_max),
    ("trailer_bytes_max", Limits::trailer_bytes_max),
    ("trailers_max", Limits::trailers_max),
    ("output_high_water", Limits::output_high_water),
    ("interim_responses_max", |limits, n| limits.interim_responses_max(n as u32)),
];

const NUMBERS: [(&str, Set<u64>); 6] = [
    ("buffered_body_bytes_max", Limits::buffered_body_bytes_max),
    ("requests_max", Limits::requests_max),
    ("body_rate_min", Limits::body_rate_min),
    ("response_rate_min", Limits::response_rate_min),
    ("linger_bytes_max", Limits::linger_bytes_max),
    ("drained_body_bytes_max", Limits::drained_body_bytes_max),
];

/// Each limit with each of its extremes, and whether that restricts nothing; then all of them
/// together.
pub(crate) fn limits() -> Vec<(String, Limits, bool)> {
    let mut all = Vec::new();
    let [mut least, mut greatest] = [Limits::new(), Limits::new()];
    for (name, set) in TIMES {
        for time in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            let is_greatest = time == Duration::MAX;
            all.push((format!("{name}({time:?})"), set(Limits::new(), time), is_greatest));
        }
        (least, greatest) = (set(least, Duration::ZERO), set(greatest, Duration::MAX));
    }
    for (name, set) in SIZES {
        for size in [0, 1, usize::MAX] {
            let is_greatest = size == usize::MAX;
            all.push((format!("{name}({size})"), set(Limits::new(), size), is_greatest));
        }
        (least, greatest) = (set(least, 0), set(greatest, usize::MAX));
    }
    for (name, set) in NUMBERS {
        for number in [0, 1, u64::MAX] {
            // A rate is a minimum.
            let is_greatest = number == if name.ends_with("rate_min") { 0 } else { u64::MAX };
            all.push((format!("{name}({number})"), set(Limits::new(), number), is_greatest));
        }
        (least, greatest) = (set(least, 0), set(greatest, u64::MAX));
    }
    all.push(("the least of all".to_owned(), least, false));
    all.push(("the greatest of all".to_owned(), greatest, true));
    all
}

/// Numbers that look random, the same for a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    pub(crate) fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// Limits of which each is at an extreme, small, or at its default.
pub(crate) fn random_limits(random: &mut Random) -> Limits {
    let mut limits = Limits::new();
    let short = Duration::from_micros;
    let times = [Duration::ZERO, short(1), short(1_500), short(5_000_000), Duration::MAX];
    for (_, set) in TIMES {
        if random.below(2) == 0 {
            limits = set(limits, random.choose(&times));
        }
    }
    for (_, set) in SIZES {
        if random.below(2) == 0 {
            limits = set(limits, random.choose(&[0, 1, 100, 5_000, usize::MAX]));
        }
    }
    for (_, set) in NUMBERS {
        if random.below(2) == 0 {
            limits = set(limits, random.choose(&[0, 1, 100, 5_000, u64::MAX]));
        }
    }
    limits
}
