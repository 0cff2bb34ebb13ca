//! `MemoryDevice`: a cable in memory, with all faults that a network may have.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rotor_core::Time;
use rotor_core::backend::Clock;

use super::{Device, Medium};
use crate::clock::{Alarm, LoopClock, ManualClock};

/// How a cable in memory treats packets.
///
/// Rates are per thousand packets. By default each packet arrives at once, once, in order and
/// unchanged.
#[derive(Clone, Debug)]
#[must_use]
pub struct MemoryConfig {
    medium: Medium,
    mtu: usize,
    packets_max: usize,
    latency: Duration,
    lost: u16,
    doubled: u16,
    delayed: u16,
    delay: Duration,
    corrupted: u16,
    seed: u64,
    clock: LoopClock,
}

/// One end of a cable in memory. The other end may belong to another loop, on any thread.
///
/// Packets are lost if the other end was dropped.
pub struct MemoryDevice {
    name: &'static str,
    medium: Medium,
    mtu: usize,
    incoming: Arc<Lane>,
    outgoing: Arc<Lane>,
    /// Readable while `is_woken` is set.
    wake_receiver: UnixStream,
    clock: LoopClock,
}

/// What has become of the packets that were sent to one end.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MemoryStats {
    /// Packets that were sent.
    pub sent: u64,
    /// Packets of `sent` that were lost at random.
    pub lost: u64,
    /// Packets of `sent` that were lost because the cable was full.
    pub overflowed: u64,
    /// Packets of `sent` that were lost because they were too long.
    pub oversized: u64,
    /// Packets of `sent` that arrive twice.
    pub doubled: u64,
    /// Packets of `sent` that were delayed, so that later ones can overtake them.
    pub delayed: u64,
    /// Packets of `sent` of which one bit was changed.
    pub corrupted: u64,
}

/// One direction of a cable.
struct Lane {
    traffic: Mutex<Traffic>,
    /// The other end of the receiver's `wake_receiver`.
    wake_sender: UnixStream,
    rules: MemoryConfig,
}

struct Traffic {
    /// By time of arrival, and then in the order in which they were sent.
    packets: BTreeMap<(Time, u64), Vec<u8>>,
    number: u64,
    /// The receiver was woken since it last looked.
    is_woken: bool,
    is_unplugged: bool,
    random: fastrand::Rng,
    alarm: Option<Alarm>,
    stats: MemoryStats,
}

impl MemoryConfig {
    /// Returns a cable without faults.
    pub fn new() -> MemoryConfig {
        MemoryConfig {
            medium: Medium::Ip,
            mtu: 1_500,
            packets_max: 1_024,
            latency: Duration::ZERO,
            lost: 0,
            doubled: 0,
            delayed: 0,
            delay: Duration::from_millis(2),
            corrupted: 0,
            seed: 0,
            clock: LoopClock::Real(Clock::new()),
        }
    }

    /// Sets the format of the packets. Default: [`Medium::Ip`].
    pub fn medium(mut self, medium: Medium) -> MemoryConfig {
        self.medium = medium;
        self
    }

    /// Sets the length of the longest IP packet, in bytes. Default 1,500; 576 to 65,535.
    pub fn mtu(mut self, bytes: usize) -> MemoryConfig {
        self.mtu = bytes.clamp(576, 65_535);
        self
    }

    /// Sets how many packets may be on their way in each direction. Further ones are lost. Default
    /// 1,024; at least 1.
    pub fn packets_max(mut self, packets: usize) -> MemoryConfig {
        self.packets_max = packets.max(1);
        self
    }

    /// Sets how long a packet is on its way. Default: no time.
    pub fn latency(mut self, time: Duration) -> MemoryConfig {
        self.latency = time;
        self
    }

    /// Sets how many of a thousand packets are lost. Default 0.
    pub fn lost(mut self, of_thousand: u16) -> MemoryConfig {
        self.lost = of_thousand;
        self
    }

