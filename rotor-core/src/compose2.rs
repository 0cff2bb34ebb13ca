//! `Compose2`: a machine that is one of two.

use crate::{EventSet, Machine, Response, Scope, SpawnError, Time};

/// A machine that is one of two machines, which share a context; also the seed of such a machine.
///
/// It is for code that does not know its parts: a library that puts a machine of its own beside one of the caller's. A
/// program knows its parts and composes them with [`rotor_compose!`](crate::rotor_compose), which gives them names. There is
/// no `Compose3`: nothing would say what its `C` is, and code that does not know its parts nests,
/// `Compose2<A, Compose2<B, C>>`.
///
/// ```
/// use rotor_core::{Compose2, Machine};
///
/// fn both<A, B>(a: A) -> Compose2<A, B>
/// where
///     A: Machine,
///     B: Machine<Context = A::Context>,
/// {
///     Compose2::A(a)
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compose2<A, B> {
    /// The first of the two.
    A(A),
    /// The second of the two.
    B(B),
}

impl<A, B> Compose2<A, B> {
    /// The first, if it is that.
    pub fn a(self) -> Option<A> {
        match self {
            Compose2::A(a) => Some(a),
            Compose2::B(_) => None,
        }
    }

    /// The second, if it is that.
    pub fn b(self) -> Option<B> {
        match self {
            Compose2::A(_) => None,
            Compose2::B(b) => Some(b),
        }
    }
}

/// Hands a call to the part that the machine is, and wraps the answer.
macro_rules! forward {
    ($self:ident, $method:ident($($argument:expr),*)) => {
        match $self {
            Compose2::A(machine) => machine.$method($($argument),*).map(Compose2::A, Compose2::A),
            Compose2::B(machine) => machine.$method($($argument),*).map(Compose2::B, Compose2::B),
        }
    };
}

impl<A, B> Machine for Compose2<A, B>
where
    A: Machine,
    B: Machine<Context = A::Context>,
{
    type Context = A::Context;
    type Seed = Compose2<A::Seed, B::Seed>;

    fn create(seed: Self::Seed, scope: &mut Scope<'_, A::Context>) -> Response<Self> {
        match seed {
            Compose2::A(seed) => A::create(seed, scope).wrap(Compose2::A),
            Compose2::B(seed) => B::create(seed, scope).wrap(Compose2::B),
        }
    }

    fn ready(self, events: EventSet, scope: &mut Scope<'_, A::Context>) -> Response<Self, Self::Seed> {
        forward!(self, ready(events, scope))
    }

    #[inline]
    fn ready_in_place(
        &mut self,
        events: EventSet,
        scope: &mut Scope<'_, A::Context>,
    ) -> Option<Response<(), Self::Seed>> {
        match self {
            Compose2::A(machine) => Some(machine.ready_in_place(events, scope)?.map(|()| (), Compose2::A)),
            Compose2::B(machine) => Some(machine.ready_in_place(events, scope)?.map(|()| (), Compose2::B)),
        }
    }

    fn spawned(self, scope: &mut Scope<'_, A::Context>) -> Response<Self, Self::Seed> {
        forward!(self, spawned(scope))
    }

    fn spawn_error(
        self,
        error: SpawnError<Self::Seed>,
        scope: &mut Scope<'_, A::Context>,
    ) -> Response<Self, Self::Seed> {
        match self {
            Compose2::A(machine) => {
                machine.spawn_error(error.filter_map(Compose2::a), scope).map(Compose2::A, Compose2::A)
            }
            Compose2::B(machine) => {
                machine.spawn_error(error.filter_map(Compose2::b), scope).map(Compose2::B, Compose2::B)
            }
        }
    }

    fn timeout(self, scope: &mut Scope<'_, A::Context>) -> Response<Self, Self::Seed> {
        forward!(self, timeout(scope))
    }

    fn wakeup(self, scope: &mut Scope<'_, A::Context>) -> Response<Self, Self::Seed> {
        forward!(self, wakeup(scope))
    }

    fn draining(self, until: Time, scope: &mut Scope<'_, A::Context>) -> Response<Self, Self::Seed> {
        forward!(self, draining(until, scope))
    }

    fn type_name(&self) -> &'static str {
        match self {
            Compose2::A(machine) => machine.type_name(),
            Compose2::B(machine) => machine.type_name(),
        }
    }
}
