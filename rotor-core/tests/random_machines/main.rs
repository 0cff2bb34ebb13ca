//! Machines that do anything at random, in loops of every form at once: they wait for each other in
//! every way there is, block, panic and spawn, while another thread stops and drains their loops. In
//! the end nothing is left of them: no machine, message, job or value was lost, kept or dropped
//! twice, and whatever one can hold is free again.
#![expect(clippy::disallowed_methods, reason = "tests play the outside world: its threads")]

mod flaky_backend;
mod machines;
mod possessions;

use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rotor_core::{
    Barrier, Bell, Blocking, Broadcast, Config, Cursor, Exit, Lock, Loop, LoopHandle, LoopInstance,
    Machine, MachineView, Notifier, OffloadPool, OnPanic, Permits, Port, Response, Sender, Service,
    SharedContext, Verdict, WhenFull,
};

use flaky_backend::FlakyBackend;
use machines::{AnyMachine, Seed};

/// A test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(100);

/// Pseudo-random numbers (SplitMix64).
#[derive(Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn within(&mut self, range: Range<usize>) -> usize {
        range.start + self.below((range.end - range.start) as u64) as usize
    }

    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// Something that exists once, and is counted until it is dropped.
struct Counted {
    count: Arc<AtomicIsize>,
    /// Whether its drop panics, unless another panic is under way.
    panics: bool,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.count.fetch_sub(1, SeqCst);
        assert!(!self.panics || thread::panicking(), "in a drop");
    }
}

/// What all loops of a test share.
struct World {
    counted: Arc<AtomicIsize>,
    permits: Permits,
    permits_total: usize,
    users: AtomicUsize,
    lock: Lock<u64>,
    is_locked: AtomicBool,
    bell: Bell,
    barrier: Barrier,
    pool: OffloadPool,
    senders: Mutex<Vec<Sender<Counted>>>,
    /// What the outside thread does now and then: it lets handlers go on, and sets or drops ports.
    blocked: Mutex<Vec<mpsc::Sender<()>>>,
    ports: Mutex<Vec<Port<Counted>>>,
    notifiers: Mutex<Vec<Notifier>>,
    services: Mutex<Vec<Service<Counted, Counted>>>,
    /// The loops, for closures between handlers.
    loops: Mutex<Vec<(Shared, Broadcast<AnyMachine>)>>,
}

impl World {
    fn count(&self) -> Counted {
        self.counted.fetch_add(1, SeqCst);
        Counted { count: self.counted.clone(), panics: false }
    }

