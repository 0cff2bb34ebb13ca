//! Machines that end badly: what is told of them, and to whom.

use std::any::type_name;

use crate::config::Config;
use crate::guard::{guard, log_guarded};
use crate::machine_failure::{FailureCause, MachineFailure};
use crate::token::Token;

/// The machine whose handler runs.
#[derive(Clone, Copy)]
pub(in crate::event_loop) struct Callee {
    pub(in crate::event_loop) token: Token,
    pub(in crate::event_loop) type_name: &'static str,
}

impl Callee {
    /// Before the machine has said its name. It is asked for that, and may panic: then it has the
    /// name of its type.
    #[inline(always)]
    pub(super) fn unnamed<M>(token: Token) -> Callee {
        Callee { token, type_name: type_name::<M>() }
    }
}

/// Logs, once, that a machine ended badly, and shows it to the observer.
pub(super) fn report(config: &Config, callee: Callee, cause: FailureCause<'_>) {
    let Callee { token, type_name } = callee;
    let failure = MachineFailure { token, machine: type_name, cause };
    // Prints the user's error by the user's code.
    if let Err(panicked) = guard(|| log::error!("{failure}")) {
        log_guarded!(
            error,
            "machine {token} ({type_name}) ended with an error that {panicked}, when it was printed"
        );
    }
    let Some(observer) = &config.observer else { return };
    if let Err(panicked) = guard(|| (observer.0)(&failure)) {
        log_guarded!(error, "the observer of failures {panicked}");
    }
}
