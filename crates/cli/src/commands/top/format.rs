//! Text of counts, rates and names, and their layout in columns.

use isolane::observe::Counts;
use isolane_model::visible_line;

use crate::limits::SHOWN_NAME_CHARACTERS;

/// Remaining amount as a bar and in numbers.
pub(super) fn bar(left: u64, of: u64) -> String {
    const CELLS: u64 = 8;
    let full = (left.min(of) * CELLS).div_ceil(of.max(1)).min(CELLS);
    let cells: String = (0..CELLS)
        .map(|cell| if cell < full { '#' } else { '.' })
        .collect();
    format!("{cells} {} of {}", grouped(left), grouped(of))
}

pub(super) fn level(level: Option<u8>, without: &str) -> String {
    level.map_or_else(|| without.to_owned(), |level| level.to_string())
}

/// Non-zero counts with their names.
pub(super) fn reasons(counts: &Counts) -> String {
    let counted = counts.iter().filter(|(_, count)| **count > 0);
    let words = counted.map(|(name, count)| format!("{} {}", grouped(*count), clean(name)));
    words.collect::<Vec<_>>().join(", ").replace('_', " ")
}

pub(super) fn none() -> String {
    String::from("-")
}

/// Rate as text, with a decimal for small values.
pub(super) fn rate(rate: Option<f64>) -> String {
    match rate {
        None => none(),
        Some(rate) if rate > 0.0 && rate < 9.95 => format!("{rate:.1}"),
        Some(rate) => grouped(rate.round().max(0.0) as u64),
    }
}

/// Number with thousands separators: 37,120.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Untrusted name, shortened to one line.
pub(super) fn clean(name: &str) -> String {
    shown(name, SHOWN_NAME_CHARACTERS)
}

pub(super) fn shown(text: &str, characters: usize) -> String {
    let kept: String = text.chars().take(characters).collect();
    let mut shown: String = visible_line(&kept).chars().take(characters).collect();
    if text.chars().count() > characters {
        shown.push_str("...");
    }
    shown
}

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
    fn what_a_process_says_of_itself_cannot_command_the_terminal() {
        assert_eq!(clean("a\x1b[2Jb\nc"), "a\\u001b[2Jb\\u000ac");
        let long = clean(&"x".repeat(500));
        assert_eq!(long.len(), SHOWN_NAME_CHARACTERS + 3);
    }

    #[test]
    fn rates_numbers_and_bars_are_for_people() {
        let said = [None, Some(0.0), Some(0.04), Some(9.94), Some(1_999.6)].map(rate);
        assert_eq!(said, ["-", "0", "0.0", "9.9", "2,000"]);
        assert_eq!(bar(12, 20), "#####... 12 of 20");
        assert_eq!(bar(0, 20), "........ 0 of 20");
        assert_eq!(bar(30, 20), "######## 30 of 20");
        assert_eq!(bar(0, 0), "........ 0 of 0");
    }

    #[test]
    fn reasons_that_did_not_occur_are_left_out() {
        let counts = [("queue_full", 1_200), ("budget", 0)];
        let counts = counts.map(|(name, count)| (name.to_owned(), count));
        assert_eq!(reasons(&counts.into()), "1,200 queue full");
    }

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
