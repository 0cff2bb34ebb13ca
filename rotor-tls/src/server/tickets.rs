//! `Tickets`: how a client resumes a session without a new exchange of certificates.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::ProducesTickets;

use super::ticket_keys::TicketKeys;
use super::ticket_life::DatedTickets;
use crate::config_error::TlsConfigError;
use crate::provider::new_ticketer;

/// How sessions are resumed: by tickets, which clients keep and present again (RFC 8446 §4.6.1, RFC
/// 5077). The server stores nothing.
///
/// A resumed session has keys of its own. The client's certificate is in the ticket, encrypted, and
/// is not checked again. Twelve hours after the client has presented it, it must be presented
/// again, however often the session was resumed meanwhile.
#[derive(Clone, Default)]
#[non_exhaustive]
#[doc(alias = "session resumption")]
pub enum Tickets {
    /// Sessions are not resumed.
    Off,
    /// With random keys, which all loops of the process share and which are replaced every six
    /// hours. A ticket is valid for at most twelve hours, until the process ends, or what is
    /// required of clients is replaced.
    #[default]
    Fresh,
    /// With keys that are shared with others: other processes of this server, on this machine and
    /// on others, and its successor after a restart. A ticket is valid for at most twelve hours, on
    /// servers that require the same client certificates.
    Keys(TicketKeys),
}

impl Tickets {
    /// Makes a server issue and accept tickets that are bound to what it requires of its clients.
    pub(super) fn apply(
        &self,
        requirements: [u8; 32],
        config: &mut ServerConfig,
    ) -> Result<(), TlsConfigError> {
        let ticketer: Arc<dyn ProducesTickets> = match self {
            Tickets::Off => {
                config.send_tls13_tickets = 0;
                return Ok(());
            }
            Tickets::Fresh => {
                new_ticketer().map_err(|error| TlsConfigError::Other(error.into()))?
            }
            Tickets::Keys(keys) => keys.producer(requirements),
        };
        config.ticketer = Arc::new(DatedTickets(ticketer));
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