    /// Makes something that belongs to a machine. Its drop may panic.
    ///
    /// A function must not drop it after it has made the value that it returns: that value would
    /// leak (rust-lang/rust#47949).
    fn count_for_machine(&self, random: &mut Random) -> Counted {
        let mut counted = self.count();
        counted.panics = random.once_in(25);
        counted
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The context of a loop.
#[derive(Clone)]
struct Shared {
    world: Arc<World>,
    /// The machines of this loop, without its ticker.
    machines: Arc<AtomicUsize>,
    /// The values that their machines have and that return to the context.
    to_return: Arc<AtomicIsize>,
    broadcast: Arc<Mutex<Option<Broadcast<AnyMachine>>>>,
}

impl SharedContext for Shared {}

#[derive(Clone, Copy, Debug)]
enum Form {
    Plain,
    Watched,
    HandingOver,
    TakingOver,
    Embedded,
}

const FORMS: [Form; 5] =
    [Form::Plain, Form::Watched, Form::HandingOver, Form::TakingOver, Form::Embedded];

fn config(form: Form, pool: &OffloadPool, random: &mut Random) -> Config {
    let mut config = Config::new()
        .machines_max(random.within(3..40))
        .scan_budget(random.within(1..50))
        .posts_max(random.within(1..5))
        .offload_pool(pool.clone());
    if random.once_in(2) {
        config = config
            .spawns_per_event(random.below(3) as u32)
            .wakeups_per_turn(1 + random.below(4) as u32)
            .timeouts_per_turn(1 + random.below(4) as u32);
    }
    if random.once_in(3) {
        config = config.on_panic(OnPanic::StopLoop);
    }
    let blocking = Blocking::new()
        .patience(Duration::from_millis(1))
        .threads_max(random.within(0..4))
        .keep_idle(Duration::from_millis(random.below(3)));
    match form {
        Form::Plain | Form::Embedded => config,
        _ if random.once_in(2) => config.blocking(blocking.patience_declared(Duration::ZERO)),
        _ => config.blocking(blocking),
    }
}

/// Runs a loop until it has ended for good.
fn run_loop(
    form: Form,
    world: &Arc<World>,
    mut random: Random,
    handles: &Mutex<Vec<LoopHandle>>,
) -> Result<(), String> {
    let config = config(form, &world.pool, &mut random);
    let shared = Shared {
        world: world.clone(),
        machines: Arc::default(),
        to_return: Arc::default(),
        broadcast: Arc::default(),
    };
    let waits_per_failure = if random.once_in(3) { 20 } else { u64::MAX };
    let panics = !matches!(form, Form::Embedded);
    let backend = FlakyBackend::new(Random(random.next()), waits_per_failure, panics);
    let creator = Loop::<AnyMachine, FlakyBackend>::with_backend(backend, &config);
    let mut creator = creator.map_err(|error| error.to_string())?;
    let made =
        creator.add_machine_with(|scope| Response::ok(AnyMachine::ticker()).deadline(scope.now()));
    made.map_err(|error| error.to_string())?;
    let mut instance = creator.instantiate(shared.clone());
    if random.once_in(2) {
        *lock(&shared.broadcast) = Some(instance.broadcast());
    }
    lock(handles).push(instance.handle());
    lock(&world.loops).push((shared.clone(), instance.broadcast()));
    instance = match form {
        Form::HandingOver => instance.handing_over(),
        Form::TakingOver => instance.taking_over(),
        _ => instance,
    };
    for _ in 0..random.within(1..12) {
        let seed = Seed::new(&shared, random.next(), random.within(5..60) as u32);
        let _full = instance.spawn(seed);
    }
    loop {
        let exit = run_once(form, &mut instance, &mut random);
        instance.check_invariants()?;
        // The machines are unchanged, so the loop can run again.
        let Ok(exit) = exit else { continue };
        match exit {
            Exit::Empty => break,
            Exit::Drained { .. } if instance.machines().is_empty() => {
                if random.once_in(2) {
                    break;
                }
                // First, because the other one may spawn until no slot is free.
                let made = instance.add_machine_with(|scope| {
                    Response::ok(AnyMachine::ticker()).deadline(scope.now())
                });
                made.map_err(|error| error.to_string())?;
                let _panicked = instance.spawn(Seed::new(&shared, random.next(), 20));
            }
            Exit::Drained { .. } => return Err("a drained loop has machines".into()),
            _ if random.once_in(4) => break,
            _ => {}
        }
    }
    *lock(&shared.broadcast) = None;
    if random.once_in(2) {
        drop(instance.into_context());
    } else {
        drop(instance);
    }
    let left = shared.machines.load(SeqCst);
    match form {
        Form::HandingOver | Form::TakingOver => Ok(()),
        _ if left == 0 && shared.to_return.load(SeqCst) == 0 => Ok(()),
        _ => Err(format!("{left} machines are left of a loop that is gone")),
    }
}

fn run_once(
    form: Form,
    instance: &mut LoopInstance<AnyMachine, FlakyBackend>,
    random: &mut Random,
) -> io::Result<Exit> {
    let Form::Embedded = form else { return instance.run() };
    loop {
        let wait = random.once_in(2).then_some(Duration::ZERO);
        if let Some(exit) = instance.turn(wait)? {
            return Ok(exit);
        }
        instance.check_invariants().expect("the books agree");
    }
}

/// Lets the thread of the outside world end, even if the one that waits for it panics.
struct EndsOnDrop<'a>(&'a AtomicBool);

impl Drop for EndsOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Plays the rest of the program, until everything that is counted is gone.
///
/// Goes on after a panic, because the handlers that it lets go on would otherwise wait for ever.
fn play_outside(
    world: &World,
    handles: &Mutex<Vec<LoopHandle>>,
    ends: &AtomicBool,
    random: Random,
) -> Result<(), String> {
    let (mut random, mut result) = (random, Ok(()));
    while !ends.load(SeqCst) {
        let act = AssertUnwindSafe(|| act_outside(world, handles, &mut random));
        if let Err(panic) = catch_unwind(act) {
            let text = panic.downcast_ref::<&str>().copied().unwrap_or_default();
            result = Err(format!("the outside world panicked: {text}"));
        }
    }
    result
}

/// Does one thing of each kind, or none.
fn act_outside(world: &World, handles: &Mutex<Vec<LoopHandle>>, random: &mut Random) {
    (0..random.below(40)).for_each(|_| thread::yield_now());
    let blocked = lock(&world.blocked).pop();
    drop(blocked);
    let port = lock(&world.ports).pop();
    if let Some(port) = port.filter(|_| random.once_in(2)) {
        let _unwanted = port.set(world.count());
    }
    match random.below(4) {
        0 => _ = world.bell.ring_one(),
        1 => _ = world.bell.ring_all(),
        2 => {
            let mut notifiers = lock(&world.notifiers);
            notifiers.retain(Notifier::is_alive);
            notifiers.first().map(Notifier::wakeup);
        }
        _ => {
            let sender = lock(&world.senders).last().cloned();
            let _full = sender.map(|sender| sender.send(world.count()));
        }
    }
    if random.once_in(10) {
        act_between_handlers(world, random);
    }
    let handles = lock(handles);
    if !handles.is_empty() && random.once_in(300) {
        let handle = &handles[random.within(0..handles.len())];
        match random.below(3) {
            0 => handle.drain(Duration::from_millis(random.below(5))),
            _ => handle.stop(),
        }
    }
}

/// Decides about the machines of a loop, or adds one.
fn act_between_handlers(world: &World, random: &mut Random) {
    let loops = lock(&world.loops);
    if loops.is_empty() {
        return;
    }
    let (shared, broadcast) = &loops[random.within(0..loops.len())];
    if random.once_in(3) {
        let seed = Seed::new(shared, random.next(), 10);
        let _full = broadcast.add_machine_with(move |scope| AnyMachine::create(seed, scope));
        return;
    }
    let mut random = random.clone();
    let verdicts = [Verdict::Keep, Verdict::Wake, Verdict::Expire, Verdict::Drain, Verdict::End];
    let _full = broadcast.post(move |mut machines, _| {
        let _rest = machines.scan(Cursor::START, |_, machine| match machine {
            MachineView::Waiting(AnyMachine::Actor(_)) if random.once_in(4) => {
                verdicts[random.within(0..verdicts.len())]
            }
            _ => Verdict::Keep,
        });
    });
}

/// Its world is left in `running`, for the case that it hangs.
fn check_seed(seed: u64, running: &Mutex<Option<Arc<World>>>) -> Result<(), String> {
    let mut random = Random(seed);
    let permits_total = random.within(1..4);
    let builder = OffloadPool::builder()
        .threads_max(random.within(1..4))
        .jobs_max(random.within(1..12))
        .keep_idle(Duration::from_millis(random.below(3)));
    let builder =
        if random.once_in(2) { builder.when_full(WhenFull::RunOldestHere) } else { builder };
    let world = Arc::new(World {
        counted: Arc::default(),
        permits: Permits::new(permits_total),
        permits_total,
        users: AtomicUsize::new(0),
        lock: Lock::new(0),
        is_locked: AtomicBool::new(false),
        bell: Bell::new(),
        barrier: Barrier::new(2),
        pool: builder.build().map_err(|error| error.to_string())?,
        senders: Mutex::default(),
        blocked: Mutex::default(),
        ports: Mutex::default(),
        notifiers: Mutex::default(),
        services: Mutex::default(),
        loops: Mutex::default(),
    });
    *lock(running) = Some(world.clone());
    let (handles, ends) = (Mutex::default(), AtomicBool::new(false));
    thread::scope(|scope| {
        let _ends = EndsOnDrop(&ends);
        let of_outside = Random(random.next());
        let outside = scope.spawn(|| play_outside(&world, &handles, &ends, of_outside));
        let loops: Vec<_> = (0..random.within(1..4))
            .map(|_| {
                let form = FORMS[random.within(0..FORMS.len())];
                let (world, random, handles) = (&world, Random(random.next()), &handles);
                scope.spawn(move || {
                    run_loop(form, world, random, handles)
                        .map_err(|wrong| format!("{form:?}: {wrong}"))
                })
            })
            .collect();
        let results = loops.into_iter().map(|ended| {
            ended.join().unwrap_or_else(|_| Err("the thread of a loop panicked".into()))
        });
        // Of all, even if one is wrong: the others' handlers must be let go on until they end.
        let results: Vec<_> = results.collect();
        results.into_iter().collect::<Result<Vec<()>, String>>()?;
        check_end(&world)?;
        ends.store(true, SeqCst);
        outside.join().unwrap_or_else(|_| Err("the outside world".into()))
    })
}

/// Waits until nothing is left, and checks that everything is free.
fn check_end(world: &World) -> Result<(), String> {
    let began = Instant::now();
    let is_free = || {
        lock(&world.senders).clear();
        lock(&world.services).clear();
        lock(&world.loops).clear();
        world.counted.load(SeqCst) == 0
            && world.permits.available() == world.permits_total
            && world.pool.stats().running == 0
            && world.pool.stats().queued == 0
    };
    while !is_free() {
        if began.elapsed() > PATIENCE {
            return Err(format!("something is left: {}", describe(world)));
        }
        thread::yield_now();
    }
    let stats = world.pool.stats();
    let ended = stats.done + stats.late + stats.cancelled + stats.panicked;
    if stats.begun != ended {
        return Err(format!("{} jobs have begun, and {ended} ended", stats.begun));
    }
    let waiting = (
        world.permits.waiting(),
        world.lock.waiting(),
        world.bell.listening(),
        world.barrier.waiting(),
    );
    if waiting != (0, 0, 0, 0) {
        return Err(format!("{waiting:?} wait, and nobody is there"));
    }
    world.lock.try_take().map(drop).ok_or("the lock is held".into())
}

/// Returns what there is at the moment.
fn describe(world: &World) -> String {
    let loops = lock(&world.loops);
    let machines: Vec<_> = loops.iter().map(|(shared, _)| shared.machines.load(SeqCst)).collect();
    format!(
        "{} counted, {} handlers to let go on, {} ports, {:?}, {:?}, {:?}, {:?}, {:?}, and \
         {machines:?} machines in the loops",
        world.counted.load(SeqCst),
        lock(&world.blocked).len(),
        lock(&world.ports).len(),
        world.permits,
        world.lock,
        world.bell,
        world.barrier,
        world.pool.stats(),
    )
}

#[test]
fn random_machines_leave_nothing_behind() {
    // Machines panic, as planned.
    std::panic::set_hook(Box::new(|_| {}));
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let first = number("SEED").unwrap_or(1);
    for seed in first..first + number("SEEDS").unwrap_or(20) {
        let (sender, result) = mpsc::channel();
        let running = Arc::new(Mutex::default());
        let world = running.clone();
        thread::spawn(move || sender.send(check_seed(seed, &world)));
        match result.recv_timeout(2 * PATIENCE) {
            Ok(Ok(())) => {}
            Ok(Err(wrong)) => panic_with(&format!("seed {seed}: {wrong}")),
            Err(RecvTimeoutError::Disconnected) => panic_with(&format!("seed {seed}: a panic")),
            Err(RecvTimeoutError::Timeout) => {
                let world = lock(&running).as_deref().map(describe).unwrap_or_default();
                panic_with(&format!("seed {seed}: it hangs: {world}"));
            }
        }
    }
}

/// Says what is wrong, in spite of the silent panic hook.
fn panic_with(text: &str) {
    eprintln!("{text}");
    panic!("{text}");
}
