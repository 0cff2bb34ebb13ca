//! `DatedTickets`: tickets that contain the time at which their session began.

use std::sync::Arc;
use std::time::Duration;

use rustls::server::ProducesTickets;

use crate::clock;

/// How long a session can be resumed, in seconds, from the handshake in which the client presented
/// its certificate. A certificate that has expired meanwhile is accepted for this long.
pub(super) const LIFETIME: u32 = 12 * 60 * 60;

/// How many bytes of a ticket contain the time at which its session began.
const DATE_BYTES: usize = 8;

/// Wraps a maker of tickets, and puts the time at which the session began into each ticket.
///
/// Without that time, a client that returns often enough would get a new ticket each time, and
/// never have to present its certificate again. The tickets of rustls contain only the age of the
/// ticket itself.
#[derive(Debug)]
pub(super) struct DatedTickets(pub(super) Arc<dyn ProducesTickets>);

impl ProducesTickets for DatedTickets {
    fn enabled(&self) -> bool {
        self.0.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.0.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let began = clock::session_began().or_else(clock::now)?;
        self.0.encrypt(&[&began.as_secs().to_be_bytes(), plain].concat())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let mut plain = self.0.decrypt(ticket)?;
        let began = Duration::from_secs(u64::from_be_bytes(*plain.first_chunk::<DATE_BYTES>()?));
        // The session may have begun on another machine, whose clock is ahead.
        if clock::now()?.saturating_sub(began) > Duration::from_secs(LIFETIME.into()) {
            return None;
        }
        clock::set_session_began(Some(began));
        plain.drain(..DATE_BYTES);
        Some(plain)
    }
}
