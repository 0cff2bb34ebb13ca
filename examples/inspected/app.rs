//! The site: a page, a page that is never answered, and the metrics.

use std::sync::Arc;

use rotor::http::server::{Head, Next, NoUpgrade, Response, Scope, Server};
use rotor::http::{Method, Status};
use rotor::{Description, Infallible, Machine};
use rotor_metrics::Metrics;
use rotor_metrics::prometheus_client::registry::Registry;

/// A request.
pub(crate) enum Site {
    /// Waits forever.
    Waits,
    Metrics(Metrics),
}

impl Server for Site {
    type Context = ();
    type Seed = Arc<Registry>;
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        registry: Arc<Registry>,
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        match (head.method(), head.path()) {
            (_, "/metrics") => {
                Metrics::headers_received(registry, head, response, scope).wrap(Site::Metrics)
            }
            (_, "/wait") => Next::go_on(Site::Waits).no_deadline(),
            (Method::Get | Method::Head, "/") => {
                response.reply(Status::OK, "text/plain", b"Hello, World!\n").into()
            }
            _ => response.reply(Status::NOT_FOUND, "text/plain", b"404 Not Found\n").into(),
        }
    }

    fn describe(&self, to: &mut Description) {
        to.set_state(match self {
            Site::Waits => "waits forever",
            Site::Metrics(_) => "writes numbers",
        });
    }
}

/// A machine that waits for nothing.
pub(crate) struct Asleep;

impl Machine for Asleep {
    type Context = ();
    type Seed = Infallible;

    fn describe(&self, to: &mut Description) {
        to.set_state("asleep");
    }
}
