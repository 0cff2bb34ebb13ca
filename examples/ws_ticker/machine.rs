//! Prices for all subscribers: a machine that makes a price in each interval, and handlers that
//! send it.

use std::sync::Arc;
use std::time::Duration;

use rotor::http::Status;
use rotor::http::server::{self, Head, HttpAccept, Response as HttpResponse, Server};
use rotor::net::IpNet;
use rotor::websocket::{
    self, Closed, Handler, Member, Message, Next, Prepared, Room, RoomConfig, Sender, Slow,
    WebSocket, WebSocketConfig,
};
use rotor::{Infallible, Machine, Response, Scope, Time, rotor_compose};

rotor_compose! {
    pub(crate) enum Machines <N: IpNet> <Exchange> {
        Site(HttpAccept<Site, N::Listener>),
        Ticker(Ticker),
    }
}

/// The context: the subscribers, and the last prices.
#[derive(Debug)]
pub(crate) struct Exchange {
    room: Room,
    price: u64,
    number: u64,
}

impl Exchange {
    pub(crate) fn new() -> Exchange {
        // An old price is useless: a slow subscriber gets only the newest one.
        let room = Room::new(RoomConfig::new().backlog_max(100).slow(Slow::Coalesce));
        Exchange { room, price: 10_000, number: 0 }
    }

    pub(crate) fn listeners(&self) -> usize {
        self.room.len()
    }
}

/// Makes a price in each interval.
pub(crate) struct Ticker {
    every: Duration,
}

impl Ticker {
    pub(crate) fn start<C>(every: Duration, scope: &Scope<'_, C>) -> Response<Ticker> {
        Response::ok(Ticker { every }).deadline(scope.now() + every)
    }
}

impl Machine for Ticker {
    type Context = Exchange;
    type Seed = Infallible;

    fn timeout(self, scope: &mut Scope<'_, Exchange>) -> Response<Self, Infallible> {
        let step = scope.random_u64() % 201;
        let now = scope.now();
        let Exchange { room, price, number } = &mut **scope;
        *price = (*price + step).saturating_sub(100).max(100);
        *number += 1;
        // Framed once, for all subscribers.
        room.say(Prepared::text(&format!("{number} ROTR {}.{:02}", *price / 100, *price % 100)));
        let next = now + self.every;
        Response::ok(self).deadline(next)
    }

    fn draining(self, _: Time, _: &mut Scope<'_, Exchange>) -> Response<Self, Infallible> {
        Response::done()
    }
}

/// A subscriber.
pub(crate) struct Subscriber(Member);

impl Subscriber {
    fn send_prices(mut self, out: &mut Sender<'_>, scope: &mut Scope<'_, Exchange>) -> Next<Self> {
        // The rest is sent by `flushed`.
        let _more = scope.room.deliver(&mut self.0, out);
        Next::go_on(self).keep_deadline()
    }
}

impl Handler for Subscriber {
    type Context = Exchange;
    type Seed = ();

    fn opened((): (), out: &mut Sender<'_>, scope: &mut Scope<'_, Exchange>) -> Next<Self> {
        let notifier = scope.notifier();
        if let Some(newest) = scope.room.backlog().last() {
            let _nothing_waits_yet = out.prepared(newest);
        }
        Next::go_on(Subscriber(scope.room.join(notifier))).no_deadline()
    }

    /// Messages from the client are ignored.
    fn message(
        self,
        _: Message<'_>,
        _: &mut Sender<'_>,
        _: &mut Scope<'_, Exchange>,
    ) -> Next<Self> {
        Next::go_on(self).keep_deadline()
    }

    fn wakeup(self, out: &mut Sender<'_>, scope: &mut Scope<'_, Exchange>) -> Next<Self> {
        self.send_prices(out, scope)
    }

    fn flushed(self, out: &mut Sender<'_>, scope: &mut Scope<'_, Exchange>) -> Next<Self> {
        self.send_prices(out, scope)
    }

    fn closed(self, _: Closed<'_>, scope: &mut Scope<'_, Exchange>) {
        scope.room.leave(self.0);
    }
}

/// Becomes a subscriber's connection at `/prices`.
pub(crate) struct Site;

impl Server for Site {
    type Context = Exchange;
    type Seed = Arc<WebSocketConfig>;
    type Upgrade = WebSocket<Subscriber>;

    fn headers_received(
        config: Arc<WebSocketConfig>,
        head: &Head<'_>,
        response: &mut HttpResponse<'_>,
        scope: &mut Scope<'_, Exchange>,
    ) -> server::Next<Self> {
        if head.path() != "/prices" {
            let page = format!("{} listen to /prices\n", scope.listeners());
            return response.reply(Status::OK, "text/plain", page.as_bytes()).into();
        }
        match websocket::accept(head, response, &config) {
            Ok(accepted) => server::Next::upgrade(accepted.seed(())),
            Err(_the_peer_was_told) => server::Next::finished(),
        }
    }
}
