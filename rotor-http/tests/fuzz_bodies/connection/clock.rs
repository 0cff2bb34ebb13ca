//! A slow client: it pauses between its pieces, and the pauses reach the limits.
//!
//! A client that was never late must get the same answers as one without pauses. A client that was
//! late gets the beginning of the same answers, and then the end of the connection. And a client
//! that does nothing for long enough has no connection left.

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

/// No state of an inactive client lasts longer: the sum of all limits, that of the body twice,
/// since the rate of a short body is first checked when its grace is over.
pub(super) const IDLE_LIMIT: Duration = Duration::from_secs(20 + 10 + 2 * 5 + 30 + 7 + 4 + 2);

/// A client that needs less than this in total is never late.
const SHORTEST: Duration = LINGER;

/// Pauses far below every limit, just below one, equal to one, and above all of them.
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

/// The pauses of a client, and the rate limits.
#[derive(Debug)]
pub(super) struct Clock {
    /// After each of its pieces, in a cycle.
    pauses: [Duration; 4],
    body_rate: u64,
    response_rate: u64,
}

impl Clock {
    /// Takes two bytes for the pauses, one for the rates.
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

    /// How long the client waits after the piece with this number.
    pub(super) fn pause(&self, number: usize) -> Duration {
        self.pauses[number % self.pauses.len()]
    }

    /// Whether a client with this number of pieces is too fast to reach any limit.
    pub(super) fn is_fast(&self, pieces: usize) -> bool {
        (0..pieces).map(|number| self.pause(number)).sum::<Duration>() < SHORTEST
    }
}
