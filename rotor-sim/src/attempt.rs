//! What a protocol is told of an attempt to connect that has failed.

use std::error::Error;
use std::io;

use rotor_core::{Scope, with_causes};

use crate::backend::SimHandle;
use crate::property;

/// Looks at the error that a protocol was told of an attempt to connect: to be called where it is
/// told. An attempt that fails by [`NotConnected`](io::ErrorKind::NotConnected), in the error or in
/// its causes, fails the property
/// [`ATTEMPT_FAILS_FOR_A_REASON`](property::ATTEMPT_FAILS_FOR_A_REASON).
///
/// The simulated network refuses attempts, lets them time out, and resets what was established; it
/// never says of one that it is "not connected". Whoever says so has made that up, as a rule of an
/// edge that nothing caused, which the contract of readiness allows. Among the failures that faults
/// cause nobody would notice.
///
/// On other backends it looks at nothing, since there it may be the system's word.
pub fn attempt_failed<C>(error: &(dyn Error + 'static), scope: &Scope<'_, C>) {
    let Ok(handle) = scope.backend().expect::<SimHandle>("an attempt to connect") else { return };
    if is_made_up(error) {
        let message = format!("machine {} was told: {}", scope.token(), with_causes(error));
        handle.world().borrow_mut().fail(property::ATTEMPT_FAILS_FOR_A_REASON, message);
    }
}

fn is_made_up(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |&error| cause(error)).any(|error| {
        error
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::NotConnected)
    })
}

/// What an error has been caused by. The source of an `io::Error` around another error is that
/// one's source, not that one.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}
