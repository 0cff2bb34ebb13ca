//! `Protocol`: what happens on a byte stream, as a value that is handed its input and answers with
//! an intent.

use std::any::type_name;
use std::sync::Arc;

use rotor_core::{Description, Scope, Time};

use crate::error::{Exception, Fatal, StreamError};
use crate::intent::Intent;
use crate::limits::StreamConfig;
use crate::matched::Matched;
use crate::transport::Transport;

/// A protocol on one byte stream.
///
/// **A protocol decides what its bytes mean; the stream reads, writes and waits.** Each call gets
/// the protocol by value, the [`Transport`] and the scope, and returns an [`Intent`]: the next
/// state, what it waits for, and until when.
///
/// # What the stream promises
///
/// * `create` is the first call, once the socket is connected and its handshake is complete. After
///   it, the others may come in any order; after [`fatal`](Protocol::fatal) none comes.
/// * Input that came before the end of the stream, or before a reset, is delivered before the end
///   or the reset is.
/// * What was written before [`Intent::done`] is flushed before the connection is closed.
/// * A protocol that waits for the same thing on the same bytes twice would be called for ever; it
///   is ended with an error that names it.
///
/// # Examples
///
/// A server that sends each line back, and closes connections that take more than a minute for one:
///
/// ```
/// # mod rotor { pub use rotor_core::*; pub use rotor_stream as stream; }
/// use rotor::Scope;
/// use rotor::stream::{Exception, Intent, Matched, Protocol, Transport};
/// use std::io::Write;
/// use std::time::Duration;
///
/// struct Echo;
///
/// impl Echo {
///     fn next_line(self, scope: &Scope<'_, ()>) -> Intent<Self> {
///         Intent::of(self).delimiter(b"\n", 1024).deadline(scope.now() + Duration::from_secs(60))
///     }
/// }
///
/// impl Protocol for Echo {
///     type Context = ();
///     type Seed = ();
///     fn create(_: (), _: &mut Transport<'_>, scope: &mut Scope<'_, ()>) -> Intent<Self> {
///         Echo.next_line(scope)
///     }
///     fn bytes_read(
///         self,
///         line: Matched,
///         transport: &mut Transport<'_>,
///         scope: &mut Scope<'_, ()>,
///     ) -> Intent<Self> {
///         if transport.output.write_all(&transport.input[..line.len()]).is_err() {
///             return Intent::done();
///         }
///         line.consume(transport.input);
///         self.next_line(scope)
///     }
///     fn exception(self, _: Exception, _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
///         Intent::done()
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a protocol",
    label = "a `Stream` runs protocols",
    note = "implement `Protocol` for it: `Context`, `Seed`, `create` and `bytes_read` are enough"
)]
#[doc(alias = "codec")]
pub trait Protocol: Sized {
    /// What the machines of the loop share. A protocol in a library is generic over it and requires
    /// traits of it.
    type Context;

    /// What the protocol is made from: for a server, what all its connections share (see
    /// [`Accept`](crate::Accept)); for a client, what to do on the connection.
    type Seed;

    /// Returns the limits and times of a stream that is made from this seed. Called once, before
    /// anything else.
    ///
    /// It is also called for a stream that goes on with this seed: HTTP asks the protocol that a
    /// connection is upgraded to ([`Transport::set_config`]). The default is the standard
    /// configuration, and after an upgrade the one from before.
    fn config(seed: &Self::Seed) -> Arc<StreamConfig> {
        let _ = seed;
        StreamConfig::standard()
    }

