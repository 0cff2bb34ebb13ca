//! Whose fault each error is, what a gateway responds, and what the server may have processed.

use super::*;
use crate::h1::HeadError;

#[test]
fn every_error_has_its_fault_and_gateway_status() {
    let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
    let cause = || Arc::new(refused());
    let out = || Arc::new(io::Error::from(Errno::MFILE));
    let shaking = |kind: io::ErrorKind| ClientError::NotConnected(Fatal::Handshake(kind.into()));
    let connecting = |errno: Errno| ClientError::NotConnected(Fatal::Connect(errno.into()));
    let resolving = |error| ClientError::NotConnected(Fatal::Resolve(error));
    let rows = [
        (ClientError::NotConnected(Fatal::Connect(refused())), Fault::Network, false, 502),
        (connecting(Errno::MFILE), Fault::Here, false, 503),
        (connecting(Errno::NFILE), Fault::Here, false, 503),
        (connecting(Errno::NOMEM), Fault::Here, false, 503),
        (connecting(Errno::NOBUFS), Fault::Here, false, 503),
        (connecting(Errno::ADDRNOTAVAIL), Fault::Here, false, 503),
        (connecting(Errno::NETUNREACH), Fault::Network, false, 502),
        (ClientError::NotConnected(Fatal::ConnectTimeout), Fault::Network, false, 504),
        (ClientError::NotConnected(Fatal::HandshakeTimeout), Fault::Network, false, 504),
        (shaking(io::ErrorKind::InvalidData), Fault::Peer, false, 502),
        (shaking(io::ErrorKind::Other), Fault::Here, false, 500),
        (shaking(io::ErrorKind::ConnectionAborted), Fault::Network, false, 502),
        (shaking(io::ErrorKind::UnexpectedEof), Fault::Network, false, 502),
        (resolving(ResolveError::Name(cause())), Fault::Caller, false, 500),
        (resolving(ResolveError::NotFound(cause())), Fault::Network, false, 502),
        (resolving(ResolveError::Failed(cause())), Fault::Network, false, 502),
        (resolving(ResolveError::Failed(out())), Fault::Here, false, 503),
        (
            resolving(ResolveError::Failed(Arc::new(ClientError::NoRoom(Box::new(out()))))),
            Fault::Here,
            false,
            503,
        ),
        (resolving(ResolveError::NoRoom(cause())), Fault::Here, false, 503),
        (resolving(ResolveError::Busy), Fault::Here, false, 503),
        (resolving(ResolveError::Gone), Fault::Here, false, 503),
        (ClientError::Lost(Fatal::Reset(refused())), Fault::Network, true, 502),
        (ClientError::Lost(Fatal::FlushTimeout), Fault::Network, true, 504),
        (ClientError::Lost(Fatal::NoRoom), Fault::Here, true, 503),
        (ClientError::Closed, Fault::Peer, true, 502),
        (ResponseHeadError::Head(HeadError::TooLarge).into(), Fault::Peer, true, 502),
        (BodyError::Truncated.into(), Fault::Peer, true, 502),
        (BodyError::TooSlow.into(), Fault::Peer, true, 504),
        (ClientError::TooManyInterim, Fault::Peer, true, 502),
        (ClientError::Refused, Fault::Peer, false, 503),
        (ClientError::Reset(2), Fault::Peer, true, 502),
        (ClientError::FieldsTooLarge, Fault::Caller, false, 431),
        (ClientError::Protocol("why"), Fault::Peer, true, 502),
        (ClientError::ResponseTimeout, Fault::Peer, true, 504),
        (ClientError::Deadline(Stage::Waiting), Fault::Here, false, 504),
        (ClientError::Deadline(Stage::Sending), Fault::Peer, true, 504),
        (ClientError::Deadline(Stage::Writing), Fault::Here, true, 504),
        (ClientError::Deadline(Stage::Receiving), Fault::Peer, true, 504),
        (ClientError::Deadline(Stage::Taking), Fault::Here, true, 504),
        (MessageError::HostMissing.into(), Fault::Caller, false, 500),
        (ClientError::Unfinished(MessageError::BodyTooLong(0)), Fault::Caller, true, 500),
        (ClientError::Panicked, Fault::Caller, true, 500),
        (ClientError::Unhandled, Fault::Caller, true, 500),
        (ClientError::Full, Fault::Here, false, 503),
        (ClientError::BodiesFull, Fault::Here, true, 503),
        #[cfg(feature = "body")]
        (ClientError::NotStored(BodyError::DiskFull), Fault::Here, true, 503),
        #[cfg(feature = "body")]
        (ClientError::NotStored(BodyError::Disk), Fault::Here, true, 503),
        (ClientError::NoRoom("no slot".into()), Fault::Here, false, 503),
        (ClientError::Unsent(ClientError::Panicked.into()), Fault::Caller, false, 500),
        (ClientError::Unsent(ClientError::Closed.into()), Fault::Peer, false, 502),
        (ClientError::NotRepeated(ClientError::Full.into()), Fault::Here, true, 503),
    ];
    for (error, fault, may_have, status) in rows {
        assert_eq!(error.fault(), fault, "{error:?}");
        assert_eq!(error.may_have_been_processed(), may_have, "{error:?}");
        assert_eq!(error.gateway_status().code(), status, "{error:?}");
        let cause = error.source().map(ToString::to_string).unwrap_or_default();
        assert!(cause.is_empty() || !error.to_string().contains(&cause), "printed twice: {error}");
    }
}

#[test]
fn the_sent_part_decides_whether_a_request_may_have_been_processed() {
    let exact = |error: ClientError, now, before| {
        let error = error.with_send_history(SendHistory {
            on_this_connection: now,
            on_earlier_connection: before,
        });
        (format!("{error:?}"), error.may_have_been_processed())
    };
    for (error, now, before, expected, may_have) in [
        (ClientError::Panicked, false, false, "Unsent(Panicked)", false),
        (ClientError::Panicked, true, false, "Panicked", true),
        (ClientError::Panicked, false, true, "Panicked", true),
        (ClientError::Full, false, false, "Full", false),
        (ClientError::Full, false, true, "NotRepeated(Full)", true),
        // Not processed on this connection, but perhaps on the previous one.
        (ClientError::Refused, true, false, "Refused", false),
        (ClientError::Refused, true, true, "NotRepeated(Refused)", true),
        (ClientError::Deadline(Stage::Sending), false, false, "Deadline(Waiting)", false),
        (ClientError::Deadline(Stage::Sending), true, false, "Deadline(Sending)", true),
        (ClientError::Deadline(Stage::Writing), false, false, "Deadline(Waiting)", false),
        (ClientError::Deadline(Stage::Writing), true, false, "Deadline(Writing)", true),
        (ClientError::Deadline(Stage::Taking), true, false, "Deadline(Taking)", true),
        (
            ClientError::Deadline(Stage::Waiting),
            false,
            true,
            "NotRepeated(Deadline(Waiting))",
            true,
        ),
    ] {
        let case = format!("{error:?}, {now}, {before}");
        assert_eq!(exact(error, now, before), (expected.to_owned(), may_have), "{case}");
    }
}

#[test]
fn a_passed_deadline_does_not_claim_that_a_response_has_begun() {
    let stage = |stage| ClientError::Deadline(stage).to_string();
    assert_eq!(
        stage(Stage::Receiving),
        "the request's deadline has passed while it waited for the response"
    );
}
