//! Everything of a simulation that is not a loop: the time, what will happen when, the hosts, the network.
//!
//! The loops' sockets reach it through their backend's handle. No code of a user runs while it is borrowed.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use rotor_core::{EventSet, Job, Time, Token, Wake};

use crate::net::{Datagram, DatagramEnd, Link, ListenerEnd};
use crate::random::seeded;
use crate::table::{Key, Table};
use crate::trace::{Record, Trace, What};
use crate::watched::Ledger;
use crate::{Fault, Faults, Network};

pub(crate) type Shared = Rc<RefCell<World>>;

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) step: u64,
    pub(crate) random: fastrand::Rng,
    pub(crate) faults: Faults,
    pub(crate) fault_counts: [u64; Fault::ALL.len()],
    pub(crate) network: Network,
    pub(crate) trace: Trace,
    pub(crate) hosts: Vec<HostState>,
    pub(crate) links: Table<Link>,
    pub(crate) listeners: Table<ListenerEnd>,
    pub(crate) datagrams: Table<DatagramEnd>,
    pub(crate) jobs: Table<(u32, Job)>,
    /// Pairs of hosts that cannot reach each other.
    pub(crate) partitions: Vec<(u32, u32)>,
    /// Grows whenever something got further: bytes, connections, jobs. What a busy loop is judged by.
    pub(crate) progress: u64,
    pub(crate) violation: Option<Violation>,
    queue: BinaryHeap<Entry>,
    serial: u32,
}

/// A property that does not hold.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) property: String,
    pub(crate) message: String,
}

/// What the network and the scheduler know of a host.
pub(crate) struct HostState {
    pub(crate) name: String,
    pub(crate) address: IpAddr,
    /// Whether it has power. A host without it answers nothing, not even with a refusal.
    pub(crate) is_up: bool,
    /// Counted up when it starts again: what was meant for the loop before is dropped.
    pub(crate) incarnation: u32,
    pub(crate) ready: Vec<(Token, EventSet)>,
    pub(crate) waker: Arc<SimWaker>,
    /// The loop's own time, when its handlers have taken it ahead of the simulation's.
    pub(crate) ahead: Time,
    pub(crate) paused_until: Time,
    /// How long the handlers of this turn take; charged at the second reading of the clock.
    pub(crate) turn_cost: Duration,
    pub(crate) clock_readings: u32,
    pub(crate) wall_step: i64,
    pub(crate) sockets: usize,
    /// Its sockets vanish without a word to their peers: it lost its power.
    pub(crate) is_silent: bool,
    pub(crate) ledger: Ledger,
    next_port: u16,
    recent: Recent,
    stale: Recent,
}

/// Ends the sleep of a simulated loop.
#[derive(Default)]
pub(crate) struct SimWaker {
    pub(crate) woken: AtomicBool,
}

impl Wake for SimWaker {
    fn wake(&self) -> io::Result<()> {
        self.woken.store(true, SeqCst);
        Ok(())
    }
}

/// A few tokens, the newest replacing the oldest.
#[derive(Default)]
struct Recent {
    tokens: [Option<Token>; 8],
    next: usize,
}

impl Recent {
    fn push(&mut self, token: Token) {
        self.tokens[self.next % 8] = Some(token);
        self.next += 1;
    }

    fn pick(&self, random: &mut fastrand::Rng) -> Option<Token> {
        self.tokens[random.usize(..8)]
    }
}

/// What will happen at some time.
pub(crate) enum Due {
    /// The next segments reach an end of a connection.
    Arrive(Key, u8),
    /// A connection attempt reaches its target, for the n-th time.
    Syn(Key, u32),
    /// The target's answer reaches the connecting end.
    Connected(Key),
    /// A connection attempt has failed.
    ConnectFailed(Key, io::ErrorKind),
    /// The writer hears that its peer has made room.
    Room(Key, u8),
    /// An edge that was held back, for a host and its incarnation.
    Edge(u32, u32, Token, EventSet),
    Datagram(Box<Datagram>),
    Heal(u32, u32),
    /// A job is to be run; not by the world, since it is a user's code.
    Job(Key),
    /// A host starts again; made by the simulation.
    Start(u32),
    /// Time for things that happen by themselves; done by the simulation.
    Chaos,
}

struct Entry {
    time: Time,
    tie: u64,
    due: Due,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The earliest is the greatest, as the heap wants it.
impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        (other.time, other.tie).cmp(&(self.time, self.tie))
    }
}

impl World {
    pub(crate) fn new(seed: u64) -> World {
        World {
            now: Time::ZERO,
            step: 0,
            random: seeded(seed, "world"),
            faults: Faults::none(),
            fault_counts: [0; Fault::ALL.len()],
            network: Network::new(),
            trace: Trace::new(seed),
            hosts: Vec::new(),
            links: Table::new(),
            listeners: Table::new(),
            datagrams: Table::new(),
            jobs: Table::new(),
            partitions: Vec::new(),
            progress: 0,
            violation: None,
            queue: BinaryHeap::new(),
            serial: 0,
        }
    }

