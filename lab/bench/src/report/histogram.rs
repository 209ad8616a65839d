//! Histograms side by side for the terminal: one row per bucket, one column per series.
//!
//! Buckets are logarithmic, because a disturbed round trip is a hundred times a quiet one. Bars are linear, so that
//! their lengths are comparable. Every sample is in a bucket and in the printed counts; a single sample has a thin bar,
//! and the bucket of the p99 is marked.

use std::fmt::Write;

use crate::record::{bucket, bucket_start_us, percentile_us};

/// Buckets per decade; each ends at 1.26 times its start.
const PER_DECADE: u32 = 10;
/// Mark of the bucket with the p99.
const P99_MARK: &str = " p99";
/// Maximum number of rows; wider ranges get wider buckets.
const MAX_ROWS: i32 = 40;

/// Series of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Heading of its column.
    pub name: String,
    /// All samples in nanoseconds, in any order.
    pub samples_ns: Vec<u64>,
}

/// Histogram of all series on one scale, at most `width` characters wide where possible (a column needs about 20).
pub fn histogram(title: &str, series: &[Series], width: usize, charset: Charset) -> String {
    let mut text = format!("{title}\n");
    let Some(scale) = Scale::over(series) else {
        text.push_str("no samples\n");
        return text;
    };
    let counts: Vec<Vec<u64>> = series.iter().map(|one| scale.count(one)).collect();
    let most = counts.iter().flatten().copied().max().unwrap_or(0);
    let labels: Vec<String> = (0..scale.rows)
        .map(|row| time(scale.start_us(row)))
        .collect();
    let label_width = labels.iter().map(String::len).max().unwrap_or(0);
    let count_width = most.to_string().len();
    let p99_rows: Vec<Option<usize>> = series.iter().map(|one| scale.p99_row(one)).collect();
    // After the bar: a blank, its count, perhaps a mark.
    let after_bar = 1 + count_width + P99_MARK.len();
    // Between columns: separator and blank.
    let fixed = label_width + 1 + series.len() * (after_bar + 2);
    let bar_width = (width.saturating_sub(fixed) / series.len()).max(8);
    let column = bar_width + after_bar;

    // Writing to a string cannot fail.
    let _ = write!(text, "{:>label_width$} ", "from");
    for one in series {
        let name = format!("{} ({})", one.name, one.samples_ns.len());
        let _ = write!(text, "{} {name:<column$.column$}", charset.separator());
    }
    trim_line(&mut text);
    for (row, label) in labels.iter().enumerate() {
        let _ = write!(text, "{label:>label_width$} ");
        for (counts, p99_row) in counts.iter().zip(&p99_rows) {
            let count = counts[row];
            let bar = charset.bar(bar_eighths(count, most, bar_width));
            let mark = match *p99_row == Some(row) {
                true => P99_MARK,
                false => "",
            };
            let shown = match count {
                0 => String::new(),
                count => format!("{bar} {count}{mark}"),
            };
            let _ = write!(text, "{} {shown:<column$}", charset.separator());
        }
        trim_line(&mut text);
    }
    text
}

/// Length of a bar in eighths; at least one for a single sample.
fn bar_eighths(count: u64, most: u64, bar_width: usize) -> usize {
    let share = count as f64 / most.max(1) as f64;
    ((share * (bar_width * 8) as f64).round() as usize).max(usize::from(count > 0))
}

fn trim_line(text: &mut String) {
    text.truncate(text.trim_end().len());
    text.push('\n');
}

/// Logarithmic buckets that cover all samples.
#[derive(Debug)]
struct Scale {
    /// Number of the first bucket, counted from 1 us.
    first: i32,
    rows: usize,
    per_decade: u32,
}

impl Scale {
    fn over(series: &[Series]) -> Option<Scale> {
        let samples = || series.iter().flat_map(|one| one.samples_ns.iter().copied());
        let (low, high) = (samples().min()?, samples().max()?);
        let mut per_decade = PER_DECADE;
        loop {
            let (first, last) = (bucket(low, per_decade), bucket(high, per_decade));
            if last - first < MAX_ROWS || per_decade == 1 {
                return Some(Scale {
                    first,
                    rows: (last - first + 1) as usize,
                    per_decade,
                });
            }
            per_decade /= 2;
        }
    }

    fn count(&self, series: &Series) -> Vec<u64> {
        let mut counts = vec![0; self.rows];
        for &sample in &series.samples_ns {
            counts[(bucket(sample, self.per_decade) - self.first) as usize] += 1;
        }
        counts
    }

    /// Row of the p99, if enough samples lie beyond it.
    fn p99_row(&self, series: &Series) -> Option<usize> {
        let mut sorted_ns = series.samples_ns.clone();
        sorted_ns.sort_unstable();
        let p99_ns = (percentile_us(&sorted_ns, 990)? * 1e3).round() as u64;
        usize::try_from(bucket(p99_ns, self.per_decade) - self.first).ok()
    }

    /// Start of a row, in microseconds.
    fn start_us(&self, row: usize) -> f64 {
        bucket_start_us(self.first + row as i32, self.per_decade)
    }
}

