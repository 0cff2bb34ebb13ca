//! `Stats`: what the application and its peers count. Pure: no scope, no sockets.
//!
//! Peers choose the names of the counters, so everything has a limit: the number of names, their
//! length, and the values.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Value, json};

/// The maximum number of names, counters and gauges together. They are kept in memory, and shown on
/// one page.
pub(crate) const NAMES_MAX: usize = 1_000;
/// The maximum length of a name, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 100;
/// The largest absolute value. Sums of such values stay exact for long, and always finite.
const VALUE_MAX: f64 = 1e12;
/// How many counters and gauges a report contains; all of them are on the page.
const REPORTED_MAX: usize = 5;

/// What was counted since the program began.
#[derive(Default)]
pub(crate) struct Stats {
    pub(crate) own: Own,
    /// The same counts at the end of the last interval.
    reported: Own,
    counters: BTreeMap<String, Counter>,
    gauges: BTreeMap<String, f64>,
}

/// What the application counts about itself.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Own {
    pub(crate) requests: u64,
    pub(crate) fetched: u64,
    pub(crate) failed: u64,
    pub(crate) datagrams: u64,
    pub(crate) samples: u64,
    pub(crate) refused: u64,
}

#[derive(Default)]
struct Counter {
    total: f64,
    /// The sum in the current interval.
    recent: f64,
    /// The rate per second in the last complete interval.
    rate: f64,
}

/// One line of a datagram: `name:1|c`, `name:1|c|@0.1`, `name:20.5|g`, `name:+2|g`.
#[derive(Debug, PartialEq)]
struct Sample<'a> {
    name: &'a str,
    change: Change,
}

#[derive(Debug, PartialEq)]
enum Change {
    Count(f64),
    Set(f64),
    Move(f64),
}

impl Stats {
    /// Processes a datagram. Each of its lines is counted or refused separately.
    pub(crate) fn take(&mut self, datagram: &[u8]) {
        self.own.datagrams += 1;
        for line in datagram.split(|&byte| byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            match Sample::parse(line).and_then(|sample| self.add(&sample)) {
                Some(()) => self.own.samples += 1,
                None => self.own.refused += 1,
            }
        }
    }

    /// Returns `None` if the name is new and there is no room for it.
    fn add(&mut self, sample: &Sample<'_>) -> Option<()> {
        let has_room = self.counters.len() + self.gauges.len() < NAMES_MAX;
        match sample.change {
            Change::Count(by) => {
                let counter = entry(&mut self.counters, sample.name, has_room)?;
                counter.total += by;
                counter.recent += by;
            }
            Change::Set(to) => *entry(&mut self.gauges, sample.name, has_room)? = to,
            Change::Move(by) => {
                let gauge = entry(&mut self.gauges, sample.name, has_room)?;
                *gauge = (*gauge + by).clamp(-VALUE_MAX, VALUE_MAX);
            }
        }
        Some(())
    }

    /// Ends an interval of this length; rates are then those of this interval. Returns a report, if
    /// anything happened in it.
    pub(crate) fn end_interval(&mut self, seconds: f64) -> Option<String> {
        for counter in self.counters.values_mut() {
            counter.rate = std::mem::take(&mut counter.recent) / seconds;
        }
        let (now, before) = (self.own, std::mem::replace(&mut self.reported, self.own));
        if now == before {
            return None;
        }
        let mut report = format!(
            "{seconds:.0} s: {} requests, {} fetched, {} failed; {} samples, {} refused",
            now.requests - before.requests,
            now.fetched - before.fetched,
            now.failed - before.failed,
            now.samples - before.samples,
            now.refused - before.refused,
        );
        let moving = self.counters.iter().filter(|(_, counter)| counter.rate != 0.0);
        for (name, counter) in moving.take(REPORTED_MAX) {
            let _ = write!(report, "; {name} {:.1}/s", counter.rate);
        }
        for (name, gauge) in self.gauges.iter().take(REPORTED_MAX) {
            let _ = write!(report, "; {name} = {gauge}");
        }
        Some(report)
    }

    /// Returns everything as JSON.
    pub(crate) fn to_json(&self) -> Value {
        let Own { requests, fetched, failed, datagrams, samples, refused } = self.own;
        let counters: Map<String, Value> = self
            .counters
            .iter()
            .map(|(name, counter)| {
                (name.clone(), json!({ "total": counter.total, "per_second": counter.rate }))
            })
            .collect();
        json!({
            "http": { "requests": requests, "fetched": fetched, "failed": failed },
            "statsd": { "datagrams": datagrams, "samples": samples, "refused": refused },
            "counters": counters,
            "gauges": self.gauges,
        })
    }
}

