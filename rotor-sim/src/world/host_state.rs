//! The network's and the scheduler's view of a host.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use rotor_core::{EventSet, Time, Token, Wake};

use super::ledger::Ledger;
use crate::packet_port::PacketPort;
use crate::work::WorkAccount;

/// The network's and the scheduler's view of a host.
pub(crate) struct HostState {
    pub(crate) name: String,
    pub(crate) address: IpAddr,
    /// Whether it has power. A host without power sends nothing, not even a refusal.
    pub(crate) is_up: bool,
    /// Increased at each crash: events for the loop before it are dropped.
    pub(crate) incarnation: u32,
    pub(crate) ready: Vec<(Token, EventSet)>,
    pub(crate) waker: Arc<SimWaker>,
    /// The loop's own time, if slow handlers have taken it ahead of the simulation's.
    pub(crate) ahead: Time,
    pub(crate) paused_until: Time,
    /// How long the handlers of this turn take; added at the second reading of the clock.
    pub(crate) turn_cost: Duration,
    pub(crate) clock_readings: u32,
    pub(crate) wall_step: i64,
    pub(crate) sockets: usize,
    /// It has lost its power: its sockets close without any message to their peers.
    pub(crate) is_silent: bool,
    pub(crate) ledger: Ledger,
    pub(crate) account: WorkAccount,
    pub(crate) draining: Option<DrainCheck>,
    /// How often a waiting connection may be passed over; see `Sim::bound_waiting`.
    pub(crate) passed_over_max: Option<u64>,
    pub(crate) passed_over_most: u64,
    /// The packet port of its stack, if it has one.
    pub(crate) port: Option<PacketPort>,
    /// Returns when its stack, or another inner backend, has something to do.
    pub(crate) stack_deadline: Option<StackDeadline>,
    /// When the packets that wait for a wire of low bandwidth have left.
    pub(super) wire_is_free: Time,
    pub(super) next_port: u16,
    pub(super) recent: RecentTokens,
    pub(super) stale: RecentTokens,
}

impl HostState {
    pub(super) fn new(name: &str, number: u32) -> HostState {
        // From 10.0.0.1 on: the first address of a network names the network.
        let [_, high, middle, low] = (number + 1).to_be_bytes();
        HostState {
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
            account: WorkAccount::default(),
            draining: None,
            passed_over_max: None,
            passed_over_most: 0,
            port: None,
            stack_deadline: None,
            wire_is_free: Time::ZERO,
            next_port: 0,
            recent: RecentTokens::default(),
            stale: RecentTokens::default(),
        }
    }
}

/// Returns when an inner backend wants its next wait.
pub(crate) type StackDeadline = Rc<dyn Fn() -> Option<Time>>;

impl HostState {
    /// Returns when the stack of the host wants a turn: at once if packets have arrived or wait to
    /// be sent.
    pub(crate) fn stack_due(&self) -> Option<Time> {
        if self.port.as_ref().is_some_and(PacketPort::has_packets) {
            return Some(Time::ZERO);
        }
        self.stack_deadline.as_ref().and_then(|wants| wants())
    }
}

/// A drain that must not throw away what had arrived before it.
pub(crate) struct DrainCheck {
    pub(super) until: Time,
    /// How often faults had struck by then that cost connections of a host.
    pub(super) excusing_faults: u64,
}

/// Wakes a simulated loop.
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

/// The last few tokens.
#[derive(Default)]
pub(super) struct RecentTokens {
    tokens: [Option<Token>; 8],
    next: usize,
}

impl RecentTokens {
    pub(super) fn push(&mut self, token: Token) {
        self.tokens[self.next % 8] = Some(token);
        self.next += 1;
    }

    pub(super) fn pick(&self, random: &mut fastrand::Rng) -> Option<Token> {
        self.tokens[random.usize(..8)]
    }
}
