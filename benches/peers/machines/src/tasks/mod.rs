//! The shapes in which tokio's own benches start and switch tasks, as machines that are woken by
//! themselves or each other, and called again where a task yields.

mod machines;
mod tokio;

use std::cell::RefCell;
use std::rc::Rc;

use self::machines::Shapes;
use crate::figures::{Bench, Contender, contender, many_threads, one_thread};

/// A shape, for each runtime.
struct Shape {
    title: &'static str,
    unit: &'static str,
    /// The number of operations in a round, and in one run of the shape.
    operations: u64,
    machines: fn(&mut Shapes),
    tasks: fn(&::tokio::runtime::Runtime),
    each: u64,
}

const SHAPES: &[Shape] = &[
    Shape {
        title: "Chained spawn: each of 1,000 starts the next and ends",
        unit: "ns a machine or task",
        operations: 200_000,
        machines: machines::chained_spawn,
        tasks: tokio::chained_spawn,
        each: CHAIN,
    },
    Shape {
        title: "Spawn many: one starts 10,000 that say so and end",
        unit: "ns a machine or task",
        operations: 200_000,
        machines: machines::spawn_many,
        tasks: tokio::spawn_many,
        each: MANY,
    },
    Shape {
        title: "Ping-pong: 1,000 pairs, each starts a partner, pings it and gets its pong",
        unit: "ns a pair",
        operations: 100_000,
        machines: machines::ping_pong,
        tasks: tokio::ping_pong,
        each: PAIRS,
    },
    Shape {
        title: "Yield many: 200 that let the others go first 1,000 times",
        unit: "ns a turn of one",
        operations: 2_000_000,
        machines: machines::yield_many,
        tasks: tokio::yield_many,
        each: YIELDERS * YIELDS,
    },
];

/// The number of links in the chain.
const CHAIN: u64 = 1_000;
/// How many are started by one.
const MANY: u64 = 10_000;
const PAIRS: u64 = 1_000;
const YIELDERS: u64 = 200;
const YIELDS: u64 = 1_000;

pub(crate) fn measure(bench: &mut Bench) {
    let shapes = Rc::new(RefCell::new(Shapes::new()));
    let one = Rc::new(one_thread());
    let many = Rc::new(many_threads());
    for shape in SHAPES {
        let operations = bench.pick(shape.operations, shape.each);
        let on = |name, runtime: &Rc<::tokio::runtime::Runtime>| -> Contender {
            let runtime = runtime.clone();
            contender(name, operations, move |operations| {
                (0..times(operations, shape)).for_each(|_| (shape.tasks)(&runtime));
            })
        };
        let shapes = shapes.clone();
        let ours = contender("machines", operations, move |operations| {
            let mut shapes = shapes.borrow_mut();
            (0..times(operations, shape)).for_each(|_| (shape.machines)(&mut shapes));
        });
        let contenders =
            vec![ours, on("tokio, current thread", &one), on("tokio, multi-threaded", &many)];
        bench.compare(shape.title, shape.unit, contenders);
    }
}

/// Returns how often a shape must be run for this many operations.
fn times(operations: u64, shape: &Shape) -> u64 {
    (operations / shape.each).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_comes_to_its_end_and_can_be_run_again() {
        let mut shapes = Shapes::new();
        let runtimes = [one_thread(), many_threads()];
        for shape in SHAPES {
            for _ in 0..2 {
                (shape.machines)(&mut shapes);
                runtimes.iter().for_each(shape.tasks);
            }
        }
    }
}
