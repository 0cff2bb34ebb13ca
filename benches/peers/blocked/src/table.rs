//! The table.

use std::time::Duration;

use crate::load::Seen;

pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// The figures of each round.
    pub(crate) figures: Vec<Figures>,
}

pub(crate) struct Figures {
    pub(crate) seen: Seen,
    pub(crate) threads_most: usize,
}

impl Figures {
    fn requests(&self) -> f64 {
        (self.seen.others.len() + self.seen.slow) as f64
    }

    /// Returns the quantile of the latencies that is given in permille, in ms.
    fn permille(&self, part: usize) -> f64 {
        let others = &self.seen.others;
        let at = (others.len() * part / 1_000).min(others.len().saturating_sub(1));
        others.get(at).map_or(f64::NAN, Duration::as_secs_f64) * 1e3
    }
}

impl Row {
    fn median(&self, figure: impl Fn(&Figures) -> f64) -> f64 {
        let mut figures: Vec<f64> = self.figures.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

pub(crate) fn print(heading: &str, rows: &[Row]) {
    println!("\n{heading}, one request in a hundred blocks for 20 ms; the others:\n");
    println!("| | requests/s | p50 ms | p99 ms | most ms | CPU µs a request | threads |");
    println!("|--|--:|--:|--:|--:|--:|--:|");
    for row in rows {
        println!(
            "| {} | {:.0} | {:.2} | {:.2} | {:.2} | {:.1} | {:.0} |",
            row.name,
            row.median(|figures| figures.requests() / figures.seen.time.as_secs_f64()),
            row.median(|figures| figures.permille(500)),
            row.median(|figures| figures.permille(990)),
            row.median(|figures| figures.permille(1_000)),
            row.median(|figures| figures.seen.cpu_time.as_secs_f64() * 1e6 / figures.requests()),
            row.median(|figures| figures.threads_most as f64),
        );
    }
}