    pub(crate) fn add_host(&mut self, name: &str) -> u32 {
        let number = self.hosts.len() as u32;
        let [_, high, middle, low] = (number + 1).to_be_bytes();
        self.hosts.push(HostState {
            name: name.to_string(),
            address: IpAddr::V4(Ipv4Addr::new(10, high, middle, low)),
            is_up: true,
            incarnation: 0,
            ready: Vec::new(),
            waker: Arc::default(),
            ahead: Time::ZERO,
            paused_until: Time::ZERO,
            turn_cost: Duration::ZERO,
            clock_readings: 0,
            wall_step: 0,
            sockets: 0,
            is_silent: false,
            ledger: Ledger::default(),
            next_port: 0,
            recent: Recent::default(),
            stale: Recent::default(),
        });
        number
    }

    pub(crate) fn host(&mut self, host: u32) -> &mut HostState {
        &mut self.hosts[host as usize]
    }

    /// The time as a host's loop has it.
    pub(crate) fn local(&self, host: u32) -> Time {
        self.now.max(self.hosts[host as usize].ahead)
    }

    /// Reads the clock for a loop. At the second reading of a turn its handlers have taken their time.
    pub(crate) fn read_clock(&mut self, host: u32) -> Time {
        let now = self.local(host);
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
        !is_up(a) || !is_up(b) || self.partitions.contains(&(a.min(b), a.max(b)))
    }

    #[inline]
    pub(crate) fn roll(&mut self, fault: Fault) -> bool {
        let happens = self.faults.roll(fault, &mut self.random);
        if happens {
            self.fault_counts[fault as usize] += 1;
        }
        happens
    }

    /// Rolls and notes a fault of a host.
    #[inline]
    pub(crate) fn hits(&mut self, fault: Fault, host: u32) -> bool {
        let hits = self.roll(fault);
        if hits {
            self.record(host, What::Fault(fault));
        }
        hits
    }

    #[inline]
    pub(crate) fn record(&mut self, host: u32, what: What) {
        let (time, step) = (self.now, self.step);
        self.trace.record(Record { time, step, host: host.wrapping_add(1), what });
    }

    pub(crate) fn fail(&mut self, property: &str, message: String) {
        if self.violation.is_none() {
            self.violation = Some(Violation { property: property.to_string(), message });
        }
    }

    /// A number that no connection of this run had before.
    pub(crate) fn next_serial(&mut self) -> u32 {
        self.serial += 1;
        self.serial
    }

    pub(crate) fn next_port(&mut self, host: u32) -> u16 {
        let state = self.host(host);
        state.next_port = (state.next_port + 1) % 16_384;
        49_152 + state.next_port % 16_384
    }

    pub(crate) fn random_duration(&mut self, max: Duration) -> Duration {
        Duration::from_nanos(self.random.u64(1..=(max.as_nanos() as u64).max(1)))
    }

    /// How long something is under way from one host to another.
    pub(crate) fn latency(&mut self, from: u32, to: u32) -> Duration {
        let least = self.network.latency.start.as_nanos() as u64;
        let most = (self.network.latency.end.as_nanos() as u64).max(least + 1);
        let mut nanos = self.random.u64(least..most);
        if from == to {
            nanos /= 10;
        } else if self.roll(Fault::LatencySpike) {
            nanos *= self.random.u64(1..=100);
        }
        Duration::from_nanos(nanos)
    }

    pub(crate) fn schedule(&mut self, time: Time, due: Due) {
        // What is due at one time happens in an order that the seed chooses.
        let tie = self.random.u64(..);
        self.queue.push(Entry { time, tie, due });
    }

    /// When the next thing will happen.
    pub(crate) fn next_due(&self) -> Option<Time> {
        self.queue.peek().map(|entry| entry.time)
    }

    pub(crate) fn take_due(&mut self) -> Option<Due> {
        if self.next_due()? > self.now { None } else { self.queue.pop().map(|entry| entry.due) }
    }

    /// Lets something happen; what concerns users' code is given back.
    pub(crate) fn happen(&mut self, due: Due) -> Option<Due> {
        match due {
            Due::Arrive(link, side) => self.arrive(link, side),
            Due::Syn(link, tries) => self.syn(link, tries),
            Due::Connected(link) => self.connected(link),
            Due::ConnectFailed(link, why) => self.connect_failed(link, why),
            Due::Room(link, side) => self.room(link, side),
            Due::Edge(host, incarnation, token, events) => {
                if self.hosts[host as usize].incarnation == incarnation {
                    self.deliver_edge(host, token, events);
                }
            }
            Due::Datagram(datagram) => self.datagram_arrives(*datagram),
            Due::Heal(a, b) => self.heal_pair(a, b),
            due @ (Due::Job(_) | Due::Start(_) | Due::Chaos) => return Some(due),
        }
        None
    }

    /// Takes away what a host has given to the virtual pool. To be dropped while the world is not borrowed.
    pub(crate) fn take_jobs(&mut self, host: u32) -> Vec<Job> {
        let keys: Vec<Key> =
            self.jobs.iter().filter(|(_, (of, _))| *of == host).map(|(key, _)| key).collect();
        keys.into_iter().filter_map(|key| Some(self.jobs.remove(key)?.1)).collect()
    }

