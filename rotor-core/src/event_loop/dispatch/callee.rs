//! `Callee`: the machine whose handler is running, as logs, statistics and the watchdog name it.

use std::any::type_name;

use crate::guard::guard;
use crate::machine::Machine;
use crate::token::Token;

/// The machine whose handler is running.
#[derive(Clone, Copy)]
pub(in crate::event_loop) struct Callee {
    pub(in crate::event_loop) token: Token,
    pub(in crate::event_loop) type_name: &'static str,
}

impl Callee {
    /// Creates it with the name that the machine returns. That is the machine's code, and may
    /// panic.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn of<M: Machine>(token: Token, machine: &M) -> Callee {
        Callee { token, type_name: machine.type_name() }
    }

    /// Does the same where no panic may unwind: if the machine's code panics, this uses the name of
    /// its type.
    #[cold]
    #[inline(never)]
    pub(super) fn guarded<M: Machine>(token: Token, machine: &M) -> Callee {
        guard(|| Callee::of(token, machine)).unwrap_or_else(|_| Callee::unnamed::<M>(token))
    }

    /// Creates it before the machine has returned its name.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn unnamed<M>(token: Token) -> Callee {
        Callee { token, type_name: type_name::<M>() }
    }
}
