//! The faults of a simulation, and how often they happen.

use std::fmt;

use crate::random::seeded;

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident: $family:ident, $rate:literal;)*) => {
        /// Something that goes wrong in a simulation. Each fault has a rate, between 0 (never) and
        /// 1 (each time).
        ///
        /// "Each time" means once for each operation, edge, turn or connection that the fault
        /// concerns. For faults that happen by themselves (partitions, crashes, jumps), it means
        /// once in about 100 ms of virtual time.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[non_exhaustive]
        pub enum Fault {
            $($(#[$doc])* $name,)*
        }

        impl Fault {
            /// All faults.
            pub const ALL: &[Fault] = &[$(Fault::$name,)*];

            /// Returns the family of the fault.
            pub fn family(self) -> Family {
                match self { $(Fault::$name => Family::$family,)* }
            }

            /// The rate from which a swarm starts.
            fn base_rate(self) -> f64 {
                match self { $(Fault::$name => $rate,)* }
            }
        }
    };
}

faults! {
    /// An edge that nothing caused, with any events: it may concern a socket that the machine had
    /// before.
    SpuriousEdge: Readiness, 0.05;
    /// An edge for a machine that is gone.
    StaleEdge: Readiness, 0.05;
    /// Two edges of one machine in one wait, instead of a merged one.
    SplitEdge: Readiness, 0.2;
    /// An edge that comes up to 20 ms late.
    LateEdge: Readiness, 0.05;
    /// A loop that gets its turn up to 2 ms after an edge, so that more edges gather for the same
    /// wait.
    Gather: Readiness, 0.2;
    /// A wait that returns its edges in another order.
    Reorder: Readiness, 0.5;
    /// A wait that returns only some of its edges; the rest come with the next one.
    Withhold: Readiness, 0.1;
    /// An edge that is not armed is lost: no operation has failed with `WouldBlock` since the last
    /// edge, so the readiness contract does not promise this one.
    #[doc(alias = "OwedEdgesOnly")]
    UnarmedEdgeLost: Readiness, 1.0;
    /// A wait that a signal interrupts: it returns nothing.
    WaitInterrupted: Readiness, 0.02;
    /// `WouldBlock` although the operation could proceed; an edge follows.
    WouldBlock: Readiness, 0.05;
    /// An operation that a signal interrupts (`EINTR`); it has done nothing.
    Interrupted: Interrupt, 0.02;
    /// A read that returns fewer bytes than have arrived: often one byte.
    ShortRead: Short, 0.3;
    /// A write that takes fewer bytes than there is room for: often one byte.
    ShortWrite: Short, 0.3;
    /// A segment, a datagram or a packet between two hosts that takes up to a hundred times the
    /// network's usual latency.
    LatencySpike: Latency, 0.02;
    /// Two hosts cannot reach each other for up to 5 s.
    Partition: Partition, 0.1;
    /// A connection that is reset, by itself or when it is read or written.
    Reset: Reset, 0.001;
    /// A reset that also discards the bytes that had arrived before it.
    ResetDropsInput: Reset, 0.5;
    /// The reset of a TCP socket that is closed overtakes bytes that were written before: those
    /// that are still on their way are lost, all or the last of them.
    ResetOvertakes: Reset, 0.5;
    /// An end of a TCP connection that is lost by itself, or when it is read or written, hears that
    /// it has timed out (`ETIMEDOUT`) and not of a reset, as if nobody had acknowledged its bytes.
    LossTimesOut: Reset, 0.3;
    /// A connection that is refused although there is a listener.
    ConnectRefused: Connect, 0.05;
    /// A connection attempt without a response, which times out after 127 s.
    ConnectHang: Connect, 0.01;
    /// An attempt to connect that finds no free descriptor (`EMFILE`), and fails at once.
    ConnectExhausted: Connect, 0.02;
    /// `accept` finds no free descriptor (`EMFILE`), whether or not a connection waits. A waiting
    /// connection stays in the queue.
    AcceptExhausted: Accept, 0.05;
    /// `accept` finds a connection that is already gone (`ECONNABORTED`).
    AcceptAborted: Accept, 0.02;
    /// A source that cannot be registered (`ENOSPC`).
    RegisterFails: Register, 0.01;
    /// A host whose slab has only 4 to 16 slots. Decided when the host starts.
    SmallSlab: SmallSlab, 0.5;
    /// A host crashes (its process, or its power) and starts again within 5 s.
    Crash: Crash, 0.03;
    /// A handler of a [`Watched`](crate::Watched) machine panics.
    HandlerPanics: Panic, 0.001;
    /// A UDP datagram that is lost, or the message that nobody receives one.
    DatagramLost: Datagram, 0.05;
    /// A UDP datagram that arrives twice.
    DatagramTwice: Datagram, 0.05;
    /// A UDP datagram that arrives up to 200 ms later, so that others overtake it.
    DatagramLate: Datagram, 0.1;
    /// A datagram socket that finds no free descriptor (`EMFILE`) when it is bound.
    DatagramExhausted: Datagram, 0.02;
    /// The clock jumps forward by up to a minute, as after the process was stopped.
    ClockJump: Clock, 0.01;
    /// The wall clock of a host steps by up to an hour, forward or back.
    WallStep: Clock, 0.02;
    /// A connection whose receiver takes few bytes at a time, and slowly.
    SlowReader: Slow, 0.05;
    /// A host whose loop has no turn for up to 2 s.
    SlowHost: Slow, 0.05;
    /// A turn in which the handlers take up to 30 ms.
    SlowTurn: Slow, 0.02;
    /// The pool has no room for a job.
    OffloadFull: Offload, 0.05;
    /// A job that is dropped before it runs, as by a pool that ends.
    OffloadLost: Offload, 0.02;
    /// A job that takes up to 10 s.
    OffloadSlow: Offload, 0.1;
    /// A [packet](crate::PacketPort) that is lost.
    PacketLost: Packet, 0.03;
    /// A packet that arrives twice.
    PacketTwice: Packet, 0.03;
    /// A packet that takes up to 50 ms longer, so that others overtake it.
    PacketLate: Packet, 0.05;
    /// A packet of which one bit changes on its way.
    PacketChanged: Packet, 0.01;
    /// A TCP segment that a middlebox drops, and for which it resets the connection: it sends a
    /// reset to each end, in the name of the other.
    MiddleBoxResets: MiddleBox, 0.000_5;
}

/// A group of faults that a swarm switches on and off together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the faults of each say it")]
pub enum Family {
    Readiness,
    Interrupt,
    Short,
    Latency,
    Partition,
    Reset,
    Connect,
    Accept,
    Register,
    SmallSlab,
    Crash,
    Panic,
    Datagram,
    Clock,
    Slow,
    Offload,
    Packet,
    MiddleBox,
}

/// Faults that happen by themselves.
pub(crate) const SPONTANEOUS: [Fault; 7] = [
    Fault::Partition,
    Fault::Crash,
    Fault::ClockJump,
    Fault::WallStep,
    Fault::SlowHost,
    Fault::SpuriousEdge,
    Fault::Reset,
];

const FAULT_COUNT: usize = Fault::ALL.len();

/// The rate of each fault.
///
/// ```
/// use rotor_sim::{Family, Fault, Faults};
///
/// let faults = Faults::none().set(Fault::ShortRead, 0.5).set(Fault::Reset, 0.01);
/// assert_eq!(faults.rate(Fault::ShortRead), 0.5);
/// let swarm = Faults::swarm(7).without(Family::Crash);
/// assert_eq!(swarm.rate(Fault::Crash), 0.0);
/// ```
#[derive(Clone, PartialEq, Eq)]
#[must_use]
pub struct Faults {
    /// In units of 2⁻³².
    rates: [u64; FAULT_COUNT],
}

impl Faults {
    /// Returns rates of 0: nothing goes wrong.
    pub fn none() -> Faults {
        Faults { rates: [0; FAULT_COUNT] }
    }

    /// Returns the rates from which swarms start: every fault is on.
    pub fn all() -> Faults {
        Fault::ALL
            .iter()
            .fold(Faults::none(), |faults, fault| faults.set(*fault, fault.base_rate()))
    }

    /// Returns rates that the seed determines: each family is on or off, and the rates of those
    /// that are on vary. Runs with few kinds of faults reach states that runs with all of them
    /// never reach.
    pub fn swarm(seed: u64) -> Faults {
        let mut random = seeded(seed, "faults");
        let on = random.u32(..);
        Fault::ALL.iter().fold(Faults::none(), |faults, fault| {
            // Drawn for families that are off, too: one family must not affect the rates of the
            // next. The variation is a factor, since the usual rates differ by a thousand.
            let factor = 2.0f64.powf(random.f64() * 4.0 - 2.0);
            let is_on = on & (1 << fault.family() as u32) != 0;
            if is_on { faults.set(*fault, fault.base_rate() * factor) } else { faults }
        })
    }

    /// Sets the rate of one fault, between 0 and 1.
    pub fn set(mut self, fault: Fault, rate: f64) -> Faults {
        self.rates[fault as usize] = (rate.clamp(0.0, 1.0) * (1u64 << 32) as f64) as u64;
        self
    }

    /// Switches off the faults of a family.
    pub fn without(self, family: Family) -> Faults {
        let of_family = Fault::ALL.iter().filter(|fault| fault.family() == family);
        of_family.fold(self, |faults, fault| faults.set(*fault, 0.0))
    }

    /// Returns the rate of a fault, between 0 and 1.
    pub fn rate(&self, fault: Fault) -> f64 {
        self.rates[fault as usize] as f64 / (1u64 << 32) as f64
    }

    /// Whether faults that happen by themselves are on.
    pub(crate) fn has_chaos(&self) -> bool {
        SPONTANEOUS.iter().any(|fault| self.rate(*fault) > 0.0)
    }

    /// Decides whether the fault happens this time. Draws a random number only if the rate is not
    /// 0.
    #[inline]
    pub(crate) fn roll(&self, fault: Fault, random: &mut fastrand::Rng) -> bool {
        let rate = self.rates[fault as usize];
        rate != 0 && u64::from(random.u32(..)) < rate
    }
}

/// Lists the faults that are on.
impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = Fault::ALL.iter().filter(|fault| self.rates[**fault as usize] != 0);
        f.debug_map()
            .entries(on.map(|fault| (fault, format_args!("{:.4}", self.rate(*fault)).to_string())))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_strike_at_their_rates() {
        let mut random = fastrand::Rng::with_seed(1);
        let faults = Faults::none().set(Fault::Reset, 0.25).set(Fault::Crash, 1.0);
        let rolled = (0..10_000).filter(|_| faults.roll(Fault::Reset, &mut random)).count();
        assert!((2_300..2_700).contains(&rolled), "{rolled}");
        assert!((0..1_000).all(|_| faults.roll(Fault::Crash, &mut random)));
        assert!((0..1_000).all(|_| !faults.roll(Fault::ShortRead, &mut random)));
    }

    #[test]
    fn a_swarm_has_each_family_in_about_half_of_the_seeds() {
        for fault in Fault::ALL {
            let on = (0..1_000).filter(|seed| Faults::swarm(*seed).rate(*fault) > 0.0).count();
            assert!((420..580).contains(&on), "{fault:?} in {on}");
        }
        assert_eq!(Faults::swarm(3), Faults::swarm(3));
    }
}
