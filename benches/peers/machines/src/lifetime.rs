//! A machine, task or thread is made, called once, and ends; then the next one. A machine is made
//! by another machine, a task by a task that awaits it, a thread by a thread that joins it.

use std::thread;

use rotor_core::{Config, Loop, LoopInstance, Machine, Notifier, Response, Scope};
use tokio::runtime::Runtime;

use crate::figures::{Bench, contender, many_threads, one_thread};

pub(crate) fn measure(bench: &mut Bench) {
    let lives = bench.pick(300_000, 100);
    let lives_of_threads = bench.pick(10_000, 20);
    let mut ours = Machines::new();
    let (one, many) = (one_thread(), many_threads());
    bench.compare(
        "Making one, a call of it, and its end",
        "ns a machine, task or thread",
        vec![
            contender("machine", lives, move |lives| ours.lives(lives)),
            contender("tokio, current thread", lives, move |lives| tasks(&one, lives)),
            contender("tokio, multi-threaded", lives, move |lives| tasks(&many, lives)),
            contender("thread", lives_of_threads, threads),
        ],
    );
}

enum Life {
    /// Starts the next one when the previous one has ended.
    Parent,
    /// Wakes its parent, and ends.
    Child(Notifier),
}

impl Machine for Life {
    /// How many are still to be made.
    type Context = u64;
    type Seed = Notifier;

    fn create(parent: Notifier, scope: &mut Scope<'_, u64>) -> Response<Self> {
        scope.wake_self();
        Response::ok(Life::Child(parent))
    }

    fn spawned(self, _: &mut Scope<'_, u64>) -> Response<Self, Notifier> {
        Response::keep(self)
    }

    fn wakeup(self, scope: &mut Scope<'_, u64>) -> Response<Self, Notifier> {
        match self {
            Life::Child(parent) => {
                parent.wakeup();
                Response::done()
            }
            Life::Parent if **scope == 0 => {
                scope.stop_loop();
                Response::keep(Life::Parent)
            }
            Life::Parent => {
                **scope -= 1;
                Response::spawn(Life::Parent, scope.notifier())
            }
        }
    }
}

struct Machines {
    instance: LoopInstance<Life>,
    parent: Notifier,
}

impl Machines {
    fn new() -> Machines {
        let mut creator = Loop::new(&Config::new()).expect("a loop");
        let mut parent = None;
        let made = creator.add_machine_with(|scope| {
            parent = Some(scope.notifier());
            Response::ok(Life::Parent)
        });
        made.expect("there is room");
        Machines { instance: creator.instantiate(0), parent: parent.expect("it was made") }
    }

    fn lives(&mut self, lives: u64) {
        let before = self.instance.stats().read().ended;
        *self.instance.context_mut() = lives;
        assert!(self.parent.wakeup());
        self.instance.run().expect("it runs");
        assert_eq!(self.instance.stats().read().ended - before, lives);
    }
}

fn tasks(runtime: &Runtime, lives: u64) {
    let parent = runtime.spawn(async move {
        for life in 0..lives {
            let child = tokio::spawn(async move { std::hint::black_box(life) });
            assert_eq!(child.await.expect("it does not panic"), life);
        }
    });
    runtime.block_on(parent).expect("it does not panic");
}

fn threads(lives: u64) {
    for life in 0..lives {
        let child = thread::spawn(move || std::hint::black_box(life));
        assert_eq!(child.join().expect("it does not panic"), life);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_live_as_are_asked_for_and_more_can_follow() {
        let mut ours = Machines::new();
        let runtimes = [one_thread(), many_threads()];
        for lives in [1, 2, 100] {
            ours.lives(lives);
            runtimes.iter().for_each(|runtime| tasks(runtime, lives));
            threads(lives);
        }
    }
}
