//! During a drain, the resolvers still serve machines that ask.

use std::time::Duration;

use rotor_core::net::Inet;
use rotor_core::{
    Config, Future, Infallible, Loop, Machine, Outcome, Response, Scope, Time, rotor_compose,
};
use rotor_dns::{ResolvConf, Resolver, ResolverConfig, SystemResolver};
use rotor_stream::{AddressService, ResolveResult};

struct Context {
    addresses: AddressService,
    found: Vec<ResolveResult>,
}

/// Asks when it is told of the drain, and ends with the answer.
enum Asker {
    Idle,
    Waiting(Future<ResolveResult>),
}

impl Machine for Asker {
    type Context = Context;
    type Seed = Infallible;

    fn draining(self, _: Time, scope: &mut Scope<'_, Context>) -> Response<Self, Infallible> {
        // If it is told again, it continues to wait.
        let Asker::Idle = self else { return Response::keep(self) };
        match scope.addresses.ask("127.0.0.1".into(), scope) {
            Ok(future) => Response::ok(Asker::Waiting(future)),
            Err(_) => Response::done(),
        }
    }

    fn wakeup(self, scope: &mut Scope<'_, Context>) -> Response<Self, Infallible> {
        let Asker::Waiting(future) = self else { return Response::keep(self) };
        match future.take() {
            Outcome::Pending(future) => return Response::ok(Asker::Waiting(future)),
            Outcome::Value(found) => scope.found.push(found),
            Outcome::Lost(_) => {}
        }
        Response::done()
    }
}

rotor_compose! {
    enum App <Context> {
        Asker(Asker),
        Resolver(Resolver<Inet, Context>),
        System(SystemResolver<Context>),
    }
}

#[test]
fn a_lookup_during_a_drain_is_answered_before_the_resolver_ends() {
    for of_system in [false, true] {
        let mut creator = Loop::new(&Config::new()).expect("a loop");
        // The resolver is told of the drain first, since it was added first.
        let addresses = if of_system {
            creator.add_part(App::System, |scope| Ok(SystemResolver::new(8, scope)))
        } else {
            let config = ResolverConfig::new(ResolvConf::default());
            let dns = creator.add_part(App::Resolver, |scope| Ok(Resolver::new(config, scope)));
            dns.map(|dns| rotor_stream::HasResolver::addresses(&dns).clone())
        };
        let addresses = addresses.expect("a slot is free");
        creator
            .add_machine_with(|_| Response::ok(App::Asker(Asker::Idle)))
            .expect("a slot is free");
        let mut instance = creator.instantiate(Context { addresses, found: Vec::new() });
        // It ends by itself, long before the drain's deadline.
        instance.handle().drain(Duration::from_secs(3_600));
        instance.run().expect("it runs until the drain is over");
        let found = instance.into_context().found;
        assert!(matches!(&found[..], [Ok(found)] if found.len() == 1), "{of_system}: {found:?}");
    }
}
