//! A figure over several rounds.

/// The median of some rounds, with the lowest and the highest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) lowest: f64,
    pub(crate) median: f64,
    pub(crate) highest: f64,
}

impl Spread {
    /// Makes it from figures. With an even number of them, the median is the upper one of the two
    /// in the middle; without any, the result is `None`. Figures that are not finite, which come
    /// from runs shorter than the clock's tick, are left out.
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut figures: Vec<f64> =
            figures.into_iter().filter(|figure| figure.is_finite()).collect();
        figures.sort_by(f64::total_cmp);
        let (lowest, highest) = (*figures.first()?, *figures.last()?);
        Some(Spread { lowest, median: figures[figures.len() / 2], highest })
    }

    /// Formats `median (lowest–highest)`.
    pub(crate) fn to_text(self, digits: usize) -> String {
        let Spread { lowest, median, highest } = self;
        format!("{median:.digits$} ({lowest:.digits$}–{highest:.digits$})")
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn a_spread_has_the_median_between_its_ends() {
        let spread = Spread::of([3.0, f64::NAN, 1.0, 2.0]).expect("three figures");
        assert_eq!(spread, Spread { lowest: 1.0, median: 2.0, highest: 3.0 });
        assert_eq!(spread.to_text(1), "2.0 (1.0–3.0)");
        assert_eq!(Spread::of([f64::INFINITY]), None);
    }
}
