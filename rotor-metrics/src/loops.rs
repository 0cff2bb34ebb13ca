//! The metrics of loops.

use std::fmt;

use rotor_core::{Longest, LoopTimes, Stats, StatsHandle};

use crate::families::{Families, Labels};

/// The figures of a loop, read once for all of its metrics.
struct LoopFigures {
    stats: Stats,
    times: LoopTimes,
    longest: Longest,
}

type Figure = (&'static str, &'static str, fn(&Stats) -> u64);

const COUNTERS: [Figure; 19] = [
    ("turns", "Turns of the loop: a wait, then all work that is due.", |stats| stats.turns),
    ("events", "Events of sources that were delivered to machines.", |stats| stats.events),
    ("wakeups", "Wake-ups that were delivered to machines, after coalescing.", |stats| {
        stats.wakeups
    }),
    ("deadlines_fired", "Deadlines that fired.", |stats| stats.timeouts),
    ("machines_made", "Machines that were created.", |stats| stats.spawned),
    ("machines_ended", "Machines that ended without an error.", |stats| stats.ended),
    ("machines_failed", "Machines that ended with an error.", |stats| stats.failed),
    ("machines_panicked", "Machines that ended with a panic.", |stats| stats.panicked),
    ("machines_made_room", "Machines that ended to make room for others.", |stats| stats.made_room),
    ("stale", "Events, wake-ups and deadlines whose machine had ended.", |stats| stats.stale),
    ("jobs_unclaimed", "Offloaded jobs whose result nobody took.", |stats| stats.unclaimed),
    ("stuck", "Reports that the loop had not polled for too long.", |stats| stats.stuck),
    ("starved", "Times that the loop was late only because other threads had its CPU.", |stats| {
        stats.starved
    }),
    ("handed_over", "Blocking sections during which another thread ran the loop.", |stats| {
        stats.handed_over
    }),
    ("handed_quick", "Short blocking sections for which no other thread was woken.", |stats| {
        stats.handed_quick
    }),
    ("blocked_inline", "Blocking sections that held up their loop.", |stats| stats.blocked_inline),
    ("no_thread", "Times that no thread was available to take the loop.", |stats| stats.no_thread),
    (
        "taken_over",
        "Handlers that blocked, so that another thread took the loop from them.",
        |stats| stats.taken_over,
    ),
    ("late_answers", "Handlers that lost the loop and have since returned or panicked.", |stats| {
        stats.late_answers
    }),
];

const GAUGES: [Figure; 4] = [
    ("machines", "Machines that are alive.", |stats| stats.alive),
    ("slots", "Slots for machines.", |stats| stats.slots),
    ("deadlines", "Deadlines that are armed.", |stats| stats.armed),
    ("threads", "Threads of a loop that can be handed over.", |stats| stats.threads),
];

pub(crate) fn write(families: &mut Families<'_>, loops: &[(String, StatsHandle)]) -> fmt::Result {
    if loops.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = loops.iter().map(|(name, _)| [("loop", name.as_str())]).collect();
    let read = |stats: &StatsHandle| LoopFigures {
        stats: stats.read(),
        times: stats.times(),
        longest: stats.take_longest(),
    };
    let loops: Vec<_> = loops.iter().map(|(_, stats)| read(stats)).collect();
    // The figures of each loop with its labels.
    let rows = || names.iter().map(|name| Labels(name)).zip(&loops);
    for (name, help, of) in COUNTERS {
        let rows = rows().map(|(labels, read)| (labels, of(&read.stats)));
        families.counters(&format!("rotor_loop_{name}"), help, rows)?;
    }
    for (name, help, of) in GAUGES {
        let rows = rows().map(|(labels, read)| (labels, of(&read.stats)));
        families.gauges(&format!("rotor_loop_{name}"), help, rows)?;
    }
    let seconds = rows().map(|(labels, read)| (labels, read.times.busy.as_secs_f64()));
    families.counters("rotor_loop_busy_seconds", "Time within turns.", seconds)?;
    let seconds = rows().map(|(labels, read)| (labels, read.times.waited.as_secs_f64()));
    families.counters("rotor_loop_waited_seconds", "Time between turns.", seconds)?;
    let turns = rows().map(|(labels, read)| (labels, read.times.turns));
    families.histograms("rotor_loop_turn_seconds", "How long turns took.", turns)?;
    let lags = rows().map(|(labels, read)| (labels, read.times.lag));
    families.histograms("rotor_loop_deadline_lag_seconds", "How late deadlines fired.", lags)?;
    write_longest(families, &names, &loops)?;
    write_handlers(families, &names, &loops)
}

fn write_longest(
    families: &mut Families<'_>,
    names: &[[(&'static str, &str); 1]],
    loops: &[LoopFigures],
) -> fmt::Result {
    let rows = || names.iter().map(|name| Labels(name)).zip(loops);
    let turns = rows().map(|(labels, read)| (labels, read.longest.turn.as_secs_f64()));
    let help = "The longest turn since the last scrape.";
    families.gauges("rotor_loop_longest_turn_seconds", help, turns)?;
    let handlers: Vec<_> = rows()
        .filter_map(|(labels, read)| {
            let handler = read.longest.handler?;
            Some(([labels.0[0], ("machine", handler.machine)], handler.time.as_secs_f64()))
        })
        .collect();
    if handlers.is_empty() {
        return Ok(());
    }
    let help = "The longest timed handler since the last scrape.";
    let handlers = handlers.iter().map(|(labels, time)| (Labels(labels), *time));
    families.gauges("rotor_loop_longest_handler_seconds", help, handlers)
}

fn write_handlers(
    families: &mut Families<'_>,
    names: &[[(&'static str, &str); 1]],
    loops: &[LoopFigures],
) -> fmt::Result {
    let all: Vec<_> = names
        .iter()
        .zip(loops)
        .flat_map(|(name, read)| {
            let handlers = read.times.handlers.iter();
            handlers.map(|handler| ([name[0], ("machine", handler.machine)], handler.times))
        })
        .collect();
    if all.is_empty() {
        return Ok(());
    }
    let help = "How long the timed handlers took: all handlers, or a sample of the turns.";
    let rows = all.iter().map(|(labels, times)| (Labels(labels), *times));
    families.histograms("rotor_loop_handler_seconds", help, rows)
}
