//! `Metrics`: the server of the page that is scraped.

use std::marker::PhantomData;
use std::sync::Arc;

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use rotor_http::server::{Head, Next, NoUpgrade, Response, Scope, Server};
use rotor_http::{Method, Status};

use crate::accept::wants_open_metrics;
use crate::classic::to_classic;
use crate::grouped::group_families;

/// Serves the page of a registry, on a port of its own, or beside another server by
/// [`rotor_routes!`](rotor_http::rotor_routes). It answers GET and HEAD, whatever the path.
///
/// A scraper gets OpenMetrics if it prefers that to the classic text format, by the weights in its
/// `Accept` (RFC 9110 §12.5.1), or if it gives both the same weight and names OpenMetrics. Other
/// scrapers get the classic format.
///
/// If several collectors of the registry have a family in common, it is declared once, with the
/// rows of all of them. If a collector fails, the scraper gets 500, and the log says so.
///
/// The page is written on the loop that serves it, which takes some 100 µs per hundred rows. For a
/// few thousand rows, use a separate loop.
pub struct Metrics<C = ()> {
    context: PhantomData<fn(C)>,
}

impl<C: 'static> Server for Metrics<C> {
    type Context = C;
    type Seed = Arc<Registry>;
    type Upgrade = NoUpgrade<C>;

    fn headers_received(
        registry: Arc<Registry>,
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, C>,
    ) -> Next<Self> {
        if !matches!(head.method(), Method::Get | Method::Head) {
            let allow: &[(&str, &[u8])] = &[("Allow", b"GET, HEAD")];
            let status = Status::METHOD_NOT_ALLOWED;
            return response.reply_with(status, allow, "text/plain", b"405\n").into();
        }
        let mut page = String::new();
        if text::encode(&mut page, &registry).is_err() {
            // Only a collector of the program can fail: writing to a string does not.
            log::error!("the page of metrics is not written: a collector of the registry fails");
            return Next::fail(Status::INTERNAL_SERVER_ERROR);
        }
        let page = group_families(page);
        let lines = head.fields().iter().filter(|field| field.name.eq_ignore_ascii_case("Accept"));
        let (kind, page) = match wants_open_metrics(lines.map(|field| field.value)) {
            true => ("application/openmetrics-text; version=1.0.0; charset=utf-8", page),
            false => ("text/plain; version=0.0.4", to_classic(&page)),
        };
        // A cache must not return one format to a scraper that wants the other.
        response.reply_with(Status::OK, &[("Vary", b"Accept")], kind, page.as_bytes()).into()
    }
}

impl<C> std::fmt::Debug for Metrics<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}
