//! Deadlines that are re-armed in random order and sometimes reached: the loop's timer wheel
//! compared with tokio's `Sleep`.
//!
//! Both do the same: sixteen deadlines are moved to ten seconds from now, then time advances, and
//! the deadlines that were reached stay unarmed until they are moved again. Time is simulated, for
//! tokio through its paused clock, so that one deadline in six is reached whatever the speed of the
//! computer. The wheel is the crate's own module, without a loop around it, as `Sleep` is without a
//! task around it.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, Sleep, advance, sleep_until};

use crate::deadlines::{Due, Timers};
use crate::figures::{Bench, contender};
use crate::time::Time;

const DELAY: Duration = Duration::from_secs(10);
const PER_TURN: u64 = 16;

pub(crate) fn measure(bench: &mut Bench) {
    for armed in [bench.pick(10_000, 100), bench.pick(1_000_000, 200)] {
        let operations = bench.pick(1_000_000, 320);
        let mut theirs = Sleeps::new(armed);
        let mut ours = Wheel::new(armed);
        bench.compare(
            &format!("Timers: {armed} armed, re-armed in random order, one in six reached"),
            "ns a re-arm",
            vec![
                contender("tokio's Sleep", operations, move |operations| {
                    theirs.turns(operations / PER_TURN)
                }),
                contender("the wheel", operations, move |operations| {
                    ours.turns(operations / PER_TURN)
                }),
            ],
        );
    }
}

/// Returns the simulated time between operations with which one deadline in six is reached: the
/// operations on one deadline are a Poisson process.
fn step(armed: usize) -> Duration {
    DELAY.div_f64(6_f64.ln() * armed as f64)
}

struct Wheel {
    timers: Timers,
    due: VecDeque<Due>,
    rng: fastrand::Rng,
    now: Time,
    armed: usize,
}

impl Wheel {
    fn new(armed: usize) -> Wheel {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut timers = Timers::new(Time::ZERO);
        timers.reserve(armed).expect("room for all slots");
        for index in 0..armed {
            timers.set(index as u32, Time::ZERO + DELAY.mul_f64(rng.f64()));
        }
        Wheel { timers, due: VecDeque::new(), rng, now: Time::ZERO, armed }
    }

    fn turns(&mut self, turns: u64) {
        let step = step(self.armed) * PER_TURN as u32;
        for _ in 0..turns {
            for _ in 0..PER_TURN {
                self.timers.set(self.rng.u32(..self.armed as u32), self.now + DELAY);
            }
            self.now += step;
            self.timers.expire(self.now, &mut self.due);
            while let Some(due) = self.due.pop_front() {
                self.timers.take_expired(due.index);
            }
            std::hint::black_box(self.timers.next_wake());
        }
    }
}

struct Sleeps {
    runtime: Runtime,
    sleeps: Vec<Pin<Box<Sleep>>>,
    rng: fastrand::Rng,
}

impl Sleeps {
    fn new(armed: usize) -> Sleeps {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        let mut rng = fastrand::Rng::with_seed(1);
        let sleeps = runtime.block_on(async {
            let now = Instant::now();
            let mut sleeps = Vec::with_capacity(armed);
            for _ in 0..armed {
                let mut sleep = Box::pin(sleep_until(now + DELAY.mul_f64(rng.f64())));
                // It is armed when it is first polled.
                poll(&mut sleep).await;
                sleeps.push(sleep);
            }
            sleeps
        });
        Sleeps { runtime, sleeps, rng }
    }

    fn turns(&mut self, turns: u64) {
        let step = step(self.sleeps.len()) * PER_TURN as u32;
        let Sleeps { runtime, sleeps, rng } = self;
        runtime.block_on(async {
            for _ in 0..turns {
                let deadline = Instant::now() + DELAY;
                for _ in 0..PER_TURN {
                    let index = rng.usize(..sleeps.len());
                    sleeps[index].as_mut().reset(deadline);
                    // A task that waits for it would poll it again: a `Sleep` that was reached has
                    // forgotten its waker.
                    poll(&mut sleeps[index]).await;
                }
                advance(step).await;
            }
        });
    }
}

/// Polls once, with the waker of the calling task.
async fn poll(sleep: &mut Pin<Box<Sleep>>) {
    poll_fn(|context| Poll::Ready(sleep.as_mut().poll(context).is_ready())).await;
}
