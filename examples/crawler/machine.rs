//! A machine that follows the links of a site over a pool, a limited number at a time.
//!
//! It asks the pool for as many pages as allowed, keeps the futures, and is woken as outcomes
//! arrive. It needs no machine for each page, and no queue except its own list of pages that are
//! still to be visited.

use std::collections::{BTreeSet, VecDeque};

use rotor::http::client::{ClientError, ClientResult, Fetch, Fetched, Pool, Url};
use rotor::{Future, Infallible, Machine, Outcome, Response, Scope};

/// What the crawler needs from the context.
pub(crate) trait Site: Sized + 'static {
    /// The type by which the pool identifies a server.
    type Origin: Clone + 'static;

    /// Returns the pool that fetches the pages.
    fn pool(&self) -> &Pool<Fetch<Self>, Self::Origin>;

    /// Called when a page was visited.
    fn visited(&mut self, target: &str, outcome: Result<&Fetched, &ClientError>);
}

/// The limits of a crawl.
pub(crate) struct Bounds {
    /// The number of pages that are fetched at the same time.
    pub(crate) at_once: usize,
    /// The total number of pages that are visited.
    pub(crate) pages: usize,
    /// The size of a page, in bytes. Longer pages are not read.
    pub(crate) page_bytes: usize,
}

/// The crawl of one site.
pub(crate) struct Crawler<C: Site> {
    server: C::Origin,
    /// Where the crawl begins, on the site that is crawled.
    url: Url,
    bounds: Bounds,
    /// The pages that were found, whether visited or not.
    known: BTreeSet<String>,
    waiting: VecDeque<String>,
    in_flight: Vec<(String, Future<ClientResult<Fetch<C>>>)>,
}

impl<C: Site> Crawler<C> {
    /// Begins at `url`, in the next turn, so that it can be made before there is a context.
    pub(crate) fn begin<C2>(
        server: C::Origin,
        url: Url,
        bounds: Bounds,
        scope: &Scope<'_, C2>,
    ) -> Response<Crawler<C>> {
        let mut crawler = Crawler {
            server,
            url,
            bounds,
            known: BTreeSet::new(),
            waiting: VecDeque::new(),
            in_flight: Vec::new(),
        };
        crawler.enqueue(crawler.url.target().to_owned());
        Response::ok(crawler).deadline(scope.now())
    }

    /// Adds a page to be visited, unless it is known already or there are enough.
    fn enqueue(&mut self, target: String) {
        if self.known.len() < self.bounds.pages && self.known.insert(target.clone()) {
            self.waiting.push_back(target);
        }
    }

    /// Takes the outcomes that are ready, and asks for more pages.
    fn fetch_next(mut self, scope: &mut Scope<'_, C>) -> Response<Self, Infallible> {
        for (target, future) in std::mem::take(&mut self.in_flight) {
            match future.take() {
                Outcome::Pending(future) => self.in_flight.push((target, future)),
                Outcome::Value(outcome) => {
                    scope.visited(&target, outcome.as_ref());
                    if let Ok(page) = outcome {
                        links(&page, &self.url, &target)
                            .into_iter()
                            .for_each(|link| self.enqueue(link));
                    }
                }
                // The pool is gone, and the loop is about to end.
                Outcome::Lost(_) => {}
            }
        }
        while self.in_flight.len() < self.bounds.at_once
            && let Some(target) = self.waiting.pop_front()
        {
            let fetch = Fetch::get(&target)
                .host(self.url.authority())
                .header("User-Agent", "rotor-crawler")
                .body_bytes_max(self.bounds.page_bytes);
            match scope.pool().ask(self.server.clone(), fetch, scope) {
                Ok(future) => self.in_flight.push((target, future)),
                Err(_full_or_gone) => {
                    self.waiting.push_front(target);
                    break;
                }
            }
        }
        if self.in_flight.is_empty() {
            // The pool would wait for more requests.
            scope.stop_loop();
            return Response::done();
        }
        Response::ok(self)
    }
}

impl<C: Site> Machine for Crawler<C> {
    type Context = C;
    type Seed = Infallible;

    fn timeout(self, scope: &mut Scope<'_, C>) -> Response<Self, Infallible> {
        self.fetch_next(scope)
    }

    fn wakeup(self, scope: &mut Scope<'_, C>) -> Response<Self, Infallible> {
        self.fetch_next(scope)
    }
}

/// How long a link may be, in bytes: what a server has to support (RFC 9112 §3). Longer ones are not
/// followed; 10,000 of them would take all the memory.
const TARGET_BYTES_MAX: usize = 8_000;

/// Returns the pages of the same site to which a page leads: by a redirect, or by the values of
/// `href="…"`.
fn links(page: &Fetched, site: &Url, target: &str) -> Vec<String> {
    // Not by `join`, which takes what follows two slashes for a host, although a path may begin
    // with two slashes as well.
    let scheme = if site.is_https() { "https" } else { "http" };
    let page_url: Result<Url, _> = format!("{scheme}://{}{target}", site.authority()).parse();
    let Ok(base) = page_url else { return Vec::new() };
    let is_html = page
        .field("Content-Type")
        .is_some_and(|kind| kind.to_ascii_lowercase().starts_with(b"text/html"));
    // Pages in other encodings have their links in ASCII, too.
    let text = if is_html { String::from_utf8_lossy(&page.body) } else { "".into() };
    let references = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    references
        .filter_map(|reference| base.join(&reference.replace("&amp;", "&")).ok())
        .chain(page.redirect(&base).and_then(Result::ok))
        .filter(|url| url.authority() == site.authority() && url.is_https() == site.is_https())
        .map(|url| url.target().to_owned())
        .filter(|target| target.len() <= TARGET_BYTES_MAX)
        .collect()
}
