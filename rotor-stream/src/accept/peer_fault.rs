//! Failures of accepted connections for which their peers are to blame.

use rotor_core::{Answer, Deadline, InPlace, Response, Token, with_causes};

use crate::error::StreamError;

/// Makes an ordinary end of a failure that the peer has caused: it is logged at the debug level,
/// and the loop does not count it. Peers come and go, and anyone could fill the log otherwise. The
/// peer of a connection that this end has made is another matter: the operator has chosen it.
pub(super) fn without_peer_fault<M, N>(
    response: Response<M, N>,
    token: Token,
    name: &'static str,
) -> Response<M, N> {
    let (answer, deadline) = response.into_parts();
    match answer {
        Answer::Error(error) if is_peer_fault(&*error) => {
            log::debug!("machine {token} ({name}) ended: {}", with_causes(&*error));
            Response::from_parts(Answer::Done, Deadline::Keep)
        }
        answer => Response::from_parts(answer, deadline),
    }
}

/// Does the same for a machine that handles events in its slot. Out of line, since it ends once.
#[cold]
#[inline(never)]
pub(super) fn without_peer_fault_in_place<N>(
    answer: InPlace<N>,
    token: Token,
    name: &'static str,
) -> InPlace<N> {
    match answer {
        InPlace::Handled(response) => InPlace::Handled(without_peer_fault(response, token, name)),
        declined => declined,
    }
}

/// Returns whether a machine that handles events in its slot has ended.
#[inline(always)]
pub(super) fn has_ended<N>(answer: &InPlace<N>) -> bool {
    matches!(answer, InPlace::Handled(response) if !response.is_alive())
}

fn is_peer_fault(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref().is_some_and(StreamError::is_peer_fault)
}
