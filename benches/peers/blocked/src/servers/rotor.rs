//! rotor: one loop, which goes on on another thread when a handler blocks.

use std::net::SocketAddr;

use rotor::http::Status;
use rotor::http::server::{
    self, Head, HttpAccept, HttpSeed, Next, NoUpgrade, Response, Scope, Server, ServerConfig,
};
use rotor::net::{ListenOptions, Listener, TcpListener};
use rotor::{Config, Loop, Response as Answer, SharedContext};

use crate::BoxError;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    AsItIs,
    /// The section that blocks is declared, and the loop is handed over.
    Declared,
    /// Nothing is declared, and the watchdog takes the loop.
    TakenOver,
}

/// The data that the machines share: only how they block.
#[derive(Clone, Copy)]
struct Shared(Way);

impl SharedContext for Shared {}

struct Hello;

impl Server for Hello {
    type Context = Shared;
    type Seed = ();
    type Upgrade = NoUpgrade<Shared>;

    fn headers_received(
        (): (),
        _: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Shared>,
    ) -> Next<Self> {
        let text = match scope.0 {
            Way::Declared if super::is_slow() => {
                scope.blocking(super::block);
                super::SLOW
            }
            Way::Declared => super::FAST,
            Way::AsItIs | Way::TakenOver => super::answer(),
        };
        // An error would be a misuse of the writer; the connection then answers with 500 by itself.
        let _written = response.send(Status::OK, "text/plain", text.as_bytes());
        Next::finished()
    }
}

pub(super) fn serve(way: Way) -> Result<(), BoxError> {
    let mut creator = Loop::<HttpAccept<Hello, TcpListener>>::new(&Config::new())?;
    let mut address = None;
    creator.add_machine_with(|scope| {
        Answer::attempt(|| {
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            let options = ListenOptions::new().backlog(contract::BACKLOG.into());
            let listener = TcpListener::bind(&any, &options, scope)?;
            address = listener.local_address();
            Ok(server::listen(listener, HttpSeed::new((), ServerConfig::new()), scope))
        })
    })?;
    contract::announce(address.ok_or("it listens nowhere")?)?;
    let instance = creator.instantiate(Shared(way));
    let mut instance = match way {
        Way::AsItIs => instance,
        Way::Declared => instance.handing_over(),
        Way::TakenOver => instance.taking_over(),
    };
    instance.run()?;
    Ok(())
}
