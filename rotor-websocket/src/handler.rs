//! `Handler`: what happens on one WebSocket, as a value.

use rotor_core::{Description, Scope, Time};

use crate::closed::Closed;
use crate::frame::code::Code;
use crate::message::{Message, Piece};
use crate::next::Next;
use crate::sender::Sender;

/// One WebSocket as its handler sees it: messages come, and messages are sent.
///
/// Each method gets the handler by value, the [`Sender`] and the scope, and returns a [`Next`].
/// Servers and clients use the same handlers.
///
/// # What the connection promises
///
/// * [`opened`](Handler::opened) is the first call and [`closed`](Handler::closed) the last, also
///   when the connection is lost. Only a handler that panics, or whose loop ends, gets no more
///   calls.
/// * Messages come in order, each one once, whole or not at all. Text is UTF-8.
/// * Pings are answered, and the peer is sent one when it has been silent.
/// * What a handler writes is sent as correct frames, or is refused.
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
    /// What the machines of the loop share. A handler in a library is generic over it and requires
    /// traits of it.
    type Context;

    /// What the handler is made from, for example what the request said.
    type Seed;

    /// Called first, when the connection has become a WebSocket.
    fn opened(
        seed: Self::Seed,
        out: &mut Sender<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self>;

    /// Called when a whole message has come, of at most
    /// [`message_max`](crate::WebSocketConfig::message_max) bytes.
    fn message(
        self,
        message: Message<'_>,
        out: &mut Sender<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self>;

    /// Called when a piece of a message has come, after [`Next::pieces`].
    ///
    /// The default closes with 1003, because a handler that asks for pieces has this method.
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

    /// Called when there is room for more: more than half of
    /// [`unsent_high_water`](crate::WebSocketConfig::unsent_high_water) waited to be sent after a
    /// call, and it has gone down to that. Other calls may come in between.
    ///
    /// The default goes on.
    fn flushed(self, out: &mut Sender<'_>, scope: &mut Scope<'_, Self::Context>) -> Next<Self> {
        let _ = (out, scope);
        Next::go_on(self).keep_deadline()
    }

    /// Called when a notifier, port or mailbox of this machine woke it. It may be spurious.
    ///
    /// The default goes on.
    fn wakeup(self, out: &mut Sender<'_>, scope: &mut Scope<'_, Self::Context>) -> Next<Self> {
        let _ = (out, scope);
        Next::go_on(self).keep_deadline()
    }

    /// Called when the handler's deadline has been reached; the deadline is gone.
    ///
    /// The default goes on without one.
    fn timeout(self, out: &mut Sender<'_>, scope: &mut Scope<'_, Self::Context>) -> Next<Self> {
        let _ = (out, scope);
        Next::go_on(self).keep_deadline()
    }

    /// Called when the loop is about to end: finish before `until`, when the remaining connections
    /// are dropped.
    ///
    /// The default closes with 1001, so that clients connect again elsewhere.
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

    /// Describes the handler for people: its state in a word, what it holds. The default says
    /// nothing, and the connection's word is shown (`open (WebSocket)`, `held`, `pinged`, `closing`,
    /// `ended`); how many messages it was given is said as well. See
    /// [`Machine::describe`](rotor_core::Machine::describe).
    fn describe(&self, to: &mut Description) {
        let _ = to;
    }

    /// Called last, when the connection has ended; `end` says how.
    ///
    /// The default does nothing.
    fn closed(self, end: Closed<'_>, scope: &mut Scope<'_, Self::Context>) {
        let _ = (end, scope);
    }
}
