//! `Handler`: the behaviour of one WebSocket, as a value.

use rotor_core::{Description, Scope, Time};

use crate::closed::Closed;
use crate::frame::code::Code;
use crate::message::{Message, Piece};
use crate::next::Next;
use crate::sender::Sender;

/// The handler of one WebSocket: it receives messages, and sends messages.
///
/// Each method gets the handler by value, the [`Sender`] and the scope, and returns a [`Next`].
/// Servers and clients use the same handlers.
///
/// # What the connection promises
///
/// * [`opened`](Handler::opened) is the first call and [`closed`](Handler::closed) the last one,
///   even if the connection is lost. The only exceptions are a handler that panics and a loop that
///   ends: then there are no more calls.
/// * Messages arrive in order, each once, and complete or not at all. Text is UTF-8.
/// * Pings are answered, and a silent peer is sent pings.
/// * What a handler sends goes out as correct frames, or is refused.
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
///         // There is room for one message: none is taken from the peer while too much is unsent.
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
    /// The context that the machines of the loop share. A handler in a library is usually generic
    /// over it and requires traits of it.
    type Context;

    /// The value that the handler is made from, for example data of the request.
    type Seed;

    /// Called first, when the connection has become a WebSocket.
    fn opened(
        seed: Self::Seed,
        out: &mut Sender<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self>;

    /// Called when a message is complete. It has at most
    /// [`message_max`](crate::WebSocketConfig::message_max) bytes.
    fn message(
        self,
        message: Message<'_>,
        out: &mut Sender<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self>;

    /// Called when a piece of a message has arrived, after [`Next::pieces`].
    ///
    /// The default closes with 1003, because a handler that asks for pieces has to implement this
    /// method.
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

    /// Called when a pong has arrived, with its bytes, at most 125. The answer to a ping of
    /// [`Sender::ping`] has the bytes of that ping, so that the time of a round trip can be measured;
    /// the answer to a ping of the connection itself has none. A peer need only answer the latest of
    /// several pings, and may send pongs that nobody has asked for (RFC 6455 §5.5.3).
    ///
    /// The default changes nothing.
    fn pong(
        self,
        bytes: &[u8],
        out: &mut Sender<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (bytes, out, scope);
        Next::go_on(self).keep_deadline()
    }

    /// Called when there is room for more output: after a call, more than half of
    /// [`unsent_high_water`](crate::WebSocketConfig::unsent_high_water) was unsent, and now no more
    /// than that half is. Other calls may come in between.
    ///
    /// The default changes nothing.
    fn flushed(self, out: &mut Sender<'_>, scope: &mut Scope<'_, Self::Context>) -> Next<Self> {
        let _ = (out, scope);
        Next::go_on(self).keep_deadline()
    }

    /// Called when a notifier, port or mailbox of this machine woke it. The call may be spurious.
    ///
    /// The default changes nothing.
    fn wakeup(self, out: &mut Sender<'_>, scope: &mut Scope<'_, Self::Context>) -> Next<Self> {
        let _ = (out, scope);
        Next::go_on(self).keep_deadline()
    }

    /// Called when the handler's deadline has been reached. The deadline is then unset.
    ///
    /// The default continues without a deadline.
    fn timeout(self, out: &mut Sender<'_>, scope: &mut Scope<'_, Self::Context>) -> Next<Self> {
        let _ = (out, scope);
        Next::go_on(self).keep_deadline()
    }

    /// Called when the loop is about to end, after the messages that have arrived by then, unless
    /// the handler [holds](Next::hold) them: then they are dropped if it closes. Finish before
    /// `until`; the connections that remain then are dropped.
    ///
    /// The default closes with 1001, so that clients reconnect elsewhere.
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

    /// Describes the handler for people: its state in a word, and what it holds. The default adds
    /// nothing, and the state of the connection is shown: `open (WebSocket)`, or the same with
    /// `held`, `pinged`, `closing` or `ended`. The number of messages that the handler was given is
    /// added in any case. See [`Machine::describe`](rotor_core::Machine::describe).
    fn describe(&self, to: &mut Description) {
        let _ = to;
    }

    /// Called last, when the connection has ended; `end` describes how.
    ///
    /// The default does nothing.
    fn closed(self, end: Closed<'_>, scope: &mut Scope<'_, Self::Context>) {
        let _ = (end, scope);
    }
}
