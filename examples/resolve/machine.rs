//! Asks a resolver one question, and stores the answer in the context.

use rotor::dns::{Dns, LookupResult, Question};
use rotor::stream::{HasResolver, HostName, ResolveResult};
use rotor::{Future, Infallible, Machine, Outcome, Response, Scope};

/// The question.
#[derive(Clone)]
pub(crate) enum Asked {
    /// The addresses of a host, as programs look them up.
    Host(HostName),
    /// Records of one kind.
    Records(Question),
}

/// The result; none if the resolver ended.
pub(crate) enum Came {
    Host(ResolveResult),
    Records(LookupResult),
}

pub(crate) struct Context {
    pub(crate) dns: Dns,
    pub(crate) came: Option<Came>,
}

pub(crate) enum Asker {
    Asks(Asked),
    WaitsForHost(Future<ResolveResult>),
    WaitsForRecords(Future<LookupResult>),
}

impl Machine for Asker {
    type Context = Context;
    type Seed = Infallible;

    /// Called when the loop runs: now there is a context with a resolver in it.
    fn timeout(self, scope: &mut Scope<'_, Context>) -> Response<Self, Infallible> {
        let Asker::Asks(asked) = self else { return Response::keep(self) };
        Response::attempt(|| {
            let dns = &scope.dns;
            Ok(Response::ok(match asked {
                Asked::Host(name) => Asker::WaitsForHost(dns.addresses().ask(name, scope)?),
                Asked::Records(question) => Asker::WaitsForRecords(
                    dns.records().ask(question, scope).map_err(|e| e.to_string())?,
                ),
            }))
        })
    }

    fn wakeup(self, scope: &mut Scope<'_, Context>) -> Response<Self, Infallible> {
        let came = match self {
            Asker::Asks(_) => return Response::keep(self),
            Asker::WaitsForHost(future) => match future.take() {
                Outcome::Pending(future) => return Response::keep(Asker::WaitsForHost(future)),
                Outcome::Value(resolved) => Some(Came::Host(resolved)),
                Outcome::Lost(_) => None,
            },
            Asker::WaitsForRecords(future) => match future.take() {
                Outcome::Pending(future) => return Response::keep(Asker::WaitsForRecords(future)),
                Outcome::Value(reply) => Some(Came::Records(reply)),
                Outcome::Lost(_) => None,
            },
        };
        scope.came = came;
        scope.stop_loop();
        Response::done()
    }
}
