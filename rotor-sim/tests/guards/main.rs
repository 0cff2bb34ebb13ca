//! Each property and each bound that a run is checked for detects its violation, and reports where
//! it happened.

mod connections;
mod handlers;
mod reports;

use std::time::Duration;

use rotor_core::{EventSet, Infallible, Machine, Response, Scope};
use rotor_sim::property::{
    ANSWERED, EMPTY_AFTER_DRAIN, HOST_WORKS, NO_BUSY_LOOP, NO_MACHINE_LOST, NO_PANIC,
    STEPS_BOUNDED, STOPPED, WORK_IS_BOUNDED,
};
use rotor_sim::{Failure, Host, Sim, Watched, WorkBounds};

/// Does one thing wrong, as the variant's name says.
enum FaultyMachine {
    /// Wakes itself forever.
    WakesItself,
    /// Asks to be called again forever.
    AsksAgain,
    /// Never ends, whatever happens.
    Stays,
    /// Works for a millisecond at a time, forever.
    Ticks,
    /// Panics when it is woken.
    Panics,
}

/// A place outside the slab for a machine.
type Hidden = Vec<Watched<FaultyMachine>>;

impl Machine for FaultyMachine {
    type Context = Hidden;
    type Seed = Infallible;

    fn ready(self, _: EventSet, _: &mut Scope<'_, Hidden>) -> Response<Self, Infallible> {
        match self {
            FaultyMachine::AsksAgain => Response::again(self),
            _ => Response::keep(self),
        }
    }
    fn wakeup(self, scope: &mut Scope<'_, Hidden>) -> Response<Self, Infallible> {
        match self {
            FaultyMachine::WakesItself => _ = scope.notifier().wakeup(),
            FaultyMachine::Panics => panic!("it has a bug"),
            _ => {}
        }
        Response::keep(self)
    }
    fn timeout(self, scope: &mut Scope<'_, Hidden>) -> Response<Self, Infallible> {
        Response::ok(self).deadline(scope.now() + Duration::from_millis(1))
    }
}

fn with_machine(
    make: fn() -> FaultyMachine,
) -> Result<(Sim, Host<Watched<FaultyMachine>>), Failure> {
    let mut sim = Sim::new(1);
    let host = sim.host("host", move |boot| {
        let mut creator = boot.new_loop()?;
        creator.add_machine_with(|scope| {
            scope.notifier().wakeup();
            let now = scope.now();
            Watched::make(scope, |_| match make() {
                FaultyMachine::AsksAgain => Response::again(FaultyMachine::AsksAgain),
                FaultyMachine::Ticks => Response::ok(FaultyMachine::Ticks).deadline(now),
                wrong => Response::ok(wrong),
            })
        })?;
        Ok(creator.instantiate(Vec::new()))
    })?;
    Ok((sim, host))
}

fn failure(result: Result<(), Failure>) -> Failure {
    result.expect_err("the property does not hold")
}

#[test]
fn a_busy_loop_without_progress_is_detected() -> Result<(), Failure> {
    for wrong in [|| FaultyMachine::WakesItself, || FaultyMachine::AsksAgain] {
        let (mut sim, _) = with_machine(wrong)?;
        let failure = failure(sim.run_for(Duration::from_secs(1)));
        assert_eq!(failure.property(), NO_BUSY_LOOP);
        assert!(failure.message().starts_with("host took 1000 turns at Time(0.0"), "{failure}");
    }
    Ok(())
}

#[test]
fn a_panic_of_a_handler_is_detected_unless_the_test_allows_it() -> Result<(), Failure> {
    let (mut sim, _) = with_machine(|| FaultyMachine::Panics)?;
    let failure = failure(sim.run_for(Duration::from_secs(1)));
    assert_eq!(failure.property(), NO_PANIC);
    assert_eq!(failure.message(), "a handler of host has panicked; the trace has its message");
    assert!(failure.trace().contains("machine 0v0: panicked: it has a bug\n"), "{failure}");
    let (mut sim, host) = with_machine(|| FaultyMachine::Panics)?;
    sim.allow_panics(host);
    sim.run_for(Duration::from_secs(1))?;
    assert_eq!(sim.stats(host).map(|stats| stats.panicked), Some(1));
    Ok(())
}

