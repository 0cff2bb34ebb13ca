//! The servers behind the proxy.

use std::net::SocketAddr;
use std::time::Duration;

use rotor::http::server::{self, Head, HttpAccept, HttpSeed, Next, NoUpgrade, RecvMode, Server};
use rotor::http::{Status, Trailers};
use rotor::net::{ListenOptions, Listener};
use rotor::{BoxError, Loop, Response, Scope};
use rotor_sim::Sim;
use rotor_sim::net::SimTcpListener;

use crate::stage::PORT;

/// Starts an upstream; returns its address.
pub(super) fn serving<S>(sim: &mut Sim) -> Result<SocketAddr, BoxError>
where
    S: Server<Context = (), Seed = ()> + Send + 'static,
    S::Upgrade: Send,
{
    let server = sim.host("server", |boot| {
        let mut creator: Loop<HttpAccept<S, SimTcpListener>, _> = boot.new_loop()?;
        let address = SocketAddr::new(boot.address(), PORT);
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let listener = SimTcpListener::bind(&address, &ListenOptions::new(), scope)?;
                let http2 = server::Http2Config::new().prior_knowledge(true);
                let config = server::ServerConfig::new().http2(http2);
                let seed = HttpSeed::<S>::new((), config);
                Ok(server::listen(listener, seed, scope))
            })
        })?;
        Ok(creator.instantiate(()))
    })?;
    Ok(SocketAddr::new(sim.address(server), PORT))
}

/// Sends a few events, with long pauses, and then no more.
pub(super) struct Events(u32);

impl Events {
    pub(super) const COUNT: u32 = 5;
    pub(super) const PAUSE: Duration = Duration::from_secs(50);
}

impl Server for Events {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        _: (),
        _: &Head<'_>,
        response: &mut server::Response<'_>,
        scope: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        response.status(Status::OK).expect("the first");
        response.add_chunked().expect("a response with a body");
        response.done_headers().expect("the end of the fields");
        Next::go_on(Events(0)).deadline(scope.now() + Events::PAUSE)
    }

    fn timeout(self, response: &mut server::Response<'_>, scope: &mut Scope<'_, ()>) -> Next<Self> {
        response.write_body(b":\n").expect("it goes on");
        match self.0 + 1 {
            Events::COUNT => Next::go_on(Events(Events::COUNT)).no_deadline(),
            count => Next::go_on(Events(count)).deadline(scope.now() + Events::PAUSE),
        }
    }
}

/// Receives a stream of any pace. It repeats each piece at once, or all of them at the end.
pub(super) struct Echo {
    is_chat: bool,
    heard: Vec<u8>,
}

impl Server for Echo {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        _: (),
        head: &Head<'_>,
        response: &mut server::Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        let echo = Echo { is_chat: head.path() == "/chat", heard: Vec::new() };
        if echo.is_chat {
            response.status(Status::OK).expect("the first");
            response.add_chunked().expect("a response with a body");
            response.done_headers().expect("the end of the fields");
        }
        Next::recv_stream(echo, RecvMode::Progressive(1)).no_deadline()
    }

    fn request_chunk(
        mut self,
        chunk: &[u8],
        response: &mut server::Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        match self.is_chat {
            true => response.write_body(chunk).expect("it goes on"),
            false => self.heard.extend_from_slice(chunk),
        }
        Next::go_on(self).no_deadline()
    }

    fn request_end(
        self,
        _: &Trailers,
        response: &mut server::Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        match self.is_chat {
            true => response.done().expect("the end"),
            false => {
                response.reply(Status::OK, "text/plain", &self.heard);
            }
        }
        Next::finished()
    }
}

/// Reads each request, and never responds.
pub(super) struct Silent;

impl Server for Silent {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        _: (),
        _: &Head<'_>,
        _: &mut server::Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        Next::go_on(Silent).no_deadline()
    }
}

/// Responds only to `/`.
pub(super) struct Choosy;

impl Server for Choosy {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        _: (),
        head: &Head<'_>,
        response: &mut server::Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        if head.path() != "/" {
            return Next::go_on(Choosy).no_deadline();
        }
        response.reply(Status::OK, "text/plain", b"hi");
        Next::finished()
    }
}

/// Responds to `/` with two bytes, and to anything else with a long body.
pub(super) struct Large {
    left: usize,
}

impl Large {
    const BODY_BYTES: usize = 10 << 20;

    /// Writes as much as there is room for.
    fn fill(mut self, response: &mut server::Response<'_>) -> Next<Self> {
        while self.left > 0 && response.room() > 0 {
            let piece = &[b'x'; 4 << 10][..self.left.min(4 << 10)];
            response.write_body(piece).expect("it goes on");
            self.left -= piece.len();
        }
        if self.left > 0 {
            return Next::go_on(self).no_deadline();
        }
        response.done().expect("the end");
        Next::finished()
    }
}

impl Server for Large {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        _: (),
        head: &Head<'_>,
        response: &mut server::Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        if head.path() == "/" {
            return response.reply(Status::OK, "text/plain", b"hi").into();
        }
        response.status(Status::OK).expect("the first");
        response.add_length(Large::BODY_BYTES as u64).expect("a response with a body");
        response.done_headers().expect("the end of the fields");
        Large { left: Large::BODY_BYTES }.fill(response)
    }

    fn response_flushed(
        self,
        response: &mut server::Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        self.fill(response)
    }
}
