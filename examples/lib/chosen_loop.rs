//! On which loop an example runs: the variable `ROTOR_BACKEND` says it.

use rotor::{BoxError, OffloadPool};
use rotor_uring::{Choice, OnAnyLoop, UringConfig, UringKind, choose};

/// Runs a program on the loop that the variable `ROTOR_BACKEND` names: mio's, or io_uring's (`uring`).
pub fn on_chosen_loop<P>(program: P) -> Result<(), BoxError>
where
    P: OnAnyLoop<Output = Result<(), BoxError>>,
{
    // Files are opened by other threads, as on the loop that `Loop::new` makes.
    let config = UringConfig::new().offload_pool(OffloadPool::default());
    choose(Choice::from_env()?, &config, program)?
}

/// The kind of loop that the variable `ROTOR_BACKEND` names, for `Serve`; none for mio's, which is
/// its default. The example `which_loop` has it in full.
pub fn chosen_kind() -> Result<Option<UringKind>, BoxError> {
    Ok(UringKind::chosen(Choice::from_env()?, &UringConfig::new()))
}
