//! The shapes as tasks, as in tokio's `benches/rt_current_thread.rs` and `rt_multi_threaded.rs`.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use ::tokio::runtime::Runtime;
use ::tokio::sync::oneshot;
use ::tokio::task::yield_now;

use super::{CHAIN, MANY, PAIRS, YIELDERS, YIELDS};

/// Counts down to the end of a shape.
struct Countdown {
    left: AtomicU64,
    done: ::tokio::sync::Notify,
}

impl Countdown {
    fn from(count: u64) -> Arc<Countdown> {
        Arc::new(Countdown { left: AtomicU64::new(count), done: ::tokio::sync::Notify::new() })
    }

    fn count(&self) {
        if self.left.fetch_sub(1, Relaxed) == 1 {
            self.done.notify_one();
        }
    }
}

pub(super) fn chained_spawn(runtime: &Runtime) {
    fn link(done: oneshot::Sender<()>, left: u64) {
        if left == 0 {
            done.send(()).expect("somebody waits");
        } else {
            ::tokio::spawn(async move { link(done, left - 1) });
        }
    }
    runtime.block_on(async {
        let (done, end) = oneshot::channel();
        ::tokio::spawn(async move { link(done, CHAIN - 1) });
        end.await.expect("the chain has an end");
    });
}

pub(super) fn spawn_many(runtime: &Runtime) {
    runtime.block_on(async {
        let countdown = Countdown::from(MANY);
        for _ in 0..MANY {
            let countdown = countdown.clone();
            ::tokio::spawn(async move { countdown.count() });
        }
        countdown.done.notified().await;
    });
}

pub(super) fn ping_pong(runtime: &Runtime) {
    runtime.block_on(async {
        let countdown = Countdown::from(PAIRS);
        for _ in 0..PAIRS {
            let countdown = countdown.clone();
            ::tokio::spawn(async move {
                let (ping, pinged) = oneshot::channel();
                let (pong, ponged) = oneshot::channel();
                ::tokio::spawn(async move {
                    pinged.await.expect("the ping comes");
                    pong.send(()).expect("somebody waits");
                });
                ping.send(()).expect("somebody waits");
                ponged.await.expect("the pong comes");
                countdown.count();
            });
        }
        countdown.done.notified().await;
    });
}

pub(super) fn yield_many(runtime: &Runtime) {
    runtime.block_on(async {
        let countdown = Countdown::from(YIELDERS);
        for _ in 0..YIELDERS {
            let countdown = countdown.clone();
            ::tokio::spawn(async move {
                for _ in 0..YIELDS {
                    yield_now().await;
                }
                countdown.count();
            });
        }
        countdown.done.notified().await;
    });
}
