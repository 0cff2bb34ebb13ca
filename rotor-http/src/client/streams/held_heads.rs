//! Heads that wait because their handler holds them off: after an interim head, it may be about to
//! pass that on. The server cannot be stopped from sending heads, so they are kept.

use std::collections::VecDeque;

use rotor_stream::ConnectionInfo;

use super::Streams;
use super::child::Child;
use crate::client::error::ClientError;
use crate::client::exchange::{Exchange, ExchangeFlow};
use crate::client::handler::Client;
use crate::client::io::Io;
use crate::client::request_source::RequestSource;
use crate::h2::ErrorCode;
use crate::h2::hpack::FieldList;
use crate::h2::response::CheckedResponse;
use crate::semantics::trailers::Trailers;

/// The heads of one stream that wait, and whether its response has ended behind them.
#[derive(Default)]
pub(super) struct HeldHeads {
    heads: VecDeque<ReceivedHead>,
    /// The end of the body, if it has arrived.
    end: Option<Trailers>,
}

/// A head that was received and checked.
pub(super) struct ReceivedHead {
    pub(super) list: FieldList,
    pub(super) response: CheckedResponse,
    /// Whether the request asked for another protocol.
    pub(super) answers_upgrade: bool,
    /// The trailers, if the response has ended.
    pub(super) end: Option<Trailers>,
}

impl ReceivedHead {
    /// Passes the head on to the exchange.
    pub(super) fn deliver<K: Client>(
        &mut self,
        connection: ConnectionInfo<'_>,
        exchange: &mut Exchange<K>,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> ExchangeFlow<K> {
        let ReceivedHead { list, response, answers_upgrade, end } = self;
        let flow = exchange.head_received(list, response, *answers_upgrade, connection, io);
        if let Some(trailers) = end.take() {
            exchange.body_ended(trailers);
        }
        flow
    }
}

impl<K: Client> Child<K> {
    /// Returns whether the final head of the response is still to arrive.
    pub(super) fn awaits_head(&self) -> bool {
        match self.held_heads.as_ref().and_then(|held| held.heads.back()) {
            Some(last) => last.response.terms.is_interim,
            None => self.exchange.as_ref().is_some_and(|exchange| exchange.awaits_head()),
        }
    }

    /// Returns whether a head that arrives now must wait.
    pub(super) fn holds_head(&self) -> bool {
        self.held_heads.is_some()
            || self.exchange.as_ref().is_some_and(|exchange| exchange.holds_head())
    }

    /// Records that the response has ended. Returns the trailers if the exchange can be told.
    pub(super) fn end_behind_held_head(&mut self, trailers: Trailers) -> Option<Trailers> {
        let Some(held) = &mut self.held_heads else { return Some(trailers) };
        held.end = Some(trailers);
        None
    }

    /// Returns the next head that waits, once the handler goes on.
    pub(super) fn next_held_head(&mut self) -> Option<ReceivedHead> {
        let held = self.held_heads.as_mut()?;
        if self.exchange.as_ref().is_none_or(|exchange| exchange.holds_head()) {
            return None;
        }
        let mut head = held.heads.pop_front()?;
        if held.heads.is_empty() {
            head.end = head.end.take().or(held.end.take());
            self.held_heads = None;
        }
        Some(head)
    }

    /// Returns how many bytes of memory the waiting heads take.
    pub(super) fn held_heads_bytes(&self) -> usize {
        let heads = self.held_heads.iter().flat_map(|held| &held.heads);
        heads.map(|head| size_of::<ReceivedHead>() + head.list.held_bytes()).sum()
    }
}

impl<K: Client, F: RequestSource<K>> Streams<K, F> {
    /// Keeps a head for which its handler is not ready.
    pub(super) fn hold_head(
        &mut self,
        at: usize,
        head: ReceivedHead,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) {
        let child = &mut self.children[at];
        // The exchange counts them only when it gets them.
        let mut interim = child.exchange.as_ref().map_or(0, |exchange| exchange.interim_count());
        let held = child.held_heads.get_or_insert_default();
        held.heads.push_back(head);
        interim += held.heads.iter().filter(|head| head.response.terms.is_interim).count() as u32;
        if interim > io.config.limits.interim_responses_max {
            self.fail_and_reset(at, ClientError::TooManyInterim, ErrorCode::Cancel, io);
        }
    }
}
