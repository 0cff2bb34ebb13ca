//! Everything in a simulation except its loops: the time, the events to come, the hosts, the
//! network.
//!
//! The loops' sockets reach the world through their backend's handle. No user's code runs while the
//! world is borrowed.

mod connecting;
mod datagrams;
mod draining;
mod edges;
mod ends;
mod host_state;
mod interest;
mod ledger;
mod link;
mod listening;
mod middle_box;
mod operations;
mod packets;
mod place;
mod segments;
mod sim_event;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use rotor_core::Time;
use rotor_core::backend::OffloadJob;

use self::host_state::HostState;
use self::sim_event::Entry;
use crate::faults::{Fault, Faults};
use crate::network::Network;
use crate::random::seeded;
use crate::strikes::Strikes;
use crate::table::{Key, Table};
use crate::trace::{Record, Trace, TraceEvent};

pub(crate) use self::ends::{Backlog, DatagramEnd, ListenerEnd};
pub(crate) use self::host_state::SimWaker;
pub(crate) use self::link::{End, Link};
pub use self::place::Place;
pub(crate) use self::sim_event::SimEvent;

pub(crate) type Shared = Rc<RefCell<World>>;

/// A job of the virtual pool. Half of its time it waits for a thread, the other half it runs.
pub(crate) struct VirtualJob {
    pub(crate) job: OffloadJob,
    pub(crate) queued_for: Duration,
}

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) step: u64,
    pub(crate) random: fastrand::Rng,
    /// For the secure numbers of the loops. Separate from `random`, so that drawing more of them
    /// changes nothing else.
    pub(crate) entropy: fastrand::Rng,
    pub(crate) faults: Faults,
    pub(crate) strikes: Strikes,
    /// How many clients wait for something.
    pub(crate) busy: u32,
    pub(crate) network: Network,
    pub(crate) trace: Trace,
    pub(crate) hosts: Vec<HostState>,
    pub(crate) links: Table<Link>,
    pub(crate) listeners: Table<ListenerEnd>,
    pub(crate) datagrams: Table<DatagramEnd>,
    /// Each with its host.
    pub(crate) jobs: Table<(u32, VirtualJob)>,
    /// The paths to which sockets were bound, each with its host. Their files stay.
    paths: BTreeSet<(u32, PathBuf)>,
    /// Pairs of hosts that cannot reach each other.
    pub(crate) partitions: Vec<Partition>,
    /// Grows with all progress: bytes, connections, jobs. A busy loop is one that takes turns
    /// without it.
    pub(crate) progress: u64,
    pub(crate) violation: Option<Violation>,
    /// When the last packet on its way from one host to another arrives.
    last_arrivals: BTreeMap<(u32, u32), Time>,
    queue: BinaryHeap<Entry>,
    serial: u32,
}

/// The first of the dynamic ports (RFC 6335 §6).
const FIRST_PORT: u16 = 49_152;

/// The number of dynamic ports.
const PORTS: u16 = 16_384;

/// Two hosts that cannot reach each other.
pub(crate) struct Partition {
    pair: (u32, u32),
    /// The test has made this partition, and only the test ends it.
    is_by_test: bool,
}

/// Returns the nanoseconds of a duration, at most as many as loop time can represent.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn pair(a: u32, b: u32) -> (u32, u32) {
    (a.min(b), a.max(b))
}

/// A property that does not hold.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) property: String,
    pub(crate) message: String,
}

impl World {
    pub(crate) fn new(seed: u64) -> World {
        World {
            now: Time::ZERO,
            step: 0,
            random: seeded(seed, "world"),
            entropy: seeded(seed, "entropy"),
            faults: Faults::none(),
            strikes: Strikes::none(),
            busy: 0,
            network: Network::new(),
            trace: Trace::new(seed),
            hosts: Vec::new(),
            links: Table::new(),
            listeners: Table::new(),
            datagrams: Table::new(),
            jobs: Table::new(),
            paths: BTreeSet::new(),
            partitions: Vec::new(),
            progress: 0,
            violation: None,
            last_arrivals: BTreeMap::new(),
            queue: BinaryHeap::new(),
            serial: 0,
        }
    }

    pub(crate) fn add_host(&mut self, name: &str) -> u32 {
        let number = self.hosts.len() as u32;
        self.hosts.push(HostState::new(name, number));
        number
    }

    pub(crate) fn host(&mut self, host: u32) -> &mut HostState {
        &mut self.hosts[host as usize]
    }

    /// Returns the time that a host's loop sees.
    pub(crate) fn local_time(&self, host: u32) -> Time {
        self.now.max(self.hosts[host as usize].ahead)
    }

