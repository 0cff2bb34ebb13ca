//! The handler, which only agrees to switch the protocol, and the protocol that follows.

use std::io::Write;
use std::time::Duration;

use rotor::http::server::{Head, Next, Reply, Response, Scope, Server};
use rotor::http::{MessageError, Status, list_has_token};
use rotor::stream::{Exception, Intent, Matched, Protocol, Transport};

/// How long a client may be silent after the switch.
const IDLE: Duration = Duration::from_secs(60);

pub(crate) struct UpgradeEcho;

impl Server for UpgradeEcho {
    type Context = ();
    type Seed = ();
    type Upgrade = Echo;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        let offers = head.field("Upgrade").is_some_and(|value| list_has_token(value, "echo"));
        if head.wants_upgrade() && offers && !head.has_body() {
            return match switch(response) {
                Ok(()) => Next::upgrade(()),
                Err(_) => Next::finished(),
            };
        }
        Reply::from(explain(response)).into()
    }
}

fn switch(response: &mut Response<'_>) -> Result<(), MessageError> {
    response.status(Status::SWITCHING_PROTOCOLS)?;
    response.add_header("Upgrade", "echo")?;
    response.done_headers()?;
    response.done()
}

fn explain(response: &mut Response<'_>) -> Result<(), MessageError> {
    const PAGE: &[u8] = b"Ask with `Connection: upgrade` and `Upgrade: echo`.\n";
    response.status(Status::UPGRADE_REQUIRED)?;
    response.add_header("Upgrade", "echo")?;
    response.add_header("Content-Type", "text/plain")?;
    response.add_length(PAGE.len() as u64)?;
    response.done_headers()?;
    response.write_body(PAGE)?;
    response.done()
}

/// Sends back every byte, beginning with those that arrived together with the request.
pub(crate) struct Echo;

impl Protocol for Echo {
    type Context = ();
    type Seed = ();

    fn create((): (), _: &mut Transport<'_>, scope: &mut Scope<'_, ()>) -> Intent<Self> {
        Intent::of(Echo).bytes(1).deadline(scope.now() + IDLE)
    }

    fn bytes_read(
        self,
        _: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, ()>,
    ) -> Intent<Self> {
        if transport.output.write_all(&transport.input[..]).is_err() {
            return Intent::done();
        }
        transport.input.clear();
        Intent::of(self).bytes(1).deadline(scope.now() + IDLE)
    }

    fn timeout(self, _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
        Intent::done()
    }

    fn exception(self, _: Exception, _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
        Intent::done()
    }
}
