//! `WithOutbox`: runs a protocol, and sends the messages of its outbox.

use std::any::type_name;
use std::fmt;
use std::sync::Arc;

use rotor_core::{BoxError, Description, Scope, Time};

use super::Outbox;
use super::creation::capture_outbox;
use super::queue::FillResult;
use super::shared::Shared;
use crate::error::{Exception, Fatal, StreamError};
use crate::intent::{Intent, Next};
use crate::limits::StreamConfig;
use crate::matched::Matched;
use crate::protocol::Protocol;
use crate::transport::Transport;
use crate::wait_condition::{FlushThreshold, WaitCondition};

/// A protocol to whose peer others send messages: it has an [`Outbox`], and runs in a
/// [`WithOutbox`].
pub trait HasOutbox: Protocol {
    /// Returns the outbox: always the same one, from [`create`](Protocol::create) on.
    fn outbox(&mut self) -> &mut Outbox;
}

/// Runs a protocol, and sends the messages in its [`Outbox`]: `Stream<WithOutbox<P>, S>`.
///
/// Before each wait, messages are moved into the output, up to
/// [`output_max`](super::OutboxConfig::output_max) and half of
/// [`output_high_water`](StreamConfig::output_high_water). If some are left, the stream also waits for
/// room in the output, and then goes on. The protocol does not take part in that: it writes its own
/// answers as usual, and they are sent after what is in the output. A new message wakes the
/// protocol, so [`wakeup`](Protocol::wakeup) may be spurious. If the protocol itself waits for a
/// [`Flush`](crate::Expectation::Flush), down to less than half of that limit, messages fill the
/// output once more, and further ones wait until that flush is complete.
///
/// [`flush_timeout`](StreamConfig::flush_timeout) ends the connection of a peer that takes nothing.
/// Meanwhile the [config](super::OutboxConfig) limits the waiting messages.
///
/// # Examples
///
/// Every client receives the news from the time it connects:
///
/// ```
/// # mod rotor { pub use rotor_core::*; pub use rotor_stream as stream; }
/// use rotor::Scope;
/// use rotor::stream::testing::Driver;
/// use rotor::stream::{
///     HasOutbox, Intent, Matched, Outbox, OutboxConfig, OutboxSender, Protocol, Transport, WithOutbox,
/// };
///
/// struct Listener(Outbox);
///
/// impl Protocol for Listener {
///     type Context = Vec<OutboxSender>;
///     type Seed = ();
///
///     fn create(_: (), _: &mut Transport<'_>, scope: &mut Scope<'_, Self::Context>) -> Intent<Self> {
///         let outbox = Outbox::new(OutboxConfig::new(), scope);
///         scope.push(outbox.sender());
///         Intent::of(Listener(outbox)).bytes(1).no_deadline()
///     }
///
///     fn bytes_read(
///         self,
///         _: Matched,
///         _: &mut Transport<'_>,
///         _: &mut Scope<'_, Self::Context>,
///     ) -> Intent<Self> {
///         Intent::done() // it was to listen
///     }
/// }
///
/// impl HasOutbox for Listener {
///     fn outbox(&mut self) -> &mut Outbox {
///         &mut self.0
///     }
/// }
///
/// let mut driver = Driver::<WithOutbox<Listener>>::new((), Vec::new());
/// let sender = driver.context()[0].clone();
/// sender.send("news\n").unwrap();
/// driver.settle();
/// assert_eq!(driver.take_received(), b"news\n");
/// ```
pub struct WithOutbox<P> {
    inner: P,
    delivery: Delivery,
}

/// The part of a [`WithOutbox`] around the protocol.
struct Delivery {
    shared: Arc<Shared>,
    /// What the inner protocol waits for.
    wait: WaitCondition,
    /// The inner protocol waits for a flush down to less than half of what messages may fill. No
    /// messages are moved until that is complete, or senders would keep the protocol waiting for
    /// ever.
    is_held: bool,
    /// The output has as much as messages may fill, and more of them wait.
    is_full: bool,
}

/// Frees the messages that will not be sent, however the protocol has ended: senders may exist for
/// much longer.
impl Drop for Delivery {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl<P> fmt::Debug for WithOutbox<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithOutbox")
            .field("protocol", &type_name::<P>())
            .field("is_held", &self.delivery.is_held)
            .finish_non_exhaustive()
    }
}

