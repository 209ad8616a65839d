//! Bars and a concluding sentence for one screen: the labelled runs of each block, and the ratios of its pairs.

use std::fmt::Write;

use super::{Measure, Of, Ratio, Report, Run};
use crate::experiment::Block;

/// Block with the valid runs of its labelled cells.
pub(super) struct Group<'a> {
    pub(super) block: &'a Block,
    pub(super) runs: Vec<(&'a str, &'a Run)>,
    ratios: Vec<&'a Ratio>,
}

/// Blocks with at least two bars, or with one of a disturbed run.
pub(super) fn groups(report: &Report) -> Vec<Group<'_>> {
    let group = |(index, block)| {
        let of_block = report.runs.iter().filter(|run| run.block == Some(index));
        let valid = of_block.filter(|run| run.invalid.is_none() && run.repetition == 1);
        let ratios = report.ratios.iter().filter(|ratio| ratio.block == index);
        Group {
            block,
            runs: valid.filter_map(|run| Some((run.label()?, run))).collect(),
            ratios: ratios.collect(),
        }
    };
    let groups = report.scenario.blocks.iter().enumerate().map(group);
    let is_shown = |group: &Group<'_>| {
        let mut runs = group.runs.iter();
        group.runs.len() >= 2 || runs.any(|(_, run)| run.settings.disturbance.is_some())
    };
    groups.filter(is_shown).collect()
}

impl Group<'_> {
    fn ratio(&self, measure: Measure) -> Option<&Ratio> {
        let mut ratios = self.ratios.iter().copied();
        ratios.find(|ratio| ratio.of == Of::Rtt && ratio.measure == measure)
    }

    /// Sentence about the ratio of the p99s, and about that of the medians if only the medians differ. One stall of the
    /// machine can hide the difference between the p99s of short runs.
    fn finding(&self) -> Option<String> {
        let p99 = self.ratio(Measure::P99)?;
        let median = self.ratio(Measure::Median);
        let median = median.filter(|median| median.is_difference() && !p99.is_difference());
        let mut words = format!("{}, p99 {}", self.block.under, finding(p99)?);
        if let Some(median) = median.and_then(finding) {
            words += &format!("; the median {median}");
        }
        let first = words.chars().next().map(char::to_uppercase);
        let rest = words.chars().skip(1);
        Some(
            first
                .into_iter()
                .flatten()
                .chain(rest)
                .chain(['.'])
                .collect(),
        )
    }
}