/// Returns the entry of a name, which is added if it is new and there is room.
fn entry<'a, V: Default>(
    values: &'a mut BTreeMap<String, V>,
    name: &str,
    has_room: bool,
) -> Option<&'a mut V> {
    if !values.contains_key(name) {
        if !has_room {
            return None;
        }
        values.insert(name.to_owned(), V::default());
    }
    values.get_mut(name)
}

impl Sample<'_> {
    fn parse(line: &[u8]) -> Option<Sample<'_>> {
        let line = std::str::from_utf8(line).ok()?;
        let (name, rest) = line.split_once(':')?;
        let is_name = (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_name_byte);
        let (value, kind) = rest.split_once('|')?;
        let amount = number(value).filter(|_| is_name)?;
        let change = match (kind, kind.strip_prefix("c|@")) {
            ("c", _) => Change::Count(amount),
            ("g", _) if value.starts_with(['+', '-']) => Change::Move(amount),
            ("g", _) => Change::Set(amount),
            // Only a sample of the events was sent, so each stands for several.
            (_, Some(rate)) => {
                let rate = number(rate).filter(|rate| (1e-6..=1.0).contains(rate))?;
                Change::Count(amount / rate)
            }
            _ => return None,
        };
        Some(Sample { name, change })
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._-/".contains(&byte)
}

/// Parses a decimal number within the limits. Other notations that Rust accepts are refused.
fn number(text: &str) -> Option<f64> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.".contains(&byte));
    let number: f64 = text.parse().ok().filter(|_| is_decimal && text.len() <= 32)?;
    (number.abs() <= VALUE_MAX).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_parsed_as_a_sample_or_refused() {
        use Change::{Count, Move, Set};
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        let (too_long, just_short) = (format!("{long}:1|c"), format!("{}:1|c", &long[1..]));
        let cases: [(&str, Option<Change>); 27] = [
            ("a:1|c", Some(Count(1.0))),
            ("a.b-c_d/e:1|c", Some(Count(1.0))),
            ("a:-3|c", Some(Count(-3.0))),
            ("a:1|c|@0.1", Some(Count(10.0))),
            ("a:2.5|g", Some(Set(2.5))),
            ("a:+2|g", Some(Move(2.0))),
            ("a:-2|g", Some(Move(-2.0))),
            ("a:1000000000000|g", Some(Set(1e12))),
            (&just_short, Some(Count(1.0))),
            (&too_long, None),
            ("a:1000000000001|g", None),
            ("", None),
            ("a", None),
            (":1|c", None),
            ("a:|c", None),
            ("a:1", None),
            ("a:1|", None),
            ("a:1|x", None),
            ("a:inf|c", None),
            ("a:nan|g", None),
            ("a:1e5|c", None),
            ("a b:1|c", None),
            ("a\"b:1|c", None),
            ("ä:1|c", None),
            ("a:1|c|@0", None),
            ("a:1|c|@2", None),
            ("a:1|c|@0.0000001", None),
        ];
        for (line, expected) in cases {
            let change = Sample::parse(line.as_bytes()).map(|sample| sample.change);
            assert_eq!(change, expected, "{line}");
        }
        assert_eq!(Sample::parse(b"\xff:1|c"), None);
    }

    #[test]
    fn the_number_of_names_is_bounded() {
        let mut stats = Stats::default();
        for number in 0..=NAMES_MAX {
            stats.take(
                format!("c{number}:1|{}", if number % 2 == 0 { "c" } else { "g" }).as_bytes(),
            );
        }
        assert_eq!((stats.own.samples, stats.own.refused), (NAMES_MAX as u64, 1));
        stats.take(b"c0:1|c\nc1:5|g\nnew:1|c");
        assert_eq!(
            (stats.own.samples, stats.own.refused),
            (NAMES_MAX as u64 + 2, 2),
            "those that are known"
        );
    }

    #[test]
    fn an_interval_has_rates_and_is_reported_if_it_has_samples() {
        let mut stats = Stats::default();
        assert_eq!(stats.end_interval(10.0), None);
        stats.take(b"hits:20|c\r\n\ntemperature:20|g\ntemperature:+1.5|g\nnonsense\n");
        let report = stats.end_interval(10.0).expect("something happened");
        let expected = "10 s: 0 requests, 0 fetched, 0 failed; 3 samples, 1 refused; hits 2.0/s; temperature = 21.5";
        assert_eq!(report, expected);
        assert_eq!(
            stats.to_json()["counters"]["hits"],
            json!({ "total": 20.0, "per_second": 2.0 })
        );
        assert_eq!(stats.end_interval(10.0), None);
        assert_eq!(
            stats.to_json()["counters"]["hits"],
            json!({ "total": 20.0, "per_second": 0.0 })
        );
    }
}