impl<P: HasOutbox> WithOutbox<P> {
    /// Handles the first intent, from which on there is an outbox. If the protocol ends with it,
    /// `made` is the outbox that was made in `create`.
    fn begin(
        intent: Intent<P>,
        made: Option<Arc<Shared>>,
        transport: &mut Transport<'_>,
    ) -> Intent<Self> {
        match intent.next {
            Next::Wait(mut inner, wait, deadline) => {
                let shared = inner.outbox().shared.clone();
                shared.with(|queue, _| queue.has_consumer = true);
                let wait_for_nothing = WaitCondition::NOTHING;
                let delivery =
                    Delivery { shared, wait: wait_for_nothing, is_held: false, is_full: false };
                let next = Next::Wait(inner, wait, deadline);
                delivery.wrap_intent(Intent { next }, transport)
            }
            Next::Done => match made {
                Some(shared) => finish(&shared, type_name::<P>(), transport),
                None => Intent::done(),
            },
            Next::Reset => {
                if let Some(shared) = made {
                    shared.close();
                }
                Intent::reset()
            }
            Next::Fail(error) => match made {
                Some(shared) => fail(&shared, error, transport),
                None => Intent::error(error),
            },
        }
    }

    /// Calls the inner protocol.
    fn call(
        self,
        transport: &mut Transport<'_>,
        call: impl FnOnce(P, &mut Transport<'_>) -> Intent<P>,
    ) -> Intent<Self> {
        let WithOutbox { inner, delivery } = self;
        let intent = call(inner, transport);
        delivery.wrap_intent(intent, transport)
    }
}

impl Delivery {
    /// Wraps an intent of the inner protocol.
    fn wrap_intent<P>(
        mut self,
        intent: Intent<P>,
        transport: &mut Transport<'_>,
    ) -> Intent<WithOutbox<P>> {
        let intent = self.deliver(intent, type_name::<P>(), transport);
        intent.map(|inner| WithOutbox { inner, delivery: self })
    }

    /// Sends the messages that may be sent, and combines what is waited for: what the inner
    /// protocol waits for, and room for the remaining messages. `name` is the type of the protocol.
    fn deliver<T>(
        &mut self,
        intent: Intent<T>,
        name: &'static str,
        transport: &mut Transport<'_>,
    ) -> Intent<T> {
        let (inner, wait, deadline) = match intent.next {
            Next::Wait(inner, wait, deadline) => {
                (inner, wait.map_or(self.wait, |wait| wait.after(self.wait)), deadline)
            }
            Next::Done => return finish(&self.shared, name, transport),
            Next::Reset => return Intent::reset(),
            Next::Fail(error) => return fail(&self.shared, error, transport),
        };
        // Input is delivered again at half of the mark. If messages filled the output before that,
        // a peer that always has some waiting would never be heard.
        let mark = transport.output_high_water();
        let output_max = self.shared.config.output_max.min(mark / 2).max(1);
        // When this little is left, more messages are moved.
        let half = FlushThreshold::from_bytes(output_max / 2);
        let needs_pause = wait.flush.is_some_and(|left| left.bytes() < half.bytes());
        // If the protocol was not called for its flush, it still waits for it.
        let is_held = std::mem::replace(&mut self.is_held, needs_pause) && needs_pause;
        self.wait = wait;
        let mut combined = wait;
        self.is_full = false;
        match self.shared.fill(transport.output, output_max, is_held) {
            Ok(FillResult::Emptied) => {}
            Ok(FillResult::Remaining) => {
                self.is_full = !is_held;
                // A flush of the inner protocol takes precedence; it also makes room.
                combined.flush = Some(wait.flush.unwrap_or(half));
            }
            Ok(FillResult::PeerTooSlow) => return fail_behind(&self.shared, name, transport),
            Err(error) => return fail(&self.shared, error, transport),
        }
        Intent { next: Next::Wait(inner, Some(combined), deadline) }
    }