    /// Sets how many of a thousand packets arrive twice. Default 0.
    pub fn doubled(mut self, of_thousand: u16) -> MemoryConfig {
        self.doubled = of_thousand;
        self
    }

    /// Sets how many of a thousand packets are delayed, and by how much at most, so that others
    /// overtake them. Default 0, and 2 ms.
    pub fn delayed(mut self, of_thousand: u16, up_to: Duration) -> MemoryConfig {
        self.delayed = of_thousand;
        self.delay = up_to;
        self
    }

    /// Sets in how many of a thousand packets one bit changes. Default 0.
    pub fn corrupted(mut self, of_thousand: u16) -> MemoryConfig {
        self.corrupted = of_thousand;
        self
    }

    /// Sets the seed of the faults. Default 0. The same seed gives the same faults.
    pub fn seed(mut self, seed: u64) -> MemoryConfig {
        self.seed = seed;
        self
    }

    /// Sets the clock by which packets travel, for virtual time. Default: the system's time.
    pub fn clock(mut self, clock: &ManualClock) -> MemoryConfig {
        self.clock = LoopClock::Manual(clock.clone());
        self
    }
}

impl Default for MemoryConfig {
    fn default() -> MemoryConfig {
        MemoryConfig::new()
    }
}

impl MemoryDevice {
    /// Returns both ends of a new cable.
    ///
    /// # Errors
    ///
    /// No descriptor is left: each end has a pair of sockets, by which it is woken.
    pub fn pair(config: &MemoryConfig) -> io::Result<(MemoryDevice, MemoryDevice)> {
        let (to_left, left_receiver) = Lane::new(config, 0)?;
        let (to_right, right_receiver) = Lane::new(config, 1)?;
        let end = |name, incoming: &Arc<Lane>, outgoing: &Arc<Lane>, wake_receiver| MemoryDevice {
            name,
            medium: config.medium,
            mtu: config.mtu,
            incoming: incoming.clone(),
            outgoing: outgoing.clone(),
            wake_receiver,
            clock: config.clock.clone(),
        };
        let left = end("the left end", &to_left, &to_right, left_receiver);
        Ok((left, end("the right end", &to_right, &to_left, right_receiver)))
    }

    /// Returns a cable with one end: packets come back, so a loop can talk to itself.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub fn loopback(config: &MemoryConfig) -> io::Result<MemoryDevice> {
        let (lane, wake_receiver) = Lane::new(config, 0)?;
        Ok(MemoryDevice {
            name: "the loopback",
            medium: config.medium,
            mtu: config.mtu,
            incoming: lane.clone(),
            outgoing: lane,
            wake_receiver,
            clock: config.clock.clone(),
        })
    }

    /// Unplugs the other end of the cable: the loop there ends with an error that says so.
    pub fn unplug(&self) {
        let mut traffic = self.outgoing.traffic();
        traffic.is_unplugged = true;
        self.outgoing.wake_receiver(&mut traffic);
    }

    /// Returns what has become of the packets that were sent to this end.
    pub fn stats(&self) -> MemoryStats {
        self.incoming.traffic().stats
    }
}

impl Device for MemoryDevice {
    fn name(&self) -> &str {
        self.name
    }

    fn medium(&self) -> Medium {
        self.medium
    }

    fn mtu(&self) -> usize {
        self.mtu
    }

    fn receive(&mut self, packet: &mut [u8]) -> io::Result<usize> {
        let mut traffic = self.incoming.traffic();
        if traffic.is_unplugged {
            return Err(io::Error::new(ErrorKind::NotConnected, "the cable was pulled out"));
        }
        let now = self.clock.now();
        let arrived = traffic.packets.first_entry().filter(|first| first.key().0 <= now);
        let Some(first) = arrived else {
            // Only now that no packet is left: the next one wakes it again.
            if std::mem::take(&mut traffic.is_woken) {
                self.wake_receiver.read_exact(&mut [0])?;
            }
            return Err(ErrorKind::WouldBlock.into());
        };
        let bytes = first.remove();
        traffic.set_alarm();
        let len = bytes.len().min(packet.len());
        packet[..len].copy_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        self.outgoing.send(packet, self.clock.now());
        Ok(())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.wake_receiver.as_fd())
    }

    fn next_arrival(&self) -> Option<Time> {
        self.incoming.traffic().next_arrival()
    }
}

