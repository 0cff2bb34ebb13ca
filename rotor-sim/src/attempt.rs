//! A check of the errors that protocols get for failed attempts to connect.

use std::error::Error;
use std::io;

use rotor_core::{Scope, with_causes};

use crate::backend::SimHandle;
use crate::property;

/// Checks the error that a protocol was given for a failed attempt to connect. Call it where the
/// protocol gets the error. If the error or one of its causes is
/// [`NotConnected`](io::ErrorKind::NotConnected), the property
/// [`ATTEMPT_FAILS_FOR_A_REASON`](property::ATTEMPT_FAILS_FOR_A_REASON) fails.
///
/// The simulated network refuses attempts, lets them time out, and resets connections; it never
/// reports "not connected" for an attempt. Code that reports it has usually concluded it from an
/// edge that nothing caused, which the contract of readiness allows. Without this check, nobody
/// would notice it among the failures that faults cause.
///
/// On other backends it checks nothing, since there the error may come from the system.
pub fn attempt_failed<C>(error: &(dyn Error + 'static), scope: &Scope<'_, C>) {
    let Ok(handle) = scope.backend().expect::<SimHandle>("an attempt to connect") else { return };
    if is_not_connected(error) {
        let message = format!("machine {} was told: {}", scope.token(), with_causes(error));
        handle.world().borrow_mut().fail(property::ATTEMPT_FAILS_FOR_A_REASON, message);
    }
}

fn is_not_connected(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |&error| cause(error)).any(|error| {
        error
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::NotConnected)
    })
}

/// Returns the cause of an error. The `source` of an `io::Error` around another error skips that
/// error: it is the other error's source.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}
