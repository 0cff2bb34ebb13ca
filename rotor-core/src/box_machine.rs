//! `BoxMachine`: a boxed machine of any type, for plug-ins, and for loops whose machine types are
//! not known at compile time.

use std::fmt;
use std::mem;

use crate::description::Description;
use crate::event::{Event, InPlace};
use crate::machine::Machine;
use crate::response::Response;
use crate::room::Idle;
use crate::scope::Scope;

/// A machine of any type with this context, behind one allocation.
///
/// It costs an allocation when it is made, and a dynamic call for each event. The machine stays in
/// its box. The inner machine can spawn machines of its own type, which are boxed as well.
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::{BoxMachine, Config, Loop, Response};
/// # use rotor::{Machine, Infallible};
/// # struct Plugin;
/// # impl Machine for Plugin {
/// #     type Context = ();
/// #     type Seed = Infallible;
/// # }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut creator = Loop::<BoxMachine<()>>::new(&Config::new())?;
/// creator.add_machine_with(|_scope| Response::ok(BoxMachine::new(Plugin)))?;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "dyn")]
#[doc(alias = "trait object")]
#[doc(alias = "plug-in")]
pub struct BoxMachine<C> {
    machine: Box<dyn AnyMachine<C>>,
}

/// The seed of a boxed machine.
pub struct BoxSeed<C> {
    seed: Box<dyn AnySeed<C>>,
}

impl<C: 'static> BoxMachine<C> {
    /// Boxes a machine.
    pub fn new<M: Machine<Context = C> + 'static>(machine: M) -> BoxMachine<C> {
        BoxMachine { machine: Box::new(BoxedState::Present(machine)) }
    }
}

impl<C: 'static> BoxSeed<C> {
    /// Boxes the seed of a machine of type `M`.
    pub fn new<M: Machine<Context = C> + 'static>(seed: M::Seed) -> BoxSeed<C> {
        BoxSeed { seed: Box::new(TypedSeed::<M>(seed)) }
    }

    /// Returns the seed if it belongs to a machine of type `M`.
    ///
    /// # Errors
    ///
    /// Returns the boxed seed if it is of another type.
    pub fn downcast<M: Machine<Context = C> + 'static>(self) -> Result<M::Seed, BoxSeed<C>> {
        if (&*self.seed as &dyn std::any::Any).is::<TypedSeed<M>>() {
            let any: Box<dyn std::any::Any> = self.seed;
            return match any.downcast::<TypedSeed<M>>() {
                Ok(seed) => Ok(seed.0),
                Err(_) => unreachable!("the type was asked for above"),
            };
        }
        Err(self)
    }
}

/// A machine in a box that outlives its handlers. It is taken out for each call by value, and put
/// back with the response.
enum BoxedState<M> {
    Present(M),
    /// With its handler, or gone. The name is kept, since it may be needed after a panic.
    Taken(&'static str),
}

/// A handler's response without the machine, which is back in its box.
type HandlerResponse<C> = Response<(), BoxSeed<C>>;

trait AnyMachine<C> {
    fn handle(&mut self, event: Event<BoxSeed<C>>, scope: &mut Scope<'_, C>) -> HandlerResponse<C>;
    fn idle(&self) -> Option<Idle>;
    fn describe(&self, to: &mut Description);
    fn type_name(&self) -> &'static str;
}

trait AnySeed<C>: std::any::Any {
    fn create(self: Box<Self>, scope: &mut Scope<'_, C>) -> Response<BoxMachine<C>>;
}

struct TypedSeed<M: Machine>(M::Seed);

impl<C: 'static, M: Machine<Context = C> + 'static> AnySeed<C> for TypedSeed<M> {
    fn create(self: Box<Self>, scope: &mut Scope<'_, C>) -> Response<BoxMachine<C>> {
        M::create(self.0, scope).wrap(BoxMachine::new)
    }
}

impl<C: 'static, M: Machine<Context = C> + 'static> AnyMachine<C> for BoxedState<M> {
    fn handle(&mut self, event: Event<BoxSeed<C>>, scope: &mut Scope<'_, C>) -> HandlerResponse<C> {
        // Empty only after a response that ended the machine; then there are no further calls.
        let BoxedState::Present(machine) = self else { return Response::done() };
        let event = event.filter_map(|seed| seed.downcast::<M>().ok());
        let event = match machine.handle_in_place(event, scope) {
            InPlace::Handled(response) => return response.map(|()| (), BoxSeed::new::<M>),
            InPlace::Declined(event) => event,
        };
        // `handle` takes the machine by value. If it answers `done` or panics, the box stays empty.
        let taken = BoxedState::Taken(machine.type_name());
        let BoxedState::Present(machine) = mem::replace(self, taken) else {
            return Response::done();
        };
        machine
            .handle(event, scope)
            .map(|machine| *self = BoxedState::Present(machine), BoxSeed::new::<M>)
    }

    fn idle(&self) -> Option<Idle> {
        match self {
            BoxedState::Present(machine) => machine.idle(),
            BoxedState::Taken(_) => None,
        }
    }

    fn describe(&self, to: &mut Description) {
        if let BoxedState::Present(machine) = self {
            machine.describe(to);
        }
    }

    fn type_name(&self) -> &'static str {
        match self {
            BoxedState::Present(machine) => machine.type_name(),
            BoxedState::Taken(name) => name,
        }
    }
}

impl<C: 'static> Machine for BoxMachine<C> {
    type Context = C;
    type Seed = BoxSeed<C>;

    fn create(seed: BoxSeed<C>, scope: &mut Scope<'_, C>) -> Response<Self> {
        seed.seed.create(scope)
    }

    fn handle(
        mut self,
        event: Event<BoxSeed<C>>,
        scope: &mut Scope<'_, C>,
    ) -> Response<Self, BoxSeed<C>> {
        self.machine.handle(event, scope).map(|()| self, |seed| seed)
    }

    #[inline]
    fn handle_in_place(
        &mut self,
        event: Event<BoxSeed<C>>,
        scope: &mut Scope<'_, C>,
    ) -> InPlace<BoxSeed<C>> {
        InPlace::Handled(self.machine.handle(event, scope))
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

impl<C> fmt::Debug for BoxMachine<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BoxMachine").field(&self.machine.type_name()).finish()
    }
}

impl<C> fmt::Debug for BoxSeed<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoxSeed")
    }
}
