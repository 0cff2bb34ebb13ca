//! The system's `getaddrinfo` behind the handle.

use std::sync::mpsc;
use std::time::Duration;

use rotor_core::{Config, Future, Loop, LoopInstance, OffloadPool};
use rotor_dns::SystemResolver;
use rotor_stream::{AddressService, ResolveError};

#[test]
fn every_name_is_answered_and_then_the_resolver_ends() {
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
    // The system would resolve them, or ask for them.
    let refused = ["::1%lo", "localhost:80"].map(ask);
    drop(addresses);
    creator.instantiate(()).run().expect("it runs until the resolver ends");
    for reply in [first, second] {
        let found = reply.wait().expect("an answer").expect("this machine has a name");
        assert!(found.iter().all(|address| address.is_loopback()), "{found:?}");
    }
    let found = literal.wait().expect("an answer").expect("an address");
    assert_eq!(found[0].to_string(), "2001:db8::1");
    assert!(matches!(wrong.wait().expect("an answer"), Err(ResolveError::Failed(_))));
    for reply in refused {
        let reply = reply.wait().expect("an answer");
        assert!(matches!(reply, Err(ResolveError::Name(_))), "{reply:?}");
    }
}

/// Lookups that end at once, because their text is no name, take no room, so that only this limits
/// how many are seen to in a turn.
#[test]
fn many_refused_names_leave_turns_to_the_other_machines() {
    let mut creator = Loop::<SystemResolver<()>>::new(&Config::new()).expect("a loop");
    let made = creator.add_part(|resolver| resolver, |scope| Ok(SystemResolver::new(1_000, scope)));
    let addresses = made.expect("a slot is free");
    let ask = |_| addresses.ask_from_thread("localhost:80".into()).expect("there is room");
    let replies: Vec<_> = (0..1_000).map(ask).collect();
    let mut instance = creator.instantiate(());
    instance.turn(Some(Duration::ZERO)).expect("nothing goes wrong");
    let ready = replies.iter().filter(|reply| reply.is_ready()).count();
    assert!((1..=128).contains(&ready), "{ready}");
    drop(addresses);
    instance.run().expect("it runs until the resolver ends");
    for reply in replies {
        assert!(matches!(reply.wait().expect("an answer"), Err(ResolveError::Name(_))));
    }
}

/// The only thread of a pool, which is busy until the test releases it.
struct BusyThread {
    hold: mpsc::Sender<()>,
    /// Kept, since a job whose future is dropped before it begins is not run.
    job: Option<Future<Result<(), mpsc::RecvError>>>,
}

impl BusyThread {
    fn release(&mut self) {
        assert!(self.job.as_ref().is_some_and(|job| !job.is_ready()), "the thread is busy");
        self.hold.send(()).expect("it waits");
    }
}

/// A resolver that shares its pool of one thread with a job.
fn resolver_on_a_busy_pool(
    jobs_max: usize,
) -> (LoopInstance<SystemResolver<()>>, AddressService, BusyThread) {
    let (hold, held) = mpsc::channel();
    let mut job = None;
    let config = Config::new().offload_pool(OffloadPool::new(1, jobs_max));
    let mut creator = Loop::<SystemResolver<()>>::new(&config).expect("a loop");
    let made = creator.add_part(
        |resolver| resolver,
        |scope| {
            job = Some(scope.offload(move || held.recv()).expect("there is room"));
            Ok(SystemResolver::new(4, scope))
        },
    );
    let addresses = made.expect("a slot is free");
    (creator.instantiate(()), addresses, BusyThread { hold, job })
}

#[test]
fn lookups_beyond_the_limit_are_handed_back() {
    // The job behind the thread waits.
    let (mut instance, addresses, mut busy) = resolver_on_a_busy_pool(8);
    let ask = || addresses.ask_from_thread("localhost".into());
    let mut replies = Vec::new();
    for _ in 0..8 {
        replies.push(ask().expect("there is room"));
        instance.turn(Some(Duration::ZERO)).expect("nothing goes wrong");
    }
    assert!(ask().is_err(), "four are under way, four wait");
    busy.release();
    drop(addresses);
    instance.run().expect("it runs until the resolver ends");
    for reply in replies {
        assert!(reply.wait().expect("an answer").is_ok());
    }
}

#[test]
fn a_full_pool_leaves_no_lookup_waiting() {
    let config = Config::new().offload_pool(OffloadPool::new(1, 1));
    let mut creator = Loop::<SystemResolver<()>>::new(&config).expect("a loop");
    let addresses =
        creator.add_part(|resolver| resolver, |scope| Ok(SystemResolver::new(2, scope)));
    let addresses = addresses.expect("a slot is free");
    let mut instance = creator.instantiate(());
    let mut replies = Vec::new();
    for number in 0..40 {
        if let Ok(reply) = addresses.ask_from_thread(format!("127.0.0.{number}").into()) {
            replies.push(reply);
        }
        if number % 2 == 1 {
            instance.turn(Some(Duration::ZERO)).expect("nothing goes wrong");
        }
    }
    drop(addresses);
    instance.run().expect("it runs until the resolver ends");
    for reply in replies {
        assert!(matches!(reply.wait().expect("an answer"), Ok(_) | Err(ResolveError::Busy)));
    }
}

#[test]
fn waiting_lookups_of_one_name_share_a_job() {
    // Room for one running job and one waiting job: sixteen would not fit.
    let config = Config::new().offload_pool(OffloadPool::new(1, 1));
    let mut creator = Loop::<SystemResolver<()>>::new(&config).expect("a loop");
    let addresses =
        creator.add_part(|resolver| resolver, |scope| Ok(SystemResolver::new(16, scope)));
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

#[test]
fn a_lookup_cancelled_before_it_starts_takes_no_room_in_the_pool() {
    // There is room for one more job.
    let (mut instance, addresses, mut busy) = resolver_on_a_busy_pool(2);
    let ask = |name: &str| addresses.ask_from_thread(name.into()).expect("there is room");
    drop((ask("127.0.0.1"), ask("127.0.0.2")));
    let awaited = ask("127.0.0.3");
    instance.turn(Some(Duration::ZERO)).expect("nothing goes wrong");
    busy.release();
    drop(addresses);
    instance.run().expect("it runs until the resolver ends");
    assert!(awaited.wait().expect("an answer").is_ok());
}
