//! Events, by a backend that reports all machines in every wait.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rotor_core::{
    Backend, BackendHandle, Blocking, Config, EventSet, Exit, Loop, LoopInstance, Machine,
    Response, Scope, Time, Token, Wake,
};

use crate::measure::Effort;
use crate::{Row, row};

/// A backend that reports every machine in every wait.
#[derive(Clone, Default)]
struct Fed {
    now: Rc<Cell<u64>>,
    tokens: Rc<RefCell<Vec<Token>>>,
}

impl Fed {
    /// How far each wait puts the clock on.
    const TURN_NANOS: u64 = 400_000;
}

struct Nobody;

impl Wake for Nobody {
    fn wake(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Backend for Fed {
    type Handle = Fed;

    fn handle(&self) -> io::Result<Fed> {
        Ok(self.clone())
    }

    fn waker(&self) -> io::Result<Arc<dyn Wake>> {
        Ok(Arc::new(Nobody))
    }

    fn wait(&mut self, _: Option<Time>, ready: &mut Vec<(Token, EventSet)>) -> io::Result<()> {
        self.now.set(self.now.get() + Fed::TURN_NANOS);
        ready.extend(self.tokens.borrow().iter().map(|token| (*token, EventSet::READABLE)));
        Ok(())
    }
}

impl BackendHandle for Fed {
    fn name(&self) -> &str {
        "fed"
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.now.get())
    }

    fn wall_time(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// A machine that counts its events, and puts its deadline off at each, or not.
pub(crate) struct Counts<const SIZE: usize, const REARMS: bool> {
    pub(crate) state: [u64; SIZE],
}

impl<const SIZE: usize, const REARMS: bool> Machine for Counts<SIZE, REARMS> {
    type Context = u64;
    type Seed = ();

    fn create((): (), _: &mut Scope<'_, u64>) -> Response<Self> {
        Response::ok(Counts { state: [0; SIZE] })
    }

    fn ready(mut self, _: EventSet, scope: &mut Scope<'_, u64>) -> Response<Self, ()> {
        self.state[0] += 1;
        **scope += self.state[0];
        if REARMS {
            let deadline = scope.now() + Duration::from_secs(10);
            Response::ok(self).deadline(deadline)
        } else {
            Response::keep(self)
        }
    }
}

pub(crate) const KEPT: &str = "events, 400 machines of 64 bytes, deadline kept";
pub(crate) const REARMED: &str = "events, 400 machines of 64 bytes, deadline put off";

pub(crate) fn events(effort: Effort) -> Vec<Row> {
    fn events<const SIZE: usize, const REARMS: bool>(
        effort: Effort,
        turns: u64,
    ) -> impl FnMut() -> f64 {
        let backend = Fed::default();
        let creator =
            Loop::with_backend(backend.clone(), &Config::new()).expect("nothing can fail");
        let mut instance: LoopInstance<Counts<SIZE, REARMS>, Fed> = creator.instantiate(0);
        for _ in 0..400 {
            backend.tokens.borrow_mut().push(instance.spawn(()).expect("there is room"));
        }
        move || {
            effort.nanos_per(turns * 400, || {
                for _ in 0..turns {
                    instance.turn(Some(Duration::ZERO)).expect("it never fails");
                }
            })
        }
    }
    let turns = effort.pick(10_000, 3);
    vec![
        row("events, 400 machines of 64 bytes, run", None, run(effort, turns, &Config::new())),
        row(
            "events, 400 machines of 64 bytes, run and watched",
            None,
            run(effort, turns, &Config::new().blocking(Blocking::new())),
        ),
        row(KEPT, None, events::<8, false>(effort, turns)),
        row(REARMED, None, events::<8, true>(effort, turns)),
        row(
            "events, 400 machines of 8 bytes, deadline kept",
            None,
            events::<1, false>(effort, turns),
        ),
        row(
            "events, 400 machines of 128 bytes, deadline kept",
            None,
            events::<16, false>(effort, turns),
        ),
        row(
            "events, 400 machines of 192 bytes, deadline kept",
            None,
            events::<24, false>(effort, turns),
        ),
        row(
            "events, 400 machines of 256 bytes, deadline kept",
            None,
            events::<32, false>(effort, turns),
        ),
        row(
            "events, 400 machines of 288 bytes, deadline kept",
            None,
            events::<36, false>(effort, turns),
        ),
        row(
            "events, 400 machines of 1,024 bytes, deadline kept",
            None,
            events::<128, false>(effort, turns),
        ),
    ]
}

/// The same by `run`, which a watchdog may watch, until the backend's clock says that there were so
/// many turns.
fn run(effort: Effort, turns: u64, config: &Config) -> impl FnMut() -> f64 + use<> {
    let backend = Fed::default();
    let creator = Loop::with_backend(backend.clone(), config).expect("nothing can fail");
    let mut instance: LoopInstance<Counts<8, false>, Fed> = creator.instantiate(0);
    for _ in 0..400 {
        backend.tokens.borrow_mut().push(instance.spawn(()).expect("there is room"));
    }
    let time = Duration::from_nanos(turns * Fed::TURN_NANOS);
    instance.every(time, |_, scope| scope.stop_loop());
    move || {
        effort.nanos_per(turns * 400, || {
            assert_eq!(instance.run().expect("it never fails"), Exit::Stopped);
        })
    }
}
