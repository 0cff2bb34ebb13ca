//! The table.

use bodies_work::{BATCH, BODY, Figures};

pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) way: &'static str,
    /// The figures of each round.
    pub(crate) figures: Vec<Figures>,
}

impl Row {
    fn median(&self, figure: impl Fn(&Figures) -> f64) -> f64 {
        median(self.figures.iter().map(figure))
    }
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

pub(crate) fn print(heading: &str, rows: &[Row]) {
    println!("\n{BATCH} bodies of {} MiB at a time, {heading}\n", BODY >> 20);
    println!("| | ms a batch | GiB/s | CPU ms a batch | ratio | peak MiB | beats late, p99 ms |");
    println!("|--|--:|--:|--:|--:|--:|--:|");
    for row in rows {
        let first = rows.iter().find(|first| first.name == row.name).unwrap_or(row);
        let ratios =
            row.figures.iter().zip(&first.figures).map(|(own, first)| own.cpu_ms / first.cpu_ms);
        let clock = row.median(|figures| figures.clock_ms);
        println!(
            "| {}, {} | {:.1} | {:.2} | {:.1} | {:.2} | {:.1} | {:.2} |",
            row.name,
            row.way,
            clock,
            (BATCH * BODY) as f64 / (1u64 << 30) as f64 / (clock / 1e3),
            row.median(|figures| figures.cpu_ms),
            median(ratios),
            row.median(|figures| figures.peak_mib),
            row.median(|figures| figures.late_us / 1e3),
        );
    }
}
