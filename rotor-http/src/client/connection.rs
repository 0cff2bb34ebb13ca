//! `Connection`: one connection of a client, as a protocol on a byte stream. The handling of
//! requests is in `requests`.

use std::any::type_name;
use std::fmt;
use std::sync::Arc;

use rotor_core::{Description, Scope, Time};
use rotor_stream::{Exception, Fatal, Intent, Matched, Protocol, StreamConfig, Transport};

use super::config::ClientConfig;
use super::counters::Counters;
use super::handler::Client;
use super::io::Io;
use super::request_source::RequestSource;
use super::requests::{ConnectionFlow, Requests};
use super::streams::Streams;
use crate::flow::{BATCH, Flow};
use crate::upgraded;

/// One connection of a client. It takes requests from its [`RequestSource`] and makes them: one at
/// a time with HTTP/1.1, many at a time with HTTP/2.
///
/// With HTTP/1.1:
///
/// ```text
///         next: a job           nothing received          over, reusable: next
///   Idle ─────────────▶ Polling ─────────────▶ Exchange ─────────────────────────▶ Idle | Polling
///    │                     │                      │
///    └─ unused too long    └─ unexpected bytes:   ├─ over, not reusable; failed; cancelled ─▶ end
///       ─▶ end                the job goes back,  └─ switched ─▶ another protocol
///                             ─▶ end
/// ```
///
/// Bytes that arrive while no request is under way are unexpected: they end the connection, whether
/// it is idle or polling. After a request has begun, such bytes could not be distinguished from its
/// response. So the socket is read just before a request begins, because the event that reports the
/// bytes may still be queued behind others. A new connection, which begins with a job, does not
/// poll.
#[doc(alias = "keep-alive")]
#[doc(alias = "pipelining")]
pub struct Connection<K: Client, F: RequestSource<K>> {
    config: Arc<ClientConfig>,
    state: State<K, F>,
}

enum State<K: Client, F> {
    Http(Requests<K, F>),
    Http2(Box<Streams<K, F>>),
    Upgraded(K::Upgrade),
}

/// The seed of a connection.
#[derive(Debug)]
pub struct ConnectionSeed<F> {
    config: Arc<ClientConfig>,
    source: F,
}

impl<F> ConnectionSeed<F> {
    /// Makes the seed of a connection that takes its requests from `source`.
    pub fn new(source: F, config: Arc<ClientConfig>) -> ConnectionSeed<F> {
        ConnectionSeed { config, source }
    }
}

impl<K: Client, F: RequestSource<K>> Connection<K, F> {
    /// Returns the windows of an HTTP/2 connection, as this side knows them. Hidden and not part of
    /// the crate's API: for tests that compare both sides.
    #[cfg(feature = "http2")]
    #[doc(hidden)]
    pub fn ledger(&self) -> Option<crate::h2::Ledger> {
        match &self.state {
            State::Http2(streams) => Some(streams.ledger()),
            _ => None,
        }
    }

