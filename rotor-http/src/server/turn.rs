//! How a connection goes on after a step, and what it waits for.

use rotor_stream::Protocol;

use super::Server;
use super::answer::Io;
use super::exchange::Exchange;
pub(super) use crate::wait::Wait;

/// How a connection goes on after a step.
pub(super) enum Turn<S: Server> {
    /// There may be more to do at once.
    On,
    Wait(Wait),
    /// Waits as before.
    Keep,
    Done,
    /// Goes on in another protocol.
    Upgrade(<S::Upgrade as Protocol>::Seed),
}

impl Wait {
    /// Waits for what the exchange waits for: more of the body, room, or its handler's deadline.
    pub(super) fn of_exchange<S: Server>(
        exchange: &mut Exchange<S>,
        input: Option<usize>,
        io: &Io<'_, '_, '_, S::Context>,
    ) -> Wait {
        let high = io.config.limits_ref().output_high_water;
        let flush = match io.transport.output.len() {
            0 => None,
            unsent if unsent > high / 2 => Some(high / 2),
            _ => Some(0),
        };
        Wait { input, flush, deadline: exchange.next_deadline(io) }
    }
}
