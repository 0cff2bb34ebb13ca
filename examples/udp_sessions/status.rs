//! `GET /`: the players and the counters, for people and scripts.

use std::fmt::Write;
use std::marker::PhantomData;
use std::net::SocketAddr;

use rotor::http::server::{Head, Next, NoUpgrade, Response, Scope, Server};
use rotor::http::{Method, Status};
use rotor::net::DatagramSocket;

use crate::machine::world::World;

pub(crate) struct StatusPage<D>(PhantomData<fn(D)>);

impl<D: DatagramSocket<Address = SocketAddr>> Server for StatusPage<D> {
    type Context = World<D>;
    type Seed = ();
    type Upgrade = NoUpgrade<World<D>>;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, World<D>>,
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

fn page<D>(scope: &Scope<'_, World<D>>) -> String {
    let mut page = format!("{} sessions\n", scope.peers.len());
    for (address, peer) in &scope.peers {
        let (id, (x, y)) = (peer.id, peer.position);
        let silent = scope.now() - peer.heard;
        let _ = writeln!(page, "{id} at {x},{y}, {address}, silent for {} s", silent.as_secs());
    }
    let _ = writeln!(page, "{:#?}", scope.counters);
    page
}