    /// Makes one step of HTTP, or calls the protocol to which the connection was upgraded.
    fn step(
        mut self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, K::Context>,
        http: impl FnOnce(&mut Requests<K, F>, &mut Io<'_, '_, '_, K::Context>) -> ConnectionFlow<K>,
        http2: impl FnOnce(&mut Streams<K, F>, &mut Io<'_, '_, '_, K::Context>) -> ConnectionFlow<K>,
        upgraded: impl FnOnce(
            K::Upgrade,
            &mut Transport<'_>,
            &mut Scope<'_, K::Context>,
        ) -> Intent<K::Upgrade>,
    ) -> Intent<Self> {
        let requests = match &mut self.state {
            State::Http(requests) => requests,
            State::Http2(_) => return self.step_http2(transport, scope, http2),
            State::Upgraded(_) => return self.step_upgraded(|u| upgraded(u, transport, scope)),
        };
        let mut io = Io { transport, scope, config: &self.config };
        match http(requests, &mut io) {
            Flow::Wait(wait) => wait.intent(self),
            Flow::Again => {
                io.transport.count_calls(BATCH - 1);
                requests.wait_for_turn(&io).intent(self)
            }
            Flow::Done(None) => Intent::done(),
            Flow::Done(Some(seed)) => {
                let (config, is_draining) = (self.config, requests.is_draining());
                // For a protocol that sets no high-water mark of its own, because HTTP has none
                // here.
                transport.set_config(config.upgraded_stream_config());
                upgraded::begin(seed, is_draining, transport, scope)
                    .map(|upgraded| Connection { config, state: State::Upgraded(upgraded) })
            }
            Flow::Fail(never) => match never {},
        }
    }

    /// Makes one step of HTTP/2.
    fn step_http2(
        mut self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, K::Context>,
        http2: impl FnOnce(&mut Streams<K, F>, &mut Io<'_, '_, '_, K::Context>) -> ConnectionFlow<K>,
    ) -> Intent<Self> {
        let State::Http2(streams) = &mut self.state else {
            // This method is called only for HTTP/2 connections.
            return Intent::of(self).keep().keep_deadline();
        };
        let mut io = Io { transport, scope, config: &self.config };
        match streams.step_tracking_output(&mut io, http2) {
            Flow::Wait(wait) => wait.intent(self),
            // Streams set what they wait for themselves, and are never upgraded as a whole.
            Flow::Again | Flow::Done(_) => Intent::done(),
            Flow::Fail(never) => match never {},
        }
    }

    fn step_upgraded(self, call: impl FnOnce(K::Upgrade) -> Intent<K::Upgrade>) -> Intent<Self> {
        let Connection { config, state } = self;
        match state {
            State::Upgraded(upgraded) => call(upgraded)
                .map(|upgraded| Connection { config, state: State::Upgraded(upgraded) }),
            // This method is called only for upgraded connections.
            state => Intent::of(Connection { config, state }).keep().keep_deadline(),
        }
    }
}

impl<K: Client, F: RequestSource<K>> Protocol for Connection<K, F> {
    type Context = K::Context;
    type Seed = ConnectionSeed<F>;

    fn config(seed: &ConnectionSeed<F>) -> Arc<StreamConfig> {
        seed.config.stream_config()
    }

    fn create(
        seed: ConnectionSeed<F>,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, K::Context>,
    ) -> Intent<Self> {
        let ConnectionSeed { config, source } = seed;
        Counters::add(&config.counters_ref().connections);
        #[cfg(feature = "http2")]
        if is_http2(transport, &config) {
            let mut io = Io { transport, scope, config: &config };
            let streams = Box::new(Streams::new(source, &mut io));
            let connection = Connection { config, state: State::Http2(streams) };
            let upgraded = K::Upgrade::wakeup;
            return connection.step(
                transport,
                scope,
                Requests::begin_first,
                Streams::begin_first,
                upgraded,
            );
        }
        let connection = Connection { config, state: State::Http(Requests::new(source)) };
        // The last two functions are never called: a connection begins with HTTP.
        connection.step(
            transport,
            scope,
            Requests::begin_first,
            Streams::advance,
            K::Upgrade::wakeup,
        )
    }

    fn bytes_read(
        self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, K::Context>,
    ) -> Intent<Self> {
        self.step(
            transport,
            scope,
            Requests::input_received,
            Streams::advance,
            |upgraded, transport, scope| upgraded.bytes_read(matched, transport, scope),
        )
    }

    fn bytes_flushed(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, K::Context>,
    ) -> Intent<Self> {
        self.step(transport, scope, Requests::flushed, Streams::flushed, K::Upgrade::bytes_flushed)
    }

    fn timeout(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, K::Context>,
    ) -> Intent<Self> {
        self.step(transport, scope, Requests::timeout, Streams::timeout, K::Upgrade::timeout)
    }

    fn wakeup(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, K::Context>,
    ) -> Intent<Self> {
        self.step(transport, scope, Requests::wakeup, Streams::wakeup, K::Upgrade::wakeup)
    }

    fn describe(&self, to: &mut Description) {
        match &self.state {
            State::Http(requests) => requests.describe(to),
            State::Http2(streams) => streams.describe(to),
            State::Upgraded(upgraded) => {
                to.set_state("upgraded");
                upgraded.describe(to);
            }
        }
    }

    fn draining(
        self,
        until: Time,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, K::Context>,
    ) -> Intent<Self> {
        self.step(
            transport,
            scope,
            Requests::drain,
            |streams, io| streams.drain(until, io),
            |upgraded, transport, scope| upgraded.draining(until, transport, scope),
        )
    }

    fn idle(&self, input: &[u8]) -> Option<Time> {
        match &self.state {
            State::Http(requests) => requests.idle_since(),
            State::Http2(streams) => streams.idle_since(input),
            State::Upgraded(upgraded) => upgraded.idle(input),
        }
    }

    fn make_room(&mut self, transport: &mut Transport<'_>, scope: &mut Scope<'_, K::Context>) {
        match &mut self.state {
            State::Http(_) => {}
            State::Http2(streams) => {
                streams.make_room(&mut Io { transport, scope, config: &self.config });
            }
            State::Upgraded(upgraded) => upgraded.make_room(transport, scope),
        }
    }

    fn exception(
        self,
        exception: Exception,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, K::Context>,
    ) -> Intent<Self> {
        if let State::Upgraded(_) = self.state {
            return self.step_upgraded(|upgraded| upgraded.exception(exception, transport, scope));
        }
        if let State::Http2(_) = self.state {
            let ended = |streams: &mut Streams<K, F>, io: &mut Io<'_, '_, '_, K::Context>| {
                streams.input_ended(exception, io)
            };
            return self.step_http2(transport, scope, ended);
        }
        self.step(
            transport,
            scope,
            |requests, io| requests.input_ended(exception, io),
            Streams::advance,
            |upgraded, _, _| Intent::of(upgraded).keep().keep_deadline(),
        )
    }

    fn outlives_connection(&self) -> bool {
        match &self.state {
            State::Http(_) => false,
            State::Http2(streams) => streams.outlives_connection(),
            State::Upgraded(upgraded) => upgraded.outlives_connection(),
        }
    }

    fn fatal(self, error: Fatal, scope: &mut Scope<'_, K::Context>) {
        match self.state {
            State::Upgraded(upgraded) => upgraded.fatal(error, scope),
            State::Http(requests) => requests.lost(error, &self.config, scope),
            State::Http2(streams) => streams.lost(error, &self.config, scope),
        }
    }

    fn not_connected(seed: ConnectionSeed<F>, error: Fatal, scope: &mut Scope<'_, K::Context>) {
        Counters::add(&seed.config.counters_ref().not_connected);
        seed.source.not_connected(error, scope);
    }
}

/// Returns whether the connection speaks HTTP/2: if the handshake has agreed on it (RFC 9113 §3.2),
/// or if nothing was negotiated but the server is known to speak it.
#[cfg(feature = "http2")]
fn is_http2(transport: &Transport<'_>, config: &ClientConfig) -> bool {
    match transport.negotiated() {
        Some(protocol) => protocol == b"h2",
        None => config.http2_ref().prior_knowledge,
    }
}

impl<K: Client, F: RequestSource<K>> fmt::Debug for Connection<K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printed = f.debug_struct("Connection");
        printed.field("handler", &type_name::<K>());
        match &self.state {
            State::Http(requests) => printed.field("http", requests),
            State::Http2(streams) => printed.field("http2", streams),
            State::Upgraded(_) => printed.field("http", &"Upgraded"),
        };
        printed.finish_non_exhaustive()
    }
}
