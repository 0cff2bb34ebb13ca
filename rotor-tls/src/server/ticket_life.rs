//! `Dated`: tickets that know when their session began.

use std::sync::Arc;
use std::time::Duration;

use rustls::server::ProducesTickets;

use crate::clock;

/// How long a session can be continued, in seconds, from the handshake in which the client has
/// shown who it is: so long is a certificate taken that has expired meanwhile.
pub(super) const LIFETIME: u32 = 12 * 60 * 60;

/// The bytes of a ticket that say when its session began.
const DATE_BYTES: usize = 8;

/// Whatever makes tickets, with the beginning of the session in each.
///
/// Without that a client that comes back in time would have a new ticket each time, and never be
/// asked again. What rustls puts into tickets of its own is the age of the ticket.
#[derive(Debug)]
pub(super) struct Dated(pub(super) Arc<dyn ProducesTickets>);

impl ProducesTickets for Dated {
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
        // It may have begun on another machine, whose clock is ahead.
        if clock::now()?.saturating_sub(began) > Duration::from_secs(LIFETIME.into()) {
            return None;
        }
        clock::set_session_began(Some(began));
        plain.drain(..DATE_BYTES);
        Some(plain)
    }
}
