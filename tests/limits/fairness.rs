//! A busy peer beside a quiet one.

use std::cell::Cell;

use rotor::Config;

use crate::driving::{Client, drive, echo_servers, run_until_idle};

#[test]
fn a_flooding_peer_does_not_starve_the_others() {
    let (mut instance, addresses) = echo_servers(&Config::new(), 1);
    let (mut busy, stats) = (Client::connect(addresses[0]), instance.stats());
    drive(&mut instance, || stats.read().alive == 2);
    // As much as the kernel buffers: several turns' work.
    let flood = busy.flood();
    assert!(flood > 16 * 4096 * 4, "only {flood} bytes");
    let mut quiet = Client::ask(addresses[0]);
    let turns = drive(&mut instance, || quiet.is_answered());
    quiet.check_answer();
    assert!(turns <= 5, "{turns} turns");
    assert!(instance.context().bytes < flood, "the flood was dealt with first");
}

#[test]
fn a_peer_that_does_not_read_causes_no_busy_turns() {
    let (mut instance, addresses) = echo_servers(&Config::new(), 1);
    let (mut greedy, sent) = (Client::connect(addresses[0]), Cell::new(0));
    loop {
        let before = sent.get();
        sent.set(before + greedy.flood());
        run_until_idle_slowly(&mut instance);
        if sent.get() == before {
            break;
        }
    }
    let full = run_until_idle(&mut instance);
    let again = run_until_idle(&mut instance);
    assert!(again.events <= full.events + 1, "{again:?}");
    assert!(
        instance.context().bytes < sent.get(),
        "what is not read is not sent, and what is not sent is not read"
    );
}

/// As `run_until_idle`, for work that may take many turns.
fn run_until_idle_slowly<M: rotor::Machine>(instance: &mut rotor::LoopInstance<M>) {
    let stats = instance.stats();
    let events = Cell::new(u64::MAX);
    drive(instance, || events.replace(stats.read().events) == stats.read().events);
}
