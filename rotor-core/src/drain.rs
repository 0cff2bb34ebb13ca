//! `Drain`: how a loop ends, in up to three phases; `Phase`: in which of them it is.

use std::time::Duration;

/// How a loop ends: it may first announce that, then it drains, then it has ended.
///
/// ```text
///              drain_with        announce is over        all have ended, or time is over
///   Serving ─────────────▶ Announced ─────────▶ Draining ────────────────▶ ended
/// ```
///
/// 1. **Announced**, for [`announce`](Drain::announce) (default: not at all). Everything goes on,
///    also the listeners; [`Scope::phase`](crate::Scope::phase) tells those who ask. A readiness
///    probe is answered with no, and HTTP responses say `Connection: close`. So balancers and
///    clients go elsewhere while nobody is refused.
/// 2. **Draining**, for `time` at most. Machines are [told](crate::Machine::draining). Listeners
///    accept what has come, and close. A connection that waits for its peer to ask may wait for
///    [`grace`](Drain::grace) more: a request may already be on its way, and would be lost if the
///    connection closed now.
/// 3. The loop ends when no machine is left; the machines that are left when the time is over are
///    dropped.
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::{Drain, Grace};
/// use std::time::Duration;
///
/// // Under Kubernetes, where an endpoint is asked for some time after it was told to end.
/// let drain = Drain::new(Duration::from_secs(20)).announce(Duration::from_secs(5));
/// // Where another process has the listeners, those who ask seldom have all the time.
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

/// How long a connection with nothing under way still waits for its peer during a drain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grace {
    /// This long after the drain began, or after what was under way has ended; never longer than
    /// the drain.
    For(Duration),
    /// As long as the drain: for a process whose successor already has its listeners, so that
    /// waiting costs nothing but memory.
    WholeDrain,
}

/// The phase of its life that a loop is in; see [`Drain`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Phase {
    /// Nobody has asked the loop to end.
    Serving = 0,
    /// The loop will drain soon, and goes on as before until then.
    Announced = 1,
    /// The machines of the loop are finishing.
    Draining = 2,
}

impl Drain {
    /// Returns a drain of at most `time`, without an announcement and with a grace of 1 s: longer
    /// than a request is on its way, and short beside what a restart takes.
    pub fn new(time: Duration) -> Drain {
        Drain { announce: Duration::ZERO, grace: Grace::For(Duration::from_secs(1)), time }
    }

    /// Sets how long the drain is announced before it begins. Default: zero.
    ///
    /// Make it as long as it takes until nobody is sent here any more: a balancer has to see that
    /// its probe fails, and to tell everyone who asks it. Under Kubernetes that is 5 to 10 s, where
    /// the announcement replaces a `preStop` that sleeps.
    #[doc(alias = "preStop")]
    pub fn announce(mut self, announce: Duration) -> Drain {
        self.announce = announce;
        self
    }

    /// Sets how long connections with nothing under way still wait. Default: 1 s.
    ///
    /// While peers keep idle connections, a drain takes that much longer. A peer that asks less
    /// often than that, and does not look whether its connection was closed before it asks, loses
    /// its request.
    pub fn grace(mut self, grace: Grace) -> Drain {
        self.grace = grace;
        self
    }

    /// Sets how long the loop drains at most, after the announcement: the `time` of
    /// [`new`](Drain::new).
    pub fn time_max(mut self, time: Duration) -> Drain {
        self.time = time;
        self
    }

    /// Returns how long the loop drains at most, after the announcement.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// Returns how long the loop takes at most, from the request to the end.
    pub fn in_all(&self) -> Duration {
        self.announce.saturating_add(self.time)
    }

    /// Both at once, asked for at one time: of each part what comes sooner.
    pub(crate) fn or_sooner(self, other: Drain) -> Drain {
        let announce = self.announce.min(other.announce);
        let end = self.in_all().min(other.in_all());
        let grace = Grace::For(self.grace.time().min(other.grace.time()));
        Drain { announce, grace, time: end.saturating_sub(announce) }
    }
}

impl Grace {
    /// `Duration::MAX` for the whole drain.
    pub(crate) fn time(self) -> Duration {
        match self {
            Grace::For(time) => time,
            Grace::WholeDrain => Duration::MAX,
        }
    }
}

impl Phase {
    /// The phase that was stored as a number.
    #[inline(always)]
    pub(crate) fn of(number: u8) -> Phase {
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
    fn of_two_drains_what_comes_sooner_counts() {
        let whole = Grace::WholeDrain;
        let one = Grace::For(seconds(1));
        let forever = Grace::For(Duration::MAX);
        for (a, b, both) in [
            (drain(0, one, 9), drain(0, one, 5), drain(0, one, 5)),
            (drain(5, one, 10), drain(0, one, 30), drain(0, one, 15)),
            (drain(5, whole, 10), drain(2, one, 3), drain(2, one, 3)),
            (drain(5, whole, 10), drain(8, whole, 4), drain(5, forever, 7)),
            (drain(0, one, u64::MAX), drain(3, one, 4), drain(0, one, 7)),
        ] {
            assert_eq!((a.or_sooner(b), b.or_sooner(a)), (both, both), "{a:?} and {b:?}");
        }
    }

    #[test]
    fn each_phase_is_that_of_its_number() {
        for phase in [Phase::Serving, Phase::Announced, Phase::Draining] {
            assert_eq!(Phase::of(phase as u8), phase);
        }
    }
}
