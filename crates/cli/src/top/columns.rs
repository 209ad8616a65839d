//! Column layout of rows.

/// Rows of cells under a heading, formatted as lines of text.
pub(super) struct Columns {
    /// Headings; those that begin with `>` have right-aligned columns.
    heading: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Columns {
    /// Creates a table with these headings. A heading that begins with `>` aligns its column to the right.
    pub(super) fn new(heading: &[&'static str]) -> Self {
        Self {
            heading: heading.to_vec(),
            rows: Vec::new(),
        }
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.heading.len(), "{cells:?}");
        self.rows.push(cells);
    }

    /// Heading and rows, or `None` without rows.
    pub(super) fn lines(&self) -> Option<(String, Vec<String>)> {
        if self.rows.is_empty() {
            return None;
        }
        let heading: Vec<String> = self
            .heading
            .iter()
            .map(|word| word.trim_start_matches('>').to_uppercase())
            .collect();
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| &row[column]);
            let cells = cells.chain([&heading[column]]);
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..heading.len()).map(width).collect();
        let line = |row: &Vec<String>| self.line(row, &widths);
        Some((line(&heading), self.rows.iter().map(line).collect()))
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let cells = row.iter().zip(widths).zip(&self.heading);
        let aligned = cells.map(|((cell, width), heading)| match heading.starts_with('>') {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
        let line: Vec<String> = aligned.collect();
        format!("  {}", line.join("  ")).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_at_the_right_and_words_at_the_left() {
        let mut columns = Columns::new(&["topic", ">per s", "what"]);
        assert!(columns.lines().is_none());
        columns.row(vec!["Brake".into(), "2,000".into(), "ok".into()]);
        columns.row(vec!["É".into(), "7".into(), String::new()]);
        let (heading, rows) = columns.lines().expect("two rows");
        assert_eq!(heading, "  TOPIC  PER S  WHAT");
        assert_eq!(rows, ["  Brake  2,000  ok", "  É          7"]);
    }
}
