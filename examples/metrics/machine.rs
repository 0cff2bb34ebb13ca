//! The handler: a page, and the counters in Prometheus' text format.

use std::fmt::Write;
use std::sync::Arc;

use rotor::http::server::{
    Counters, Head, LostLines, Next, NoUpgrade, Reply, Response, Scope, Server,
};
use rotor::http::{Method, Status};

/// The data that all requests share. Clones share the same counters.
#[derive(Clone)]
pub(crate) struct Shared {
    shown: Arc<Shown>,
}

struct Shown {
    counters: Arc<Counters>,
    log_lines_lost: LostLines,
}

impl Shared {
    pub(crate) fn new(counters: Arc<Counters>, log_lines_lost: LostLines) -> Shared {
        Shared { shown: Arc::new(Shown { counters, log_lines_lost }) }
    }
}

impl Shown {
    fn page(&self) -> String {
        let mut page = String::new();
        let lost = ("access_log_lines_lost", self.log_lines_lost.count());
        for (name, count) in self.counters.iter().chain([lost]) {
            let _ = write!(
                page,
                "# TYPE rotor_http_{name}_total counter\nrotor_http_{name}_total {count}\n"
            );
        }
        page
    }
}

pub(crate) struct Metrics;

impl Server for Metrics {
    type Context = ();
    type Seed = Shared;
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        shared: Shared,
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        let reply = match (head.method(), head.path()) {
            (Method::Get | Method::Head, "/metrics") => response.reply(
                Status::OK,
                "text/plain; version=0.0.4",
                shared.shown.page().as_bytes(),
            ),
            (Method::Get | Method::Head, "/") => {
                response.reply(Status::OK, "text/plain", b"Hello, World!\n")
            }
            (_, "/" | "/metrics") => not_allowed(response),
            _ => response.reply(Status::NOT_FOUND, "text/plain", b"404 Not Found\n"),
        };
        reply.into()
    }
}

fn not_allowed(response: &mut Response<'_>) -> Reply {
    let allow: &[(&str, &[u8])] = &[("Allow", b"GET, HEAD")];
    response.reply_with(
        Status::METHOD_NOT_ALLOWED,
        allow,
        "text/plain",
        b"405 Method Not Allowed\n",
    )
}
