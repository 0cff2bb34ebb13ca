//! `WithOutbox`: the protocol around a protocol that sends what others have for its peer.

use std::any::type_name;
use std::fmt;
use std::sync::Arc;

use rotor_core::{Description, Scope, Time};

use super::Outbox;
use super::making::outbox_of;
use super::queue::Left as Unsent;
use super::shared::Shared;
use crate::error::{Exception, Fatal, StreamError};
use crate::intent::{Expected, Intent, Left, Next};
use crate::limits::StreamConfig;
use crate::matched::Matched;
use crate::protocol::Protocol;
use crate::transport::Transport;

/// A protocol to whose peer others send, unasked: it has an [`Outbox`], and runs in a
/// [`WithOutbox`].
pub trait HasOutbox: Protocol {
    /// The outbox: always the same one, from [`create`](Protocol::create) on.
    fn outbox(&mut self) -> &mut Outbox;
}

/// Runs a protocol, and sends what others put into its [`Outbox`]: `Stream<WithOutbox<P>, S>`.
///
/// Messages are put into the output before each wait, up to
/// [`output_max`](super::OutboxConfig::output_max); then it waits for room beside what the protocol
/// waits for, and goes on. The protocol has nothing to do with that: it writes its own answers as
/// ever, and they come behind what is in the output. A new message wakes the protocol, so
/// [`wakeup`](Protocol::wakeup) may be spurious. Where the protocol waits for its output
/// ([`Flush`](crate::Expectation::Flush)), down to less than half of what messages may fill,
/// one output of messages goes before, and the others wait until that has come.
///
/// A peer that takes nothing meets [`flush_timeout`](StreamConfig::flush_timeout); what waits
/// meanwhile is bounded by the [config](super::OutboxConfig).
///
/// # Examples
///
/// Whoever connects hears what is said from then on:
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
    sending: Sending,
}

/// What stands around the protocol.
struct Sending {
    shared: Arc<Shared>,
    /// What the inner protocol waits for.
    wait: Expected,
    /// It waits for less output than there may be of messages: none are put there until that has
    /// come, or those who send would keep it waiting for ever.
    is_held: bool,
}

impl<P> fmt::Debug for WithOutbox<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithOutbox")
            .field("protocol", &type_name::<P>())
            .field("is_held", &self.sending.is_held)
            .finish_non_exhaustive()
    }
}

impl<P: HasOutbox> WithOutbox<P> {
    /// The first intent, from which on there is an outbox; where it is the last one, too, that
    /// which was made.
    fn begin(
        intent: Intent<P>,
        made: Option<Arc<Shared>>,
        transport: &mut Transport<'_>,
    ) -> Intent<Self> {
        match intent.next {
            Next::Wait(mut inner, wait, deadline) => {
                let shared = inner.outbox().shared.clone();
                shared.with(|queue, _| queue.is_attended = true);
                let sending = Sending { shared, wait: Expected::NOTHING, is_held: false };
                let next = Next::Wait(inner, wait, deadline);
                sending.around(Intent { next }, transport)
            }
            Next::Done => {
                if let Some(shared) = made {
                    shared.empty(transport.output);
                }
                Intent::done()
            }
            Next::Reset => Intent::reset(),
            Next::Fail(error) => Intent { next: Next::Fail(error) },
        }
    }

    /// One call of the inner protocol.
    fn call(
        self,
        transport: &mut Transport<'_>,
        call: impl FnOnce(P, &mut Transport<'_>) -> Intent<P>,
    ) -> Intent<Self> {
        let WithOutbox { inner, sending } = self;
        let intent = call(inner, transport);
        sending.around(intent, transport)
    }
}

impl Sending {
    /// Around the protocol that has answered so.
    fn around<P>(
        mut self,
        intent: Intent<P>,
        transport: &mut Transport<'_>,
    ) -> Intent<WithOutbox<P>> {
        let intent = self.settle(intent, type_name::<P>(), transport);
        intent.map(|inner| WithOutbox { inner, sending: self })
    }

    /// Sends what may be sent, and has both waited for: what the protocol of this name wants, and
    /// room for what is left.
    fn settle<T>(
        &mut self,
        intent: Intent<T>,
        name: &'static str,
        transport: &mut Transport<'_>,
    ) -> Intent<T> {
        let (inner, wait, deadline) = match intent.next {
            Next::Wait(inner, wait, deadline) => (inner, wait.unwrap_or(self.wait), deadline),
            Next::Done => {
                self.shared.empty(transport.output);
                return Intent::done();
            }
            Next::Reset => return Intent::reset(),
            Next::Fail(error) => return Intent { next: Next::Fail(error) },
        };
        // Half of what there may be of messages: with so few, more are put there.
        let half = Left::of(self.shared.config.output_max / 2);
        let waits_for_fewer = wait.flush.is_some_and(|left| left.bytes() < half.bytes());
        // One that was not called for its output goes on waiting for it.
        let is_held = std::mem::replace(&mut self.is_held, waits_for_fewer) && waits_for_fewer;
        self.wait = wait;
        let mut both = wait;
        match self.shared.fill(transport.output, is_held) {
            Ok(Unsent::Nothing) => {}
            // What the inner protocol waits for comes first, or is as good.
            Ok(Unsent::Some) => both.flush = Some(wait.flush.unwrap_or(half)),
            Ok(Unsent::Behind) => return Intent::error(StreamError::Behind(name)),
            Err(error) => return Intent::error(error),
        }
        Intent { next: Next::Wait(inner, Some(both), deadline) }
    }
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
        let (intent, made) = outbox_of(|| P::create(seed, transport, scope));
        WithOutbox::begin(intent, made, transport)
    }

    fn bytes_read(
        self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Intent<Self> {
        self.call(transport, |inner, transport| inner.bytes_read(matched, transport, scope))
    }

    fn bytes_read_in_place(
        &mut self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Option<Intent<()>> {
        let intent = self.inner.bytes_read_in_place(matched, transport, scope)?;
        Some(self.sending.settle(intent, type_name::<P>(), transport))
    }

    fn bytes_flushed(
        mut self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Intent<Self> {
        // If it waits for its output, nothing else is waited for there.
        if self.sending.wait.flush.is_some() {
            self.sending.is_held = false;
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
        // A message may have come that nobody was woken for yet.
        let is_empty = self.sending.shared.with(|queue, _| queue.len() == 0);
        self.inner.idle(input).filter(|_| is_empty)
    }

    fn describe(&self, to: &mut Description) {
        to.add_held(self.sending.shared.with(|queue, _| queue.bytes()));
        self.inner.describe(to);
    }
}
