//! The handler, and the HTTP server that becomes it.

use std::marker::PhantomData;
use std::sync::Arc;

use rotor::Scope;
use rotor::http::server::{Head, Next, Response, Server};
use rotor::websocket::{self, Handler, Message, Sender, WebSocket, WebSocketConfig};

/// Sends each message back.
pub(crate) struct Echo<C>(PhantomData<fn(C)>);

impl<C> Handler for Echo<C> {
    type Context = C;
    type Seed = ();

    fn opened((): (), _: &mut Sender<'_>, _: &mut Scope<'_, C>) -> websocket::Next<Self> {
        websocket::Next::go_on(Echo(PhantomData)).no_deadline()
    }

    fn message(
        self,
        message: Message<'_>,
        out: &mut Sender<'_>,
        _: &mut Scope<'_, C>,
    ) -> websocket::Next<Self> {
        // There is room for one message of any length, because no further one is taken before.
        let _closing = out.message(message);
        websocket::Next::go_on(self).keep_deadline()
    }
}

/// Becomes an [`Echo`] on any path.
pub(crate) struct Site<C>(PhantomData<fn(C)>);

impl<C> Server for Site<C> {
    type Context = C;
    type Seed = Arc<WebSocketConfig>;
    type Upgrade = WebSocket<Echo<C>>;

    fn headers_received(
        config: Arc<WebSocketConfig>,
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, C>,
    ) -> Next<Self> {
        match websocket::accept(head, response, &config) {
            Ok(accepted) => Next::upgrade(accepted.seed(())),
            Err(_the_peer_was_told) => Next::finished(),
        }
    }
}
