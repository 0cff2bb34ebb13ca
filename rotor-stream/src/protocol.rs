//! `Protocol`: what happens on a byte stream, as a value. Each call lends it the input and output,
//! and it returns an intent.

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
///   that, the other methods may be called in any order. After [`fatal`](Protocol::fatal) none is
///   called.
/// * Input that arrived before the end of the stream, or before a reset, is delivered first.
/// * Everything written before [`Intent::done`] is flushed before the connection is closed.
/// * A protocol that makes no progress is ended with an error that names the protocol: if it waits
///   for the same input again without consuming any, or for the same flush without writing or
///   consuming anything, it would be called forever.
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
    /// The data that the machines of the loop share. A protocol in a library is generic over it and
    /// requires traits of it.
    type Context;

    /// The value from which the protocol is made. For a server it is what all its connections share
    /// (see [`Accept`](crate::Accept)); for a client, what to do on the connection.
    type Seed;

    /// Returns the limits and times of a stream that is made from this seed. Called once, before
    /// anything else.
    ///
    /// It is also called if an existing stream continues with this seed: on an upgrade, HTTP calls
    /// it for the new protocol ([`Transport::set_config`]). The default is the standard
    /// configuration, and after an upgrade the configuration from before.
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

    /// Called when the expected input is at the beginning of the input buffer; `matched` holds its
    /// length.
    ///
    /// Nothing is removed from the input unless the protocol consumes it.
    fn bytes_read(
        self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Intent<Self>;

    /// Handles input without moving the protocol. It is called before
    /// [`bytes_read`](Protocol::bytes_read). If it returns `None`, it must have changed nothing,
    /// and `bytes_read` is called.
    ///
    /// It is worth implementing for large protocols that are called often, because passing them by
    /// value copies them to the handler and back. If it panics, the protocol is dropped. The
    /// default returns `None`.
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

    /// Called when the number of bytes left to be written has come down to that of the expected
    /// [`Flush`](crate::Expectation::Flush).
    ///
    /// The default goes on as before. That is right only for protocols that never wait for a flush.
    fn bytes_flushed(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Intent<Self> {
        let _ = (transport, scope);
        Intent::of(self).keep().keep_deadline()
    }

    /// Called when the deadline has been reached; afterwards there is no deadline.
    ///
    /// The expected input may have arrived already: while the peer does not take the output, no
    /// more input is delivered ([`Transport::is_input_held`]).
    ///
    /// The default ends the protocol with an error, so that a deadline always has an effect. On a
    /// connection that was accepted, that is logged at debug level, like an
    /// [`exception`](Protocol::exception).
    fn timeout(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Intent<Self> {
        let _ = (transport, scope);
        Intent::error(StreamError::Timeout(type_name::<Self>()))
    }

    /// Called when the expected input will not come; `exception` says why. Output can still be
    /// written.
    ///
    /// It is called only while the protocol waits for input. If the protocol then waits for input
    /// that cannot come either, it is called again.
    ///
    /// The default ends the protocol with the error: the connection is dropped, and unsent output
    /// is lost. If [`Accept`](crate::Accept) has accepted the connection, this is logged at debug
    /// level only, because peers come and go; otherwise the loop logs it and counts it as a
    /// failure. A server whose peers may end their side while they still read returns
    /// [`Intent::done`] here.
    fn exception(
        self,
        exception: Exception,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Intent<Self> {
        let _ = (transport, scope);
        Intent::error(StreamError::Exception(exception))
    }

    /// Called when the connection is gone. This is the last call. Unsent output is lost.
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

    /// Returns whether the protocol has something left to do without its connection, so that it
    /// must not end with it: for example, it has taken a whole message from the input, which the
    /// receiver still holds back.
    ///
    /// It is called when the connection was reset or a write has failed, after all input was
    /// delivered; and when the peer takes too little output, without such a delivery unless the
    /// protocol waited with `Hold` then. If it returns true, [`exception`](Protocol::exception) is called with
    /// [`Exception::Lost`] instead of [`fatal`](Protocol::fatal), and the protocol goes on with
    /// [`Expectation::Hold`](crate::Expectation::Hold). Once it waits for anything but `Hold`,
    /// `fatal` follows. In a [layer](crate::Layered), such as a stream of HTTP/2, the same follows a
    /// reset of the stream.
    ///
    /// The default returns false. A protocol that only stops taking its input needs nothing but
    /// `Hold`.
    fn outlives_connection(&self) -> bool {
        false
    }

    /// Called if no connection could be made: connecting, or the handshake of a wrapping socket,
    /// has failed or took too long. The seed is given back; `create` was not called.
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

    /// Called when the loop is about to end. The protocol should finish its work before `until`,
    /// when the remaining connections are dropped.
    ///
    /// If the connection was not established yet when the drain began (it was connecting, or in its
    /// handshake), this is called after [`create`](Protocol::create). The same happens if another
    /// protocol, such as HTTP, turns into this one while the loop drains; in that case, input that
    /// the peer sent before may not have been read yet.
    ///
    /// The default goes on as before. A protocol that is between two messages should set
    /// [`grace_until`](Scope::grace_until) as its deadline and end in
    /// [`timeout`](Protocol::timeout), because the peer may already have sent its next message
    /// without knowing that the connection ends. If its peers lose nothing, it may return
    /// [`Intent::done`] at once, but only if `transport.input.is_empty()`: whole messages may wait
    /// there, and `done` discards them. If there is input, it should go on, and end in
    /// [`bytes_read`](Protocol::bytes_read) once [`draining_until`](Scope::draining_until) is
    /// `Some` and the input is empty.
    ///
    /// The stream makes sure that nothing is lost in this way. Once the loop drains, the stream
    /// reads ahead before it calls this method and before each `bytes_read`: until the socket has
    /// no more, or [`input_max`](StreamConfig::input_max) bytes are unread. So an empty input means
    /// that nothing had arrived by then.
    fn draining(
        self,
        until: Time,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Intent<Self> {
        let _ = (until, transport, scope);
        Intent::of(self).keep().keep_deadline()
    }

    /// Returns since when the connection has been idle, that is, between two messages, so that its
    /// peer loses nothing if it is closed. `None`, the default, means that it is not idle, or never
    /// is.
    ///
    /// It is called when other machines find no slot or no descriptor
    /// ([`Machine::idle`](rotor_core::Machine::idle)), and only if no output waits to be written.
    /// `input` holds the bytes that were read and not yet consumed: a connection with part of a
    /// message there is not idle. The connection that has been idle longest is checked for new
    /// input, then ended: [`make_room`](Protocol::make_room) and [`Fatal::MadeRoom`].
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

    /// Called before the connection is ended because it is [idle](Protocol::idle) and others need
    /// room. The protocol may write why it ends: that is sent as far as the socket takes it at once.
    /// [`fatal`](Protocol::fatal) follows. The default writes nothing.
    fn make_room(&mut self, transport: &mut Transport<'_>, scope: &mut Scope<'_, Self::Context>) {
        let _ = (transport, scope);
    }

    /// Describes the protocol for people: its state in a word, and how much memory it holds in
    /// addition to the stream's buffers, which the stream describes itself. The default adds
    /// nothing, and the stream's own state is shown. See
    /// [`Machine::describe`](rotor_core::Machine::describe).
    fn describe(&self, to: &mut Description) {
        let _ = to;
    }
}
