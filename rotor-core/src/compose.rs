//! `rotor_compose!`: several protocols in one loop, by a machine that is one of several machines.

use crate::machine::Machine;

/// Checks that a part of `rotor_compose!` is a machine of the wanted context. The compiler reports
/// an unmet bound at the type that a call names, which is the part as the user wrote it.
#[doc(hidden)]
pub const fn check_part<M: Machine<Context = C>, C>() {}

/// Defines an enum of several machine types with the same context. The enum is itself a machine.
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::{rotor_compose, Machine, Response, Infallible};
///
/// struct Shared;
///
/// # macro_rules! machine { ($name:ident) => {
/// # struct $name;
/// # impl Machine for $name {
/// #     type Context = Shared;
/// #     type Seed = Infallible;
/// # }
/// # } }
/// # machine!(Echo);
/// # machine!(Clock);
/// rotor_compose! {
///     /// The machines of this program.
///     enum App <Shared> {
///         Echo(Echo),
///         Clock(Clock),
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut creator = rotor::Loop::<App>::new(&rotor::Config::new())?;
/// creator.add_machine_with(|_scope| Response::ok(App::Echo(Echo)))?;
/// creator.add_machine_with(|_scope| Response::ok(App::Clock(Clock)))?;
/// # Ok(())
/// # }
/// ```
///
/// The type in angle brackets is the context. A constructor returns a [`Response`](crate::Response)
/// with its own machine. [`wrap`](crate::Response::wrap) converts it to a response with the enum;
/// [`add_part`](crate::Loop::add_part) does this by itself.
///
/// The enum exposes its parts and its context, so it cannot be more visible than they are: `pub
/// enum` with a private context or part is the compiler's error E0446. A part that is not a
/// machine, or has another context, is reported at the part.
///
/// # Seeds
///
/// If machines are made from outside by a seed
/// ([`LoopInstance::spawn`](crate::LoopInstance::spawn)), the enum of the seeds needs a name. The
/// name follows that of the machine; the enum has the same variants:
///
/// ```
/// # use rotor_core::{rotor_compose, Machine, Response, Scope};
/// # struct Echo;
/// # impl Machine for Echo {
/// #     type Context = ();
/// #     type Seed = u32;
/// #     fn create(_: u32, _: &mut Scope<'_, ()>) -> Response<Self> { Response::ok(Echo) }
/// # }
/// rotor_compose! {
///     enum App / AppSeed <()> {
///         Echo(Echo),
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut instance = rotor_core::Loop::<App>::new(&rotor_core::Config::new())?.instantiate(());
/// instance.spawn(AppSeed::Echo(7)).map_err(|error| error.to_string())?;
/// # Ok(())
/// # }
/// ```
///
/// A part spawns only machines of its own type: its seed is wrapped in the enum of the seeds.
///
/// # Generics
///
/// With a context of your own, the machine may have type parameters, usually for the sockets; then
/// the program runs unchanged in a simulation. Each parameter must occur in a part:
///
/// ```
/// # use std::marker::PhantomData;
/// # use rotor_core::{rotor_compose, Machine, Response, Scope};
/// # use rotor_core::net::{DatagramSocket, Inet, IpNet, Listener};
/// # macro_rules! machine { ($name:ident, $bound:path) => {
/// # struct $name<S>(PhantomData<fn(S)>);
/// # impl<S: $bound> Machine for $name<S> {
/// #     type Context = Shared;
/// #     type Seed = S;
/// #     fn create(_: S, _: &mut Scope<'_, Shared>) -> Response<Self> { Response::ok($name(PhantomData)) }
/// # }
/// # } }
/// # machine!(Accept, Listener);
/// # machine!(Statsd, DatagramSocket);
/// # struct Shared;
/// rotor_compose! {
///     enum App<N: IpNet> <Shared> {
///         Accept(Accept<N::Listener>),
///         Statsd(Statsd<N::Datagram>),
///     }
/// }
///
/// fn is_machine<M: Machine<Context = Shared>>() {}
/// is_machine::<App<Inet>>();
/// ```
///
/// A bound of more than one trait goes behind, in brackets: `enum App<N> <Shared> where [N: IpNet +
/// Send] { .. }`.
///
/// A machine in a library is generic over the context, too. Then the context is the first
/// parameter, there is no second list, and all bounds go in brackets:
///
/// ```
/// # use std::marker::PhantomData;
/// # use rotor_core::{rotor_compose, Machine, Response, Scope};
/// # use rotor_core::net::{Listener, StreamSocket, TcpListener, TcpStream};
/// # macro_rules! machine { ($name:ident, $bound:path) => {
/// # struct $name<C, S>(PhantomData<fn(C, S)>);
/// # impl<C, S: $bound> Machine for $name<C, S> {
/// #     type Context = C;
/// #     type Seed = S;
/// #     fn create(_: S, _: &mut Scope<'_, C>) -> Response<Self> { Response::ok($name(PhantomData)) }
/// # }
/// # } }
/// # machine!(Accept, Listener);
/// # machine!(Client, StreamSocket);
/// rotor_compose! {
///     enum Parts <C, S, L> where [S: StreamSocket, L: Listener<Socket = S>] {
///         Accept(Accept<C, L>),
///         Client(Client<C, S>),
///     }
/// }
///
/// fn is_machine<M: Machine<Context = u32>>() {}
/// is_machine::<Parts<u32, TcpStream, TcpListener>>();
/// ```
///
/// Both forms may name their seeds: `enum App<N: IpNet> / AppSeed <Shared>`, `enum Parts /
/// PartsSeed <C, S, L>`.
#[macro_export]
macro_rules! rotor_compose {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident $(/ $seed:ident)? <$context:ident $(, $generic:ident)* $(,)?> where [$($bounds:tt)*] {
            $($(#[$part_meta:meta])* $part:ident($machine:ty)),+ $(,)?
        }
    ) => {
        $crate::__rotor_compose! {
            [$(#[$meta])*] $vis $name [$($seed)?] [<$context $(, $generic)*>] [$context] [$($bounds)*]
            $([$(#[$part_meta])*] $part $machine;)+
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident <$($generic:ident $(: $bound:path)?),+ $(,)?> $(/ $seed:ident)? <$context:ty>
        $(where [$($bounds:tt)*])? {
            $($(#[$part_meta:meta])* $part:ident($machine:ty)),+ $(,)?
        }
    ) => {
        $crate::__rotor_compose! {
            [$(#[$meta])*] $vis $name [$($seed)?] [<$($generic),+>] [$context]
            [$($($generic: $bound,)?)+ $($($bounds)*)?]
            $([$(#[$part_meta])*] $part $machine;)+
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident $(/ $seed:ident)? <$context:ty> {
            $($(#[$part_meta:meta])* $part:ident($machine:ty)),+ $(,)?
        }
    ) => {
        $crate::__rotor_compose! {
            [$(#[$meta])*] $vis $name [$($seed)?] [] [$context] []
            $([$(#[$part_meta])*] $part $machine;)+
        }
    };
    ($($other:tt)*) => {
        ::core::compile_error! {
            "expected `enum NAME <CONTEXT> { PART(MACHINE), .. }`: the context that all parts have, then a name and one machine \
             for each part; with type parameters `enum NAME<N: TRAIT> <CONTEXT> { .. }`, or, where the context is the first of \
             them, `enum NAME <C, L> where [C: TRAIT, L: TRAIT] { .. }`"
        }
    };
}

/// The body of `rotor_compose!`. If the seeds have a name, their enum is defined next to the
/// machine; otherwise it is hidden in a `const _`.
///
/// One mistake should lead to few errors (doc/decisions/0024). That the parts are machines is
/// therefore also said in where-clauses, which the compiler assumes to hold in the methods. And
/// calls name the part as the user wrote it: if a part's own bounds do not hold, the errors of all
/// methods are the same error, which the compiler shows once.
#[doc(hidden)]
#[macro_export]
macro_rules! __rotor_compose {
    // Converts the event for its part: a seed that comes back belongs to that part.
    (@down $event:ident $seed:ident $part:ident) => {
        $event.filter_map(|seed| {
            // If there is only one part, the last arm is unreachable.
            #[allow(unreachable_patterns)]
            match seed {
                $seed::$part(seed) => ::core::option::Option::Some(seed),
                _ => ::core::option::Option::None,
            }
        })
    };
    (
        @check [$($generics:tt)*] [$context:ty] [$($bounds:tt)*] $([$($part_meta:tt)*] $part:ident $machine:ty;)+
    ) => {
        const _: () = {
            #[allow(dead_code)]
            fn check $($generics)* () where $($bounds)* {
                $($crate::check_part::<$machine, $context>();)+
            }
        };
    };
    (
        [$($meta:tt)*] $vis:vis $name:ident [$seed:ident] $generics:tt $context:tt $bounds:tt $($parts:tt)+
    ) => {
        $crate::__rotor_compose! { @check $generics $context $bounds $($parts)+ }
        $crate::__rotor_compose! { @machine [$($meta)*] $vis $name $generics $bounds $($parts)+ }
        $crate::__rotor_compose! { @seed $vis $seed $generics $bounds $($parts)+ }
        $crate::__rotor_compose! { @implement $name $seed $generics $context $bounds $($parts)+ }
    };
    (
        [$($meta:tt)*] $vis:vis $name:ident [] $generics:tt $context:tt $bounds:tt $($parts:tt)+
    ) => {
        $crate::__rotor_compose! { @check $generics $context $bounds $($parts)+ }
        $crate::__rotor_compose! { @machine [$($meta)*] $vis $name $generics $bounds $($parts)+ }
        // A part or the context may be a type of the user's whose name is `Seed`.
        const _: () = {
            $crate::__rotor_compose! { @seed $vis __Seed $generics $bounds $($parts)+ }
            $crate::__rotor_compose! { @implement $name __Seed $generics $context $bounds $($parts)+ }
        };
    };
    (
        @machine [$($meta:tt)*] $vis:vis $name:ident [$($generics:tt)*] [$($bounds:tt)*]
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
    };
    (
        @seed $vis:vis $seed:ident [$($generics:tt)*] [$($bounds:tt)*]
        $([$($part_meta:tt)*] $part:ident $machine:ty;)+
    ) => {
        /// The seed of a machine of the composed type, which is the seed of one of its parts.
        #[allow(missing_debug_implementations)]
        $vis enum $seed $($generics)* where $($bounds)* {
            $(
                #[allow(missing_docs)]
                $part(<$machine as $crate::Machine>::Seed),
            )+
        }
    };
    (
        @implement $name:ident $seed:ident [$($generics:tt)*] [$context:ty] [$($bounds:tt)*]
        $([$($part_meta:tt)*] $part:ident $machine:ty;)+
    ) => {
        impl $($generics)* $crate::Machine for $name $($generics)*
        where
            $($machine: $crate::Machine<Context = $context>,)+
            $($bounds)*
        {
            type Context = $context;
            type Seed = $seed $($generics)*;

            // Not `Self::Seed`, which a part with this name would make ambiguous.
            fn create(
                seed: $seed $($generics)*,
                scope: &mut $crate::Scope<'_, $context>,
            ) -> $crate::Response<Self> {
                match seed {
                    $($seed::$part(seed) => <$machine as $crate::Machine>::create(seed, scope).wrap($name::$part),)+
                }
            }

            fn handle(
                self,
                event: $crate::Event<$seed $($generics)*>,
                scope: &mut $crate::Scope<'_, $context>,
            ) -> $crate::Response<Self, $seed $($generics)*> {
                match self {
                    $($name::$part(machine) => {
                        let event = $crate::__rotor_compose! { @down event $seed $part };
                        <$machine as $crate::Machine>::handle(machine, event, scope).map($name::$part, $seed::$part)
                    })+
                }
            }

            #[inline]
            fn handle_in_place(
                &mut self,
                event: $crate::Event<$seed $($generics)*>,
                scope: &mut $crate::Scope<'_, $context>,
            ) -> $crate::InPlace<$seed $($generics)*> {
                match self {
                    $($name::$part(machine) => {
                        let event = $crate::__rotor_compose! { @down event $seed $part };
                        <$machine as $crate::Machine>::handle_in_place(machine, event, scope).map($seed::$part)
                    })+
                }
            }

            fn idle(&self) -> ::core::option::Option<$crate::Idle> {
                match self {
                    $($name::$part(machine) => <$machine as $crate::Machine>::idle(machine),)+
                }
            }

            fn describe(&self, to: &mut $crate::Description) {
                match self {
                    $($name::$part(machine) => <$machine as $crate::Machine>::describe(machine, to),)+
                }
            }

            fn type_name(&self) -> &'static str {
                match self {
                    $($name::$part(machine) => <$machine as $crate::Machine>::type_name(machine),)+
                }
            }
        }
    };
}
