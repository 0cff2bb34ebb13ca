//! A slab without a free slot.

use std::time::Duration;

use rotor::{Config, Exit};

use crate::driving::{Client, drive, echo_servers, run_until_idle, take_answered};

#[test]
fn a_listener_pauses_at_a_full_slab_and_resumes_when_a_slot_is_freed() {
    let (mut instance, addresses) = echo_servers(&Config::new().machines_max(3), 1);
    let mut waiting: Vec<Client> = (0..5).map(|_| Client::ask(addresses[0])).collect();
    drive(&mut instance, || waiting.iter().filter(|client| client.is_answered()).count() == 2);
    let full = run_until_idle(&mut instance);
    assert_eq!((full.alive, full.spawned), (3, 3), "the listener and two connections");
    let mut served = take_answered(&mut waiting);
    assert_eq!(served.len(), 2);

    // More clients change nothing. Each costs only its event.
    waiting.push(Client::ask(addresses[0]));
    let still_full = run_until_idle(&mut instance);
    assert_eq!(still_full.spawned, 3);
    assert!(still_full.turns - full.turns < 10, "{still_full:?}");
    assert!(!waiting.iter().any(Client::is_answered));

    // Each client that leaves admits one more, in the order in which they connected.
    for left in (0..4).rev() {
        drop(served.remove(0));
        drive(&mut instance, || waiting[0].is_answered());
        served.append(&mut take_answered(&mut waiting));
        assert_eq!(waiting.len(), left, "one slot, one connection");
        assert_eq!(run_until_idle(&mut instance).alive, 3);
    }
    drop(served);
    let stats = instance.stats();
    drive(&mut instance, || stats.read().alive == 1);
    let end = run_until_idle(&mut instance);
    assert_eq!((end.spawned, end.ended, end.failed, end.panicked), (7, 6, 0, 0));
}

#[test]
fn hundreds_of_clients_are_served_one_by_one_through_a_single_slot() {
    const CLIENTS: usize = 200;
    let (mut instance, addresses) = echo_servers(&Config::new().machines_max(2), 1);
    let mut waiting: Vec<Client> = (0..CLIENTS).map(|_| Client::ask(addresses[0])).collect();
    let mut turns = 0;
    for _ in 0..CLIENTS {
        turns += drive(&mut instance, || waiting[0].is_answered());
        waiting.remove(0).check_answer();
    }
    assert!(turns < CLIENTS * 10, "{turns} turns for {CLIENTS} clients");
    assert_eq!(instance.stats().read().failed, 0);
}

#[test]
fn two_listeners_on_one_full_slab_take_turns() {
    const EACH: usize = 20;
    let (mut instance, addresses) = echo_servers(&Config::new().machines_max(3), 2);
    let mut waiting = addresses.iter().map(|&address| {
        let clients: Vec<Client> = (0..EACH).map(|_| Client::ask(address)).collect();
        clients
    });
    let (mut first, mut second) = (waiting.next().expect("two"), waiting.next().expect("two"));
    let mut order = Vec::new();
    while order.len() < 2 * EACH {
        let is_answered = |clients: &Vec<Client>| clients.iter().any(Client::is_answered);
        drive(&mut instance, || is_answered(&first) || is_answered(&second));
        run_until_idle(&mut instance);
        let answered = [take_answered(&mut first), take_answered(&mut second)];
        assert_eq!(answered[0].len() + answered[1].len(), 1, "there is one slot");
        order.push(usize::from(answered[0].is_empty()));
    }
    // Once both wait, each freed slot goes to the listener that has waited longer, until one has no
    // client left.
    let longest = order.chunk_by(|a, b| a == b).map(<[usize]>::len).max();
    assert!(longest <= Some(2), "{order:?}");
}

#[test]
fn a_freed_slot_goes_to_the_waiting_listener_before_the_busy_one() {
    let (mut instance, addresses) = echo_servers(&Config::new().machines_max(3), 2);
    let [busy, quiet] = addresses[..] else { panic!("two were asked for") };
    let mut current = Client::ask(busy);
    drive(&mut instance, || current.is_answered());
    for _ in 0..10 {
        let mut patient = Client::ask(quiet);
        run_until_idle(&mut instance);
        let mut before = 0;
        while !patient.is_answered() {
            // The loop sees both in one turn: the end of one client, and the next client of the
            // same listener.
            drop(current);
            current = Client::ask(busy);
            drive(&mut instance, || patient.is_answered() || current.is_answered());
            before += u32::from(current.is_answered());
            assert!(before <= 1, "the busy one may have been in line already, not again");
        }
        patient.check_answer();
        drop(patient);
        drive(&mut instance, || current.is_answered());
    }
}

#[test]
fn an_accepted_connection_without_a_slot_is_retained_until_one_is_free() {
    // With one spawn per event, each listener accepts one connection more than it may spawn in that
    // call. After that one slot is left.
    let config = Config::new().machines_max(5).spawns_per_event(1);
    let (mut instance, addresses) = echo_servers(&config, 2);
    let mut waiting: Vec<Client> =
        [0, 0, 1, 1].iter().map(|&server| Client::ask(addresses[server])).collect();
    drive(&mut instance, || waiting.iter().filter(|client| client.is_answered()).count() == 3);
    assert_eq!(run_until_idle(&mut instance).alive, 5);
    drop(take_answered(&mut waiting).remove(0));
    drive(&mut instance, || waiting[0].is_answered());
    take_answered(&mut waiting);
    let stats = run_until_idle(&mut instance);
    assert_eq!((stats.spawned, stats.failed), (6, 0));
}

#[test]
fn a_drain_serves_accepted_connections_and_then_ends() {
    let config = Config::new().machines_max(5).spawns_per_event(1);
    let (mut instance, addresses) = echo_servers(&config, 2);
    let mut waiting: Vec<Client> =
        [0, 0, 1, 1].iter().map(|&server| Client::ask(addresses[server])).collect();
    drive(&mut instance, || waiting.iter().filter(|client| client.is_answered()).count() == 3);
    // One connection is held by its listener now.
    instance.handle().drain(Duration::from_secs(60));
    assert_eq!(instance.run().expect("the backend waits"), Exit::Drained { dropped: 0 });
    waiting.iter_mut().for_each(Client::check_answer);
    assert!(waiting.iter_mut().all(Client::is_ended));
    assert_eq!(instance.context().bytes, 4);
}

#[test]
fn a_burst_beyond_the_spawn_budget_of_one_event_is_accepted_in_a_few_turns() {
    const CLIENTS: usize = 200;
    const SPAWNS: u32 = 16;
    let (mut instance, addresses) = echo_servers(&Config::new().spawns_per_event(SPAWNS), 1);
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| Client::ask(addresses[0])).collect();
    let turns = drive(&mut instance, || clients.iter().all(Client::is_answered));
    assert!((CLIENTS / SPAWNS as usize..100).contains(&turns), "{turns} turns");
    assert_eq!(take_answered(&mut clients).len(), CLIENTS);
    run_until_idle(&mut instance);
}