/// Formats a time with three digits and its unit.
fn time(us: f64) -> String {
    let (value, unit) = match us {
        us if us >= 1e6 => (us / 1e6, "s"),
        us if us >= 1e3 => (us / 1e3, "ms"),
        us if us >= 1.0 => (us, "us"),
        us => (us * 1e3, "ns"),
    };
    let decimals = match value {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {unit}")
}

/// Character set of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// Unicode block elements.
    Unicode,
    /// ASCII only.
    Ascii,
}

impl Charset {
    /// Character set of the locale: the first of these variables that is set decides.
    pub fn of_environment() -> Charset {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .filter_map(|name| std::env::var(name).ok())
            .find(|value| !value.is_empty());
        Charset::of_locale(locale.as_deref().unwrap_or("C"))
    }

    fn of_locale(locale: &str) -> Charset {
        let locale = locale.to_ascii_lowercase();
        if locale.contains("utf-8") || locale.contains("utf8") {
            Charset::Unicode
        } else {
            Charset::Ascii
        }
    }

    /// Bar of `eighths` eighths of a character. In ASCII it is rounded, and a non-zero bar below half a character is a
    /// dot.
    pub(super) fn bar(self, eighths: usize) -> String {
        const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
        match self {
            Charset::Unicode => "█".repeat(eighths / 8) + PARTS[eighths % 8],
            Charset::Ascii if (1..4).contains(&eighths) => ".".to_owned(),
            Charset::Ascii => "#".repeat((eighths + 4) / 8),
        }
    }

    /// Separator between columns.
    pub(super) fn separator(self) -> &'static str {
        match self {
            Charset::Unicode => "│",
            Charset::Ascii => "|",
        }
    }
}

/// Width in characters of the terminal on standard output; 100 if it is not a terminal.
pub fn terminal_width() -> usize {
    const ELSEWHERE: usize = 100;
    match rustix::termios::tcgetwinsize(rustix::stdio::stdout()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ => ELSEWHERE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn series(name: &str, samples_ns: Vec<u64>) -> Series {
        Series {
            name: name.into(),
            samples_ns,
        }
    }

    fn off_and_on() -> [Series; 2] {
        let quiet = vec![215_000; 900].into_iter().chain([370_000; 100]);
        let loaded = vec![5_000_000; 500].into_iter().chain([14_000_000]);
        [
            series("off", quiet.collect()),
            series("flood", loaded.collect()),
        ]
    }

    #[test]
    fn quiet_and_disturbed_stand_side_by_side() {
        let text = histogram("RTT, 64 B", &off_and_on(), 80, Charset::Unicode);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "RTT, 64 B");
        assert!(
            lines[1].contains("off (1000)") && lines[1].contains("flood (501)"),
            "{text}"
        );
        let row = |start: &str| {
            *lines
                .iter()
                .find(|line| line.trim_start().starts_with(start))
                .unwrap()
        };
        assert!(row("200 us").contains("█ 900 "), "{text}");
        assert!(row("12.6 ms").ends_with("│ ▏ 1"), "a thin mark: {text}");
        assert!(row("316 us").contains(" 100 p99 "), "{text}");
        assert!(
            row("1.00 ms").trim_end().ends_with('│'),
            "empty buckets are shown: {text}"
        );
        assert!(
            lines.iter().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }

    #[test]
    fn without_unicode_there_is_none() {
        let text = histogram("RTT", &off_and_on(), 60, Charset::Ascii);
        assert!(text.is_ascii() && text.contains("# 900"), "{text}");
    }

    #[test]
    fn no_samples_is_said() {
        assert_eq!(
            histogram("RTT", &[series("off", vec![])], 80, Charset::Ascii),
            "RTT\nno samples\n"
        );
    }

    #[test]
    fn times_have_three_digits() {
        assert_eq!(time(0.5), "500 ns");
        assert_eq!(time(1.0), "1.00 us");
        assert_eq!(time(99.99), "100 us");
        assert_eq!(time(12_589.0), "12.6 ms");
        assert_eq!(time(2e6), "2.00 s");
    }

    proptest! {
        #[test]
        fn every_sample_is_in_a_bucket(samples in prop::collection::vec(any::<u64>(), 1..200)) {
            let one = series("x", samples.clone());
            let scale = Scale::over(std::slice::from_ref(&one)).unwrap();
            prop_assert!(scale.rows <= MAX_ROWS as usize);
            prop_assert_eq!(scale.count(&one).iter().sum::<u64>(), samples.len() as u64);
            histogram("x", &[one], 0, Charset::Unicode);
        }
    }
}

#[cfg(test)]
mod terminal_tests {
    use super::*;

    #[test]
    fn the_locale_says_whether_blocks_can_be_shown() {
        assert_eq!(Charset::of_locale("de_DE.UTF-8"), Charset::Unicode);
        assert_eq!(Charset::of_locale("C.utf8"), Charset::Unicode);
        assert_eq!(Charset::of_locale("C"), Charset::Ascii);
        assert_eq!(Charset::of_locale("en_GB.ISO-8859-1"), Charset::Ascii);
    }

    #[test]
    fn bars_grow_by_eighths_or_by_signs() {
        assert_eq!(Charset::Unicode.bar(0), "");
        assert_eq!(Charset::Unicode.bar(17), "██▏");
        assert_eq!(Charset::Ascii.bar(17), "##");
        assert_eq!(Charset::Ascii.bar(1), ".");
        assert_eq!(Charset::Ascii.bar(0), "");
    }
}
