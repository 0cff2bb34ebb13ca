//! Horizontal bars as SVG.

use std::path::Path;

use plotters::prelude::{
    BLACK, ChartBuilder, Color, IntoDrawingArea, IntoFont, IntoSegmentedCoord, PathElement,
    RGBColor, Rectangle, SVGBackend, SegmentValue, WHITE,
};

use super::BoxError;
use crate::spread::Spread;

const WIDTH: u32 = 900;

/// The height of the title and the axis.
const FRAME_HEIGHT: u32 = 110;

const BAR_HEIGHT: u32 = 34;

const LIGHT: RGBColor = RGBColor(158, 196, 228);
const DARK: RGBColor = RGBColor(31, 97, 158);

/// A bar with a dark part.
pub(super) struct Bar {
    pub(super) label: String,
    /// The length of the bar is the median; a line shows the range from the lowest to the highest.
    pub(super) whole: Spread,
    pub(super) part: f64,
}

/// Bars under a title.
pub(super) struct Plot {
    pub(super) title: String,
    pub(super) axis: String,
    /// From top to bottom.
    pub(super) bars: Vec<Bar>,
}

impl Plot {
    /// Writes the plot to a file. Without bars, no file is written.
    pub(super) fn write(&self, file: &Path) -> Result<(), BoxError> {
        let Some(longest) = self.bars.iter().map(|bar| bar.whole.highest).max_by(f64::total_cmp)
        else {
            return Ok(());
        };
        let count = self.bars.len();
        let root = SVGBackend::new(file, (WIDTH, FRAME_HEIGHT + BAR_HEIGHT * count as u32))
            .into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption(&self.title, ("sans-serif", 20).into_font())
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(130)
            .build_cartesian_2d(0.0..longest * 1.05, (0..count - 1).into_segmented())?;
        // The axis counts upwards, including its end, but the servers are listed downwards.
        let label = |value: &SegmentValue<usize>| match value {
            SegmentValue::CenterOf(index) if *index < count => {
                self.bars[count - 1 - index].label.clone()
            }
            _ => String::new(),
        };
        chart
            .configure_mesh()
            .disable_y_mesh()
            .light_line_style(WHITE)
            .label_style(("sans-serif", 16))
            .axis_desc_style(("sans-serif", 16))
            .y_labels(count)
            .y_label_formatter(&label)
            .x_desc(&self.axis)
            .draw()?;
        for (index, bar) in self.bars.iter().rev().enumerate() {
            for (length, colour) in [(bar.whole.median, LIGHT), (bar.part, DARK)] {
                let mut area = Rectangle::new(
                    [(0.0, SegmentValue::Exact(index)), (length, SegmentValue::Exact(index + 1))],
                    colour.filled(),
                );
                area.set_margin(6, 6, 0, 0);
                chart.draw_series([area])?;
            }
            let ends = [bar.whole.lowest, bar.whole.highest]
                .map(|end| (end, SegmentValue::CenterOf(index)));
            chart.draw_series([PathElement::new(ends.to_vec(), BLACK)])?;
        }
        root.present()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::fs;
    use std::process;

    use super::{Bar, Plot};
    use crate::spread::Spread;

    #[test]
    fn a_plot_names_every_server() {
        let bar = |label: &str, median| Bar {
            label: label.to_owned(),
            whole: Spread { lowest: median - 0.5, median, highest: median + 0.5 },
            part: median / 4.0,
        };
        let plot = Plot {
            title: "a title".to_owned(),
            axis: "an axis".to_owned(),
            bars: vec![bar("first", 5.0), bar("second", 7.0)],
        };
        let file = env::temp_dir().join(format!("rotor-bench-plot-{}.svg", process::id()));
        plot.write(&file).expect("the directory can be written to");
        let svg = fs::read_to_string(&file).expect("it has been written");
        fs::remove_file(&file).expect("it is ours");
        for text in ["a title", "an axis", "first", "second"] {
            assert!(svg.contains(text), "{text}");
        }
    }
}
