//! Replaces `streams` if the feature `http2` is off.

use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;

use rotor_core::{Description, Scope, Time};
use rotor_stream::Exception;

use super::config::ServerConfig;
use super::handler::Server;
use super::handler::UpgradeSeed;
use super::io::Io;
use crate::flow::Flow;

pub(super) type StreamsFlow<S> = Flow<Option<UpgradeSeed<S>>>;

/// A connection of HTTP/2, of which there is none. It has the methods of the real type, so that the
/// code of `connection` is the same either way.
pub(super) struct Streams<S: Server> {
    never: Infallible,
    server: PhantomData<fn(S)>,
}

impl<S: Server> Streams<S> {
    pub(super) fn advance(&mut self, _: &mut Io<'_, '_, '_, S::Context>) -> StreamsFlow<S> {
        match self.never {}
    }

    pub(super) fn flushed(&mut self, _: &mut Io<'_, '_, '_, S::Context>) -> StreamsFlow<S> {
        match self.never {}
    }

    pub(super) fn timeout(&mut self, _: &mut Io<'_, '_, '_, S::Context>) -> StreamsFlow<S> {
        match self.never {}
    }

    pub(super) fn wakeup(&mut self, _: &mut Io<'_, '_, '_, S::Context>) -> StreamsFlow<S> {
        match self.never {}
    }

    pub(super) fn drain(&mut self, _: Time, _: &mut Io<'_, '_, '_, S::Context>) -> StreamsFlow<S> {
        match self.never {}
    }

    pub(super) fn input_ended(
        &mut self,
        _: &Exception,
        _: &mut Io<'_, '_, '_, S::Context>,
    ) -> StreamsFlow<S> {
        match self.never {}
    }

    pub(super) fn outlives_connection(&self) -> bool {
        match self.never {}
    }

    pub(super) fn idle_since(&self, _: &[u8]) -> Option<Time> {
        match self.never {}
    }

    pub(super) fn make_room(&mut self, _: &mut Io<'_, '_, '_, S::Context>) {
        match self.never {}
    }

    pub(super) fn describe(&self, _: &mut Description) {
        match self.never {}
    }

    pub(super) fn connection_lost(self, _: &ServerConfig, _: &mut Scope<'_, S::Context>) {
        match self.never {}
    }
}

impl<S: Server> fmt::Debug for Streams<S> {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.never {}
    }
}
