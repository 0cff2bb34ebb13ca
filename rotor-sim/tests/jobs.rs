//! Jobs and permits in virtual time: each request is answered, and only one holder has what is
//! meant for one, even with machines and jobs of hosts that crash.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use rotor_core::{
    Future, FutureError, Infallible, Job, Loop, LoopInstance, Machine, Outcome, Permit, Permits,
    Response, Scope,
};
use rotor_sim::{Check, Host, Sim, SimBackend};

/// State shared by all machines of a run.
#[derive(Clone)]
struct Shared {
    permits: Permits,
    seen: Rc<Counts>,
}

#[derive(Default)]
struct Counts {
    done: Cell<u32>,
    late: Cell<u32>,
    lost: Cell<u32>,
}

/// Holds the permit from one event to the next, then starts a job that holds it, then a job that
/// may come too late.
enum Client {
    Asks(Future<Permit>, u32),
    Holds(Permit, u32),
    Runs(Future<Duration>, u32),
    MayBeLate(Future<Duration>, u32),
}

fn add(cell: &Cell<u32>) {
    cell.set(cell.get() + 1);
}

impl Client {
    fn start_job(left: u32, scope: &Scope<'_, Shared>) -> Response<Client, Infallible> {
        match scope.job(|job: &Job<'_>| job.queued_for()).permits(&scope.permits).start() {
            Ok(job) => Response::keep(Client::Runs(job, left)),
            Err(_full) => Client::next_round(left, scope),
        }
    }

    fn start_job_with_deadline(
        left: u32,
        scope: &Scope<'_, Shared>,
    ) -> Response<Client, Infallible> {
        let soon = scope.now() + Duration::from_millis(1);
        match scope.job(|job: &Job<'_>| job.queued_for()).begin_before(soon).start() {
            Ok(job) => Response::keep(Client::MayBeLate(job, left)),
            Err(_full) => Client::next_round(left, scope),
        }
    }

    fn next_round(left: u32, scope: &Scope<'_, Shared>) -> Response<Client, Infallible> {
        match left {
            0 => Response::done(),
            left => Response::keep(Client::Asks(scope.permits.ask(scope), left - 1)),
        }
    }
}

impl Machine for Client {
    type Context = Shared;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, Shared>) -> Response<Client, Infallible> {
        match self {
            Client::Asks(future, left) => match future.take() {
                Outcome::Pending(future) => Response::keep(Client::Asks(future, left)),
                Outcome::Value(mut permit) => {
                    permit.note_used();
                    assert!(scope.permits.try_take().is_none(), "there is one only");
                    scope.notifier().wakeup();
                    Response::keep(Client::Holds(permit, left))
                }
                Outcome::Lost(lost) => Response::error(lost),
            },
            Client::Holds(permit, left) => {
                drop(permit);
                Client::start_job(left, scope)
            }
            Client::Runs(future, left) => match future.take() {
                Outcome::Pending(future) => Response::keep(Client::Runs(future, left)),
                Outcome::Value(_) => {
                    add(&scope.seen.done);
                    Client::start_job_with_deadline(left, scope)
                }
                Outcome::Lost(_) => {
                    add(&scope.seen.lost);
                    Client::start_job_with_deadline(left, scope)
                }
            },
            Client::MayBeLate(future, left) => {
                match future.take() {
                    Outcome::Pending(future) => {
                        return Response::keep(Client::MayBeLate(future, left));
                    }
                    Outcome::Value(queued_for) => {
                        assert!(queued_for <= Duration::from_millis(1), "it was too late");
                        add(&scope.seen.done);
                    }
                    Outcome::Lost(FutureError::Late) => add(&scope.seen.late),
                    Outcome::Lost(_) => add(&scope.seen.lost),
                }
                Client::next_round(left, scope)
            }
        }
    }
}

fn is_idle(sim: &mut Sim, host: Host<Client>) -> bool {
    sim.stats(host).is_none_or(|stats| stats.alive == 0)
}

#[test]
fn every_job_is_answered_and_one_permit_is_never_held_twice() {
    let (done, late) = (Cell::new(0), Cell::new(0));
    Check::new().seeds(40).run(|sim| {
        let shared = Shared { permits: Permits::new(1), seen: Rc::default() };
        let mut hosts = Vec::new();
        for name in ["a", "b"] {
            let shared = shared.clone();
            let host: Host<Client> = sim.host(name, move |boot| {
                let creator = Loop::with_backend(boot.backend(), &boot.config())?;
                Ok(creator.instantiate(shared.clone()))
            })?;
            hosts.push(host);
        }
        for host in hosts.iter().cycle().take(8) {
            let permits = shared.permits.clone();
            sim.with(*host, |instance: &mut LoopInstance<Client, SimBackend>| {
                let make = |scope: &mut Scope<'_, Shared>| {
                    Response::ok(Client::Asks(permits.ask(scope), 10))
                };
                instance.add_machine_with(make).is_ok()
            });
        }
        sim.run_for(Duration::from_millis(50))?;
        for host in hosts {
            sim.eventually(Duration::from_secs(600), |sim| is_idle(sim, host))?;
        }
        let stats = shared.permits.stats();
        assert_eq!((stats.available, stats.waiting), (1, 0), "{stats:?}");
        done.set(done.get() + shared.seen.done.get());
        late.set(late.get() + shared.seen.late.get());
        Ok(())
    });
    assert!(done.get() > 100 && late.get() > 10, "{} done, {} late", done.get(), late.get());
}
