//! What is divided by what: runs under the flood and those without, side by side in one result.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::{Disturbance, Publisher, Run};

/// A comparison made within one result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// What is divided by what.
    pub name: String,
    /// At which payload.
    pub payload_bytes: u32,
    /// The median over the repetitions.
    pub value: Option<f64>,
    /// The smallest over the repetitions; of one alone there is no range.
    pub low: Option<f64>,
    /// The largest over the repetitions; of one alone there is no range.
    pub high: Option<f64>,
}

impl Ratio {
    /// Compares repetitions that were made in turn, each pair side by side in time: `pairs` are
    /// (dividend, divisor). A pair in which either is unknown, or the divisor is 0, says nothing.
    pub fn of_pairs(
        name: impl Into<String>,
        payload_bytes: u32,
        pairs: impl IntoIterator<Item = (Option<f64>, Option<f64>)>,
    ) -> Ratio {
        let quotient = |(dividend, divisor): (Option<f64>, Option<f64>)| {
            Some(dividend? / divisor.filter(|&divisor| divisor > 0.0)?)
        };
        let mut ratios: Vec<f64> = pairs.into_iter().filter_map(quotient).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        let middle = ratios.len() / 2;
        let range = (ratios.len() > 1).then_some(&ratios[..]);
        Ratio {
            name: name.into(),
            payload_bytes,
            value: match ratios.len() {
                0 => None,
                odd if odd % 2 == 1 => Some(ratios[middle]),
                _ => Some((ratios[middle - 1] + ratios[middle]) / 2.0),
            },
            low: range.and_then(|range| range.first().copied()),
            high: range.and_then(|range| range.last().copied()),
        }
    }
}

/// What a run is summarised by, of those quoted (definitions: never p99.9 or the maximum).
type Measure = (&'static str, fn(&Run) -> Option<f64>);

const MEASURES: [Measure; 3] = [
    ("median", |run| run.rtt_us.median),
    ("p99", |run| run.rtt_us.p99),
    ("1 s p99", |run| run.window_p99_median_us),
];
/// How many of them, from the first, people are shown.
const SHOWN_MEASURES: usize = 2;

/// Two valid runs that differ in the flood only.
struct Pair<'a> {
    quiet: &'a Run,
    loaded: &'a Run,
}

impl Pair<'_> {
    fn ratio(&self, (name, measure): Measure) -> Ratio {
        let (datapath, publisher) = (&self.loaded.datapath, self.loaded.publisher.word());
        Ratio::of_pairs(
            format!("{datapath} {publisher} flood {name} / {datapath} {publisher} {name}"),
            self.loaded.payload_bytes,
            [(measure(self.loaded), measure(self.quiet))],
        )
    }
}

fn pairs(runs: &[Run]) -> impl Iterator<Item = Pair<'_>> {
    let valid = || runs.iter().filter(|run| run.invalid.is_none());
    let flooded = valid().filter(|run| run.disturbance == Some(Disturbance::Flood));
    flooded.filter_map(move |loaded| {
        let is_same_otherwise = |quiet: &&Run| {
            quiet.disturbance.is_none()
                && quiet.datapath == loaded.datapath
                && quiet.publisher == loaded.publisher
                && quiet.order == loaded.order
                && quiet.payload_bytes == loaded.payload_bytes
        };
        let quiet = valid().find(is_same_otherwise)?;
        Some(Pair { quiet, loaded })
    })
}

/// How much longer round trips take under the flood, for each pair of valid runs that differ in
/// nothing else.
pub fn ratios(runs: &[Run]) -> Vec<Ratio> {
    let of_pair = |pair: Pair<'_>| MEASURES.map(|measure| pair.ratio(measure));
    pairs(runs).flat_map(of_pair).collect()
}

