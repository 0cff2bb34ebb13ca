//! `GET /`: who is there and what has happened, for people and scripts.

use std::fmt::Write;

use rotor::http::server::{Head, Next, NoUpgrade, Response, Scope, Server};
use rotor::http::{Method, Status};
use rotor::net::UdpSocket;

use crate::machine::world::World;

pub(crate) struct StatusPage;

impl Server for StatusPage {
    type Context = World<UdpSocket>;
    type Seed = ();
    type Upgrade = NoUpgrade<World<UdpSocket>>;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, World<UdpSocket>>,
    ) -> Next<Self> {
        let reply = match (head.method(), head.path()) {
            (Method::Get | Method::Head, "/") => {
                response.reply(Status::OK, "text/plain", page(scope).as_bytes())
            }
            _ => response.reply(Status::NOT_FOUND, "text/plain", b"There is GET /\n"),
        };
        reply.into()
    }
}

fn page(scope: &Scope<'_, World<UdpSocket>>) -> String {
    let mut page = format!("{} sessions\n", scope.peers.len());
    for (address, peer) in &scope.peers {
        let (id, (x, y)) = (peer.id, peer.position);
        let silent = scope.now() - peer.heard;
        let _ = writeln!(page, "{id} at {x},{y}, {address}, silent for {} s", silent.as_secs());
    }
    let _ = writeln!(page, "{:#?}", scope.counters);
    page
}
