//! rotor: an echo as in `ws_echo` or, with `MODE=broadcast`, a room in which each message is sent
//! to all. One loop, all limits at their defaults.
#![forbid(unsafe_code)]

use std::env;
use std::error::Error;
use std::marker::PhantomData;
use std::sync::Arc;

use rotor::http::server::{
    self, Head, HttpAccept, HttpSeed, Response as HttpResponse, Server, ServerConfig,
};
use rotor::net::{ListenOptions, Listener, TcpListener};
use rotor::websocket::{
    self, Closed, Handler, Member, Message, Next, Prepared, Room, RoomConfig, Sender, WebSocket,
    WebSocketConfig,
};
use rotor::{Config, Loop, Response, Scope};

/// Sends each message back.
struct Echo;

impl Handler for Echo {
    type Context = Room;
    type Seed = ();

    fn opened((): (), _: &mut Sender<'_>, _: &mut Scope<'_, Room>) -> Next<Self> {
        Next::go_on(Echo).no_deadline()
    }

    fn message(
        self,
        message: Message<'_>,
        out: &mut Sender<'_>,
        _: &mut Scope<'_, Room>,
    ) -> Next<Self> {
        let _closing = out.message(message);
        Next::go_on(self).keep_deadline()
    }
}

/// A member of the room, whose messages are sent to all.
struct Talks(Member);

impl Talks {
    fn hear(mut self, out: &mut Sender<'_>, scope: &mut Scope<'_, Room>) -> Next<Self> {
        let _more = scope.deliver(&mut self.0, out);
        Next::go_on(self).keep_deadline()
    }
}

impl Handler for Talks {
    type Context = Room;
    type Seed = ();

    fn opened((): (), _: &mut Sender<'_>, scope: &mut Scope<'_, Room>) -> Next<Self> {
        let notifier = scope.notifier();
        Next::go_on(Talks(scope.join(notifier))).no_deadline()
    }

    fn message(
        self,
        message: Message<'_>,
        _: &mut Sender<'_>,
        scope: &mut Scope<'_, Room>,
    ) -> Next<Self> {
        scope.say(Prepared::message(message));
        Next::go_on(self).keep_deadline()
    }

    fn wakeup(self, out: &mut Sender<'_>, scope: &mut Scope<'_, Room>) -> Next<Self> {
        self.hear(out, scope)
    }

    fn flushed(self, out: &mut Sender<'_>, scope: &mut Scope<'_, Room>) -> Next<Self> {
        self.hear(out, scope)
    }

    fn closed(self, _: Closed<'_>, scope: &mut Scope<'_, Room>) {
        scope.leave(self.0);
    }
}

/// Becomes a WebSocket on any path.
struct Site<H>(PhantomData<fn(H)>);

impl<H: Handler<Context = Room, Seed = ()> + 'static> Server for Site<H> {
    type Context = Room;
    type Seed = Arc<WebSocketConfig>;
    type Upgrade = WebSocket<H>;

    fn headers_received(
        config: Arc<WebSocketConfig>,
        head: &Head<'_>,
        response: &mut HttpResponse<'_>,
        _: &mut Scope<'_, Room>,
    ) -> server::Next<Self> {
        match websocket::accept(head, response, &config) {
            Ok(accepted) => server::Next::upgrade(accepted.seed(())),
            Err(_the_peer_was_told) => server::Next::finished(),
        }
    }
}

fn serve<H: Handler<Context = Room, Seed = ()> + 'static>() -> Result<(), Box<dyn Error>> {
    let address = contract::address()?;
    let options = ListenOptions::new().backlog(contract::BACKLOG.into());
    let config = WebSocketConfig::new().share();
    let mut creator =
        Loop::<HttpAccept<Site<H>, TcpListener>>::new(&Config::new().machines_max(20_000))?;
    creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener = TcpListener::bind(&address, &options, scope)?;
            Ok(server::listen(listener, HttpSeed::new(config, ServerConfig::new()), scope))
        })
    })?;
    contract::announce(address)?;
    creator.instantiate(Room::new(RoomConfig::new())).run()?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    match env::var("MODE").as_deref() {
        Ok("broadcast") => serve::<Talks>(),
        _ => serve::<Echo>(),
    }
}
