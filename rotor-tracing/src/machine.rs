//! `InSpan`: a machine around a machine, with a span for its life.

use std::fmt;
use std::net::SocketAddr;

use rotor_core::{Description, Event, Idle, InPlace, Machine, Response, Scope};
use rotor_stream::Accepted;
use tracing::field::Empty;
use tracing::{Level, Span};

/// A machine in its own span, which is entered for each event and closed when the machine ends. The
/// spans of a connection's requests are children of it.
///
/// It has the context, seed and name of the inner machine. So `InSpan<Stream<Lines, TcpStream>>`
/// can replace the stream, also in an [`Accept`](rotor_stream::Accept). A machine that is made by a
/// loop or a listener gets a span with the name `machine`, the target `rotor::machine` and the
/// level INFO. Its fields are `type`, `token` and, for a connection, `peer`. To use a span of your
/// own, call [`new`](InSpan::new).
///
/// If no subscriber wants the span, an event costs a check whether there is a span, and passing the
/// machine through the wrapper.
pub struct InSpan<M> {
    machine: M,
    /// Boxed, so that the machine stays small; `None` if no subscriber wants the span.
    span: Option<Box<Span>>,
}

impl<M> InSpan<M> {
    /// Wraps a machine in this span.
    ///
    /// ```
    /// # use rotor_core as rotor;
    /// # use rotor::{Infallible, Machine};
    /// use rotor::{Config, Loop, Response};
    /// use rotor_tracing::InSpan;
    /// use rotor_tracing::tracing::info_span;
    /// # struct Ticker;
    /// # impl Machine for Ticker {
    /// #     type Context = ();
    /// #     type Seed = Infallible;
    /// # }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut creator = Loop::<InSpan<Ticker>>::new(&Config::new())?;
    /// creator.add_machine_with(|_| Response::ok(InSpan::new(Ticker, info_span!("ticker"))))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(machine: M, span: Span) -> InSpan<M> {
        InSpan { machine, span: if_enabled(span) }
    }

    /// Returns the inner machine.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// Returns the machine's span, if a subscriber wants it.
    pub fn span(&self) -> Option<&Span> {
        self.span.as_deref()
    }
}

fn if_enabled(span: Span) -> Option<Box<Span>> {
    (!span.is_disabled()).then(|| Box::new(span))
}

/// Makes the span of a new machine.
fn machine_span<M, C>(peer: Option<SocketAddr>, scope: &Scope<'_, C>) -> Span {
    let span = tracing::span!(
        target: "rotor::machine",
        Level::INFO,
        "machine",
        r#type = std::any::type_name::<M>(),
        token = %scope.token(),
        peer = Empty,
    );
    if let Some(peer) = peer {
        span.record("peer", tracing::field::display(peer));
    }
    span
}

impl<M: Machine> Machine for InSpan<M> {
    type Context = M::Context;
    type Seed = M::Seed;

    fn create(seed: M::Seed, scope: &mut Scope<'_, M::Context>) -> Response<Self> {
        let span = machine_span::<M, _>(None, scope);
        let response = span.in_scope(|| M::create(seed, scope));
        response.wrap(|machine| InSpan { machine, span: if_enabled(span) })
    }

    #[inline]
    fn handle(
        self,
        event: Event<M::Seed>,
        scope: &mut Scope<'_, M::Context>,
    ) -> Response<Self, M::Seed> {
        let InSpan { machine, span } = self;
        let response = match &span {
            None => machine.handle(event, scope),
            Some(span) => span.in_scope(|| machine.handle(event, scope)),
        };
        response.map(|machine| InSpan { machine, span }, |seed| seed)
    }

    #[inline]
    fn handle_in_place(
        &mut self,
        event: Event<M::Seed>,
        scope: &mut Scope<'_, M::Context>,
    ) -> InPlace<M::Seed> {
        let InSpan { machine, span } = self;
        match span {
            None => machine.handle_in_place(event, scope),
            Some(span) => span.in_scope(|| machine.handle_in_place(event, scope)),
        }
    }

    fn idle(&self) -> Option<Idle> {
        self.machine.idle()
    }

    fn describe(&self, to: &mut Description) {
        self.machine.describe(to);
    }

    fn type_name(&self) -> &'static str {
        self.machine.type_name()
    }
}

impl<S, M: Accepted<S>> Accepted<S> for InSpan<M> {
    type Shared = M::Shared;

    fn accepted(
        socket: S,
        peer: Option<SocketAddr>,
        shared: M::Shared,
        scope: &mut Scope<'_, M::Context>,
    ) -> Response<Self> {
        let span = machine_span::<M, _>(peer, scope);
        let response = span.in_scope(|| M::accepted(socket, peer, shared, scope));
        response.wrap(|machine| InSpan { machine, span: if_enabled(span) })
    }
}

impl<M: fmt::Debug> fmt::Debug for InSpan<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.machine.fmt(f)
    }
}
