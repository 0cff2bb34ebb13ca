//! Reports about machines that have failed.

use super::callee::Callee;
use crate::config::Config;
use crate::guard::{guard, log_guarded};
use crate::machine_failure::{FailureCause, MachineFailure};

/// Logs once that a machine has failed, and tells the observer.
pub(super) fn report_failure(config: &Config, callee: Callee, cause: FailureCause<'_>) {
    let Callee { token, type_name } = callee;
    let failure = MachineFailure { token, machine: type_name, cause };
    // Printing the user's error runs the user's code.
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
