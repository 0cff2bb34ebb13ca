//! `Metrics`: the page that is scraped.

use std::marker::PhantomData;
use std::sync::Arc;

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use rotor_http::server::{Head, Next, NoUpgrade, Response, Scope, Server};
use rotor_http::{Method, Status};

use crate::accept::wants_open_metrics;
use crate::classic::classic;
use crate::grouped::grouped;

/// The page of a registry, as a server: on a port of its own, or beside others by
/// [`Routed`](rotor_http::server::Routed). It answers GET and HEAD, whatever the path.
///
/// A scraper that likes OpenMetrics better than the classic text format gets it, by the weights in
/// its `Accept` (RFC 9110 §12.5.1), and so does one that names it and likes both as much. All others
/// get the classic format.
///
/// Collectors of the registry may have families in common: each is declared once, with the rows of
/// all of them.
///
/// The page is made on the loop that serves it: some 100 µs for each hundred rows. If a few
/// thousand rows are scraped, use a loop of its own.
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
            // Only a collector of the program's says so: a string takes all.
            return Next::fail(Status::INTERNAL_SERVER_ERROR);
        }
        let page = grouped(page);
        let lines = head.fields().iter().filter(|field| field.name.eq_ignore_ascii_case("Accept"));
        let (kind, page) = match wants_open_metrics(lines.map(|field| field.value)) {
            true => ("application/openmetrics-text; version=1.0.0; charset=utf-8", page),
            false => ("text/plain; version=0.0.4", classic(&page)),
        };
        // A cache is to keep neither for those who want the other.
        response.reply_with(Status::OK, &[("Vary", b"Accept")], kind, page.as_bytes()).into()
    }
}

impl<C> std::fmt::Debug for Metrics<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}
