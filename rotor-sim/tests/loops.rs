//! What a loop does apart from sockets (spawning, waking, mailboxes, deadlines, posts, offloaded
//! work, draining), under all faults that can affect it.

use std::collections::VecDeque;
use std::time::Duration;

use rotor_core::{BoxError, Exit, Loop, LoopInstance, Notifier, Response, Sender};
use rotor_sim::{Check, Family, Fault, Host, Sim, SimBackend, Watched};

#[path = "machines/actors.rs"]
mod actors;

use actors::{Actor, Tally};

type Actors = Watched<Actor>;

fn add_host(sim: &mut Sim, name: &str) -> Result<Host<Actors>, BoxError> {
    let host: Host<Actors> = sim.host(name, |boot| {
        // A budget that is often used up.
        let config = boot.config().spawns_per_event(3);
        Ok(Loop::with_backend(boot.backend(), &config)?.instantiate(Tally::default()))
    })?;
    sim.always("no stray call", move |sim| {
        let strays = sim.with(host, |instance: &mut LoopInstance<Actors, SimBackend>| {
            instance.context().strays
        });
        if strays.unwrap_or(0) == 0 {
            Ok(())
        } else {
            Err("a child was called that nobody knows".into())
        }
    });
    Ok(host)
}

fn add(
    sim: &mut Sim,
    host: Host<Actors>,
    mut make: impl FnMut(&mut rotor_core::Scope<'_, Tally>) -> Response<Actor>,
) -> bool {
    let added = sim.with(host, |instance: &mut LoopInstance<Actors, SimBackend>| {
        instance.add_machine_with(|scope| Watched::make(scope, &mut make))
    });
    matches!(added, Some(Ok(_)))
}

fn tally(sim: &mut Sim, host: Host<Actors>) -> Tally {
    sim.with(host, |instance| instance.context().clone()).unwrap_or_default()
}

fn is_idle(sim: &mut Sim, host: Host<Actors>) -> bool {
    sim.stats(host).is_none_or(|stats| stats.alive == 0) && sim.machines(host, |_, _| ()).is_empty()
}

/// Disables the faults that end machines before their counts are complete.
fn disable_crashes_and_panics(sim: &mut Sim) {
    let faults = sim.faults().without(Family::Crash).without(Family::Panic);
    sim.set_faults(faults);
}

#[test]
fn every_spawn_is_answered_and_every_child_ends() {
    Check::new().seeds(30).run(|sim| {
        disable_crashes_and_panics(sim);
        let host = add_host(sim, "family")?;
        for _ in 0..3 {
            add(sim, host, |scope| {
                scope.notifier().wakeup();
                Response::ok(Actor::Parent { left: 100 })
            });
        }
        sim.run_for(Duration::from_secs(5))?;
        sim.eventually(Duration::from_secs(300), |sim| is_idle(sim, host))?;
        let tally = tally(sim, host);
        assert_eq!(tally.spawned + tally.not_spawned, 300, "{tally:?}");
        assert_eq!(tally.spawned, tally.children_ended);
        Ok(())
    });
}

#[test]
fn panics_and_crashes_leave_no_machine_behind() {
    Check::new().seeds(30).run(|sim| {
        let faults = sim.faults().set(Fault::HandlerPanics, 0.02);
        sim.set_faults(faults);
        let host = add_host(sim, "family")?;
        for _ in 0..5 {
            add(sim, host, |scope| {
                scope.notifier().wakeup();
                Response::ok(Actor::Parent { left: 50 })
            });
            add(sim, host, |scope| Actor::ticker(50, scope));
            add(sim, host, |scope| Actor::worker(20, scope));
        }
        sim.run_for(Duration::from_secs(5))?;
        sim.drain(host, Duration::from_secs(10))?;
        Ok(())
    });
}

#[test]
fn wakeups_travel_around_a_ring_of_two_loops() {
    Check::new().seeds(30).run(|sim| {
        disable_crashes_and_panics(sim);
        let hosts = [add_host(sim, "even")?, add_host(sim, "odd")?];
        let mut next: Option<Notifier> = None;
        let mut first = None;
        for number in 0..8 {
            let mut made = None;
            add(sim, hosts[number % 2], |scope| {
                made = Some(scope.notifier());
                Response::ok(Actor::Ring { next: next.clone(), hops_left: 60 })
            });
            next = made.clone();
            first = first.or(made);
        }
        // The last one wakes the one before it, and so on to the first, which wakes nobody.
        for _ in 0..50 {
            next.as_ref().map(Notifier::wakeup);
            sim.run_for(Duration::from_millis(20))?;
        }
        sim.eventually(Duration::from_secs(60), |sim| {
            tally(sim, hosts[0]).hops > 4 && tally(sim, hosts[1]).hops > 4
        })?;
        // Wake-ups coalesce, so there may be fewer hops than were started; but once everything is
        // quiet, each hop that is started arrives.
        sim.run_for(Duration::from_secs(1))?;
        let before = tally(sim, hosts[0]).hops + tally(sim, hosts[1]).hops;
        next.as_ref().map(Notifier::wakeup);
        sim.run_for(Duration::from_secs(1))?;
        let after = tally(sim, hosts[0]).hops + tally(sim, hosts[1]).hops;
        assert_eq!(after - before, 8);
        Ok(())
    });
}

#[test]
fn every_message_arrives_once_and_in_order() {
    Check::new().seeds(30).run(|sim| {
        disable_crashes_and_panics(sim);
        let (senders, receivers) = (add_host(sim, "senders")?, add_host(sim, "receivers")?);
        let mut sender: Option<Sender<(u32, u32)>> = None;
        add(sim, receivers, |scope| {
            let (made, mailbox) = scope.create_mailbox(5);
            sender = Some(made);
            Response::ok(Actor::Consumer { mailbox })
        });
        let Some(sender) = sender else { return Ok(()) };
        let producers = (0..4)
            .filter(|number| {
                add(sim, senders, |scope| {
                    let sender = sender.clone();
                    let kept = VecDeque::new();
                    Response::ok(Actor::Producer {
                        number: *number,
                        next: 0,
                        until: 30,
                        sender,
                        kept,
                    })
                    .deadline(scope.now())
                })
            })
            .count();
        sim.run_for(Duration::from_millis(100))?;
        sim.eventually(Duration::from_secs(60), |sim| is_idle(sim, senders))?;
        sim.run_for(Duration::from_secs(1))?;
        // The last sender is dropped after everything was received: the mailbox notices that too.
        drop(sender);
        sim.run_until(Duration::from_secs(60), |sim| is_idle(sim, receivers))?;
        let received = tally(sim, receivers).received;
        assert_eq!(received.len(), producers * 30);
        for number in 0..producers as u32 {
            let of_one =
                received.iter().filter(|message| message.0 == number).map(|message| message.1);
            assert!(of_one.eq(0..30), "{received:?}");
        }
        Ok(())
    });
}

#[test]
fn deadlines_fire_in_order_and_as_often_as_they_were_set() {
    Check::new().seeds(30).run(|sim| {
        disable_crashes_and_panics(sim);
        let host = add_host(sim, "clocks")?;
        let tickers = (0..20).filter(|_| add(sim, host, |scope| Actor::ticker(20, scope))).count();
        sim.run_for(Duration::from_secs(2))?;
        sim.eventually(Duration::from_secs(60), |sim| is_idle(sim, host))?;
        let tally = tally(sim, host);
        assert_eq!(tally.fired, 21 * tickers as u64);
        assert_eq!(tally.fired_out_of_order, None);
        Ok(())
    });
}

#[test]
fn every_job_is_answered_once() {
    let faults = Fault::ALL.iter().copied().filter(|fault| fault.family() == Family::Offload);
    Check::new().seeds(30).must_strike(faults).run(|sim| {
        disable_crashes_and_panics(sim);
        let host = add_host(sim, "office")?;
        let workers =
            (0..6).filter(|_| add(sim, host, |scope| Actor::worker(10, scope))).count() as u64;
        sim.run_for(Duration::from_millis(50))?;
        sim.eventually(Duration::from_secs(600), |sim| is_idle(sim, host))?;
        let jobs = tally(sim, host).jobs;
        assert_eq!(jobs.offered, workers * 10);
        assert_eq!(jobs.done + jobs.panicked + jobs.dropped, jobs.offered, "{jobs:?}");
        Ok(())
    });
}

#[test]
fn every_post_runs_once_and_repeated_closures_continue() {
    Check::new().seeds(30).run(|sim| {
        disable_crashes_and_panics(sim);
        let host = add_host(sim, "office")?;
        add(sim, host, |scope| Actor::ticker(1_000, scope));
        let broadcast = sim.with(host, |instance| {
            instance.every(Duration::from_millis(100), |_, scope| scope.hops += 1);
            instance.broadcast()
        });
        for _ in 0..50 {
            let posted =
                broadcast.as_ref().map(|broadcast| broadcast.post(|_, scope| scope.posted += 1));
            assert!(matches!(posted, Some(Ok(()))));
            sim.run_for(Duration::from_millis(20))?;
        }
        sim.eventually(Duration::from_secs(10), |sim| tally(sim, host).posted == 50)?;
        assert!((1..=130).contains(&tally(sim, host).hops), "{}", tally(sim, host).hops);
        Ok(())
    });
}

#[test]
fn a_drain_ends_whatever_its_machines_do() {
    Check::new().seeds(60).run(|sim| {
        let host = add_host(sim, "all")?;
        for number in 0..12 {
            add(sim, host, |scope| {
                scope.notifier().wakeup();
                match number % 3 {
                    0 => Response::ok(Actor::Parent { left: 300 }),
                    1 => Actor::ticker(1_000, scope),
                    _ => Actor::worker(1_000, scope),
                }
            });
        }
        sim.run_for(Duration::from_millis(sim.seed() % 7 * 50))?;
        let exit = sim.drain(host, Duration::from_secs(5))?;
        assert!(matches!(exit, Exit::Drained { .. }), "{exit:?}");
        Ok(())
    });
}

#[test]
fn secure_numbers_depend_on_the_seed_and_differ_in_each_loop() {
    let drawn = |seed| {
        let mut sim = Sim::new(seed);
        ["one", "two"].map(|name| {
            let host = add_host(&mut sim, name).expect("the host starts");
            let mut numbers = [[0; 16]; 2];
            add(&mut sim, host, |scope| {
                numbers = [scope.secure_random(), scope.secure_random()];
                Response::done()
            });
            numbers
        })
    };
    let first = drawn(1);
    assert_eq!(first, drawn(1));
    let all = [first, drawn(2)];
    let mut all: Vec<[u8; 16]> = all.as_flattened().as_flattened().to_vec();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 8);
}
