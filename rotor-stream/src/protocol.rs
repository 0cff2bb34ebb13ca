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
/// **A protocol decides what its bytes mean; the stream does the reading, the writing and the
/// waiting.** Each call gets the protocol by value, the [`Transport`] and the scope, and answers
/// with an [`Intent`]: the next state, what it waits for, and until when.
///
/// # What the stream promises
///
/// * `create` is the first call, when the socket is connected and has shaken hands. After it, any
///   other may come in any order; after [`fatal`](Protocol::fatal) none.
/// * Input that came before the end of the stream, or before a reset, is handed out before these
///   are told of.
/// * What was written before [`Intent::done`] is flushed before the connection is closed.
/// * A protocol that waits for the same thing on the same bytes twice would be called for ever; it
///   is ended with an error that names it.
///
/// # Examples
///
/// A server that sends each line back, and closes connections that take over a minute for one:
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
    /// What the machines of the loop share; a library's protocol is generic over it and asks for
    /// traits.
    type Context;

    /// What the protocol is made from: for a server, what all its connections share (see
    /// [`Accept`](crate::Accept)); for a client, what to do there.
    type Seed;

    /// The limits and times of a stream that is made from this seed, or that goes on with it: HTTP
    /// asks the protocol that a connection is upgraded to ([`Transport::set_config`]). Called once,
    /// before anything else. Default: the standard ones, and, after an upgrade, those before it.
    fn config(seed: &Self::Seed) -> Arc<StreamConfig> {
        let _ = seed;
        StreamConfig::standard()
    }

    /// The connection stands: the first call.
    fn create(
        seed: Self::Seed,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Intent<Self>;

    /// What was waited for is in the input, at its beginning; `matched` knows how long it is.
    ///
    /// Nothing is consumed unless the protocol does it.
    fn bytes_read(
        self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Intent<Self>;

    /// The same for a protocol that need not be moved for it: called before
    /// [`bytes_read`](Protocol::bytes_read), which is called unless this answers with an intent.
    /// One that declines has done nothing.
    ///
    /// Worth it for large protocols that are called often: by value, they are copied on the way
    /// there and back. Should it panic, the protocol is dropped. Default: declines.
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

    /// No more bytes are left to be written than the [`Flush`](crate::Expectation::Flush) that was
    /// waited for says.
    ///
    /// Default: goes on as before, which only suits protocols that never wait for it.
    fn bytes_flushed(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Intent<Self> {
        let _ = (transport, scope);
        Intent::of(self).keep().keep_deadline()
    }

    /// The deadline has been reached; it is gone.
    ///
    /// What was waited for may be there: while the peer does not take its answers, no more is
    /// handed out ([`Transport::is_input_held`]).
    ///
    /// Default: ends with an error, so that a deadline is never without effect.
    fn timeout(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Intent<Self> {
        let _ = (transport, scope);
        Intent::error(StreamError::Timeout(type_name::<Self>()))
    }

    /// The input that is waited for will not come, and why. Output can still be written.
    ///
    /// Told only while the protocol waits for input. If it waits for input again, and that cannot
    /// come either, it is told again. Default: ends with the error, so that every ordinary hang-up
    /// is logged and counted as a failure; a server, whose clients come and go, answers
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

    /// The connection is gone: the last call. What waited to be written is lost.
    ///
    /// Default: says so in the log, at the debug level, since peers come and go.
    fn fatal(self, error: Fatal, scope: &mut Scope<'_, Self::Context>) {
        log::debug!(
            "machine {} ({}) lost its connection: {}",
            scope.token(),
            type_name::<Self>(),
            rotor_core::with_causes(&error)
        );
    }

    /// There will be no connection: connecting or the handshake of a wrapping socket has failed or
    /// took too long. The seed comes back; `create` was not called.
    ///
    /// Default: says so in the log, at the debug level.
    fn not_connected(seed: Self::Seed, error: Fatal, scope: &mut Scope<'_, Self::Context>) {
        let _ = seed;
        log::debug!(
            "machine {} ({}) got no connection: {}",
            scope.token(),
            type_name::<Self>(),
            rotor_core::with_causes(&error)
        );
    }

    /// A notifier, port or mailbox of this machine woke it. Default: goes on as before.
    fn wakeup(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Intent<Self> {
        let _ = (transport, scope);
        Intent::of(self).keep().keep_deadline()
    }

    /// The loop is to end: finish what is under way before `until`, when the connections that are
    /// left are dropped.
    ///
    /// Where the connection was not there yet when the drain began (it was connecting, or shaking
    /// hands), this follows [`create`](Protocol::create). So it does where another protocol,
    /// as HTTP, becomes this one while the loop drains; what the peer sent ahead of that
    /// need not all be read then.
    ///
    /// Default: goes on as before. A protocol that is between two messages sets
    /// [`grace_until`](Scope::grace_until) as its deadline and ends in
    /// [`timeout`](Protocol::timeout): the peer may have sent its next message, and not know that
    /// the connection ends. One whose peers lose nothing by that answers [`Intent::done`], if
    /// `transport.input.is_empty()`: whole messages may wait there, and `done`
    /// throws them away. With input left, go on, and end in [`bytes_read`](Protocol::bytes_read)
    /// once [`draining_until`](Scope::draining_until) says so and the input is empty.
    ///
    /// The stream sees to it that this loses nothing: once the loop drains, it reads what has come
    /// before it calls this, and before each `bytes_read`, until the socket has no more or
    /// [`input_max`](StreamConfig::input_max) bytes are unread. So an empty input says that nothing
    /// had come by then.
    fn draining(
        self,
        until: Time,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Intent<Self> {
        let _ = (until, transport, scope);
        Intent::of(self).keep().keep_deadline()
    }

    /// Since when the connection is idle: between two messages, so that its peer loses nothing if
    /// it is closed. `None`, the default, says that it is not, or never is.
    ///
    /// Asked when others find no slot or no descriptor
    /// ([`Machine::idle`](rotor_core::Machine::idle)), and only while nothing waits to be written.
    /// `input` is what was read and not yet consumed: with a part of a message in it a connection
    /// is not idle. The one that has been idle longest is looked at for input, then ended by
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

    /// Says what the protocol is at, for people: the state in a word, what it holds beside its
    /// stream's buffers, which say so themselves. Default: nothing, and the stream's own state is
    /// shown. See [`Machine::describe`](rotor_core::Machine::describe).
    fn describe(&self, to: &mut Description) {
        let _ = to;
    }
}