/// The same for people: a line a payload, two columns a publisher. Empty if nothing can be compared.
pub fn ratio_table(runs: &[Run]) -> String {
    const COLUMN: usize = 9;
    let mut payloads: Vec<u32> = pairs(runs).map(|pair| pair.loaded.payload_bytes).collect();
    payloads.sort_unstable();
    payloads.dedup();
    if payloads.is_empty() {
        return String::new();
    }
    let is_by = |publisher| move |pair: &Pair<'_>| pair.loaded.publisher == publisher;
    let mut publishers = vec![Publisher::Thread, Publisher::Job];
    publishers.retain(|&publisher| pairs(runs).any(|pair| is_by(publisher)(&pair)));
    let shown = &MEASURES[..SHOWN_MEASURES];

    let mut text = String::from("Round trips beside the flood take so many times as long\n");
    // Writing to a string cannot fail.
    let _ = write!(text, "{:>COLUMN$}", "");
    for publisher in &publishers {
        let _ = write!(text, "{:>1$}", publisher.word(), shown.len() * COLUMN);
    }
    let _ = write!(text, "\n{:>COLUMN$}", "payload");
    for (name, _) in publishers.iter().flat_map(|_| shown) {
        let _ = write!(text, "{name:>COLUMN$}");
    }
    text.push('\n');
    for payload in payloads {
        let _ = write!(text, "{:>COLUMN$}", format!("{payload} B"));
        for &publisher in &publishers {
            let pair = pairs(runs)
                .filter(is_by(publisher))
                .find(|pair| pair.loaded.payload_bytes == payload);
            for &measure in shown {
                let value = pair.as_ref().and_then(|pair| pair.ratio(measure).value);
                let value = value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
                let _ = write!(text, "{value:>COLUMN$}");
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{PingRecorder, PongRecorder, Rounds};
    use crate::scenario::plan;
    use crate::scenario::rtt::Config;

    /// A run in which each of 2,000 round trips took that long.
    fn run(config: &Config, rtt_ns: u64) -> Run {
        let (mut ping, pong) = (PingRecorder::new(2_000, 1), PongRecorder::new(2_000, 1));
        for id in 0..2_000 {
            let start_ns = 1 + u64::from(id) * 500_000;
            ping.sent(id, start_ns, start_ns);
            ping.returned(id, ping.nonce(id), start_ns + rtt_ns);
        }
        let rounds = Rounds::merge(ping, pong, None, 500_000).unwrap();
        Run::new(&config.scenario, &rounds, None, None)
    }

    /// The rows of a demo: 30 times as long under the flood.
    fn runs(payloads: &[u32]) -> Vec<Run> {
        let of_row = |row: &Config| match row.scenario.disturbance {
            None => run(row, 200_000),
            Some(_) => run(row, 6_000_000),
        };
        plan::demo(payloads, 1).iter().map(of_row).collect()
    }

    #[test]
    fn a_ratio_is_of_runs_that_differ_in_the_flood_only_and_are_results() {
        let mut runs = runs(&[64, 512]);
        let all = ratios(&runs);
        assert_eq!(all.len(), 4 * MEASURES.len());
        assert!(all.iter().all(|ratio| ratio.value == Some(30.0)));
        assert!(all.iter().all(|ratio| ratio.low.is_none()), "made once");
        runs[0].invalid = Some("the ledger is off".into());
        assert_eq!(ratios(&runs).len(), 3 * MEASURES.len());
    }

    #[test]
    fn ratios_are_shown_by_payload_and_publisher() {
        let mut runs = runs(&[64, 512]);
        runs[0].invalid = Some("the ledger is off".into());
        let lines = [
            "Round trips beside the flood take so many times as long",
            "                      thread               job",
            "  payload   median      p99   median      p99",
            "     64 B        -        -     30.0     30.0",
            "    512 B     30.0     30.0     30.0     30.0",
        ];
        let text = ratio_table(&runs);
        let shown: Vec<&str> = text.lines().collect();
        assert_eq!(shown[0], lines[0]);
        assert_eq!(shown[2..], lines[2..], "{text}");
        assert!(shown[1].ends_with("job") && shown[1].contains("thread"));
        assert_eq!(ratio_table(&runs[..1]), "");
    }

    #[test]
    fn a_ratio_is_the_median_of_pairs_with_its_range() {
        let pairs = [
            (Some(10.0), Some(2.0)),
            (Some(9.0), Some(3.0)),
            (None, Some(1.0)),
            (Some(8.0), Some(2.0)),
        ];
        let ratio = Ratio::of_pairs("x", 64, pairs);
        assert_eq!(
            (ratio.low, ratio.value, ratio.high),
            (Some(3.0), Some(4.0), Some(5.0))
        );
        let unknown = Ratio::of_pairs("x", 64, [(Some(1.0), Some(0.0))]);
        assert_eq!(
            (unknown.low, unknown.value, unknown.high),
            (None, None, None)
        );
        let once = Ratio::of_pairs("x", 64, [(Some(6.0), Some(2.0))]);
        assert_eq!((once.low, once.value, once.high), (None, Some(3.0), None));
    }
}
