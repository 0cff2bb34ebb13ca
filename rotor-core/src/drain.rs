//! `Drain`: how a loop ends, in up to three phases. `Phase`: the phase that it is in.

use std::time::Duration;

/// How a loop ends: the end may first be announced, then the loop drains, then it has ended.
///
/// ```text
///              drain_with        announce is over        all have ended, or time is over
///   Serving ─────────────▶ Announced ─────────▶ Draining ────────────────▶ ended
/// ```
///
/// 1. **Announced**, for [`announce`](Drain::announce) (default: not at all). Everything goes on,
///    including the listeners. [`Scope::phase`](crate::Scope::phase) returns this phase. Readiness
///    probes fail, and HTTP responses contain `Connection: close`, so balancers and clients go
///    elsewhere while nobody is refused.
/// 2. **Draining**, for at most `time`. All machines get [`draining`](crate::Machine::draining).
///    Listeners accept the connections that are queued, and close. A connection that waits for a
///    request of its peer may wait for [`grace`](Drain::grace) more: a request may be on its way
///    already, and would be lost if the connection closed now.
/// 3. The loop ends when no machine is left. Machines that are left when the time is over are
///    dropped.
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::{Drain, Grace};
/// use std::time::Duration;
///
/// // Under Kubernetes, which keeps sending requests for some time after it told a pod to end.
/// let drain = Drain::new(Duration::from_secs(20)).announce(Duration::from_secs(5));
/// // If another process has the listeners, there is time for peers that send requests rarely.
/// let handed_over = Drain::new(Duration::from_secs(60)).grace(Grace::WholeDrain);
/// # let _ = (drain, handed_over);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[doc(alias = "graceful shutdown")]
#[must_use = "it does nothing until a handle drains with it"]
pub struct Drain {
    pub(crate) announce: Duration,
    pub(crate) grace: Grace,
    pub(crate) time: Duration,
}

/// How long an idle connection still waits for a request of its peer during a drain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grace {
    /// For this long after the drain has begun, or after the request that was under way has ended;
    /// never longer than the drain.
    For(Duration),
    /// For as long as the drain: for a process whose successor already has its listeners, so that
    /// waiting costs nothing but memory.
    WholeDrain,
}

/// The phase that a loop is in; see [`Drain`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Phase {
    /// The loop has not been told to end.
    Serving = 0,
    /// The loop will drain soon. Until then it goes on as before.
    Announced = 1,
    /// The machines of the loop are finishing.
    Draining = 2,
}

impl Drain {
    /// Creates a drain of at most `time`, without an announcement and with a grace of 1 s, which is
    /// longer than a request takes to arrive, and short compared with a restart.
    pub fn new(time: Duration) -> Drain {
        Drain { announce: Duration::ZERO, grace: Grace::For(Duration::from_secs(1)), time }
    }

    /// Sets how long the drain is announced before it begins. Default: zero.
    ///
    /// This should be the time until no more connections are sent to this process: a balancer must
    /// see that its probe fails, and its clients must hear of that. Under Kubernetes this takes 5
    /// to 10 s; the announcement replaces a `preStop` hook that sleeps.
    #[doc(alias = "preStop")]
    pub fn announce(mut self, announce: Duration) -> Drain {
        self.announce = announce;
        self
    }

    /// Sets how long idle connections still wait for a request. Default: 1 s.
    ///
    /// A drain takes that much longer if peers keep idle connections. A peer that sends requests
    /// less often than that, and does not check whether its connection was closed, loses a request.
    pub fn grace(mut self, grace: Grace) -> Drain {
        self.grace = grace;
        self
    }

    /// Sets how long the loop drains at most, after the announcement. This is the `time` of
    /// [`new`](Drain::new).
    pub fn time_max(mut self, time: Duration) -> Drain {
        self.time = time;
        self
    }

    /// Returns how long the loop drains at most, after the announcement.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// Returns the maximum time from the call that starts the drain to the end of the loop.
    pub fn in_all(&self) -> Duration {
        self.announce.saturating_add(self.time)
    }

    /// Combines two drains that are requested at the same time. For each phase and the grace, the
    /// earlier end counts.
    pub(crate) fn combine_earliest(self, other: Drain) -> Drain {
        let announce = self.announce.min(other.announce);
        let end = self.in_all().min(other.in_all());
        let grace = Grace::For(self.grace.time().min(other.grace.time()));
        Drain { announce, grace, time: end.saturating_sub(announce) }
    }
}

impl Grace {
    /// Returns the time; `Duration::MAX` for the whole drain.
    pub(crate) fn time(self) -> Duration {
        match self {
            Grace::For(time) => time,
            Grace::WholeDrain => Duration::MAX,
        }
    }
}

impl Phase {
    /// Returns the phase that was stored as this number.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn from_number(number: u8) -> Phase {
        match number {
            0 => Phase::Serving,
            1 => Phase::Announced,
            _ => Phase::Draining,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn drain(announce: u64, grace: Grace, time: u64) -> Drain {
        Drain::new(seconds(time)).announce(seconds(announce)).grace(grace)
    }

    #[test]
    fn combine_earliest_takes_the_earlier_time_of_each_phase() {
        let whole = Grace::WholeDrain;
        let one = Grace::For(seconds(1));
        let forever = Grace::For(Duration::MAX);
        for (a, b, combined) in [
            (drain(0, one, 9), drain(0, one, 5), drain(0, one, 5)),
            (drain(5, one, 10), drain(0, one, 30), drain(0, one, 15)),
            (drain(5, whole, 10), drain(2, one, 3), drain(2, one, 3)),
            (drain(5, whole, 10), drain(8, whole, 4), drain(5, forever, 7)),
            (drain(0, one, u64::MAX), drain(3, one, 4), drain(0, one, 7)),
        ] {
            assert_eq!(
                (a.combine_earliest(b), b.combine_earliest(a)),
                (combined, combined),
                "{a:?} and {b:?}"
            );
        }
    }

    #[test]
    fn each_phase_is_restored_from_its_number() {
        for phase in [Phase::Serving, Phase::Announced, Phase::Draining] {
            assert_eq!(Phase::from_number(phase as u8), phase);
        }
    }
}