impl Lane {
    fn new(rules: &MemoryConfig, direction: u64) -> io::Result<(Arc<Lane>, UnixStream)> {
        let (sender, receiver) = UnixStream::pair()?;
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        let alarm = rules.clock.alarm();
        let traffic = Traffic {
            packets: BTreeMap::new(),
            number: 0,
            is_woken: false,
            is_unplugged: false,
            random: fastrand::Rng::with_seed(rules.seed ^ direction),
            alarm,
            stats: MemoryStats::default(),
        };
        let lane = Lane { traffic: Mutex::new(traffic), wake_sender: sender, rules: rules.clone() };
        Ok((Arc::new(lane), receiver))
    }

    fn traffic(&self) -> MutexGuard<'_, Traffic> {
        // The lock protects no invariant: after a panic, a packet is in the queue or not.
        self.traffic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, packet: &[u8], now: Time) {
        let rules = &self.rules;
        let mut guard = self.traffic();
        let traffic = &mut *guard;
        traffic.stats.sent += 1;
        let longest =
            rules.mtu + if rules.medium == Medium::Ethernet { super::ETHERNET_HEADER } else { 0 };
        if packet.len() > longest {
            traffic.stats.oversized += 1;
            return;
        }
        if traffic.happens(rules.lost) {
            traffic.stats.lost += 1;
            return;
        }
        let copies = if traffic.happens(rules.doubled) { 2 } else { 1 };
        traffic.stats.doubled += copies - 1;
        for _ in 0..copies {
            traffic.enqueue(packet, now, rules);
        }
        self.wake_receiver(traffic);
    }

    /// Wakes the loop at the other end, unless that was done since it last looked.
    fn wake_receiver(&self, traffic: &mut Traffic) {
        if std::mem::replace(&mut traffic.is_woken, true) {
            return;
        }
        // There is room for a byte, since it is read before the next one is written. If the other
        // end is gone, there is nothing to wake.
        if let Err(error) = (&self.wake_sender).write(&[1]) {
            log::debug!("the other end of a cable is not woken: {error}");
        }
    }
}

impl Traffic {
    fn happens(&mut self, of_thousand: u16) -> bool {
        of_thousand > 0 && self.random.u16(0..1_000) < of_thousand
    }

    fn enqueue(&mut self, packet: &[u8], now: Time, rules: &MemoryConfig) {
        if self.packets.len() >= rules.packets_max {
            self.stats.overflowed += 1;
            return;
        }
        let mut bytes = packet.to_vec();
        if self.happens(rules.corrupted) {
            self.stats.corrupted += 1;
            let bit = self.random.usize(0..bytes.len().max(1) * 8);
            if let Some(byte) = bytes.get_mut(bit / 8) {
                *byte ^= 1 << (bit % 8);
            }
        }
        let mut at = now + rules.latency;
        if self.happens(rules.delayed) {
            self.stats.delayed += 1;
            let longest = u64::try_from(rules.delay.as_nanos()).unwrap_or(u64::MAX);
            at += Duration::from_nanos(self.random.u64(0..=longest));
        }
        self.number += 1;
        self.packets.insert((at, self.number), bytes);
        self.set_alarm();
    }

    fn next_arrival(&self) -> Option<Time> {
        self.packets.keys().next().map(|(at, _)| *at)
    }

    fn set_alarm(&self) {
        if let Some(alarm) = &self.alarm {
            alarm.set(self.next_arrival());
        }
    }
}

impl fmt::Debug for MemoryDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryDevice({}, {:?} of {} bytes)", self.name, self.medium, self.mtu)
    }
}

#[cfg(test)]
mod tests;
