//! What the programs share: a loop with one machine, which drives a future.

use std::sync::mpsc;

use rotor::{BoxError, Config, EarlyScope, Loop};
use rotor_async::{Task, Tokio};

/// Runs a loop with a machine that drives what `make` makes, in the context of a runtime beside it,
/// until that has come to its end.
///
/// # Errors
///
/// There is no thread or descriptor left, or no room for the machine.
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
            // The other end waits below, unless the loop has failed.
            let _heard = told.send(future.await);
        };
        Task::start(tokio.compat(telling), scope)
    })?;
    creator.instantiate(()).run()?;
    heard.try_recv()?
}
