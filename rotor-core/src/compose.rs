//! Several protocols in one loop: a machine that is one of several machines.

use crate::{EventSet, Machine, Response, Scope, SpawnError, Time};

/// A machine that is one of two machines, which share a context; also the seed of such a machine.
///
/// For parts with names, or more of them: [`rotor_compose!`](crate::rotor_compose).
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

/// What `rotor_compose!` uses to say, at the part, that it is not a machine of the wanted context: the compiler reports an
/// unmet bound at the type that a call names, which is the part as the user wrote it.
#[doc(hidden)]
pub const fn check_part<M: Machine<Context = C>, C>() {}

/// Makes a machine that is one of several named machines of one context, and its seed.
///
/// ```
/// use rotor_core::{rotor_compose, EventSet, Machine, Response, Scope, Void};
///
/// struct Shared;
///
/// # macro_rules! machine { ($name:ident) => {
/// # struct $name;
/// # impl Machine for $name {
/// #     type Context = Shared;
/// #     type Seed = Void;
/// #     fn create(seed: Void, _: &mut Scope<'_, Shared>) -> Response<Self> { match seed {} }
/// #     fn ready(self, _: EventSet, _: &mut Scope<'_, Shared>) -> Response<Self, Void> { Response::keep(self) }
/// # }
/// # } }
/// # machine!(Echo);
/// # machine!(Clock);
/// rotor_compose! {
///     /// The machines of this program, and the seeds that make them.
///     enum App / AppSeed <Shared> {
///         Echo(Echo),
///         Clock(Clock),
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut creator = rotor_core::Loop::<App>::new(&rotor_core::Config::new())?;
/// creator.add_machine_with(|_scope| Response::ok(App::Echo(Echo)))?;
/// creator.add_machine_with(|_scope| Response::ok(App::Clock(Clock)))?;
/// # Ok(())
/// # }
/// ```
///
/// The enum shows its parts and its context, so it can be no more visible than they are: `pub enum` with a private context
/// or part is the compiler's error E0446.
///
/// The context may be generic, and so may the parts, with the context first: `pub enum App / AppSeed <C, L> where
/// [C: HasResolver, L: Listener] { .. }` makes `App<C, L>`; each part may name `C` and `L`. A part that is not a machine,
/// or one of another context, is reported at the part.
///
/// ```
/// # use std::marker::PhantomData;
/// # use rotor_core::{rotor_compose, EventSet, Machine, Response, Scope, Void};
/// # use rotor_core::net::{Listener, StreamSocket, TcpListener, TcpStream};
/// # macro_rules! machine { ($name:ident, $bound:path) => {
/// # struct $name<C, S>(PhantomData<fn(C, S)>);
/// # impl<C, S: $bound> Machine for $name<C, S> {
/// #     type Context = C;
/// #     type Seed = S;
/// #     fn create(_: S, _: &mut Scope<'_, C>) -> Response<Self> { Response::ok($name(PhantomData)) }
/// #     fn ready(self, _: EventSet, _: &mut Scope<'_, C>) -> Response<Self, S> { Response::keep(self) }
/// # }
/// # } }
/// # machine!(Accept, Listener);
/// # machine!(Client, StreamSocket);
/// rotor_compose! {
///     enum App / AppSeed <C, S, L> where [S: StreamSocket, L: Listener<Socket = S>] {
///         Accept(Accept<C, L>),
///         Client(Client<C, S>),
///     }
/// }
///
/// fn is_machine<M: Machine<Context = u32>>() {}
/// is_machine::<App<u32, TcpStream, TcpListener>>();
/// ```
///
/// A part spawns machines of its own type only: its seed is wrapped into the seed of the whole.
#[macro_export]
macro_rules! rotor_compose {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident / $seed:ident <$context:ident $(, $generic:ident)* $(,)?> where [$($bounds:tt)*] {
            $($(#[$part_meta:meta])* $part:ident($machine:ty)),+ $(,)?
        }
    ) => {
        $crate::__rotor_compose! {
            [$(#[$meta])*] $vis $name $seed [<$context $(, $generic)*>] [$context] [$($bounds)*]
            $([$(#[$part_meta])*] $part $machine;)+
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident / $seed:ident <$context:ty> {
            $($(#[$part_meta:meta])* $part:ident($machine:ty)),+ $(,)?
        }
    ) => {
        $crate::__rotor_compose! {
            [$(#[$meta])*] $vis $name $seed [] [$context] []
            $([$(#[$part_meta])*] $part $machine;)+
        }
    };
}

/// The body of `rotor_compose!`, with and without a generic context.
#[doc(hidden)]
#[macro_export]
macro_rules! __rotor_compose {
    (
        [$($meta:tt)*] $vis:vis $name:ident $seed:ident [$($generics:tt)*] [$context:ty] [$($bounds:tt)*]
        $([$($part_meta:tt)*] $part:ident $machine:ty;)+
    ) => {
        $($meta)*
        #[allow(missing_debug_implementations)]
        $vis enum $name $($generics)* where $($bounds)* {
            $(
                $($part_meta)*
                #[allow(missing_docs)]
                $part($machine),
            )+
        }

        /// What a machine of the composed type is made from: the seed of one of its parts.
        #[allow(missing_debug_implementations)]
        $vis enum $seed $($generics)* where $($bounds)* {
            $(
                #[allow(missing_docs)]
                $part(<$machine as $crate::Machine>::Seed),
            )+
        }

        const _: () = {
            #[allow(dead_code)]
            fn check $($generics)* () where $($bounds)* {
                $($crate::check_part::<$machine, $context>();)+
            }
        };

        impl $($generics)* $crate::Machine for $name $($generics)* where $($bounds)* {
            type Context = $context;
            type Seed = $seed $($generics)*;

            fn create(
                seed: Self::Seed,
                scope: &mut $crate::Scope<'_, Self::Context>,
            ) -> $crate::Response<Self> {
                match seed {
                    $($seed::$part(seed) => <$machine as $crate::Machine>::create(seed, scope).wrap($name::$part),)+
                }
            }

            fn ready(
                self,
                events: $crate::EventSet,
                scope: &mut $crate::Scope<'_, Self::Context>,
            ) -> $crate::Response<Self, Self::Seed> {
                match self {
                    $($name::$part(machine) => {
                        $crate::Machine::ready(machine, events, scope).map($name::$part, $seed::$part)
                    })+
                }
            }

            fn spawned(
                self,
                scope: &mut $crate::Scope<'_, Self::Context>,
            ) -> $crate::Response<Self, Self::Seed> {
                match self {
                    $($name::$part(machine) => {
                        $crate::Machine::spawned(machine, scope).map($name::$part, $seed::$part)
                    })+
                }
            }

            fn spawn_error(
                self,
                error: $crate::SpawnError<Self::Seed>,
                scope: &mut $crate::Scope<'_, Self::Context>,
            ) -> $crate::Response<Self, Self::Seed> {
                match self {
                    $($name::$part(machine) => {
                        #[allow(unreachable_patterns, irrefutable_let_patterns)]
                        let error = error.filter_map(|seed| match seed {
                            $seed::$part(seed) => Some(seed),
                            _ => None,
                        });
                        $crate::Machine::spawn_error(machine, error, scope).map($name::$part, $seed::$part)
                    })+
                }
            }

            fn timeout(
                self,
                scope: &mut $crate::Scope<'_, Self::Context>,
            ) -> $crate::Response<Self, Self::Seed> {
                match self {
                    $($name::$part(machine) => {
                        $crate::Machine::timeout(machine, scope).map($name::$part, $seed::$part)
                    })+
                }
            }

            fn wakeup(
                self,
                scope: &mut $crate::Scope<'_, Self::Context>,
            ) -> $crate::Response<Self, Self::Seed> {
                match self {
                    $($name::$part(machine) => {
                        $crate::Machine::wakeup(machine, scope).map($name::$part, $seed::$part)
                    })+
                }
            }

            fn draining(
                self,
                until: $crate::Time,
                scope: &mut $crate::Scope<'_, Self::Context>,
            ) -> $crate::Response<Self, Self::Seed> {
                match self {
                    $($name::$part(machine) => {
                        $crate::Machine::draining(machine, until, scope).map($name::$part, $seed::$part)
                    })+
                }
            }

            fn type_name(&self) -> &'static str {
                match self {
                    $($name::$part(machine) => $crate::Machine::type_name(machine),)+
                }
            }
        }
    };
}
