//! What happens after a protocol is done: its last bytes, the end of our side, the wait for the
//! peer's end.

use std::io;

use rotor_core::net::StreamSocket;
use rotor_core::{Scope, Time, with_causes};

use super::buffered_io::BufferedIo;
use super::buffered_io::reading::DiscardResult;
use super::buffered_io::writing::WriteResult;
use super::flow::Flow;
use super::open::OpenProtocol;
use super::pass::Pass;
use super::phase::Phase;
use crate::error::Fatal;
use crate::least_rate::RateWatch;
use crate::limits::AbortReason;
use crate::output::EndState;
use crate::protocol::Protocol;

/// Returns what follows from a pass over the protocol.
pub(super) fn next_phase<P: Protocol, S: StreamSocket>(
    mut open: OpenProtocol<P>,
    flow: Flow<()>,
    io: &mut BufferedIo<S>,
    scope: &mut Scope<'_, P::Context>,
) -> Flow<Phase<P>> {
    match flow {
        Flow::Wait(()) if io.account_memory() => Flow::Wait(Phase::Open(open)),
        Flow::Wait(()) => {
            open.fatal(Fatal::NoRoom, scope);
            Flow::Fail(None)
        }
        // Its memory is counted when it waits, and it does not wait now.
        Flow::Again(()) => Flow::Again(Phase::Open(open)),
        Flow::Done => {
            if let Some(error) = io.take_write_failure() {
                // Earlier output is lost, although the connection may still exist, for example if a
                // file has become shorter. Neither later output nor an ordinary end must follow the
                // gap.
                let (token, error) = (scope.token(), with_causes(&error));
                log::debug!("machine {token} ends behind lost output: {error}");
                return Flow::Reset;
            }
            // It will not be read. Its memory is given back now, not when a slow peer is done.
            io.input.clear();
            io.require_by(scope.now());
            flush_and_close(io, scope)
        }
        Flow::Fail(error) => Flow::Fail(error),
        Flow::Reset => Flow::Reset,
    }
}

/// Writes the remaining output, then ends our side.
pub(super) fn flush_and_close<P: Protocol, S: StreamSocket>(
    io: &mut BufferedIo<S>,
    scope: &Scope<'_, P::Context>,
) -> Flow<Phase<P>> {
    if io.output.end_state() == EndState::Open {
        io.output.set_end_state(EndState::Requested);
    }
    let mut pass = Pass::new(&io.status.config);
    let flow = flush(io, &mut pass, scope);
    pass.count_bytes(&io.status.config);
    flow
}

fn flush<P: Protocol, S: StreamSocket>(
    io: &mut BufferedIo<S>,
    pass: &mut Pass,
    scope: &Scope<'_, P::Context>,
) -> Flow<Phase<P>> {
    loop {
        if let Err(error) = write_out(io, pass, scope) {
            log::debug!("machine {} could not write its last bytes: {error}", scope.token());
            return Flow::Fail(None);
        }
        // Closing a socket with unread input resets the connection, and a reset may overtake our
        // last bytes. So the stream reads on until the peer has ended, too (RFC 9112 §9.6 describes
        // it for HTTP).
        if io.output.end_state() == EndState::ShutDown {
            io.write_rate = RateWatch::NONE;
            return linger(
                io,
                scope.now() + io.status.config.linger_timeout,
                io.status.config.linger_bytes,
            );
        }
        // Some peers read only after everything that they send has been taken, so it is read
        // meanwhile. This is limited by the time for flushing, not by a number of bytes.
        let was_writable = io.status.writable;
        if let Err(error) = io.discard(pass, &mut { u64::MAX }) {
            log::debug!("machine {} lost its last bytes: {error}", scope.token());
            return Flow::Fail(None);
        }
        // A wrapping socket may have had to read before it could write; no edge reports that it can
        // write now.
        if was_writable || !io.status.writable {
            break;
        }
    }
    match pass.is_spent(&io.status) {
        true => Flow::Again(Phase::Flushing),
        false if io.account_memory() => Flow::Wait(Phase::Flushing),
        false => abort(AbortReason::NoRoom, io),
    }
}

/// Writes as much as the socket takes, then the end.
fn write_out<S: StreamSocket, C>(
    io: &mut BufferedIo<S>,
    pass: &mut Pass,
    scope: &Scope<'_, C>,
) -> io::Result<()> {
    io.write_last(pass, || scope.now())?;
    loop {
        match io.write(pass, || scope.now()) {
            WriteResult::Emptied | WriteResult::Progress => {}
            WriteResult::Nothing => return Ok(()),
            WriteResult::Failed(error) => return Err(error),
        }
    }
}

/// Discards what the peer still sends, until it ends its side, has sent too much, or the time is
/// over.
pub(super) fn linger<P: Protocol, S: StreamSocket>(
    io: &mut BufferedIo<S>,
    until: Time,
    mut left: u64,
) -> Flow<Phase<P>> {
    let mut pass = Pass::new(&io.status.config);
    let discarded = io.discard(&mut pass, &mut left);
    pass.count_bytes(&io.status.config);
    match discarded {
        Ok(DiscardResult::TooMuch) => abort(AbortReason::StillSending, io),
        // The peer has ended its side, or is gone: nothing is left that could be lost.
        Ok(DiscardResult::Ended) | Err(_) => Flow::Done,
        Ok(DiscardResult::All) if pass.is_spent(&io.status) => {
            Flow::Again(Phase::Lingering { until, left })
        }
        Ok(DiscardResult::All) => {
            // The input is empty, and there is always room for less than before.
            io.account_memory();
            Flow::Wait(Phase::Lingering { until, left })
        }
    }
}

/// Ends an idle connection at once, to make room for others, unless its peer has just sent
/// something.
///
/// RFC 9112 §9.5: a server may close an idle connection at any time, and a client must expect that.
/// The socket is empty when it is closed, so the peer sees an ordinary end and no reset. Only bytes
/// that it sends later cause a reset, because the stream does not linger.
#[cold]
pub(super) fn make_room<P: Protocol, S: StreamSocket>(
    phase: Phase<P>,
    io: &mut BufferedIo<S>,
    scope: &mut Scope<'_, P::Context>,
) -> Flow<Phase<P>> {
    let Phase::Open(mut open) = phase else { return Flow::Wait(phase) };
    let unread = io.input.len();
    io.assume_readable();
    io.read_ahead_now();
    // The peer has just sent something, or has left: that is handled, and another connection makes
    // room.
    if io.input.len() != unread || io.status.read_side.has_ended() || io.write_failure.is_some() {
        let flow = open.pass(io, scope);
        return next_phase(open, flow, io, scope);
    }
    open.make_room(io, scope);
    io.input.clear();
    // Its slot is needed now, so the stream does not wait for the peer's end.
    let _lingers = flush_and_close::<P, S>(io, scope);
    Flow::Done
}

/// Drops the connection, and calls the hook that counts this.
#[cold]
pub(super) fn abort<P: Protocol, S>(reason: AbortReason, io: &BufferedIo<S>) -> Flow<Phase<P>> {
    io.status.config.on_abort.call(reason);
    Flow::Fail(None)
}
