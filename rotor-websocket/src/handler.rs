//! `Handler`: what happens on one WebSocket, as a value.

use rotor_core::{Scope, Time};

use crate::closed::Closed;
use crate::frame::code::Code;
use crate::message::{Message, Piece};
use crate::next::Next;
use crate::sender::Sender;

/// One WebSocket as its handler sees it: messages come, messages are sent.
///
/// Each method gets the handler by value, the [`Sender`] and the scope, and answers with a
/// [`Next`]. Servers and clients use the same handlers.
///
/// # What the connection promises
///
/// * [`opened`](Handler::opened) is the first call, [`closed`](Handler::closed) the last, also
///   where the connection is lost; only a handler that panics, or whose loop ends, hears no more.
/// * Messages come in order, each one once, whole or not at all. Text is UTF-8.
/// * Pings are answered, and the peer is sent one when it has been silent.
/// * What a handler writes are correct frames, or refused.
///
/// # Examples
///
/// A server that sends each message back:
///
/// ```
/// # mod rotor { pub use rotor_core::*; pub use rotor_websocket as websocket; }
/// use rotor::Scope;
/// use rotor::websocket::{Handler, Message, Next, SendError, Sender};
///
/// struct Echo;
///
/// impl Handler for Echo {
///     type Context = ();
///     type Seed = ();
///
///     fn opened(_: (), _: &mut Sender<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
///         Next::go_on(Echo).no_deadline()
///     }
///
///     fn message(
///         self,
///         message: Message<'_>,
///         out: &mut Sender<'_>,
///         _: &mut Scope<'_, ()>,
///     ) -> Next<Self> {
///         // Before each message there is room: no more are taken while too much waits.
///         let _closing: Result<(), SendError> = out.message(message);
///         Next::go_on(self).keep_deadline()
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not handle a WebSocket",
    label = "a `WebSocket` runs handlers",
    note = "implement `Handler` for it: `Context`, `Seed`, `opened` and `message` are enough"
)]
pub trait Handler: Sized {
    /// What the machines of the loop share; a library's handler is generic over it and asks for
    /// traits.
    type Context;

    /// What the handler is made from: what the request told, say.
    type Seed;

    /// The connection is a WebSocket now: the first call.
    fn opened(
        seed: Self::Seed,
        out: &mut Sender<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self>;

    /// A message has come, whole: of at most
    /// [`message_max`](crate::WebSocketConfig::message_max) bytes.
    fn message(
        self,
        message: Message<'_>,
        out: &mut Sender<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self>;

    /// A piece of a message has come, after [`Next::pieces`].
    ///
    /// Default: closes with 1003, since a handler that asks for pieces has this method.
    fn piece(
        self,
        piece: Piece<'_>,
        out: &mut Sender<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (piece, out, scope);
        log::error!("{} asks for pieces and has no `piece`", std::any::type_name::<Self>());
        Next::close(self, Code::UNSUPPORTED, "")
    }

    /// More than half of [`unsent_high_water`](crate::WebSocketConfig::unsent_high_water) waited to be sent when
    /// the handler last returned, and it has gone down to that: there is room for more.
    ///
    /// Default: goes on.
    fn flushed(self, out: &mut Sender<'_>, scope: &mut Scope<'_, Self::Context>) -> Next<Self> {
        let _ = (out, scope);
        Next::go_on(self).keep_deadline()
    }

    /// A notifier, port or mailbox of this machine woke it. May be spurious.
    ///
    /// Default: goes on.
    fn wakeup(self, out: &mut Sender<'_>, scope: &mut Scope<'_, Self::Context>) -> Next<Self> {
        let _ = (out, scope);
        Next::go_on(self).keep_deadline()
    }

    /// The handler's deadline has been reached; it is gone.
    ///
    /// Default: goes on, without one.
    fn timeout(self, out: &mut Sender<'_>, scope: &mut Scope<'_, Self::Context>) -> Next<Self> {
        let _ = (out, scope);
        Next::go_on(self).keep_deadline()
    }

    /// The loop is to end: finish before `until`, when the connections that are left are dropped.
    ///
    /// Default: closes with 1001, and clients come again elsewhere.
    #[doc(alias = "graceful shutdown")]
    fn draining(
        self,
        until: Time,
        out: &mut Sender<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (until, out, scope);
        Next::close(self, Code::GOING_AWAY, "")
    }

    /// The connection has ended, and how: the last call.
    ///
    /// Default: nothing.
    fn closed(self, end: Closed<'_>, scope: &mut Scope<'_, Self::Context>) {
        let _ = (end, scope);
    }
}
