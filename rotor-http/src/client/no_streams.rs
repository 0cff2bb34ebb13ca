//! A stand-in for HTTP/2 connections if the feature `http2` is off. It cannot be constructed.

use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;

use rotor_core::{Description, Scope, Time};
use rotor_stream::{Exception, Fatal};

use super::config::ClientConfig;
use super::handler::Client;
use super::io::Io;
use super::requests::ConnectionFlow;

/// A connection that cannot exist. It has the methods of `streams`, so that the code of a
/// connection is the same in both cases.
pub(super) struct Streams<K: Client, F> {
    never: Infallible,
    client: PhantomData<fn(K, F)>,
}

impl<K: Client, F> Streams<K, F> {
    pub(super) fn step_tracking_output(
        &mut self,
        _: &mut Io<'_, '_, '_, K::Context>,
        _: impl FnOnce(&mut Self, &mut Io<'_, '_, '_, K::Context>) -> ConnectionFlow<K>,
    ) -> ConnectionFlow<K> {
        match self.never {}
    }

    pub(super) fn advance(&mut self, _: &mut Io<'_, '_, '_, K::Context>) -> ConnectionFlow<K> {
        match self.never {}
    }

    pub(super) fn flushed(&mut self, _: &mut Io<'_, '_, '_, K::Context>) -> ConnectionFlow<K> {
        match self.never {}
    }

    pub(super) fn timeout(&mut self, _: &mut Io<'_, '_, '_, K::Context>) -> ConnectionFlow<K> {
        match self.never {}
    }

    pub(super) fn wakeup(&mut self, _: &mut Io<'_, '_, '_, K::Context>) -> ConnectionFlow<K> {
        match self.never {}
    }

    pub(super) fn drain(
        &mut self,
        _: Time,
        _: &mut Io<'_, '_, '_, K::Context>,
    ) -> ConnectionFlow<K> {
        match self.never {}
    }

    pub(super) fn input_ended(
        &mut self,
        _: Exception,
        _: &mut Io<'_, '_, '_, K::Context>,
    ) -> ConnectionFlow<K> {
        match self.never {}
    }

    pub(super) fn outlives_connection(&self) -> bool {
        match self.never {}
    }

    pub(super) fn idle_since(&self, _: &[u8]) -> Option<Time> {
        match self.never {}
    }

    pub(super) fn make_room(&mut self, _: &mut Io<'_, '_, '_, K::Context>) {
        match self.never {}
    }

    pub(super) fn describe(&self, _: &mut Description) {
        match self.never {}
    }

    pub(super) fn lost(self, _: Fatal, _: &ClientConfig, _: &mut Scope<'_, K::Context>) {
        match self.never {}
    }
}

impl<K: Client, F> fmt::Debug for Streams<K, F> {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.never {}
    }
}
