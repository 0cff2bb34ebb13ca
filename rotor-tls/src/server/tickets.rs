//! `Tickets`: how a client comes back without a new exchange of certificates.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::ProducesTickets;

use super::ticket_keys::TicketKeys;
use super::ticket_life::Dated;
use crate::config_error::TlsConfigError;
use crate::provider::fresh_tickets;

/// How sessions are resumed: by tickets, which clients keep and bring back (RFC 8446 §4.6.1, RFC
/// 5077). The server keeps nothing.
///
/// A resumed session has keys of its own. The client's certificate is in the ticket, encrypted, and
/// is not checked again. Twelve hours after the client has shown it, it must show it once more,
/// however often it came back meanwhile.
#[derive(Clone, Default)]
#[non_exhaustive]
#[doc(alias = "session resumption")]
pub enum Tickets {
    /// Not at all.
    Off,
    /// With random keys, which all loops of the process share and which replace each other every
    /// six hours. A ticket is valid for twelve hours at most, and no longer than the process lives.
    #[default]
    Fresh,
    /// With keys that others have as well: other processes of this server, on this machine and on
    /// others, and its successor after a restart. A ticket is valid for twelve hours at most, on
    /// servers that require the same client certificates.
    Keys(TicketKeys),
}

impl Tickets {
    /// Has a server make and take tickets that are bound to what it asks of its clients.
    pub(super) fn apply(
        &self,
        demands: [u8; 32],
        config: &mut ServerConfig,
    ) -> Result<(), TlsConfigError> {
        let ticketer: Arc<dyn ProducesTickets> = match self {
            Tickets::Off => {
                config.send_tls13_tickets = 0;
                return Ok(());
            }
            Tickets::Fresh => {
                fresh_tickets().map_err(|error| TlsConfigError::Other(error.into()))?
            }
            Tickets::Keys(keys) => keys.producer(demands),
        };
        config.ticketer = Arc::new(Dated(ticketer));
        Ok(())
    }
}

impl std::fmt::Debug for Tickets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Tickets::Off => "Off",
            Tickets::Fresh => "Fresh",
            Tickets::Keys(_) => "Keys",
        })
    }
}