#[test]
fn a_turn_that_exceeds_its_work_bounds_is_detected() -> Result<(), Failure> {
    // In its first turn it is woken as well.
    let bounds = [
        (WorkBounds::new().timeouts_per_turn(1).calls_per_turn(2), false),
        (WorkBounds::new().timeouts_per_turn(0), true),
        (WorkBounds::new().calls_per_turn(1), true),
    ];
    for (bounds, is_too_much) in bounds {
        let (mut sim, host) = with_machine(|| FaultyMachine::Ticks)?;
        sim.bound_work(host, bounds);
        let result = sim.run_for(Duration::from_millis(20));
        assert_eq!(result.is_err(), is_too_much);
        assert!(result.is_ok() || failure(result).property() == WORK_IS_BOUNDED);
        let most = sim.most_of_turns(host);
        assert_eq!((most.timeouts, most.calls), (1, 2));
    }
    Ok(())
}

#[test]
fn an_endless_run_is_stopped_and_reports_what_was_running() -> Result<(), Failure> {
    let (mut sim, _) = with_machine(|| FaultyMachine::Ticks)?;
    sim.set_steps_max(500);
    let failure = failure(sim.run_for(Duration::from_secs(3600)));
    assert_eq!((failure.property(), failure.step()), (STEPS_BOUNDED, 501));
    assert!(
        failure.to_string().contains("host (10.0.0.1): 1 machines {\"FaultyMachine\": 1}"),
        "{failure}"
    );
    Ok(())
}

#[test]
fn a_run_stops_at_the_requested_step() -> Result<(), Failure> {
    let (mut sim, _) = with_machine(|| FaultyMachine::Ticks)?;
    sim.until(20);
    let failure = failure(sim.run_for(Duration::from_secs(3600)));
    assert_eq!(failure.property(), STOPPED);
    assert!(
        failure.trace().contains("step 20 ") && !failure.trace().contains("step 21 "),
        "{failure}"
    );
    Ok(())
}

#[test]
fn a_condition_not_met_in_time_fails_the_run() -> Result<(), Failure> {
    let (mut sim, _) = with_machine(|| FaultyMachine::Stays)?;
    let failure = failure(sim.run_until(Duration::from_secs(5), |_| false));
    assert_eq!(failure.property(), ANSWERED);
    Ok(())
}

#[test]
fn a_machine_that_outlives_a_drain_is_detected() -> Result<(), Failure> {
    let (mut sim, host) = with_machine(|| FaultyMachine::Stays)?;
    let exit = sim.drain(host, Duration::from_secs(5))?;
    assert_eq!(exit, rotor_core::Exit::Drained { dropped: 1 });

    // A machine that is kept outside the slab outlives the drain.
    let (mut sim, host) = with_machine(|| FaultyMachine::Stays)?;
    hide_machine(&mut sim, host);
    let failure = sim.drain(host, Duration::from_secs(5)).expect_err("one is left");
    assert!([NO_MACHINE_LOST, EMPTY_AFTER_DRAIN].contains(&failure.property()), "{failure}");
    Ok(())
}

/// Makes a watched machine and puts it into the context.
fn hide_machine(sim: &mut Sim, host: Host<Watched<FaultyMachine>>) {
    sim.with(host, |instance| {
        let mut hidden = None;
        let added = instance.add_machine_with(|scope| {
            let (answer, _) =
                Watched::make(scope, |_| Response::ok(FaultyMachine::Stays)).into_parts();
            hidden = Some(answer);
            Response::done()
        });
        assert!(added.is_err());
        if let Some(rotor_core::Answer::Continue(machine)) = hidden {
            instance.context_mut().push(machine);
        }
    });
}

#[test]
fn a_machine_outside_of_the_slab_is_reported_as_lost() -> Result<(), Failure> {
    let (mut sim, host) = with_machine(|| FaultyMachine::Ticks)?;
    hide_machine(&mut sim, host);
    let failure = failure(sim.run_for(Duration::from_secs(1)));
    assert_eq!(failure.property(), NO_MACHINE_LOST);
    Ok(())
}

#[test]
fn a_custom_property_is_checked_after_each_turn() -> Result<(), Failure> {
    let (mut sim, host) = with_machine(|| FaultyMachine::Ticks)?;
    sim.always("few time-outs", move |sim| {
        let timeouts = sim.stats(host).map_or(0, |stats| stats.timeouts);
        if timeouts < 10 { Ok(()) } else { Err(format!("{timeouts}")) }
    });
    let failure = failure(sim.run_for(Duration::from_secs(1)));
    assert_eq!((failure.property(), failure.message()), ("few time-outs", "10"));
    Ok(())
}

#[test]
fn a_host_that_cannot_start_reports_why() {
    let mut sim = Sim::new(1);
    let started = sim.host::<Watched<FaultyMachine>, _>("host", |_| Err("no disk".into()));
    let failure = started.expect_err("it does not start");
    assert_eq!(
        (failure.property(), failure.message()),
        (HOST_WORKS, "it could not start: no disk")
    );
}