    /// Resets some connection, if there is one.
    pub(crate) fn cut_any(&mut self) {
        let count = self.links.len();
        if count > 0 {
            let chosen = self.random.usize(0..count);
            let key = self.links.iter().nth(chosen).map(|(key, _)| key);
            key.into_iter().for_each(|key| self.cut(key));
        }
    }

    pub(crate) fn partition(&mut self, a: u32, b: u32) {
        let pair = (a.min(b), a.max(b));
        if a != b && !self.partitions.contains(&pair) {
            self.record(u32::MAX, What::Partitioned(pair.0, pair.1));
            self.partitions.push(pair);
        }
    }

    pub(crate) fn heal_pair(&mut self, a: u32, b: u32) {
        let before = self.partitions.len();
        self.partitions.retain(|pair| *pair != (a.min(b), a.max(b)));
        if self.partitions.len() != before {
            self.record(u32::MAX, What::Healed);
            self.resume_stalled();
        }
    }
}

/// Edges: from what changed to what a loop's wait yields.
impl World {
    /// Notes a token that spurious edges may name.
    pub(crate) fn token_is_used(&mut self, host: u32, token: Token) {
        self.host(host).recent.push(token);
    }

    /// Notes a token whose machine may be gone by the time that a stale edge names it.
    pub(crate) fn token_is_unused(&mut self, host: u32, token: Token) {
        self.host(host).stale.push(token);
    }

    /// Reports an edge to a host's loop; late, perhaps.
    pub(crate) fn push_edge(&mut self, host: u32, token: Token, events: EventSet) {
        if self.hits(Fault::LateEdge, host) {
            self.push_edge_later(host, token, events, Duration::from_millis(20));
        } else {
            self.deliver_edge(host, token, events);
        }
    }

    pub(crate) fn push_edge_later(&mut self, host: u32, token: Token, events: EventSet, at_most: Duration) {
        let at = self.local(host) + self.random_duration(at_most);
        let incarnation = self.hosts[host as usize].incarnation;
        self.schedule(at, Due::Edge(host, incarnation, token, events));
    }

    fn deliver_edge(&mut self, host: u32, token: Token, events: EventSet) {
        self.record(host, What::Edge(token, events));
        let is_split = self.roll(Fault::SplitEdge);
        if self.roll(Fault::Gather) {
            let until = self.now + self.random_duration(Duration::from_millis(2));
            let state = self.host(host);
            state.paused_until = state.paused_until.max(until);
        }
        let ready = &mut self.hosts[host as usize].ready;
        // Only the last few are looked at: merging is allowed, not promised.
        let same = ready.iter_mut().rev().take(8).find(|(other, _)| *other == token);
        match same {
            Some((_, before)) if !is_split => *before |= events,
            _ => ready.push((token, events)),
        }
    }

    /// What a loop's wait yields.
    pub(crate) fn take_ready(&mut self, host: u32, ready: &mut Vec<(Token, EventSet)>) {
        self.hosts[host as usize].waker.woken.store(false, SeqCst);
        if !self.hosts[host as usize].ready.is_empty() {
            if self.hits(Fault::WaitInterrupted, host) {
                return;
            }
            let mut pending = std::mem::take(&mut self.hosts[host as usize].ready);
            if pending.len() > 1 && self.roll(Fault::Reorder) {
                self.random.shuffle(&mut pending);
            }
            let taken = if pending.len() > 1 && self.roll(Fault::Withhold) {
                self.random.usize(1..pending.len())
            } else {
                pending.len()
            };
            ready.extend(pending.drain(..taken));
            self.hosts[host as usize].ready = pending;
        }
        self.inject_edges(host, ready);
    }

    fn inject_edges(&mut self, host: u32, ready: &mut Vec<(Token, EventSet)>) {
        if self.roll(Fault::SpuriousEdge)
            && let Some(token) = self.hosts[host as usize].recent.pick(&mut self.random)
        {
            self.record(host, What::Fault(Fault::SpuriousEdge));
            ready.push((token, self.some_events()));
        }
        if self.roll(Fault::StaleEdge)
            && let Some(token) = self.hosts[host as usize].stale.pick(&mut self.random)
        {
            self.record(host, What::Fault(Fault::StaleEdge));
            let at = self.random.usize(..=ready.len());
            ready.insert(at, (token, self.some_events()));
        }
    }

    /// An edge that nothing caused, for a host that sleeps.
    pub(crate) fn disturb(&mut self, host: u32) {
        if let Some(token) = self.hosts[host as usize].recent.pick(&mut self.random) {
            self.record(host, What::Fault(Fault::SpuriousEdge));
            let events = self.some_events();
            self.deliver_edge(host, token, events);
        }
    }

    fn some_events(&mut self) -> EventSet {
        let all = [EventSet::READABLE, EventSet::WRITABLE, EventSet::READ_CLOSED, EventSet::EMPTY];
        all[self.random.usize(..4)] | all[self.random.usize(..4)]
    }
}
