//! Wake-ups: within a loop, and of one that is busy from another thread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::Duration;

use rotor_core::{
    Backend, Config, EventSet, ExitPolicy, Infallible, Loop, LoopInstance, Machine, Mio, MioHandle,
    Notifier, Response, Scope, Time, Token, Wake,
};

use crate::measure::Effort;
use crate::{Row, row};

/// Wakes the next one of a ring, until enough wake-ups were counted.
struct Link {
    next: usize,
}

#[derive(Default)]
struct Ring {
    notifiers: Vec<Notifier>,
    left: u64,
}

impl Machine for Link {
    type Context = Ring;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, Ring>) -> Response<Self, Infallible> {
        match scope.left {
            0 => scope.stop_loop(),
            _ => {
                scope.left -= 1;
                scope.notifiers[self.next].wakeup();
            }
        }
        Response::keep(self)
    }
}

fn ring(machines: usize) -> LoopInstance<Link> {
    let mut creator = Loop::new(&Config::new()).expect("there are descriptors");
    let mut ring = Ring::default();
    for index in 0..machines {
        let made = creator.add_machine_with(|scope| {
            ring.notifiers.push(scope.notifier());
            Response::ok(Link { next: (index + 1) % machines })
        });
        made.expect("there is room");
    }
    creator.instantiate(ring)
}

pub(crate) fn wake_ups(effort: Effort) -> Vec<Row> {
    let wakeups = effort.pick(3_000_000, 1_000);
    let chain = |starts: usize| {
        let mut instance = ring(64);
        move || {
            instance.context_mut().left = wakeups;
            effort.nanos_per(wakeups, || {
                for start in 0..starts {
                    instance.context().notifiers[start * 64 / starts].wakeup();
                }
                instance.run().expect("it can wait");
                // Those that are still under way.
                while instance.next_deadline().is_some() {
                    instance.turn(Some(Duration::ZERO)).expect("it can look");
                }
            })
        }
    };
    let busy = |machines: usize| {
        // A loop for each round: one that spins would disturb the other rows.
        move || Busy::new(machines).round(effort, wakeups)
    };
    vec![
        row("wake-up in the loop to its handler, one after the other", Some(40), chain(1)),
        row("wake-up in the loop to its handler, 32 under way", Some(40), chain(32)),
        row("wake-up from a thread, loop busy, 64 machines: sender", Some(100), busy(64)),
        row("wake-up from a thread, loop busy, one machine: sender", Some(100), busy(1)),
    ]
}

/// A loop on another thread that never sleeps, and the notifiers of its machines.
struct Busy {
    notifiers: Vec<Notifier>,
    /// How often the waker made a system call.
    system_calls: Arc<AtomicU64>,
    stop: rotor_core::LoopHandle,
    thread: Option<thread::JoinHandle<()>>,
}

/// Counts its wake-ups; the first asks to be called again forever.
struct Hears;

impl Machine for Hears {
    type Context = Arc<AtomicBool>;
    type Seed = Infallible;

    fn ready(
        self,
        _: EventSet,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Response<Self, Infallible> {
        scope.store(true, SeqCst);
        Response::again(self)
    }
}

impl Busy {
    fn new(machines: usize) -> Busy {
        let (sender, made) = std::sync::mpsc::channel();
        let system_calls = Arc::new(AtomicU64::new(0));
        let counted = system_calls.clone();
        let thread = thread::spawn(move || {
            let backend =
                Counted { mio: Mio::new(1_024).expect("there are descriptors"), wakes: counted };
            let config = Config::new().exit(ExitPolicy::OnRequest);
            let mut creator = Loop::with_backend(backend, &config).expect("there are descriptors");
            let mut notifiers = Vec::new();
            for _ in 0..machines {
                let made = creator.add_machine_with(|scope| {
                    notifiers.push(scope.notifier());
                    Response::ok(Hears)
                });
                made.expect("there is room");
            }
            creator.add_machine_with(|_| Response::again(Hears)).expect("there is room");
            let runs = Arc::new(AtomicBool::new(false));
            let mut instance = creator.instantiate(runs.clone());
            sender.send((notifiers, runs, instance.handle())).expect("the bench waits");
            instance.run().expect("it can wait");
        });
        let (notifiers, runs, stop) = made.recv().expect("the thread makes them");
        while !runs.load(SeqCst) {
            thread::yield_now();
        }
        Busy { notifiers, system_calls, stop, thread: Some(thread) }
    }

    fn round(&self, effort: Effort, wakeups: u64) -> f64 {
        let before = self.system_calls.load(SeqCst);
        let nanos = effort.nanos_per(wakeups, || {
            for notifier in self.notifiers.iter().cycle().take(wakeups as usize) {
                notifier.wakeup();
            }
        });
        assert_eq!(
            self.system_calls.load(SeqCst) - before,
            0,
            "system calls of a loop that is awake"
        );
        nanos
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it does not panic");
        }
    }
}

/// The default backend, with a count of the system calls of its waker.
struct Counted {
    mio: Mio,
    wakes: Arc<AtomicU64>,
}

struct CountedWaker(Arc<dyn Wake>, Arc<AtomicU64>);

impl Wake for CountedWaker {
    fn wake(&self) -> io::Result<()> {
        self.1.fetch_add(1, Relaxed);
        self.0.wake()
    }
}

impl Backend for Counted {
    type Handle = MioHandle;

    fn handle(&self) -> io::Result<MioHandle> {
        self.mio.handle()
    }

    fn waker(&self) -> io::Result<Arc<dyn Wake>> {
        Ok(Arc::new(CountedWaker(self.mio.waker()?, self.wakes.clone())))
    }

    fn wait(&mut self, until: Option<Time>, ready: &mut Vec<(Token, EventSet)>) -> io::Result<()> {
        self.mio.wait(until, ready)
    }
}
