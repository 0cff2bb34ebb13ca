//! Reports of a run with many seeds.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::time::Duration;

use rotor_core::{BoxError, Infallible, Machine, Response};
use rotor_sim::{Busy, Check, Failure, Fault, Faults, Sim};

use crate::{FaultyMachine, with_machine};

#[test]
fn a_failing_seed_is_reported_with_the_command_to_reproduce_it() {
    let scenario = |sim: &mut Sim| -> Result<(), BoxError> {
        sim.run_for(Duration::from_secs(1))?;
        if sim.seed() == 3 { Err("three is not liked".into()) } else { Ok(()) }
    };
    let found = Check::new().seeds(10).find(scenario);
    // If the environment selects one seed or few seeds, there may be nothing to find.
    let Some((seed, report)) = found else { return };
    assert_eq!(seed, 3);
    assert!(report.starts_with("the scenario: three is not liked\nseed 3, step "), "{report}");
    assert!(
        report.contains(
            "ROTOR_SIM_SEED=3 cargo test -p rotor-sim reports::a_failing_seed_is_reported"
        ),
        "{report}"
    );
    assert!(report.contains("ROTOR_SIM_UNTIL="), "{report}");
}

/// Runs itself in a process of its own, whose environment can be changed.
#[test]
fn the_environment_chooses_first_seed_and_number_of_seeds() {
    const OWN_PROCESS: &str = "ROTOR_SIM_TEST_SEEDS";
    if std::env::var_os(OWN_PROCESS).is_some() {
        let check = Check::new().first(5).seeds(3).calm();
        let seeds = std::cell::RefCell::new(Vec::new());
        let count = check.run(|sim| {
            seeds.borrow_mut().push(sim.seed());
            Ok(())
        });
        let found = check.find(|sim| Err(format!("seed {}", sim.seed()).into()));
        eprintln!("ran {count}: {:?}, found {:?}", seeds.take(), found.map(|found| found.0));
        return;
    }
    let max = u64::MAX.to_string();
    for (first, seeds, expected) in [
        (None, None, "ran 3: [5, 6, 7], found Some(5)"),
        (Some("100"), None, "ran 3: [100, 101, 102], found Some(100)"),
        (None, Some("1"), "ran 1: [5], found Some(5)"),
        (
            Some(&max),
            Some("2"),
            "ran 2: [18446744073709551615, 0], found Some(18446744073709551615)",
        ),
        (Some("1"), Some("0"), "ran 0: [], found None"),
    ] {
        let mut own = Command::new(std::env::current_exe().expect("it has a path"));
        let test = "reports::the_environment_chooses_first_seed_and_number_of_seeds";
        own.args(["--exact", test, "--nocapture"]).env(OWN_PROCESS, "1");
        for (name, value) in [("FIRST", first), ("SEEDS", seeds), ("SEED", None), ("UNTIL", None)] {
            let name = format!("ROTOR_SIM_{name}");
            match value {
                Some(value) => own.env(name, value),
                None => own.env_remove(name),
            };
        }
        let output = own.output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn differing_runs_of_a_seed_are_detected() {
    let runs = std::cell::Cell::new(0);
    let scenario = |sim: &mut Sim| -> Result<(), BoxError> {
        runs.set(runs.get() + 1);
        sim.note(format!("run {}", runs.get()));
        Ok(())
    };
    let report =
        Check::new().seeds(1).twice().find(scenario).map(|found| found.1).unwrap_or_default();
    assert!(report.starts_with("two runs differ"), "{report}");
}

#[test]
fn an_injected_panic_ends_only_its_machine() -> Result<(), Failure> {
    let (mut sim, host) = with_machine(|| FaultyMachine::Ticks)?;
    sim.set_faults(Faults::none().set(Fault::HandlerPanics, 1.0));
    sim.run_for(Duration::from_secs(1))?;
    let stats = sim.stats(host).expect("it is up");
    assert_eq!((stats.panicked, stats.alive), (1, 0));
    Ok(())
}

/// Waits for something that never comes, and either declares itself busy or does not.
struct Client {
    _busy: Option<Busy>,
}

impl Machine for Client {
    type Context = ();
    type Seed = Infallible;
}

#[test]
fn a_run_whose_faults_strike_only_idle_clients_fails() {
    if std::env::var_os("ROTOR_SIM_SEED").is_some() {
        return; // a single seed chosen by the user says nothing about a whole run
    }
    let run = |is_busy: bool| {
        let check = Check::new().seeds(1).calm().must_strike([Fault::SlowTurn]);
        check.run(|sim| {
            sim.set_faults(Faults::none().set(Fault::SlowTurn, 1.0));
            let host = sim.host("client", |boot| Ok(boot.new_loop::<Client>()?.instantiate(())))?;
            sim.with(host, |instance| {
                instance.add_machine_with(|scope| {
                    let client = Client { _busy: is_busy.then(|| Busy::new(scope)) };
                    Response::ok(client).deadline(scope.now() + Duration::from_secs(1))
                })
            });
            sim.run_for(Duration::from_secs(2))?;
            assert!(sim.strikes().of(Fault::SlowTurn) > 0);
            Ok(())
        })
    };
    assert_eq!(
        run(true),
        std::env::var("ROTOR_SIM_SEEDS").map_or(1, |seeds| seeds.parse().unwrap_or(1))
    );
    let payload = catch_unwind(AssertUnwindSafe(|| run(false))).expect_err("nobody was struck");
    let message = payload.downcast_ref::<String>().map(String::as_str).unwrap_or_default();
    assert!(message.contains("no busy client was struck by: SlowTurn"), "{message}");
}
