//! The code that the programs share: a loop with one machine that drives a future.

use std::sync::mpsc;

use rotor::{BoxError, Config, EarlyScope, Loop};
use rotor_async::{Task, Tokio};

/// Runs a loop with a machine that drives the future from `make`, in the context of a tokio runtime
/// on another thread, until the future is complete.
///
/// # Errors
///
/// No thread or descriptor is left, or there is no room for the machine.
pub fn drive<T, F>(make: impl FnOnce(&Tokio, &mut EarlyScope<'_>) -> F) -> Result<T, BoxError>
where
    T: 'static,
    F: Future<Output = Result<T, BoxError>> + 'static,
{
    let tokio = Tokio::new()?;
    let (told, heard) = mpsc::channel();
    let mut creator = Loop::<Task<()>>::new(&Config::new())?;
    creator.add_machine_with(|scope| {
        let future = make(&tokio, scope);
        let telling = async move {
            // The receiver waits below, unless the loop has failed.
            let _heard = told.send(future.await);
        };
        Task::start(tokio.compat(telling), scope)
    })?;
    creator.instantiate(()).run()?;
    heard.try_recv()?
}
