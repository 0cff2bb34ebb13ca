//! Chooses the loop on which an example runs, by the environment variable `ROTOR_BACKEND`.

use rotor::{BoxError, OffloadPool};
use rotor_uring::{Choice, OnAnyLoop, UringConfig, UringKind, choose};

/// Runs a program on the loop that the variable `ROTOR_BACKEND` names: mio's, or io_uring's
/// (`uring`).
pub fn on_chosen_loop<P>(program: P) -> Result<(), BoxError>
where
    P: OnAnyLoop<Output = Result<(), BoxError>>,
{
    // Files are opened on other threads, as on a loop from `Loop::new`.
    let config = UringConfig::new().offload_pool(OffloadPool::default());
    choose(Choice::from_env()?, &config, program)?
}

/// Returns the kind of loop that the variable `ROTOR_BACKEND` names, for `Serve`; `None` for mio's,
/// which is the default. The example `which_loop` shows this in full.
pub fn chosen_kind() -> Result<Option<UringKind>, BoxError> {
    Ok(UringKind::chosen(Choice::from_env()?, &UringConfig::new()))
}
