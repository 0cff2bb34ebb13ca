//! The metrics of pools of threads.

use std::fmt;

use rotor_core::{OffloadPool, PoolStats};

use crate::families::{Families, Labels};

type Figure = (&'static str, &'static str, fn(&PoolStats) -> u64);

const GAUGES: [Figure; 3] = [
    ("threads", "Threads of the pool.", |stats| stats.threads as u64),
    ("running", "Jobs that are running.", |stats| stats.running as u64),
    ("queued", "Jobs that wait for a thread.", |stats| stats.queued as u64),
];

const COUNTERS: [Figure; 7] = [
    ("begun", "Jobs that a thread took.", |stats| stats.begun),
    ("done", "Jobs that were done.", |stats| stats.done),
    ("refused", "Jobs for which there was no room or no thread.", |stats| stats.refused),
    ("run_here", "Jobs that were run on a thread of a loop.", |stats| stats.run_here),
    ("late", "Jobs that were dropped because their time had passed.", |stats| stats.late),
    ("cancelled", "Jobs that were dropped because nobody waited for them any more.", |stats| {
        stats.cancelled
    }),
    ("panicked", "Jobs that panicked.", |stats| stats.panicked),
];

pub(crate) fn write(families: &mut Families<'_>, pools: &[(String, OffloadPool)]) -> fmt::Result {
    if pools.is_empty() {
        return Ok(());
    }
    let pools: Vec<_> =
        pools.iter().map(|(name, pool)| ([("pool", name.as_str())], pool.stats())).collect();
    let rows = || pools.iter().map(|(labels, stats)| (Labels(labels), stats));
    for (name, help, of) in GAUGES {
        let name = format!("rotor_offload_{name}");
        families.gauges(&name, help, rows().map(|(labels, stats)| (labels, of(stats))))?;
    }
    for (name, help, of) in COUNTERS {
        let name = format!("rotor_offload_{name}");
        families.counters(&name, help, rows().map(|(labels, stats)| (labels, of(stats))))?;
    }
    let times = rows().map(|(labels, stats)| (labels, stats.queue_time));
    families.histograms("rotor_offload_queue_seconds", "How long jobs waited.", times)?;
    let times = rows().map(|(labels, stats)| (labels, stats.run_time));
    families.histograms("rotor_offload_run_seconds", "How long jobs ran.", times)
}
