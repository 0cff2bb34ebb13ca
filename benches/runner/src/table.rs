//! A table as Markdown, padded so that it is readable in a terminal too.

/// Lines under a heading. The first column is aligned to the left, the others, which contain
/// figures, to the right.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(heading: &[&str]) -> Table {
        Table { rows: vec![heading.iter().map(|cell| (*cell).to_owned()).collect()] }
    }

    pub(crate) fn add(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    pub(crate) fn to_markdown(&self) -> String {
        let columns = self.rows[0].len();
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
            })
            .collect();
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                match column {
                    0 => text.push_str(&format!("| {cell:<width$} |")),
                    _ => text.push_str(&format!(" {cell:>width$} |")),
                }
            }
            text.push('\n');
            if number == 0 {
                for (column, width) in widths.iter().enumerate() {
                    match column {
                        0 => text.push_str(&format!("|{}|", "-".repeat(width + 2))),
                        _ => text.push_str(&format!("{}:|", "-".repeat(width + 1))),
                    }
                }
                text.push('\n');
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["server", "µs"]);
        table.add(vec!["bare-loop".to_owned(), "5.96".to_owned()]);
        let expected = "| server    |   µs |\n|-----------|-----:|\n| bare-loop | 5.96 |\n";
        assert_eq!(table.to_markdown(), expected);
    }
}
