//! `Desk`: the machine that handlers ask about a city. It makes one request to the upstream for all
//! clients that want the same city at that time.
//!
//! ```text
//!   Front ──Service──▶ Desk ── in the cache? ──────────────────────▶ answer
//!                       ├───── being asked for? join those who wait ──┐
//!                       └───── Pool::ask_until ──▶ woken, fetched ────┴─▶ answers, cache
//! ```

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rotor::http::Status;
use rotor::http::client::{ClientError, Fetch, Fetched, Pool};
use rotor::{
    Call, Calls, Future, Infallible, Machine, Outcome, Port, ReceiveError, Response, Scope, Service,
};
use serde_json::{Value, json};

use super::city;
use super::store::Cache;

/// The time limit for the whole response of the upstream, including connecting and waiting.
pub(crate) const LOOKUP_TIME_MAX: Duration = Duration::from_secs(2);

/// How many cities are requested at the same time. For further ones the response is 503.
pub(crate) const LOOKUPS_MAX: usize = 128;

/// How many clients may wait, all together and for one city. Each is a connection, and there are no
/// more connections than this.
pub(crate) const ASKERS_MAX: usize = 640;

/// The longest response of the upstream, in bytes.
const BODY_BYTES_MAX: usize = 16 << 10;

/// How many questions are handled in one event, before other machines have their turn.
const BUDGET: usize = 64;

/// A page of JSON, or the error status.
pub(crate) type Answer = Result<Arc<[u8]>, Status>;

/// The handle through which handlers ask.
pub(crate) type Weather = Service<Arc<str>, Answer>;

/// The server that provides the data.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    pub(crate) authority: String,
    pub(crate) path: String,
}

pub(crate) struct Desk<C> {
    calls: Calls<Arc<str>, Answer>,
    pool: Pool<Fetch<C>>,
    upstream: Upstream,
    cache: Cache,
    lookups: BTreeMap<Arc<str>, Lookup>,
}

/// A city that is being requested from the upstream.
struct Lookup {
    fetched: Future<Result<Fetched, ClientError>>,
    askers: Vec<Port<Answer>>,
}

impl<C> Desk<C> {
    /// Makes the machine, and the handle for asking it. It ends when all handles are gone.
    pub(crate) fn create_desk<D>(
        pool: Pool<Fetch<C>>,
        upstream: Upstream,
        scope: &Scope<'_, D>,
    ) -> (Weather, Response<Desk<C>>) {
        let (service, calls) = scope.create_service(ASKERS_MAX);
        let desk =
            Desk { calls, pool, upstream, cache: Cache::default(), lookups: BTreeMap::new() };
        (service, Response::ok(desk))
    }

    /// Delivers the answers that have arrived, then takes questions.
    fn serve_calls(mut self, scope: &mut Scope<'_, C>) -> Response<Self, Infallible> {
        self.finish_lookups(scope);
        for _ in 0..BUDGET {
            match self.calls.try_receive() {
                Ok(call) => self.handle_call(call, scope),
                Err(ReceiveError::Empty) => return Response::ok(self),
                Err(ReceiveError::Closed) => return Response::done(),
            }
        }
        scope.wake_self(); // there may be more: next turn
        Response::ok(self)
    }

    fn handle_call(&mut self, call: Call<Arc<str>, Answer>, scope: &Scope<'_, C>) {
        let (city, asker) = call.into_parts();
        if asker.is_cancelled() {
            return;
        }
        if let Some(page) = self.cache.get(&city, scope.now()) {
            return answer(asker, Ok(page));
        }
        if let Some(lookup) = self.lookups.get_mut(&city) {
            return lookup.add_asker(asker);
        }
        match self.fetch(&city, scope) {
            Some(fetched) => {
                self.lookups.insert(city, Lookup { fetched, askers: vec![asker] });
            }
            None => answer(asker, Err(Status::SERVICE_UNAVAILABLE)),
        }
    }

    /// Asks the upstream, unless there are too many requests already, or the pool has ended in a
    /// drain.
    fn fetch(
        &self,
        city: &str,
        scope: &Scope<'_, C>,
    ) -> Option<Future<Result<Fetched, ClientError>>> {
        if self.lookups.len() >= LOOKUPS_MAX {
            return None;
        }
        let Upstream { address, authority, path } = &self.upstream;
        // The path may already have a query, for example with an API key.
        let sign = if path.contains('?') { '&' } else { '?' };
        let fetch = Fetch::get(format!("{path}{sign}city={}", city::encode(city)))
            .host(authority)
            .header("Accept", "application/json")
            .body_bytes_max(BODY_BYTES_MAX);
        self.pool.ask_until(*address, fetch, scope.now() + LOOKUP_TIME_MAX, scope).ok()
    }

    fn finish_lookups(&mut self, scope: &Scope<'_, C>) {
        let ready =
            |(city, lookup): (&Arc<str>, &Lookup)| lookup.fetched.is_ready().then(|| city.clone());
        let ready: Vec<Arc<str>> = self.lookups.iter().filter_map(ready).collect();
        for city in ready {
            let Some(lookup) = self.lookups.remove(&city) else { continue };
            let page = page(&city, lookup.fetched.take());
            for asker in lookup.askers {
                answer(asker, page.clone());
            }
            if let Ok(page) = page {
                self.cache.put(city, page, scope.now());
            }
        }
    }
}

impl Lookup {
    /// Adds a client that waits. If there are too many of them, those that are gone are removed
    /// first, so that clients that keep coming and going do not use up the limit.
    fn add_asker(&mut self, asker: Port<Answer>) {
        if self.askers.len() >= ASKERS_MAX {
            self.askers.retain(|asker| !asker.is_cancelled());
        }
        if self.askers.len() >= ASKERS_MAX {
            return answer(asker, Err(Status::SERVICE_UNAVAILABLE));
        }
        self.askers.push(asker);
    }
}

impl<C> Machine for Desk<C> {
    type Context = C;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, C>) -> Response<Self, Infallible> {
        self.serve_calls(scope)
    }
}

fn answer(asker: Port<Answer>, answer: Answer) {
    // The client may be gone.
    let _nobody_waits = asker.set(answer);
}

/// Makes the page from the upstream's response. Why there is none is not shown to the client.
fn page(city: &str, outcome: Outcome<Result<Fetched, ClientError>>) -> Answer {
    let (status, why) = match outcome {
        Outcome::Value(Ok(fetched)) if fetched.status == Status::OK => {
            match serde_json::from_slice(&fetched.body) {
                Ok(said) => return Ok(wrap(city, &said)),
                Err(error) => (Status::BAD_GATEWAY, error.to_string()),
            }
        }
        Outcome::Value(Ok(fetched)) => {
            (Status::BAD_GATEWAY, format!("it answered {}", fetched.status))
        }
        Outcome::Value(Err(error)) => (error.gateway_status(), error.to_string()),
        Outcome::Lost(lost) => (Status::BAD_GATEWAY, lost.to_string()),
        Outcome::Pending(_) => (Status::BAD_GATEWAY, "it was not ready".into()),
    };
    log::warn!("the weather of {city:?} is not known: {why}");
    Err(status)
}

fn wrap(city: &str, weather: &Value) -> Arc<[u8]> {
    json!({ "city": city, "weather": weather }).to_string().into_bytes().into()
}
