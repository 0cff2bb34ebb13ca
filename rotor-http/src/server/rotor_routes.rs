//! `rotor_routes!`: several servers beside each other, by a server that is one of several servers.

use rotor_core::Scope;
use rotor_stream::Protocol;

use super::handler::{Next, Server};
use super::head::Head;
use super::response::Response;
use crate::semantics::status::Status;

/// Checks that a part of `rotor_routes!` is a server with the wanted context and upgrade. The
/// compiler reports an unmet bound at the type that a call names, which is the part as the user
/// wrote it.
///
/// The compiler shows the line of the bound, with its comment.
#[doc(hidden)]
pub const fn check_route<S, C, P: Protocol<Context = C>>()
where
    S: Server<Context = C>, // all parts have the context of the whole
    S: Server<Upgrade = P>, // all parts have one `Upgrade`: `WithUpgrade<S, P>` gives `S` that of others
{
}

/// Passes a request to the server that it goes to. A method that this server does not support gets
/// the same response as one that none supports, so that a peer cannot tell one 501 from the other.
#[doc(hidden)]
pub fn start_route<S, T>(
    seed: S::Seed,
    head: &Head<'_>,
    response: &mut Response<'_>,
    scope: &mut Scope<'_, S::Context>,
    wrap: impl FnOnce(S) -> T + Send + 'static,
) -> Next<T>
where
    S: Server + 'static,
    T: Server<Context = S::Context, Upgrade = S::Upgrade>,
{
    if !S::supports(head.method()) {
        response.close_unless_framed();
        T::emit_error_page(Status::NOT_IMPLEMENTED, response);
        return Next::finished();
    }
    S::headers_received(seed, head, response, scope).wrap(wrap)
}

/// Responds to a request that goes to none of the servers.
#[doc(hidden)]
pub fn refuse_route<T: Server>(response: &mut Response<'_>) -> Next<T> {
    T::emit_error_page(Status::NOT_FOUND, response);
    Next::finished()
}