    /// Reads the clock for a loop. The second reading of a turn adds the time that its handlers
    /// have taken.
    pub(crate) fn read_clock(&mut self, host: u32) -> Time {
        let now = self.local_time(host);
        let state = self.host(host);
        state.clock_readings += 1;
        if state.clock_readings == 2 && !state.turn_cost.is_zero() {
            state.ahead = now + state.turn_cost;
            state.turn_cost = Duration::ZERO;
            return state.ahead;
        }
        now
    }

    pub(crate) fn is_blocked(&self, a: u32, b: u32) -> bool {
        let is_up = |host: u32| self.hosts[host as usize].is_up;
        !is_up(a) || !is_up(b) || self.is_partitioned(a, b)
    }

    pub(crate) fn is_partitioned(&self, a: u32, b: u32) -> bool {
        self.partitions.iter().any(|partition| partition.pair == pair(a, b))
    }

    /// Rolls a fault that may turn out to have no target. If it does strike, the caller calls
    /// [`count_fault`](World::count_fault).
    #[inline]
    pub(crate) fn roll_uncounted(&mut self, fault: Fault) -> bool {
        self.faults.roll(fault, &mut self.random)
    }

    /// Counts a fault.
    #[inline]
    pub(crate) fn count_fault(&mut self, fault: Fault) {
        self.strikes.add(fault, self.busy > 0);
    }

    #[inline]
    pub(crate) fn roll(&mut self, fault: Fault) -> bool {
        let happens = self.roll_uncounted(fault);
        if happens {
            self.count_fault(fault);
        }
        happens
    }

    /// Rolls a fault of a host, and records it.
    #[inline]
    pub(crate) fn roll_fault_at(&mut self, fault: Fault, host: u32) -> bool {
        let strikes = self.roll(fault);
        if strikes {
            self.record(host, TraceEvent::Fault(fault));
        }
        strikes
    }

    #[inline]
    pub(crate) fn record(&mut self, host: u32, event: TraceEvent) {
        let (time, step) = (self.now, self.step);
        self.trace.record(Record { time, step, host: host.wrapping_add(1), event });
    }

    pub(crate) fn fail(&mut self, property: &str, message: String) {
        // Keeps only the first violation, which may have caused the others.
        if self.violation.is_none() {
            self.violation = Some(Violation { property: property.to_string(), message });
        }
    }

    /// Returns a number that no connection of this run had before.
    pub(crate) fn next_serial(&mut self) -> u32 {
        self.serial += 1;
        self.serial
    }

    /// Returns a port for a socket that was not given one: the next port to which no socket of the
    /// host is bound.
    pub(crate) fn next_port(&mut self, host: u32) -> u16 {
        for _ in 0..PORTS {
            let state = self.host(host);
            state.next_port = (state.next_port + 1) % PORTS;
            // If all ports are bound, `bind` fails with the last one.
            if !self.is_bound(host, FIRST_PORT + self.hosts[host as usize].next_port) {
                break;
            }
        }
        FIRST_PORT + self.hosts[host as usize].next_port
    }

    /// Remembers that a socket is bound to a place. The file of a path outlives the socket.
    pub(crate) fn remember_path(&mut self, place: &Place) {
        if let Place::Path(host, path) = place {
            self.paths.insert((*host, path.clone()));
        }
    }

    /// Returns why a path cannot be reached to which no socket is bound: nobody listens at its file
    /// any more (`ECONNREFUSED`), or there is none (`ENOENT`).
    fn error_of_path(&self, place: &Place) -> io::ErrorKind {
        match place {
            Place::Path(host, path) if self.paths.contains(&(*host, path.clone())) => {
                io::ErrorKind::ConnectionRefused
            }
            _ => io::ErrorKind::NotFound,
        }
    }

    fn is_bound(&self, host: u32, port: u16) -> bool {
        let is_there = |of: u32, place: &Place| {
            of == host && matches!(place, Place::Inet(address) if address.port() == port)
        };
        self.datagrams.iter().any(|(_, socket)| is_there(socket.host, &socket.place))
            || self.listeners.iter().any(|(_, listener)| is_there(listener.host, &listener.place))
    }

    pub(crate) fn random_duration(&mut self, max: Duration) -> Duration {
        // At least 1 ns: otherwise an event that schedules itself again would stop the time.
        Duration::from_nanos(self.random.u64(1..=nanos(max).max(1)))
    }

    /// Returns how long something takes from one host to another.
    pub(crate) fn latency(&mut self, from: u32, to: u32) -> Duration {
        let least = nanos(self.network.latency.start).min(u64::MAX - 1);
        let most = nanos(self.network.latency.end).max(least + 1);
        let mut nanos = self.random.u64(least..most);
        if from == to {
            nanos /= 10;
        } else if self.roll(Fault::LatencySpike) {
            nanos = nanos.saturating_mul(self.random.u64(1..=100));
        }
        Duration::from_nanos(nanos)
    }

