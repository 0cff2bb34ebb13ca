//! `Phase`: the phases in the life of a stream.

use rotor_core::Time;

use super::open::OpenProtocol;
use crate::protocol::Protocol;

/// ```text
///             connected               handshake()        done             shutdown
///  Connecting ─────────▶ Handshaking ────────────▶ Open ──────▶ Flushing ──────────▶ Lingering
///      │                     │                      │              │                    │
///      │ refused, late       │ gone, late           │ error, gone  │ gone, stalled      │ end of stream,
///      ▼                     ▼                      ▼              ▼                    ▼ late
///     end                   end                    end            end                  end
///
/// A handshake that has failed goes on to Flushing, so that the peer is told why. So does one that
/// is late, if the peer has begun it.
/// ```
pub(super) enum Phase<P: Protocol> {
    /// Waits for the socket to connect.
    Connecting {
        seed: P::Seed,
        until: Time,
    },
    /// Waits for the handshake of a wrapping socket.
    Handshaking {
        seed: P::Seed,
        until: Time,
    },
    Open(OpenProtocol<P>),
    /// The protocol is done; its remaining output is written.
    Flushing,
    /// Our side has ended; waits for the peer to end its side, so that no unread input resets the
    /// connection.
    Lingering {
        until: Time,
        /// How many more bytes are read and discarded.
        left: u64,
    },
}
