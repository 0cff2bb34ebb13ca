//! Threads wake machines: by a notifier, by messages, and with one result each.
//!
//! ```text
//! # without arguments: 4 threads, 100000 times each
//! cargo run --release -p rotor-examples --example notify_threads [THREADS [EACH]]
//! counted 400000 in 5136 wake-ups
//! received 400000 messages
//! results add up to 400000, and 1 was lost
//! ```
//!
//! The number of wake-ups differs from run to run, the other numbers do not. One additional thread
//! drops its port without a value, and its machine is told that as well. The loop ends by itself
//! when its last machine has ended.
#![forbid(unsafe_code)]

mod machine;

use std::num::NonZero;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use machine::{Counter, Inbox, Receivers, Report, Results};
use rotor::net::IpNet;
use rotor::{Backend, BoxError, Config, Loop, Notifier, Port, Response, SendError, Sender};
use rotor_examples::chosen_loop::on_chosen_loop;
use rotor_examples::program;
use rotor_uring::OnAnyLoop;

const FOUR: NonZero<u8> = NonZero::new(4).expect("it is not zero");
const MANY: NonZero<u32> = NonZero::new(100_000).expect("it is not zero");

fn main() -> ExitCode {
    program::run(notify)
}

fn notify() -> Result<(), BoxError> {
    // Without any thread, no machine would be woken, and the loop would wait forever.
    let threads: usize = program::argument(1, FOUR)?.get().into();
    let each: u64 = program::argument(2, MANY)?.get().into();
    on_chosen_loop(Threads { threads, each })
}

/// How many threads there are, and how often each wakes the machines.
struct Threads {
    threads: usize,
    each: u64,
}

impl OnAnyLoop for Threads {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let Threads { threads, each } = self;
        let mut creator = Loop::with_backend(backend, &Config::new())?;

        let number = Arc::new(AtomicU64::new(0));
        let notifier = creator.add_part(Receivers::Counter, |scope| {
            let counter = Counter { number: number.clone(), end: threads as u64 * each };
            Ok((scope.notifier(), Response::ok(counter)))
        })?;
        let sender = creator.add_part(Receivers::Inbox, |scope| {
            let (sender, inbox) = Inbox::new(scope);
            Ok((sender, Response::ok(inbox)))
        })?;
        let mut ports = creator.add_part(Receivers::Results, |scope| {
            let (ports, results) = Results::new(threads + 1, scope);
            Ok((ports, Response::ok(results)))
        })?;

        let mut instance = creator.instantiate(Report::default());
        thread::scope(|scope| {
            // This port gets no value.
            drop(ports.pop());
            for port in ports {
                let (number, notifier, sender) = (&number, notifier.clone(), sender.clone());
                scope.spawn(move || work(each, number, &notifier, &sender, port));
            }
            // The inbox ends when its last sender is dropped.
            drop(sender);
            instance.run()
        })?;
        let Report { counted, wakeups, messages, sum_of_results, lost_results } =
            instance.context();
        program::print(&[
            format!("counted {counted} in {wakeups} wake-ups"),
            format!("received {messages} messages"),
            format!("results add up to {sum_of_results}, and {lost_results} was lost"),
        ])?;
        Ok(())
    }
}

/// What each thread does.
fn work(each: u64, number: &AtomicU64, notifier: &Notifier, sender: &Sender<u64>, port: Port<u64>) {
    for message in 0..each {
        number.fetch_add(1, Relaxed);
        notifier.wakeup();
        // A full mailbox is the loop's backpressure.
        while let Err(SendError::Full(_)) = sender.send(message) {
            thread::yield_now();
        }
    }
    // Refused only if the value is not wanted any more, which does no harm.
    let _ = port.set(each);
}
