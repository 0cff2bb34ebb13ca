//! A client that takes its time: pauses between its pieces, against limits that they reach.
//!
//! What is demanded of it: a client that was nowhere late is answered as one that takes no time at
//! all; one that was gets the beginning of the same answers, and then an end; and whoever does
//! nothing for long enough has no connection left.

use std::time::Duration;

use rotor_http::Limits;

use super::super::input::Input;

const TICK: Duration = Duration::from_millis(1);

const IDLE: Duration = Duration::from_secs(20);
const HEAD: Duration = Duration::from_secs(10);
const BODY_GRACE: Duration = Duration::from_secs(5);
const HANDLER: Duration = Duration::from_secs(30);
const RESPONSE_GRACE: Duration = Duration::from_secs(7);
const SHUTDOWN: Duration = Duration::from_secs(4);
const LINGER: Duration = Duration::from_secs(2);

/// Nothing that a client leaves undone lasts for longer: all of the times one after the other, and
/// the body's twice, since what came of a short body is first counted when its grace is over.
pub(super) const IDLE_LIMIT: Duration = Duration::from_secs(20 + 10 + 2 * 5 + 30 + 7 + 4 + 2);

/// A client that needs less than this for everything is nowhere late.
const SHORTEST: Duration = LINGER;

/// Pauses that are far from every limit, just short of one, one, and beyond all of them.
const PAUSES: [Duration; 16] = [
    Duration::ZERO,
    TICK,
    Duration::from_millis(300),
    Duration::from_secs(1),
    Duration::from_millis(1_999),
    LINGER,
    SHUTDOWN,
    Duration::from_millis(4_999),
    BODY_GRACE,
    RESPONSE_GRACE,
    Duration::from_millis(9_999),
    HEAD,
    IDLE,
    HANDLER,
    Duration::from_secs(50),
    Duration::from_secs(100),
];

/// When a client does what it does.
#[derive(Debug)]
pub(super) struct Clock {
    /// After each of its pieces, one after the other.
    pauses: [Duration; 4],
    body_rate: u64,
    response_rate: u64,
}

impl Clock {
    /// Two bytes for the pauses, one for the rates.
    pub(super) fn choose(choices: &mut Input<'_>) -> Clock {
        let [a, b] = [choices.byte(), choices.byte()].map(usize::from);
        let pauses = [a % 16, a / 16, b % 16, b / 16].map(|number| PAUSES[number]);
        let (body_rate, response_rate) =
            choices.pick(&[(1 << 10, 1 << 10), (1, 1), (10, 100), (100, 10)]);
        Clock { pauses, body_rate, response_rate }
    }

    pub(super) fn limits(&self, limits: Limits) -> Limits {
        limits
            .idle_timeout(IDLE)
            .head_timeout(HEAD)
            .body_grace(BODY_GRACE)
            .body_rate_min(self.body_rate)
            .handler_timeout(HANDLER)
            .response_grace(RESPONSE_GRACE)
            .response_rate_min(self.response_rate)
            .shutdown_timeout(SHUTDOWN)
            .linger_timeout(LINGER)
    }

    /// How long the client waits after its piece of this number.
    pub(super) fn pause(&self, number: usize) -> Duration {
        self.pauses[number % self.pauses.len()]
    }

    /// Whether a client with so many pieces is too quick to meet any limit.
    pub(super) fn is_fast(&self, pieces: usize) -> bool {
        (0..pieces).map(|number| self.pause(number)).sum::<Duration>() < SHORTEST
    }
}
