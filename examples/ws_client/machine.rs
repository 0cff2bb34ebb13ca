//! The handler, and the machine that requests its connection.

use rotor::http::client::{ClientError, ClientResult, Pool};
use rotor::tls::MaybeTlsTarget;
use rotor::websocket::{
    Closed, Dial, Handler, Message, Next, Opened, Refusal, Sender, WebSocketConfig,
};
use rotor::{Future, Infallible, Machine, Outcome, Response, Scope};
use std::net::SocketAddr;
use std::sync::Arc;

/// The context, which the machines share.
pub(crate) struct Console {
    pub(crate) pool: Pool<Dial<EchoHandler>, MaybeTlsTarget<SocketAddr>>,
    /// How it ended: a line about it, or an error.
    pub(crate) outcome: Option<Result<String, String>>,
    pub(crate) print: fn(&str),
}

/// How many characters of a message are shown.
const SHOWN_MAX: usize = 100;

/// Shows each text, and sends each message back.
pub(crate) struct EchoHandler;

impl Handler for EchoHandler {
    type Context = Console;
    type Seed = Option<String>;

    fn opened(
        greeting: Option<String>,
        out: &mut Sender<'_>,
        _: &mut Scope<'_, Console>,
    ) -> Next<Self> {
        if let Some(text) = greeting {
            // The output is still empty, so there is room.
            let _never_too_much = out.text(&text);
        }
        Next::go_on(EchoHandler).no_deadline()
    }

    fn message(
        self,
        message: Message<'_>,
        out: &mut Sender<'_>,
        scope: &mut Scope<'_, Console>,
    ) -> Next<Self> {
        if let Message::Text(text) = message {
            (scope.print)(&text.chars().take(SHOWN_MAX).collect::<String>());
        }
        let _closing = out.message(message);
        Next::go_on(self).keep_deadline()
    }

    fn closed(self, end: Closed<'_>, scope: &mut Scope<'_, Console>) {
        let line = format!("closed: {} {:?} {}", end.code, end.cause, end.reason);
        scope.outcome = Some(Ok(line));
        scope.stop_loop();
    }
}

/// Requests one connection.
pub(crate) struct Dialer {
    future: Option<Future<ClientResult<Dial<EchoHandler>>>>,
}

/// The request: the server, the path, and the first message.
pub(crate) struct DialRequest {
    pub(crate) server: MaybeTlsTarget<SocketAddr>,
    pub(crate) host: String,
    pub(crate) target: String,
    pub(crate) greeting: Option<String>,
    pub(crate) config: Arc<WebSocketConfig>,
}

impl Dialer {
    pub(crate) fn new(request: DialRequest, scope: &mut Scope<'_, Console>) -> Response<Dialer> {
        let DialRequest { server, host, target, greeting, config } = request;
        let dial = Dial::new(target, host, greeting, config);
        match scope.pool.ask(server, dial, scope) {
            Ok(future) => Response::ok(Dialer { future: Some(future) }),
            Err(_nobody_else_asks) => Response::error("the pool is full"),
        }
    }
}

impl Machine for Dialer {
    type Context = Console;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, Console>) -> Response<Dialer, Infallible> {
        let Some(future) = self.future else { return Response::done() };
        let outcome: Result<Result<Opened, Refusal>, ClientError> = match future.take() {
            Outcome::Pending(future) => return Response::keep(Dialer { future: Some(future) }),
            Outcome::Value(value) => value,
            Outcome::Lost(lost) => return Response::error(lost),
        };
        let error = match outcome {
            // From here on, the handler has the connection.
            Ok(Ok(_opened)) => return Response::done(),
            Ok(Err(refusal)) => refusal.to_string(),
            Err(error) => rotor::with_causes(&error).to_string(),
        };
        scope.outcome = Some(Err(error));
        scope.stop_loop();
        Response::done()
    }
}
