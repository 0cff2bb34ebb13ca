//! Wake-ups from another thread: to a machine or task that is always busy, where only the sender's
//! time counts, and back and forth between two that sleep in between.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};

use rotor_core::{
    Config, ExitPolicy, Infallible, Loop, LoopHandle, Machine, Notifier, Response, Scope,
};
use tokio::runtime::Builder;
use tokio::sync::Notify;

use crate::figures::{Bench, contender};

pub(crate) fn measure(bench: &mut Bench) {
    let busy = bench.pick(2_000_000, 100);
    let mut ours = BusyMachine::start();
    let mut theirs = BusyTask::start();
    bench.compare(
        "Wake-ups to a busy thread: the sender's time is the clock's; CPU time holds both threads'",
        "ns a wake-up",
        vec![
            contender("machine", busy, move |wakeups| ours.wake(wakeups)),
            contender("tokio's Notify", busy, move |wakeups| theirs.wake(wakeups)),
        ],
    );
    let trips = bench.pick(50_000, 100);
    let mut ours = SleepyMachine::start();
    let mut theirs = SleepyTask::start();
    bench.compare(
        "Wake-up of a sleeping thread and back",
        "ns a round trip",
        vec![
            contender("machine", trips, move |trips| ours.round_trips(trips)),
            contender("tokio's Notify", trips, move |trips| theirs.round_trips(trips)),
        ],
    );
}

/// Wakes itself forever, so that its loop never sleeps; or answers each wake-up through a channel.
enum Woken {
    Busy,
    Answers(std::sync::mpsc::Sender<()>),
}

impl Machine for Woken {
    type Context = ();
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        let goes_on = match &self {
            Woken::Busy => scope.notifier().wakeup(),
            Woken::Answers(back) => back.send(()).is_ok(),
        };
        if goes_on { Response::ok(self) } else { Response::done() }
    }
}

/// A loop on a thread of its own, which ends when this is dropped.
struct LoopThread {
    notifier: Notifier,
    handle: LoopHandle,
    thread: Option<JoinHandle<()>>,
}

impl LoopThread {
    fn start(
        machines: fn(std::sync::mpsc::Sender<()>) -> Vec<Woken>,
    ) -> (LoopThread, Receiver<()>) {
        let (made, making) = channel();
        let (back, answers) = channel();
        let thread = thread::spawn(move || {
            let config = Config::new().exit(ExitPolicy::OnRequest);
            let mut creator = Loop::new(&config).expect("a loop");
            let mut first = None;
            for machine in machines(back) {
                let added = creator.add_machine_with(|scope| {
                    first.get_or_insert_with(|| scope.notifier());
                    scope.notifier().wakeup();
                    Response::ok(machine)
                });
                added.expect("there is room");
            }
            made.send((first, creator.handle())).expect("somebody waits");
            creator.instantiate(()).run().expect("it runs");
        });
        let (notifier, handle) = making.recv().expect("a loop");
        let notifier = notifier.expect("a machine");
        (LoopThread { notifier, handle, thread: Some(thread) }, answers)
    }
}

impl Drop for LoopThread {
    fn drop(&mut self) {
        self.handle.stop();
        self.thread.take().map(JoinHandle::join);
    }
}

struct BusyMachine(LoopThread);

impl BusyMachine {
    fn start() -> BusyMachine {
        // The first machine is woken from outside, while the second one keeps the loop awake.
        BusyMachine(LoopThread::start(|back| vec![Woken::Answers(back), Woken::Busy]).0)
    }

    fn wake(&mut self, wakeups: u64) {
        for _ in 0..wakeups {
            std::hint::black_box(self.0.notifier.wakeup());
        }
    }
}

struct SleepyMachine {
    thread: LoopThread,
    answers: Receiver<()>,
}

impl SleepyMachine {
    fn start() -> SleepyMachine {
        let (thread, answers) = LoopThread::start(|back| vec![Woken::Answers(back)]);
        answers.recv().expect("the first wake-up is its own");
        SleepyMachine { thread, answers }
    }

    fn round_trips(&mut self, trips: u64) {
        for _ in 0..trips {
            assert!(self.thread.notifier.wakeup());
            self.answers.recv().expect("it is alive");
        }
    }
}

/// A current-thread runtime on a thread of its own, with a task that is notified, and one that
/// yields forever.
struct BusyTask {
    notify: Arc<Notify>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl BusyTask {
    fn start() -> BusyTask {
        let (notify, ends) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let (woken, end) = (notify.clone(), ends.clone());
        let thread = thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                tokio::spawn(async move {
                    loop {
                        woken.notified().await;
                    }
                });
                while !end.load(Relaxed) {
                    tokio::task::yield_now().await;
                }
            });
        });
        BusyTask { notify, ends, thread: Some(thread) }
    }

    fn wake(&mut self, wakeups: u64) {
        for _ in 0..wakeups {
            self.notify.notify_one();
        }
    }
}

impl Drop for BusyTask {
    fn drop(&mut self) {
        self.ends.store(true, SeqCst);
        self.thread.take().map(JoinHandle::join);
    }
}

struct SleepyTask {
    notify: Arc<Notify>,
    answers: Receiver<()>,
}

impl SleepyTask {
    /// Starts the thread, which ends with the process: it waits to be notified.
    fn start() -> SleepyTask {
        let notify = Arc::new(Notify::new());
        let (back, answers) = channel();
        let woken = notify.clone();
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                loop {
                    woken.notified().await;
                    if back.send(()).is_err() {
                        return;
                    }
                }
            });
        });
        SleepyTask { notify, answers }
    }

    fn round_trips(&mut self, trips: u64) {
        for _ in 0..trips {
            self.notify.notify_one();
            self.answers.recv().expect("it is alive");
        }
    }
}
