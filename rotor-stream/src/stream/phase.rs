//! `Phase`: which part of its life a stream is in.

use rotor_core::Time;

use super::open::Open;
use crate::protocol::Protocol;

/// ```text
///             connected               handshake()        done             shutdown
///  Connecting ─────────▶ Handshaking ────────────▶ Open ──────▶ Flushing ──────────▶ Lingering
///      │                     │                      │              │                    │
///      │ refused, late       │ gone, late           │ error, gone  │ gone, stalled      │ end of stream,
///      ▼                     ▼                      ▼              ▼                    ▼ late
///     end                   end                    end            end                  end
///
/// A handshake that has failed goes on to Flushing, so that the peer hears why; so does one that is
/// late, where the peer has begun with it.
/// ```
pub(super) enum Phase<P: Protocol> {
    /// Waits for the socket to be connected.
    Connecting {
        seed: P::Seed,
        until: Time,
    },
    /// Waits for the handshake of a wrapping socket.
    Handshaking {
        seed: P::Seed,
        until: Time,
    },
    Open(Open<P>),
    /// The protocol is done; writes what it left.
    Flushing,
    /// Has ended our side; waits for the peer to end its own, so that nothing unread resets the
    /// connection.
    Lingering {
        until: Time,
        /// How many bytes are still read and thrown away.
        left: u64,
    },
}