    /// Called first, when the connection has been established.
    fn create(
        seed: Self::Seed,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Intent<Self>;

    /// Called when what was waited for is in the input, at its beginning; `matched` says how long
    /// it is.
    ///
    /// Nothing is consumed unless the protocol consumes it.
    fn bytes_read(
        self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Intent<Self>;

    /// Handles input without moving the protocol. It is called before
    /// [`bytes_read`](Protocol::bytes_read), which is called unless this returns an intent. A
    /// protocol that declines must have done nothing.
    ///
    /// It is worth implementing for large protocols that are called often: by value, they are
    /// copied on the way there and back. If it panics, the protocol is dropped. The default
    /// declines.
    #[inline(always)]
    fn bytes_read_in_place(
        &mut self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Option<Intent<()>> {
        let _ = (matched, transport, scope);
        None
    }

    /// Called when no more bytes are left to be written than the
    /// [`Flush`](crate::Expectation::Flush) that was waited for says.
    ///
    /// The default goes on as before, which suits only protocols that never wait for it.
    fn bytes_flushed(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Intent<Self> {
        let _ = (transport, scope);
        Intent::of(self).keep().keep_deadline()
    }

    /// Called when the deadline has been reached; the deadline is gone.
    ///
    /// What was waited for may be there already: while the peer does not take its answers, no more
    /// input is delivered ([`Transport::is_input_held`]).
    ///
    /// The default ends with an error, so that a deadline is never without effect.
    fn timeout(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Intent<Self> {
        let _ = (transport, scope);
        Intent::error(StreamError::Timeout(type_name::<Self>()))
    }

    /// Called when the input that is waited for will not come; `exception` says why. Output can
    /// still be written.
    ///
    /// It is called only while the protocol waits for input. If the protocol waits for input again,
    /// and that cannot come either, it is called again. The default ends with the error, so every
    /// ordinary hang-up is logged and counted as a failure. A server, whose clients come and go,
    /// answers [`Intent::done`] here.
    fn exception(
        self,
        exception: Exception,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Intent<Self> {
        let _ = (transport, scope);
        Intent::error(StreamError::Exception(exception))
    }

    /// Called when the connection is gone: the last call. What waited to be written is lost.
    ///
    /// The default logs it at the debug level, because peers come and go.
    fn fatal(self, error: Fatal, scope: &mut Scope<'_, Self::Context>) {
        log::debug!(
            "machine {} ({}) lost its connection: {}",
            scope.token(),
            type_name::<Self>(),
            rotor_core::with_causes(&error)
        );
    }

    /// Called when there will be no connection: connecting, or the handshake of a wrapping socket,
    /// has failed or took too long. The seed is returned; `create` was not called.
    ///
    /// The default logs it at the debug level.
    fn not_connected(seed: Self::Seed, error: Fatal, scope: &mut Scope<'_, Self::Context>) {
        let _ = seed;
        log::debug!(
            "machine {} ({}) got no connection: {}",
            scope.token(),
            type_name::<Self>(),
            rotor_core::with_causes(&error)
        );
    }

    /// Called when a notifier, port or mailbox of this machine woke it. The default goes on as
    /// before.
    fn wakeup(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Intent<Self> {
        let _ = (transport, scope);
        Intent::of(self).keep().keep_deadline()
    }

    /// Called when the loop is about to end: finish what is under way before `until`, when the
    /// remaining connections are dropped.
    ///
    /// If the connection was not there yet when the drain began (it was connecting, or in its
    /// handshake), this follows [`create`](Protocol::create). It also follows `create` where
    /// another protocol, such as HTTP, becomes this one while the loop drains; what the peer sent
    /// ahead of that is then not necessarily read yet.
    ///
    /// The default goes on as before. A protocol that is between two messages sets
    /// [`grace_until`](Scope::grace_until) as its deadline and ends in
    /// [`timeout`](Protocol::timeout): the peer may have sent its next message without knowing that
    /// the connection ends. A protocol whose peers lose nothing by that answers [`Intent::done`],
    /// but only if `transport.input.is_empty()`: whole messages may wait there, and `done` throws
    /// them away. With input left, go on, and end in [`bytes_read`](Protocol::bytes_read) once
    /// [`draining_until`](Scope::draining_until) says so and the input is empty.
    ///
    /// The stream makes sure that this loses nothing: once the loop drains, it reads what has come
    /// before it calls this, and before each `bytes_read`, until the socket has no more or
    /// [`input_max`](StreamConfig::input_max) bytes are unread. So an empty input means that
    /// nothing had come by then.
    fn draining(
        self,
        until: Time,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Intent<Self> {
        let _ = (until, transport, scope);
        Intent::of(self).keep().keep_deadline()
    }

    /// Returns since when the connection is idle, that is, between two messages, so that its peer
    /// loses nothing if it is closed. `None`, the default, means that it is not idle, or never is.
    ///
    /// It is asked when other machines find no slot or no descriptor
    /// ([`Machine::idle`](rotor_core::Machine::idle)), and only while nothing waits to be written.
    /// `input` is what was read and not yet consumed: a connection with part of a message in it is
    /// not idle. The connection that has been idle longest is checked for input, then ended by
    /// [`Fatal::MadeRoom`].
    ///
    /// ```
    /// # use rotor_core::{Scope, Time};
    /// # use rotor_stream::{Intent, Matched, Protocol, Transport};
    /// struct Lines {
    ///     /// When the last answer was written.
    ///     rests_since: Time,
    /// }
    ///
    /// impl Protocol for Lines {
    /// #   type Context = ();
    /// #   type Seed = ();
    /// #   fn create(_: (), _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> { Intent::done() }
    /// #   fn bytes_read(self, _: Matched, _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> { Intent::done() }
    ///     // ..
    ///     fn idle(&self, input: &[u8]) -> Option<Time> {
    ///         input.is_empty().then_some(self.rests_since)
    ///     }
    /// }
    /// ```
    fn idle(&self, input: &[u8]) -> Option<Time> {
        let _ = input;
        None
    }

    /// Describes the protocol for people: its state in a word, and what it holds beside the buffers
    /// of its stream, which the stream describes itself. The default says nothing, and the stream's
    /// own state is shown. See [`Machine::describe`](rotor_core::Machine::describe).
    fn describe(&self, to: &mut Description) {
        let _ = to;
    }
}