    /// After a call for input: if messages wait only because the output was not written yet, this
    /// ends the event, which writes it. A stream delivers the input that it has before it writes,
    /// and input may make messages for its own peer, as in a chat. They would fill the outbox
    /// although the peer reads.
    fn write_first(&self, transport: &mut Transport<'_>) {
        if self.is_full && transport.is_writable() {
            transport.count_calls(u32::MAX);
        }
    }
}

/// Ends the connection of a protocol that is done, after the waiting messages; or with an error if
/// a message was lost because the peer is too slow, although the machine was not told of it yet.
fn finish<T>(shared: &Shared, name: &'static str, transport: &mut Transport<'_>) -> Intent<T> {
    match shared.move_all_and_close(transport.output) {
        FillResult::PeerTooSlow => fail_behind(shared, name, transport),
        FillResult::Emptied | FillResult::Remaining => Intent::done(),
    }
}

/// Ends the connection because the peer is too slow, and a message was lost.
#[cold]
fn fail_behind<T>(shared: &Shared, name: &'static str, transport: &mut Transport<'_>) -> Intent<T> {
    fail(shared, StreamError::Behind(name), transport)
}

/// Ends the connection with an error. The peer must not see an ordinary end if messages are lost:
/// it would assume that it has all of them.
#[cold]
fn fail<T>(
    shared: &Shared,
    error: impl Into<BoxError>,
    transport: &mut Transport<'_>,
) -> Intent<T> {
    // Behind the end of our side, messages are not sent anyway.
    if shared.close() && !transport.output.is_ended() {
        transport.output.set_incomplete();
    }
    Intent::error(error)
}

impl<P: HasOutbox> Protocol for WithOutbox<P> {
    type Context = P::Context;
    type Seed = P::Seed;

    fn config(seed: &P::Seed) -> Arc<StreamConfig> {
        P::config(seed)
    }

    fn create(
        seed: P::Seed,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Intent<Self> {
        let (intent, made) = capture_outbox(|| P::create(seed, transport, scope));
        WithOutbox::begin(intent, made, transport)
    }

    fn bytes_read(
        self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Intent<Self> {
        self.call(transport, |inner, transport| inner.bytes_read(matched, transport, scope)).map(
            |this| {
                this.delivery.write_first(transport);
                this
            },
        )
    }

    fn bytes_read_in_place(
        &mut self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Option<Intent<()>> {
        let intent = self.inner.bytes_read_in_place(matched, transport, scope)?;
        let intent = self.delivery.deliver(intent, type_name::<P>(), transport);
        self.delivery.write_first(transport);
        Some(intent)
    }

    fn bytes_flushed(
        mut self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Intent<Self> {
        // If the protocol waits for a flush itself, that is the only one.
        if self.delivery.wait.flush.is_some() {
            self.delivery.is_held = false;
            return self.call(transport, |inner, transport| inner.bytes_flushed(transport, scope));
        }
        self.call(transport, |inner, _| Intent::of(inner).keep().keep_deadline())
    }

    fn timeout(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Intent<Self> {
        self.call(transport, |inner, transport| inner.timeout(transport, scope))
    }

    fn exception(
        self,
        exception: Exception,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Intent<Self> {
        self.call(transport, |inner, transport| inner.exception(exception, transport, scope))
    }

    fn fatal(self, error: Fatal, scope: &mut Scope<'_, P::Context>) {
        self.inner.fatal(error, scope);
    }

    fn outlives_connection(&self) -> bool {
        self.inner.outlives_connection()
    }

    fn not_connected(seed: P::Seed, error: Fatal, scope: &mut Scope<'_, P::Context>) {
        P::not_connected(seed, error, scope);
    }

    fn wakeup(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Intent<Self> {
        self.call(transport, |inner, transport| inner.wakeup(transport, scope))
    }

    fn draining(
        self,
        until: Time,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Intent<Self> {
        self.call(transport, |inner, transport| inner.draining(until, transport, scope))
    }

    fn idle(&self, input: &[u8]) -> Option<Time> {
        // A message may have arrived for which the machine was not woken yet.
        let is_empty = self.delivery.shared.with(|queue, _| queue.len() == 0);
        self.inner.idle(input).filter(|_| is_empty)
    }

    fn make_room(&mut self, transport: &mut Transport<'_>, scope: &mut Scope<'_, P::Context>) {
        self.inner.make_room(transport, scope);
    }

    fn describe(&self, to: &mut Description) {
        to.add_held(self.delivery.shared.with(|queue, _| queue.bytes()));
        self.inner.describe(to);
    }
}
