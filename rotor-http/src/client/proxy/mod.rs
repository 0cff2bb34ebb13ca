//! Connections through an HTTP proxy: a socket that asks the proxy for a tunnel to the server, with
//! CONNECT (RFC 9110 §9.3.6), before its first byte.

mod destination;
mod error;
mod handshake;
mod stream;
mod target;

pub use self::error::TunnelError;
pub use self::stream::TunnelStream;
pub use self::target::TunnelTarget;
