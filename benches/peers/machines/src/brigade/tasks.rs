//! tokio's tasks.

use std::io::PipeWriter;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::runtime::Runtime;
use tokio::sync::Notify;

use super::Brigade;

/// The data that the members share.
#[derive(Default)]
struct Ring {
    left: AtomicU64,
    done: Notify,
}

impl Ring {
    /// Counts a hop, and returns whether there are more. Only one member has the byte at a time.
    fn goes_on(&self) -> bool {
        let left = self.left.load(Relaxed) - 1;
        self.left.store(left, Relaxed);
        if left == 0 {
            self.done.notify_one();
        }
        left > 0
    }
}

pub(crate) struct OnRuntime {
    runtime: Runtime,
    ring: Arc<Ring>,
    start: Start,
}

enum Start {
    Byte(Sender),
    Notify(Arc<Notify>),
}

pub(crate) fn pipes(runtime: Runtime, members: usize) -> OnRuntime {
    let ring = Arc::new(Ring::default());
    let (mut inputs, outputs): (Vec<_>, Vec<_>) =
        (0..members).map(|_| std::io::pipe().expect("there are descriptors")).unzip();
    let start = outputs[0].try_clone().expect("there are descriptors");
    inputs.rotate_right(1);
    let start = runtime.block_on(async {
        for (input, output) in inputs.into_iter().zip(outputs) {
            let input = Receiver::from_owned_fd(OwnedFd::from(input)).expect("it is a pipe");
            tokio::spawn(member(input, sender(output), ring.clone()));
        }
        sender(start)
    });
    OnRuntime { runtime, ring, start: Start::Byte(start) }
}

fn sender(pipe: PipeWriter) -> Sender {
    Sender::from_owned_fd(OwnedFd::from(pipe)).expect("it is a pipe")
}

async fn member(mut input: Receiver, mut output: Sender, ring: Arc<Ring>) {
    let mut bytes = [0; 8];
    while input.read(&mut bytes).await.is_ok_and(|count| count > 0) {
        if ring.goes_on() && output.write_all(&[1]).await.is_err() {
            return;
        }
    }
}

pub(crate) fn notifiers(runtime: Runtime, members: usize) -> OnRuntime {
    let ring = Arc::new(Ring::default());
    let first = Arc::new(Notify::new());
    let mut next = first.clone();
    runtime.block_on(async {
        for _ in 1..members {
            let own = Arc::new(Notify::new());
            tokio::spawn(notified(own.clone(), next, ring.clone()));
            next = own;
        }
        tokio::spawn(notified(first.clone(), next, ring.clone()));
    });
    OnRuntime { runtime, ring, start: Start::Notify(first) }
}

async fn notified(own: Arc<Notify>, next: Arc<Notify>, ring: Arc<Ring>) {
    loop {
        own.notified().await;
        if ring.goes_on() {
            next.notify_one();
        }
    }
}

impl Brigade for OnRuntime {
    fn hops(&mut self, hops: u64) {
        self.ring.left.store(hops, Relaxed);
        self.runtime.block_on(async {
            match &mut self.start {
                Start::Byte(pipe) => pipe.write_all(&[1]).await.expect("there is room"),
                Start::Notify(first) => first.notify_one(),
            }
            self.ring.done.notified().await;
        });
        assert_eq!(self.ring.left.load(Relaxed), 0);
    }
}
