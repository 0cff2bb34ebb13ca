//! Asks a resolver one question, and stores the answer in the context.

use rotor::dns::{Dns, LookupResult, Question};
use rotor::stream::{HostName, ResolveResult};
use rotor::{Future, Infallible, Machine, Outcome, Response, Scope};

/// The question.
#[derive(Clone)]
pub(crate) enum Query {
    /// The addresses of a host, as programs look them up.
    Host(HostName),
    /// Records of one kind.
    Records(Question),
}

/// The result; none if the resolver ended.
pub(crate) enum Answer {
    Host(ResolveResult),
    Records(LookupResult),
}

pub(crate) struct Context {
    pub(crate) dns: Dns,
    pub(crate) answer: Option<Answer>,
}

pub(crate) enum ResolveMachine {
    Start(Query),
    WaitsForHost(Future<ResolveResult>),
    WaitsForRecords(Future<LookupResult>),
}

impl Machine for ResolveMachine {
    type Context = Context;
    type Seed = Infallible;

    /// Called when the loop runs: now there is a context with a resolver in it.
    fn timeout(self, scope: &mut Scope<'_, Context>) -> Response<Self, Infallible> {
        let ResolveMachine::Start(query) = self else { return Response::keep(self) };
        Response::attempt(|| {
            let dns = &scope.dns;
            Ok(Response::ok(match query {
                Query::Host(name) => {
                    ResolveMachine::WaitsForHost(dns.addresses().ask(name, scope)?)
                }
                Query::Records(question) => ResolveMachine::WaitsForRecords(
                    dns.records().ask(question, scope).map_err(|e| e.to_string())?,
                ),
            }))
        })
    }

    fn wakeup(self, scope: &mut Scope<'_, Context>) -> Response<Self, Infallible> {
        let answer = match self {
            ResolveMachine::Start(_) => return Response::keep(self),
            ResolveMachine::WaitsForHost(future) => match future.take() {
                Outcome::Pending(future) => {
                    return Response::keep(ResolveMachine::WaitsForHost(future));
                }
                Outcome::Value(resolved) => Some(Answer::Host(resolved)),
                Outcome::Lost(_) => None,
            },
            ResolveMachine::WaitsForRecords(future) => match future.take() {
                Outcome::Pending(future) => {
                    return Response::keep(ResolveMachine::WaitsForRecords(future));
                }
                Outcome::Value(reply) => Some(Answer::Records(reply)),
                Outcome::Lost(_) => None,
            },
        };
        scope.answer = answer;
        scope.stop_loop();
        Response::done()
    }
}