/// A sentence for each block from its ratios. Empty if no block with bars has the words for one.
pub(super) fn conclusion(groups: &[Group<'_>]) -> Vec<String> {
    let has_words = |group: &&Group<'_>| !group.block.under.is_empty();
    if !groups.iter().any(|group| has_words(&group)) {
        return Vec::new();
    }
    let sentences = groups.iter().filter(has_words).filter_map(Group::finding);
    let sentences: Vec<String> = sentences.collect();
    if sentences.is_empty() {
        return vec!["Nothing is compared, because no disturbed run has a counterpart.".to_owned()];
    }
    sentences
}

/// Words for a ratio of the time without isolane's mechanisms to the time with them.
fn finding(ratio: &Ratio) -> Option<String> {
    let value = ratio.value?;
    let Some((low, high)) = ratio.low.zip(ratio.high) else {
        return Some(format!(
            "is not compared (ratio {value:.1}, too few independent samples for an interval)"
        ));
    };
    Some(if low > 1.0 {
        format!("is {value:.1} times shorter with isolane ({low:.1} to {high:.1})")
    } else if high < 1.0 {
        let [value, low, high] = [value, high, low].map(f64::recip);
        format!("is {value:.1} times longer with isolane ({low:.1} to {high:.1})")
    } else {
        format!("shows no difference ({low:.1} to {high:.1})")
    })
}

/// Greatest p99 of all bars in microseconds, which is the length of a full bar.
pub(super) fn longest_us(groups: &[Group<'_>]) -> f64 {
    let runs = groups.iter().flat_map(|group| &group.runs);
    let p99s = runs.filter_map(|(_, run)| run.rtt_us.p99);
    p99s.fold(0.0, f64::max)
}

/// Lost round trips and priority inversions of a run, if there are any.
pub(super) fn remark(run: &Run) -> String {
    let mut words = Vec::new();
    if run.lost > 0 {
        words.push(format!("{} lost", run.lost));
    }
    if run.disturbed.is_some() {
        words.push(format!("{} inversions", run.inversions.total));
    }
    words.join(", ")
}

/// Time in milliseconds with three digits.
pub(super) fn milliseconds(us: Option<f64>) -> String {
    let Some(us) = us else {
        return "-".to_owned();
    };
    let decimals = match us {
        us if us >= 9_995.0 => 1,
        us if us >= 99.5 => 2,
        _ => 4,
    };
    format!("{:.decimals$} ms", us / 1e3)
}

/// Width of a full bar in characters.
const BAR_CELLS: usize = 24;

/// Bars and conclusion for a terminal, at most 100 columns wide. Empty without bars.
pub(super) fn text(report: &Report) -> String {
    let groups = groups(report);
    if groups.is_empty() {
        return String::new();
    }
    let longest_us = longest_us(&groups);
    // Writing to a string cannot fail.
    let mut text = format!(
        "{:<26} {:<BAR_CELLS$} {:>10} {:>10}\n",
        "Round trips", "", "median", "p99"
    );
    for group in &groups {
        let _ = writeln!(text, "{}", group.block.title);
        for (label, run) in &group.runs {
            let line = format!(
                "  {label:<24} {} {:>10} {:>10}  {}",
                bar_cells(run, longest_us),
                milliseconds(run.rtt_us.median),
                milliseconds(run.rtt_us.p99),
                remark(run)
            );
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    let _ = writeln!(
        text,
        "Bars are linear from 0 to {}: \u{2588} up to the median, \u{2591} up to p99.\n",
        milliseconds(Some(longest_us))
    );
    text.extend(conclusion(&groups).iter().map(|sentence| wrapped(sentence)));
    text
}

/// Bar of [`BAR_CELLS`] cells: full up to the median, light up to p99.
fn bar_cells(run: &Run, longest_us: f64) -> String {
    let cells = |us: Option<f64>| us.map_or(0.0, |us| us / longest_us.max(1.0) * BAR_CELLS as f64);
    let p99 = (cells(run.rtt_us.p99).round() as usize).min(BAR_CELLS);
    let median = cells(run.rtt_us.median).min(BAR_CELLS as f64);
    let eighths = (median * 8.0).round().max(1.0) as usize;
    let (full, rest) = (eighths / 8, eighths % 8);
    let mut bar = "\u{2588}".repeat(full);
    // U+258F is an eighth of a cell, U+2589 seven eighths.
    bar.extend((rest > 0).then(|| {
        [
            '\u{258f}', '\u{258e}', '\u{258d}', '\u{258c}', '\u{258b}', '\u{258a}', '\u{2589}',
        ][rest - 1]
    }));
    let used = full + usize::from(rest > 0);
    bar.push_str(&"\u{2591}".repeat(p99.saturating_sub(used)));
    let used = used.max(p99);
    bar + &" ".repeat(BAR_CELLS.saturating_sub(used))
}

/// Columns of the bars' text.
const COLUMNS: usize = 98;

/// Text in lines of at most `COLUMNS` characters.
pub fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("one line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= COLUMNS {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Cell, shipped};
    use crate::report::tests::report;

    fn demo(slow_us: impl Fn(&Cell) -> u64) -> Report {
        report(shipped("demo").expect("shipped"), slow_us)
    }

    fn is_plain(cell: &Cell) -> bool {
        let label = cell.label.as_deref().unwrap_or_default();
        [
            "flood, plain sockets",
            "bulk, jobs in FIFO order",
            "storm, no budgets",
        ]
        .contains(&label)
    }

    fn conclude(report: &Report) -> String {
        conclusion(&groups(report)).join(" ")
    }

    #[test]
    fn every_planned_run_has_its_bar_and_every_pair_its_ratio() {
        let report = demo(|_| 300);
        let bars: usize = groups(&report).iter().map(|group| group.runs.len()).sum();
        assert_eq!((bars, report.ratios.len()), (report.runs.len(), 6));
    }

    #[test]
    fn the_conclusion_says_what_the_run_shows() {
        let of =
            |plain: u64, with: u64| demo(move |cell| if is_plain(cell) { plain } else { with });
        let shorter = conclude(&of(4_000, 1_000));
        let flood = "Under the flood, p99 is 4.0 times shorter with isolane (4.0 to 4.0). Beside ";
        assert!(shorter.starts_with(flood), "{shorter}");
        let longer = conclude(&of(500, 1_000));
        let storm = "Under the storm, p99 is 2.0 times longer with isolane (2.0 to 2.0).";
        assert!(longer.ends_with(storm), "{longer}");
        let alike = conclude(&of(500, 500));
        let flood = "Under the flood, p99 shows no difference (1.0 to 1.0).";
        assert!(alike.starts_with(flood), "{alike}");
    }

    #[test]
    fn an_invalid_run_has_no_bar() {
        let mut report = demo(|_| 300);
        report.runs[2].invalid = Some("frames were dropped before the cable".into());
        assert!(!text(&report).contains("flood, isolane"));
    }

    #[test]
    fn the_bars_fit_on_one_screen() {
        let mut report = demo(|_| 300_000);
        for run in &mut report.runs {
            run.lost = 6_000;
            run.inversions.total = 100_000;
        }
        let text = text(&report);
        assert!(text.lines().count() <= 20, "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{text}"
        );
        report.runs.clear();
        assert_eq!(super::text(&report), "");
    }

    #[test]
    fn a_bar_is_full_up_to_the_median_and_light_up_to_p99() {
        let mut run = demo(|_| 300).runs.remove(0);
        (run.rtt_us.median, run.rtt_us.p99) = (Some(500.0), Some(750.0));
        let bar = "\u{2588}".repeat(12) + &"\u{2591}".repeat(6) + &" ".repeat(6);
        assert_eq!(bar_cells(&run, 1_000.0), bar);
        (run.rtt_us.median, run.rtt_us.p99) = (Some(10.0), Some(1_000.0));
        let short = bar_cells(&run, 1_000.0);
        assert!(short.starts_with("\u{258e}\u{2591}"), "{short}");
        assert_eq!(short.chars().count(), BAR_CELLS);
    }

    #[test]
    fn times_have_three_digits() {
        let times = [Some(4.26), Some(364.0), Some(12_613.0), None].map(milliseconds);
        assert_eq!(times, ["0.0043 ms", "0.36 ms", "12.6 ms", "-"]);
    }
}
