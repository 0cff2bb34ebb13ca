//! Heads that wait because their handler holds them off: after an interim head, it may be about to
//! pass that on. The server cannot be stopped from sending heads, so they are kept.

use std::collections::VecDeque;

use rotor_stream::ConnectionInfo;

use crate::client::exchange::{Exchange, ExchangeFlow};
use crate::client::handler::Client;
use crate::client::io::Io;
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

impl HeldHeads {
    pub(super) fn push(&mut self, head: ReceivedHead) {
        self.heads.push_back(head);
    }

    /// Records that the response has ended behind the heads.
    pub(super) fn set_end(&mut self, trailers: Trailers) {
        self.end = Some(trailers);
    }

    /// Returns the oldest head. The last one comes with the end of the response, if that has
    /// arrived.
    pub(super) fn pop(&mut self) -> Option<ReceivedHead> {
        let mut head = self.heads.pop_front()?;
        if self.heads.is_empty() {
            head.end = head.end.take().or(self.end.take());
        }
        Some(head)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Returns whether the final head is still to arrive.
    pub(super) fn awaits_final(&self) -> bool {
        self.heads.back().is_none_or(|last| last.response.terms.is_interim)
    }

    /// Returns how many of the heads are interim ones.
    pub(super) fn interim_count(&self) -> u32 {
        self.heads.len() as u32 - u32::from(!self.awaits_final())
    }

    /// Returns how many bytes of memory the heads take.
    pub(super) fn held_bytes(&self) -> usize {
        self.heads.iter().map(|head| size_of::<ReceivedHead>() + head.list.held_bytes()).sum()
    }
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
