//! `Compose2`: a machine that is one of two.

use crate::description::Description;
use crate::event::{Event, InPlace};
use crate::machine::Machine;
use crate::response::Response;
use crate::room::Idle;
use crate::scope::Scope;

/// A machine that is one of two machines, which share a context; also the seed of such a machine.
///
/// It is for code that does not know its parts: a library that combines a machine of its own with a
/// machine of the caller. A program knows its parts and composes them with
/// [`rotor_compose!`](crate::rotor_compose), which gives them names. There is no `Compose3`,
/// because the name `C` would not say anything about its machine; code that does not know its parts
/// nests instead: `Compose2<A, Compose2<B, C>>`.
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::{Compose2, Machine};
///
/// fn both<A, B>(a: A) -> Compose2<A, B>
/// where
///     A: Machine,
///     B: Machine<Context = A::Context>,
/// {
///     Compose2::A(a)
/// }
/// ```
#[doc(alias = "Either")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compose2<A, B> {
    /// The first of the two.
    A(A),
    /// The second of the two.
    B(B),
}

impl<A, B> Compose2<A, B> {
    /// Returns the machine or seed if it is an `A`.
    pub fn a(self) -> Option<A> {
        match self {
            Compose2::A(a) => Some(a),
            Compose2::B(_) => None,
        }
    }

    /// Returns the machine or seed if it is a `B`.
    pub fn b(self) -> Option<B> {
        match self {
            Compose2::A(_) => None,
            Compose2::B(b) => Some(b),
        }
    }
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

    fn handle(
        self,
        event: Event<Self::Seed>,
        scope: &mut Scope<'_, A::Context>,
    ) -> Response<Self, Self::Seed> {
        // A seed comes back to the machine that spawned it, so it is of the same variant.
        match self {
            Compose2::A(a) => {
                a.handle(event.filter_map(Compose2::a), scope).map(Compose2::A, Compose2::A)
            }
            Compose2::B(b) => {
                b.handle(event.filter_map(Compose2::b), scope).map(Compose2::B, Compose2::B)
            }
        }
    }

    #[inline]
    fn handle_in_place(
        &mut self,
        event: Event<Self::Seed>,
        scope: &mut Scope<'_, A::Context>,
    ) -> InPlace<Self::Seed> {
        match self {
            Compose2::A(a) => {
                a.handle_in_place(event.filter_map(Compose2::a), scope).map(Compose2::A)
            }
            Compose2::B(b) => {
                b.handle_in_place(event.filter_map(Compose2::b), scope).map(Compose2::B)
            }
        }
    }

    fn idle(&self) -> Option<Idle> {
        match self {
            Compose2::A(machine) => machine.idle(),
            Compose2::B(machine) => machine.idle(),
        }
    }

    fn describe(&self, to: &mut Description) {
        match self {
            Compose2::A(machine) => machine.describe(to),
            Compose2::B(machine) => machine.describe(to),
        }
    }

    fn type_name(&self) -> &'static str {
        match self {
            Compose2::A(machine) => machine.type_name(),
            Compose2::B(machine) => machine.type_name(),
        }
    }
}