    pub(crate) fn schedule(&mut self, time: Time, event: SimEvent) {
        // Events of the same time happen in an order that the seed determines.
        let tie = self.random.u64(..);
        self.queue.push(Entry { time, tie, event });
    }

    /// Returns the time of the next event.
    pub(crate) fn next_event_time(&self) -> Option<Time> {
        self.queue.peek().map(|entry| entry.time)
    }

    pub(crate) fn pop_due_event(&mut self) -> Option<SimEvent> {
        if self.next_event_time()? > self.now {
            None
        } else {
            self.queue.pop().map(|entry| entry.event)
        }
    }

    /// Handles an event, or returns it if it runs users' code.
    pub(crate) fn handle_event(&mut self, event: SimEvent) -> Option<SimEvent> {
        match event {
            SimEvent::Arrive(link, side) => self.deliver_segments(link, side),
            SimEvent::Syn(link, tries) => self.deliver_syn(link, tries),
            SimEvent::Connected(link) => self.deliver_connected(link),
            SimEvent::ConnectFailed(link, why) => self.fail_connect(link, why),
            SimEvent::Room(link, side) => self.deliver_room_report(link, side),
            SimEvent::Edge(host, incarnation, token, events) => {
                // Otherwise the edge was for a loop that a crash has ended.
                if self.hosts[host as usize].incarnation == incarnation {
                    self.deliver_edge(host, token, events);
                }
            }
            SimEvent::Datagram(datagram) => self.deliver_datagram(*datagram),
            SimEvent::DatagramRefused(datagram) => self.deliver_refusal(&datagram),
            SimEvent::Packet(packet) => self.deliver_packet(*packet),
            SimEvent::Heal(a, b) => self.heal_pair(a, b, false),
            event @ (SimEvent::Job(_) | SimEvent::Start(..) | SimEvent::Chaos) => {
                return Some(event);
            }
        }
        None
    }

    /// Removes the jobs that a host has given to the virtual pool. They must be dropped while the
    /// world is not borrowed.
    pub(crate) fn take_jobs(&mut self, host: u32) -> Vec<VirtualJob> {
        let keys: Vec<Key> =
            self.jobs.iter().filter(|(_, (of, _))| *of == host).map(|(key, _)| key).collect();
        keys.into_iter().filter_map(|key| Some(self.jobs.remove(key)?.1)).collect()
    }

    /// Resets a random established connection, if there is one.
    pub(crate) fn reset_any_connection(&mut self) {
        let count = self.links.iter().filter(|(_, link)| link.is_established()).count();
        if count > 0 {
            let chosen = self.random.usize(0..count);
            let mut open_links =
                self.links.iter().filter(|(_, link)| link.is_established()).map(|(key, _)| key);
            if let Some(key) = open_links.nth(chosen) {
                drop(open_links);
                self.count_fault(Fault::Reset);
                self.reset_connection(key);
            }
        }
    }

    /// Cuts two hosts off from each other. If `is_by_test`, the test does so, and only the test
    /// ends it.
    pub(crate) fn partition(&mut self, a: u32, b: u32, is_by_test: bool) {
        let pair = pair(a, b);
        if let Some(known) = self.partitions.iter_mut().find(|known| known.pair == pair) {
            known.is_by_test |= is_by_test;
        } else if a != b {
            self.record(u32::MAX, TraceEvent::Partitioned(pair.0, pair.1));
            self.partitions.push(Partition { pair, is_by_test });
        }
    }

    /// Ends a partition, unless it is the test's and the caller is not.
    pub(crate) fn heal_pair(&mut self, a: u32, b: u32, is_by_test: bool) {
        let before = self.partitions.len();
        let pair = pair(a, b);
        self.partitions.retain(|known| known.pair != pair || known.is_by_test && !is_by_test);
        if self.partitions.len() != before {
            self.record(u32::MAX, TraceEvent::Healed);
            self.resume_stalled();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_is_in_its_range_and_saturates_at_the_maximum_time() {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 3_600);
        for (least, most) in [
            (Duration::ZERO, Duration::ZERO),
            (YEAR, YEAR),
            (500 * YEAR, 584 * YEAR),
            (Duration::MAX, Duration::MAX),
            (YEAR, Duration::ZERO),
        ] {
            let mut world = World::new(1);
            world.network = Network::new().latency(least..most);
            let all_time = Duration::from_nanos(u64::MAX);
            assert!(world.latency(0, 1) >= least.min(all_time - Duration::from_nanos(1)));
            assert!(world.latency(0, 0) <= most.max(least).min(all_time) / 10);
            world.faults = Faults::none().set(Fault::LatencySpike, 1.0);
            assert!(world.latency(0, 1) >= least.min(all_time - Duration::from_nanos(1)));
        }
    }
}
