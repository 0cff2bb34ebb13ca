//! The system's `getaddrinfo` behind the handle.

use rotor_core::{Config, Loop, OffloadPool};
use rotor_dns::SystemResolver;
use rotor_stream::ResolveError;

#[test]
fn equal_names_and_others_are_answered_and_then_it_ends() {
    let mut creator = Loop::<SystemResolver<()>>::new(&Config::new()).expect("a loop");
    let mut addresses = None;
    let added = creator.add_machine_with(|scope| {
        let (handle, response) = SystemResolver::new(16, scope);
        addresses = Some(handle);
        response
    });
    added.expect("a slot is free");
    let addresses = addresses.take().expect("made above");
    let ask = |name: &str| addresses.ask_from_thread(name.into()).expect("there is room");
    let (first, second) = (ask("localhost"), ask("localhost"));
    let (literal, wrong) = (ask("2001:db8::1"), ask("two..dots"));
    drop(addresses);
    creator.instantiate(()).run().expect("it runs until the resolver ends");
    for reply in [first, second] {
        let found = reply.wait().expect("an answer").expect("this machine has a name");
        assert!(found.iter().all(|address| address.is_loopback()), "{found:?}");
    }
    let found = literal.wait().expect("an answer").expect("an address");
    assert_eq!(found[0].to_string(), "2001:db8::1");
    assert!(matches!(wrong.wait().expect("an answer"), Err(ResolveError::Failed(_))));
}

#[test]
fn equal_names_that_wait_are_one_job() {
    // Room for one job that runs and one that waits: sixteen would not find any.
    let config = Config::new().offload_pool(OffloadPool::new(1, 1));
    let mut creator = Loop::<SystemResolver<()>>::new(&config).expect("a loop");
    let addresses = creator.add_part(|resolver| resolver, |scope| Ok(SystemResolver::new(16, scope)));
    let addresses = addresses.expect("a slot is free");
    let ask = |_| addresses.ask_from_thread("localhost".into()).expect("there is room");
    let replies: Vec<_> = (0..16).map(ask).collect();
    drop(addresses);
    creator.instantiate(()).run().expect("it runs until the resolver ends");
    for reply in replies {
        let found = reply.wait().expect("an answer").expect("no one is told that there is no room");
        assert!(found.iter().all(|address| address.is_loopback()), "{found:?}");
    }
}
