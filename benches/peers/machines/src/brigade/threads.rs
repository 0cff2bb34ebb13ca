//! A thread for each member, with blocking pipes.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::Brigade;

pub(crate) struct Pipes {
    left: Arc<AtomicU64>,
    done: Receiver<()>,
    start: PipeWriter,
}

impl Pipes {
    /// Makes the threads, wherever the system puts them or all on one core. Their pipes are a ring,
    /// so they end with the process.
    pub(crate) fn new(members: usize, on_one_core: bool) -> Pipes {
        let before = sched_getaffinity(None).expect("the system tells");
        if on_one_core {
            // New threads run on the same cores as the thread that starts them.
            let mut core = CpuSet::new();
            let first =
                (0..CpuSet::MAX_CPU).find(|cpu| before.is_set(*cpu)).expect("there is a core");
            core.set(first);
            sched_setaffinity(None, &core).expect("it is allowed");
        }
        let brigade = Pipes::start(members);
        sched_setaffinity(None, &before).expect("it was so before");
        brigade
    }

    fn start(members: usize) -> Pipes {
        let left = Arc::new(AtomicU64::new(0));
        let (finished, done) = channel();
        let (mut inputs, outputs): (Vec<_>, Vec<_>) =
            (0..members).map(|_| pipe().expect("there are descriptors")).unzip();
        let start = outputs[0].try_clone().expect("there are descriptors");
        inputs.rotate_right(1);
        for (input, output) in inputs.into_iter().zip(outputs) {
            let (left, finished) = (left.clone(), finished.clone());
            thread::spawn(move || member(input, output, &left, &finished));
        }
        Pipes { left, done, start }
    }
}

fn member(mut input: PipeReader, mut output: PipeWriter, left: &AtomicU64, finished: &Sender<()>) {
    let mut bytes = [0; 8];
    while input.read(&mut bytes).is_ok_and(|count| count > 0) {
        // Only one member has the byte at a time, and the pipe orders their accesses.
        let now = left.load(Acquire) - 1;
        left.store(now, Release);
        let passed =
            if now == 0 { finished.send(()).is_ok() } else { output.write_all(&[1]).is_ok() };
        if !passed {
            return;
        }
    }
}

impl Brigade for Pipes {
    fn hops(&mut self, hops: u64) {
        self.left.store(hops, Release);
        self.start.write_all(&[1]).expect("there is room");
        self.done.recv().expect("they do not panic");
        assert_eq!(self.left.load(Relaxed), 0);
    }
}
