//! The server's side: its identities, settings and listeners.

mod config;
mod listener;
mod names;
mod pending_hello;
mod shared;
mod ticket_keys;
mod ticket_life;
mod tickets;
mod tls_server;

pub use self::config::{ClientCertificates, Offload, TlsServerConfig};
pub use self::listener::{TlsAddress, TlsListener};
pub use self::names::UnknownName;
pub(crate) use self::pending_hello::{HelloOutcome, PendingHello};
pub use self::ticket_keys::{TICKET_KEYS_MAX, TicketKeys};
pub use self::tickets::Tickets;
pub use self::tls_server::TlsServer;
