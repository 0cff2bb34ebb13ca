//! `RouteHandler`: the functions that a router calls.

use rotor_http::server::{Head, Next, Response, Scope};

use super::asked::RequestParts;
use super::body::FromBody;
use super::head::FromHead;
use super::into_next::IntoNext;
use super::route_fn::RouteFn;

/// A function or closure that a [`Router`](super::Router) calls, with up to six arguments that are
/// read from the head.
///
/// | arguments | when it is called |
/// |--|--|
/// | `P.., &mut Response<'_>, &mut Scope<'_, C>` | when the head has arrived; a body is read and dropped |
/// | `&Head<'_>, P.., &mut Response<'_>, &mut Scope<'_, C>` | the same, with the whole head |
/// | `P.., B, &mut Response<'_>, &mut Scope<'_, C>` | when the body is complete |
/// | `P.., &[u8], &mut Response<'_>, &mut Scope<'_, C>` | the same, with the bytes of the body, not copied |
///
/// `P` is [`FromHead`], `B` is [`FromBody`], and the return type is [`IntoNext`]. The function is
/// cloned for each request that has to wait for its body, so a closure should capture little. `M`
/// distinguishes the forms, and is inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no function of a route for the context `{C}`",
    note = "arguments, in this order: from the head, up to six (`Path`, `Query`, any `FromHead`); from the body, one or none \
            (`Json`, `Form`, `&[u8]`, any `FromBody`); `&mut Response<'_>`; `&mut Scope<'_, C>`. The last two are always there",
    note = "result: a `Reply`, a `Next<RouteFn<C>>`, a `Rejection`, or a `Result` of those; another error type becomes a \
            `Rejection` by `impl From<MyError> for Rejection` and `?`",
    note = "also: each `Path` is one parameter, and its type is `FromStr`; the `T` of a `Json<T>` is `Deserialize`; a closure \
            states the types of its arguments; an `async fn` is served by `rotor_async::http` instead"
)]
pub trait RouteHandler<C: 'static, M>: Clone + Send + Sync + 'static {
    /// How many parameters of the path the function takes.
    const PARAMETERS: usize;

    /// Reads the arguments and calls the function, or refuses the request.
    fn call(
        &self,
        asked: &mut RequestParts<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<RouteFn<C>>;
}

/// The forms of functions; type arguments for `M`.
mod form {
    #[derive(Debug)]
    pub struct OfParts;
    #[derive(Debug)]
    pub struct OfHead;
    #[derive(Debug)]
    pub struct OfBody<B>(std::marker::PhantomData<B>);
    #[derive(Debug)]
    pub struct OfOctets;
}

/// Reads an argument from the head, or refuses the request.
macro_rules! part {
    ($part:ident, $asked:ident, $response:ident) => {
        match $part::from_head($asked) {
            Ok(part) => part,
            Err(refused) => return refused.into_next($response),
        }
    };
}

macro_rules! functions_of {
    ($($part:ident)*) => {
        impl<C, F, A, $($part),*> RouteHandler<C, (form::OfParts, $($part,)*)> for F
        where
            F: Fn($($part,)* &mut Response<'_>, &mut Scope<'_, C>) -> A,
            F: Clone + Send + Sync + 'static,
            A: IntoNext<C>,
            C: 'static,
            $($part: FromHead,)*
        {
            const PARAMETERS: usize = 0 $(+ $part::PARAMETERS)*;

            #[allow(unused_variables, non_snake_case, reason = "there may be no arguments")]
            fn call(
                &self,
                asked: &mut RequestParts<'_>,
                response: &mut Response<'_>,
                scope: &mut Scope<'_, C>,
            ) -> Next<RouteFn<C>> {
                $(let $part = part!($part, asked, response);)*
                self($($part,)* response, scope).into_next(response)
            }
        }

        impl<C, F, A, $($part),*> RouteHandler<C, (form::OfHead, $($part,)*)> for F
        where
            F: Fn(&Head<'_>, $($part,)* &mut Response<'_>, &mut Scope<'_, C>) -> A,
            F: Clone + Send + Sync + 'static,
            A: IntoNext<C>,
            C: 'static,
            $($part: FromHead,)*
        {
            const PARAMETERS: usize = 0 $(+ $part::PARAMETERS)*;

            #[allow(non_snake_case, reason = "an argument is named as its type")]
            fn call(
                &self,
                asked: &mut RequestParts<'_>,
                response: &mut Response<'_>,
                scope: &mut Scope<'_, C>,
            ) -> Next<RouteFn<C>> {
                $(let $part = part!($part, asked, response);)*
                self(asked.head(), $($part,)* response, scope).into_next(response)
            }
        }

        impl<C, F, A, B, $($part),*> RouteHandler<C, (form::OfBody<B>, $($part,)*)> for F
        where
            F: Fn($($part,)* B, &mut Response<'_>, &mut Scope<'_, C>) -> A,
            F: Clone + Send + Sync + 'static,
            A: IntoNext<C>,
            B: FromBody,
            C: 'static,
            $($part: FromHead,)*
        {
            const PARAMETERS: usize = 0 $(+ $part::PARAMETERS)*;

            #[allow(non_snake_case, reason = "an argument is named as its type")]
            fn call(
                &self,
                asked: &mut RequestParts<'_>,
                response: &mut Response<'_>,
                _: &mut Scope<'_, C>,
            ) -> Next<RouteFn<C>> {
                $(let $part = part!($part, asked, response);)*
                if let Err(refused) = B::check(asked.head()) {
                    return refused.into_next(response);
                }
                let function = self.clone();
                RouteFn::with_body(asked.body_bytes_max, move |body, response, scope| {
                    match B::from_body(body) {
                        Ok(body) => function($($part,)* body, response, scope).into_next(response),
                        Err(refused) => refused.into_next(response),
                    }
                })
            }
        }

        impl<C, F, A, $($part),*> RouteHandler<C, (form::OfOctets, $($part,)*)> for F
        where
            F: Fn($($part,)* &[u8], &mut Response<'_>, &mut Scope<'_, C>) -> A,
            F: Clone + Send + Sync + 'static,
            A: IntoNext<C>,
            C: 'static,
            $($part: FromHead,)*
        {
            const PARAMETERS: usize = 0 $(+ $part::PARAMETERS)*;

            #[allow(unused_variables, non_snake_case, reason = "there may be no arguments")]
            fn call(
                &self,
                asked: &mut RequestParts<'_>,
                response: &mut Response<'_>,
                _: &mut Scope<'_, C>,
            ) -> Next<RouteFn<C>> {
                $(let $part = part!($part, asked, response);)*
                let function = self.clone();
                RouteFn::with_body(asked.body_bytes_max, move |body, response, scope| {
                    function($($part,)* body, response, scope).into_next(response)
                })
            }
        }
    };
}

functions_of!();
functions_of!(P1);
functions_of!(P1 P2);
functions_of!(P1 P2 P3);
functions_of!(P1 P2 P3 P4);
functions_of!(P1 P2 P3 P4 P5);
functions_of!(P1 P2 P3 P4 P5 P6);
