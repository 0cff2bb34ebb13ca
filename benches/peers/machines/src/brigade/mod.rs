//! Bucket brigades: members in a ring that pass one thing on. One hop is one event, or one wake-up.

pub(crate) mod bare;
pub(crate) mod machines;
pub(crate) mod one_thread;
pub(crate) mod sockets;
pub(crate) mod tasks;
pub(crate) mod threads;

use crate::figures::{Bench, contender, many_threads, one_thread};

/// A round of a brigade: the thing is passed on for this many hops.
pub(crate) trait Brigade {
    fn hops(&mut self, hops: u64);
}

pub(crate) fn measure(bench: &mut Bench) {
    let members = bench.pick(500, 5);
    let hops = bench.pick(100_000, 100);
    let mut bare = bare::Pipes::new(members);
    let mut alone = one_thread::Pipes::new(members);
    let mut ours = machines::pipes(members);
    let mut theirs = tasks::pipes(one_thread(), members);
    let mut theirs_many = tasks::pipes(many_threads(), members);
    let mut threads = threads::Pipes::new(members, false);
    let mut threads_pinned = threads::Pipes::new(members, true);
    bench.compare(
        &format!("Bucket brigade of {members}, joined by pipes"),
        "ns a hop",
        vec![
            contender("bare loop", hops, move |hops| bare.hops(hops)),
            contender("one thread, reads and writes alone", hops, move |hops| alone.hops(hops)),
            contender("machines", hops, move |hops| ours.hops(hops)),
            contender("tokio, current thread", hops, move |hops| theirs.hops(hops)),
            contender("tokio, multi-threaded", hops, move |hops| theirs_many.hops(hops)),
            contender("threads", hops, move |hops| threads.hops(hops)),
            contender("threads, all on one core", hops, move |hops| threads_pinned.hops(hops)),
        ],
    );
    let mut bare = sockets::on_bare_loop(members);
    let mut on_mio = sockets::on_mio(members);
    let mut contenders = vec![
        contender("bare loop", hops, move |hops| bare.hops(hops)),
        contender("machines", hops, move |hops| on_mio.hops(hops)),
    ];
    if let Some(mut bare) = sockets::on_bare_uring(members) {
        contenders.push(contender("bare loop, on io_uring", hops, move |hops| bare.hops(hops)));
    }
    if let Some(mut on_uring) = sockets::on_uring(members) {
        contenders.push(contender("machines, on io_uring", hops, move |hops| on_uring.hops(hops)));
    }
    bench.compare(
        &format!("Bucket brigade of {members}, joined by Unix sockets"),
        "ns a hop",
        contenders,
    );
    for members in [bench.pick(50_000, 5), bench.pick(250_000, 6)] {
        let hops = bench.pick(2_000_000, 100);
        let mut ours = machines::notifiers(members);
        let mut theirs = tasks::notifiers(one_thread(), members);
        let mut theirs_many = tasks::notifiers(many_threads(), members);
        bench.compare(
            &format!("Bucket brigade of {members}, joined by notifiers"),
            "ns a hop",
            vec![
                contender("machines", hops, move |hops| ours.hops(hops)),
                contender("tokio, current thread", hops, move |hops| theirs.hops(hops)),
                contender("tokio, multi-threaded", hops, move |hops| theirs_many.hops(hops)),
            ],
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hop is one byte or wakeup that a member passes to the next. After one hop per member, each
    /// has had it once.
    #[test]
    fn the_thing_goes_as_many_hops_as_it_is_told_and_can_go_on() {
        let mut brigades: Vec<Box<dyn Brigade>> = vec![
            Box::new(bare::Pipes::new(7)),
            Box::new(one_thread::Pipes::new(7)),
            Box::new(machines::pipes(7)),
            Box::new(machines::notifiers(7)),
            Box::new(tasks::pipes(one_thread(), 7)),
            Box::new(tasks::pipes(many_threads(), 7)),
            Box::new(tasks::notifiers(one_thread(), 7)),
            Box::new(threads::Pipes::new(7, false)),
            Box::new(threads::Pipes::new(7, true)),
            Box::new(sockets::on_bare_loop(7)),
            Box::new(sockets::on_mio(7)),
        ];
        brigades.extend(sockets::on_bare_uring(7).map(|it| Box::new(it) as Box<dyn Brigade>));
        brigades.extend(sockets::on_uring(7).map(|brigade| Box::new(brigade) as Box<dyn Brigade>));
        for mut brigade in brigades {
            for hops in [1, 6, 7, 8, 100] {
                brigade.hops(hops);
            }
        }
    }
}
