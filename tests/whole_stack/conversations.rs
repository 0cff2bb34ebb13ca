//! WebSockets on HTTP/2 streams over TLS, with PROXY headers in front, several on a connection.
//! Both sides send messages of all lengths, in pieces and at once, hold each other back, and read
//! slowly. Messages arrive whole, in order and at most once; a conversation that has ended in order
//! on one side has done so on both, with all messages; and a drain ends all of them in order.

use std::time::Duration;

use rotor::websocket::{Cause, Code};
use rotor::{BoxError, Exit};
use rotor_sim::{Check, Crash, Fault, Network, Sim};

use crate::stack::{any, stack};
use crate::talks::{End, lock};

/// How long faults strike.
const FAULTY: Duration = Duration::from_secs(20);

/// Without faults, all conversations end in order.
fn calm(sim: &mut Sim) -> Result<(), BoxError> {
    let network = Network::new()
        .window(any(sim, &[1_000, 16_384, 65_536]))
        .draining(any(sim, &[0.0, 0.5, 1.0]))
        .latency(Duration::from_millis(1)..Duration::from_millis(any(sim, &[2, 60])));
    sim.set_network(network);
    let stack = stack(sim, true)?;
    let count = 12;
    stack.call(sim, 0, count);
    let log = stack.log.clone();
    let all = move |_: &mut Sim| {
        let log = lock(&log);
        let over = log.ends.values().filter(|ends| ends.iter().all(Option::is_some)).count();
        over + log.refused.len() == count as usize
    };
    sim.eventually(Duration::from_secs(600), all)?;
    let finished = stack.check()?;
    let refused = lock(&stack.log).refused.clone();
    if finished != count {
        return Err(
            format!("{finished} of {count}: {refused:?} {:?}", lock(&stack.log).ends).into()
        );
    }
    stack.check_counters()
}

/// The server drains while conversations are under way.
fn drained(sim: &mut Sim) -> Result<(), BoxError> {
    let network = Network::new().window(any(sim, &[1_000, 16_384, 65_536]));
    sim.set_network(network);
    let stack = stack(sim, true)?;
    stack.call(sim, 0, 12);
    let pause = sim.random_u64() % 15_000;
    sim.run_for(Duration::from_millis(pause))?;
    sim.with(stack.server, |instance| instance.handle().drain(Duration::from_secs(120)));
    sim.run_for(Duration::from_secs(121))?;
    let exit = sim.exit(stack.server);
    let is_draining = |end: &End| {
        matches!(end.cause, Cause::Handler | Cause::Peer)
            && [Code::GOING_AWAY, Code::NORMAL].contains(&end.code)
    };
    let finished = stack.check()?;
    let ends = lock(&stack.log).ends.clone();
    if exit != Some(Exit::Drained { dropped: 0 }) {
        return Err(format!("{exit:?}").into());
    }
    for (conversation, ends) in &ends {
        if !ends.iter().all(|end| end.as_ref().is_some_and(is_draining)) {
            return Err(format!("{conversation}: {ends:?}, {finished} finished").into());
        }
    }
    if stack.peers.peers_now() > 0 {
        return Err("a peer has still a place".into());
    }
    stack.check_counters()
}

/// All faults, and then some more conversations.
fn faulty(sim: &mut Sim) -> Result<(), BoxError> {
    let large = any(sim, &[true, false]);
    if large {
        let network = Network::new().window(any(sim, &[1_000, 16_384, 65_536]));
        sim.set_network(network);
    }
    let stack = stack(sim, large)?;
    stack.call(sim, 0, 14);
    sim.run_for(FAULTY)?;
    sim.heal();
    if sim.fault_count(Fault::HandlerPanics) > 0 {
        sim.crash(stack.server, Crash::Process);
        sim.restart(stack.server)?;
    }
    sim.run_for(Duration::from_secs(300))?;
    stack.check()?;
    let (refused, before) = {
        let log = lock(&stack.log);
        (log.refused.len(), log.ends.len())
    };
    stack.call(sim, 100, 4);
    let log = stack.log.clone();
    sim.eventually(Duration::from_secs(1_800), move |_| {
        let log = lock(&log);
        let over = (101..105)
            .filter(|id| log.ends.get(id).is_some_and(|ends| ends.iter().all(Option::is_some)));
        over.count() == 4 || log.refused.len() > refused
    })?;
    let finished = stack.check()?;
    let log = lock(&stack.log);
    if log.refused.len() > refused {
        return Err(format!("refused: {:?}, {finished} {before}", log.refused).into());
    }
    for id in 101..105 {
        let is_in_order = log.ends[&id][0].as_ref().is_some_and(|end| end.cause == Cause::Handler);
        if !is_in_order {
            return Err(format!("after the faults, {id}: {:?}", log.ends[&id]).into());
        }
    }
    drop(log);
    stack.check_counters()?;
    Ok(())
}

#[test]
fn large_messages_through_all_layers_arrive_whole_and_in_order() {
    Check::new().seeds(5).calm().run(calm);
}

#[test]
fn a_drain_ends_websockets_through_all_layers_in_order() {
    Check::new().seeds(5).calm().run(drained);
}

#[test]
fn conversations_through_all_layers_agree_on_their_ends() {
    Check::new().seeds(5).run(faulty);
}