/// Defines a server that consists of several servers with the same context: each request goes to
/// the first one whose condition it meets.
///
/// ```
/// # mod rotor { pub use rotor_stream as stream; pub use rotor_http as http; }
/// use rotor::http::Status;
/// use rotor::http::files::{FilesConfig, StaticFiles};
/// use rotor::http::rotor_routes;
/// use rotor::http::server::{
///     Head, HttpSeed, Next, NoUpgrade, Response, Scope, Server, ServerConfig,
/// };
///
/// /// What the whole program shares.
/// struct Shared {
///     visits: u64,
/// }
///
/// #[derive(Clone, Copy)]
/// struct Greeting(&'static str);
///
/// /// Greets, and counts.
/// struct Hello;
///
/// impl Server for Hello {
///     type Context = Shared;
///     type Seed = Greeting;
///     type Upgrade = NoUpgrade<Shared>;
///
///     fn headers_received(
///         Greeting(text): Greeting,
///         _: &Head<'_>,
///         response: &mut Response<'_>,
///         shared: &mut Scope<'_, Shared>,
///     ) -> Next<Self> {
///         shared.visits += 1;
///         response.reply(Status::OK, "text/plain", text.as_bytes()).into()
///     }
/// }
///
/// /// Tells how often.
/// struct Visits;
///
/// impl Server for Visits {
/// #     type Context = Shared;
/// #     type Seed = ();
/// #     type Upgrade = NoUpgrade<Shared>;
///     // ..
/// #     fn headers_received((): (), _: &Head<'_>, response: &mut Response<'_>, shared: &mut Scope<'_, Shared>) -> Next<Self> {
/// #         response.reply(Status::OK, "text/plain", shared.visits.to_string().as_bytes()).into()
/// #     }
/// }
///
/// rotor_routes! {
///     /// The servers of this program.
///     server Site / SiteSeed <Shared> {
///         hello(Hello) if |head, _| head.path() == "/hello",
///         visits(Visits) if |head, _| head.path() == "/visits",
///         files(StaticFiles<Shared>) if |head, files| files.are_at(head.path()),
///     }
/// }
///
/// # fn main() -> std::io::Result<()> {
/// # use rotor::stream::testing::Driver;
/// # use rotor::http::server::Connection;
/// # let root = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
/// let seed = SiteSeed {
///     hello: Greeting("Hello!"),
///     visits: (),
///     files: FilesConfig::new(root).mounted_at("/static").open()?,
/// };
/// let seed = HttpSeed::<Site>::new(seed, ServerConfig::new());
/// # let mut driver = Driver::<Connection<Site>>::new(seed, Shared { visits: 0 });
/// # for (path, status, end) in [
/// #     ("/hello", "200", "Hello!"), ("/visits", "200", "1"), ("/lib.rs", "404", "\n"),
/// # ] {
/// #     driver.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
/// #     let answer = String::from_utf8(driver.take_received()).unwrap();
/// #     assert!(answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.ends_with(end), "{answer}");
/// # }
/// # Ok(())
/// # }
/// ```
///
/// The first name is that of the server, the second that of its seed: a struct with the seeds of
/// the parts, under their names. The type in angle brackets is the context of all parts. All parts
/// must have the same [`Upgrade`](crate::server::Server::Upgrade);
/// [`WithUpgrade`](crate::server::WithUpgrade) gives a part without upgrades that of another.
/// Neither the server nor its seed can be more visible than the context and the parts.
///
/// # Conditions
///
/// A condition is a closure, or the name of a function, that gets the head and the seed of its part
/// (`fn(&Head<'_>, &Seed) -> bool`). The conditions are asked once per request, in order. The last
/// part may have none: it gets all other requests. If it has one, those requests get 404.
///
/// The path is compared as it was sent, undecoded: see
/// [`Head::path`](crate::server::Head::path) before a condition is to keep anyone out.
///
/// # What is shared
///
/// The first part writes the error pages
/// ([`emit_error_page`](crate::server::Server::emit_error_page)). A method is accepted if any part
/// supports it; if the request then goes to a part that does not, the response is 501 all the same.
/// Otherwise each handler gets every call that it would get alone.
///
/// # Generics
///
/// As in [`rotor_compose!`](rotor_core::rotor_compose): with a context of your own, type parameters
/// follow the name, `server Site<S: Store> / SiteSeed <Shared> { .. }`. If the server is generic
/// over its context, the context is the first parameter, and all bounds go in brackets: `server
/// Site / SiteSeed <C, S> where [C: 'static, S: Store] { .. }`. Each parameter must occur in a part.
#[doc(alias = "router")]
#[doc(alias = "routes")]
#[macro_export]
macro_rules! rotor_routes {
    (
        $(#[$meta:meta])*
        $vis:vis server $name:ident / $seed:ident <$context:ident $(, $generic:ident)* $(,)?> where [$($bounds:tt)*] {
            $($(#[$part_meta:meta])* $part:ident($server:ty) $(if $condition:expr)?),+ $(,)?
        }
    ) => {
        $crate::__rotor_routes! {
            [$(#[$meta])*] $vis $name $seed [<$context $(, $generic)*>] [$context] [$($bounds)*]
            $([$(#[$part_meta])*] $part [$server] [$($condition)?];)+
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis server $name:ident <$($generic:ident $(: $bound:path)?),+ $(,)?> / $seed:ident <$context:ty>
        $(where [$($bounds:tt)*])? {
            $($(#[$part_meta:meta])* $part:ident($server:ty) $(if $condition:expr)?),+ $(,)?
        }
    ) => {
        $crate::__rotor_routes! {
            [$(#[$meta])*] $vis $name $seed [<$($generic),+>] [$context]
            [$($($generic: $bound,)?)+ $($($bounds)*)?]
            $([$(#[$part_meta])*] $part [$server] [$($condition)?];)+
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis server $name:ident / $seed:ident <$context:ty> {
            $($(#[$part_meta:meta])* $part:ident($server:ty) $(if $condition:expr)?),+ $(,)?
        }
    ) => {
        $crate::__rotor_routes! {
            [$(#[$meta])*] $vis $name $seed [] [$context] []
            $([$(#[$part_meta])*] $part [$server] [$($condition)?];)+
        }
    };
    ($($other:tt)*) => {
        ::core::compile_error! {
            "expected `server NAME / SEED <CONTEXT> { PART(SERVER) if CONDITION, .. }`: the names of the server and of the \
             struct with its seeds, the context that all parts have, then a name, a server and a condition for each part, as in \
             `api(Api) if |head, _| head.path().starts_with(\"/api/\")`; the last part may have no condition"
        }
    };
}

/// The body of `rotor_routes!`. Like `rotor_compose!`, it has a check for each part, where-clauses
/// that say that the parts are servers, and calls that name the part as the user wrote it, so that
/// one mistake leads to few errors (doc/decisions/0024).
///
/// The where-clauses cannot say that all parts have the upgrade of the first, which the compiler
/// evaluates for ever if two parts have the same type. So there are none if there are type
/// parameters, with which the compiler would know the upgrades only from them.
#[doc(hidden)]
#[macro_export]
macro_rules! __rotor_routes {
    (
        [$($meta:tt)*] $vis:vis $name:ident $seed:ident $generics:tt $context:tt $bounds:tt $($parts:tt)+
    ) => {
        $crate::__rotor_routes! { @order $($parts)+ }
        $crate::__rotor_routes! { @check $generics $context $bounds $($parts)+ }
        $crate::__rotor_routes! { @server [$($meta)*] $vis $name $generics $bounds $($parts)+ }
        $crate::__rotor_routes! { @seed $vis $seed $name $generics $bounds $($parts)+ }
        $crate::__rotor_routes! { @implement $name $seed $generics $context $bounds $($parts)+ }
    };
    // Only the last part may have no condition.
    (@order $last_meta:tt $last:ident $last_server:tt $last_condition:tt;) => {};
    (@order $meta:tt $part:ident $server:tt []; $($rest:tt)+) => {
        ::core::compile_error! { ::core::concat!(
            "`", ::core::stringify!($part), "` gets every request, and the parts after it none: give it a condition, as in `",
            ::core::stringify!($part), "(..) if |head, _| head.path() == \"/\"`, or put it last"
        ) }
    };
    (@order $meta:tt $part:ident $server:tt $condition:tt; $($rest:tt)+) => {
        $crate::__rotor_routes! { @order $($rest)+ }
    };
    (
        @check [$($generics:tt)*] [$context:ty] [$($bounds:tt)*]
        $first_meta:tt $first:ident [$first_server:ty] $first_condition:tt;
        $($meta:tt $part:ident [$server:ty] $condition:tt;)*
    ) => {
        const _: () = {
            #[allow(dead_code)]
            fn check $($generics)* () where $($bounds)* {
                $crate::server::check_route::<$first_server, $context, <$first_server as $crate::server::Server>::Upgrade>();
                $($crate::server::check_route::<$server, $context, <$first_server as $crate::server::Server>::Upgrade>();)*
            }
        };
    };
    (
        @server [$($meta:tt)*] $vis:vis $name:ident [$($generics:tt)*] [$($bounds:tt)*]
        $([$($part_meta:tt)*] $part:ident [$server:ty] $condition:tt;)+
    ) => {
        $($meta)*
        #[allow(missing_debug_implementations, non_camel_case_types)]
        $vis enum $name $($generics)* where $($bounds)* {
            $(
                $($part_meta)*
                #[allow(missing_docs)]
                $part($server),
            )+
        }
    };
    (
        @seed $vis:vis $seed:ident $name:ident [$($generics:tt)*] [$($bounds:tt)*]
        $($part_meta:tt $part:ident [$server:ty] $condition:tt;)+
    ) => {
        #[doc = ::core::concat!("The seeds of the servers of `", ::core::stringify!($name), "`.")]
        #[allow(missing_debug_implementations)]
        $vis struct $seed $($generics)* where $($bounds)* {
            $(
                #[allow(missing_docs)]
                $vis $part: <$server as $crate::server::Server>::Seed,
            )+
        }

        impl $($generics)* ::core::clone::Clone for $seed $($generics)* where $($bounds)* {
            fn clone(&self) -> Self {
                $seed { $($part: ::core::clone::Clone::clone(&self.$part),)+ }
            }
        }
    };
    (@meets $head:ident $own:expr, $server:ty, []) => { true };
    (@meets $head:ident $own:expr, $server:ty, [$condition:expr]) => {{
        let condition: fn(&$crate::server::Head<'_>, &<$server as $crate::server::Server>::Seed) -> bool = $condition;
        condition($head, &$own)
    }};
    // Without type parameters.
    (
        @implement $name:ident $seed:ident [] [$context:ty] []
        $first_meta:tt $first:ident [$first_server:ty] $first_condition:tt;
        $($meta:tt $part:ident [$server:ty] $condition:tt;)*
    ) => {
        $crate::__rotor_routes! {
            @methods $name $seed [] [$context]
            [
                $first_server: $crate::server::Server<Context = $context>,
                $($server: $crate::server::Server<Context = $context>,)*
            ]
            [$first_server]
            $first [$first_server] $first_condition;
            $($part [$server] $condition;)*
        }
    };
    (
        @implement $name:ident $seed:ident [$($generics:tt)*] [$context:ty] [$($bounds:tt)*]
        $first_meta:tt $first:ident [$first_server:ty] $first_condition:tt;
        $($meta:tt $part:ident [$server:ty] $condition:tt;)*
    ) => {
        $crate::__rotor_routes! {
            @methods $name $seed [$($generics)*] [$context] [$($bounds)*] [$first_server]
            $first [$first_server] $first_condition;
            $($part [$server] $condition;)*
        }
    };
    (
        @methods $name:ident $seed:ident [$($generics:tt)*] [$context:ty] [$($bounds:tt)*] [$first_server:ty]
        $($part:ident [$server:ty] $condition:tt;)+
    ) => {
        impl $($generics)* $crate::server::Server for $name $($generics)*
        where
            $($bounds)*
        {
            type Context = $context;
            type Seed = $seed $($generics)*;
            type Upgrade = <$first_server as $crate::server::Server>::Upgrade;

            const HEARS_END: bool = false $(|| <$server as $crate::server::Server>::HEARS_END)+;

            fn supports(method: $crate::Method<'_>) -> bool {
                false $(|| <$server as $crate::server::Server>::supports(method))+
            }

            fn headers_received(
                seeds: Self::Seed,
                head: &$crate::server::Head<'_>,
                response: &mut $crate::server::Response<'_>,
                scope: &mut $crate::server::Scope<'_, Self::Context>,
            ) -> $crate::server::Next<Self> {
                $(
                    if $crate::__rotor_routes!(@meets head seeds.$part, $server, $condition) {
                        return $crate::server::start_route::<$server, Self>(
                            seeds.$part, head, response, scope, $name::$part,
                        );
                    }
                )+
                $crate::server::refuse_route(response)
            }

            fn handle(
                self,
                event: $crate::server::RequestEvent<'_>,
                response: &mut $crate::server::Response<'_>,
                scope: &mut $crate::server::Scope<'_, Self::Context>,
            ) -> $crate::server::Next<Self> {
                match self {
                    $($name::$part(server) => {
                        <$server as $crate::server::Server>::handle(server, event, response, scope).wrap($name::$part)
                    })+
                }
            }

            fn describe(&self, to: &mut $crate::server::Description) {
                match self {
                    $($name::$part(server) => <$server as $crate::server::Server>::describe(server, to),)+
                }
            }

            fn bad_request(
                self,
                error: $crate::BodyError,
                scope: &mut $crate::server::Scope<'_, Self::Context>,
            ) {
                match self {
                    $($name::$part(server) => <$server as $crate::server::Server>::bad_request(server, error, scope),)+
                }
            }

            fn emit_error_page(status: $crate::Status, response: &mut $crate::server::Response<'_>) {
                <$first_server as $crate::server::Server>::emit_error_page(status, response);
            }
        }
    };
}
