//! The handler of one HTTP request, which asks the pool.

use std::marker::PhantomData;
use std::time::Duration;

use rotor::http::server::{Head, Next, NoUpgrade, RecvMode, Response, Scope, Server};
use rotor::http::{Method, Status};

use crate::machine::wire::TEXT_BYTES_MAX;
use crate::machine::{HasPool, NoAnswer, Pool};

/// How long a request may wait, for a free connection and for the answer. Then the response is 503.
const WAIT_TIME_MAX: Duration = Duration::from_secs(5);

/// A request whose body, the question, is arriving.
pub(crate) struct Front<C>(PhantomData<fn(C)>);

impl<C: HasPool> Server for Front<C> {
    type Context = C;
    type Seed = ();
    type Upgrade = NoUpgrade<C>;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, C>,
    ) -> Next<Self> {
        match head.method() {
            Method::Post => {
                Next::recv(Front(PhantomData), RecvMode::Buffered(TEXT_BYTES_MAX)).keep_deadline()
            }
            _ => {
                let (status, allow) = (Status::METHOD_NOT_ALLOWED, [("Allow", &b"POST"[..])]);
                response.reply_with(status, &allow, "text/plain", b"POST a question\n").into()
            }
        }
    }

    fn request_received(
        self,
        question: &[u8],
        _: &mut Response<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        let Some(answer) = Pool::ask(question.to_vec(), scope) else {
            return Next::fail(Status::SERVICE_UNAVAILABLE);
        };
        Next::wait(answer, scope.now() + WAIT_TIME_MAX, |answer, response, _| match answer {
            Ok(Ok(text)) => response.reply(Status::OK, "text/plain", &text),
            Ok(Err(why)) => {
                let status = match why {
                    NoAnswer::TooLate => Status::GATEWAY_TIMEOUT,
                    NoAnswer::Lost(_) => Status::BAD_GATEWAY,
                };
                response.reply(status, "text/plain", format!("{why}\n").as_bytes())
            }
            Err(lost) => response.reply(
                Status::INTERNAL_SERVER_ERROR,
                "text/plain",
                format!("{lost}\n").as_bytes(),
            ),
        })
    }
}
