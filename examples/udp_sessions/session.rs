//! One peer's session: what it is sent, when that is sent again, and when the session gives up.

use std::mem;
use std::net::SocketAddr;
use std::time::Duration;

use rotor::net::DatagramSocket;
use rotor::{Scope, Time};

use super::wire;
use super::world::World;

/// A peer that has sent nothing for this long is considered gone.
pub(crate) const IDLE_TIME_MAX: Duration = Duration::from_secs(15);
/// How often each peer gets the positions of all.
pub(crate) const STATE_PERIOD: Duration = Duration::from_secs(1);
/// After how long something is sent again that was not acknowledged.
pub(crate) const RESEND_AFTER: Duration = Duration::from_millis(250);
/// How often it is sent again.
pub(crate) const RESENDS_MAX: u8 = 3;

/// ```text
///   Unproven ──ACK──▶ Playing ──drain──▶ Closing ──ACK, or none──▶ ended
///      │                 │                  │
///      └─ idle, drain    └─ idle, BYE       └─ idle, BYE ─▶ ended
/// ```
enum Phase {
    /// It was sent WELCOME, and nothing more until its ACK proves its address.
    Unproven,
    Playing {
        next_state: Time,
    },
    Closing,
}

pub(crate) struct Session {
    address: SocketAddr,
    phase: Phase,
    unanswered: Option<Unanswered>,
}

/// A message that is sent again until it is acknowledged.
struct Unanswered {
    text: String,
    resends_left: u8,
    resend_at: Time,
}

impl Session {
    pub(crate) fn new<D>(address: SocketAddr, scope: &mut Scope<'_, World<D>>) -> Session
    where
        D: DatagramSocket<Address = SocketAddr>,
    {
        // A peer that forges the address of a session must guess it.
        let number = u32::from_ne_bytes(scope.secure_random());
        let (now, notifier) = (scope.now(), scope.notifier());
        scope.welcome(address, number, notifier, now);
        Session { address, phase: Phase::Unproven, unanswered: None }
    }

    /// Checks what the peer has done and what is due. Returns the next deadline, or `None` if the
    /// session has ended.
    pub(crate) fn step<D>(&mut self, scope: &mut Scope<'_, World<D>>) -> Option<Time>
    where
        D: DatagramSocket<Address = SocketAddr>,
    {
        let (now, is_draining) = (scope.now(), scope.draining_until().is_some());
        let peer = scope.peers.get_mut(&self.address)?;
        // A datagram does not move the deadline; at the deadline, the session checks how long the
        // peer has been silent.
        let idle_at = peer.heard + IDLE_TIME_MAX;
        if peer.has_left {
            return None;
        }
        if mem::take(&mut peer.is_acknowledged) {
            self.unanswered = None;
            peer.is_proven = true;
            if matches!(self.phase, Phase::Unproven) {
                self.phase = Phase::Playing { next_state: now };
            }
        }
        // Checked after the ACK, so that one that arrives at the last moment counts.
        if now >= idle_at {
            scope.counters.idle += 1;
            return None;
        }
        self.send_due(now, is_draining, scope)?;
        Some(self.next_event().min(idle_at))
    }

    /// Sends what is due. Returns `None` if nothing will be sent any more.
    fn send_due<D>(&mut self, now: Time, is_draining: bool, world: &mut World<D>) -> Option<()>
    where
        D: DatagramSocket<Address = SocketAddr>,
    {
        match self.phase {
            // Nothing more is sent to an address that was not proven, not even a farewell, because
            // it may be forged.
            Phase::Unproven if is_draining => return None,
            Phase::Playing { .. } if is_draining => {
                self.phase = Phase::Closing;
                self.send_new(now, world, |number, _| wire::closing(number));
            }
            Phase::Playing { next_state } if now >= next_state => {
                self.phase = Phase::Playing { next_state: now + STATE_PERIOD };
                let address = self.address;
                self.send_new(now, world, |number, world| world.state(address, number));
            }
            _ => self.resend(now, world),
        }
        let is_over = matches!(self.phase, Phase::Closing) && self.unanswered.is_none();
        (!is_over).then_some(())
    }

    /// Sends a message for the first time, with a new number.
    fn send_new<D>(
        &mut self,
        now: Time,
        world: &mut World<D>,
        text: impl FnOnce(u32, &World<D>) -> String,
    ) where
        D: DatagramSocket<Address = SocketAddr>,
    {
        let Some(peer) = world.peers.get_mut(&self.address) else { return };
        peer.number = peer.number.wrapping_add(1);
        let number = peer.number;
        let text = text(number, world);
        world.send(&text, self.address);
        let resend_at = now + RESEND_AFTER;
        self.unanswered = Some(Unanswered { text, resends_left: RESENDS_MAX, resend_at });
    }

    /// Sends a message again if that is due, and finally gives up.
    fn resend<D>(&mut self, now: Time, world: &mut World<D>)
    where
        D: DatagramSocket<Address = SocketAddr>,
    {
        match &mut self.unanswered {
            Some(unanswered) if now < unanswered.resend_at => {}
            Some(unanswered) if unanswered.resends_left > 0 => {
                unanswered.resends_left -= 1;
                unanswered.resend_at = now + RESEND_AFTER;
                world.counters.sent_again += 1;
                world.send(&unanswered.text, self.address);
            }
            _ => self.unanswered = None,
        }
    }

    fn next_event(&self) -> Time {
        let resend_at =
            self.unanswered.as_ref().map_or(Time::NEVER, |unanswered| unanswered.resend_at);
        match self.phase {
            Phase::Playing { next_state } => next_state.min(resend_at),
            Phase::Unproven | Phase::Closing => resend_at,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}
