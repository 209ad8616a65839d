//! Comparison with numpy and scipy. `reference.py` writes `reference.json` and says how the series are made.

use serde::Deserialize;

use super::quantile::fractional_rank;
use super::{Interval, Statistics, paired_ratio, unpaired_ratio};

#[derive(Deserialize)]
struct Reference {
    summaries: Vec<Summary>,
    ranks: Vec<Ranks>,
    integer_ranks: Vec<Ranks>,
    ratios: Ratios,
}

#[derive(Deserialize)]
struct Summary {
    series: u64,
    distribution: String,
    count: usize,
    min: f64,
    max: f64,
    mean: f64,
    variance: f64,
    standard_deviation: f64,
    pdv_mean: f64,
    pdv_p99: Option<f64>,
    quantiles: Quantiles<Option<f64>>,
    independent_95: Quantiles<Option<[f64; 2]>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Quantiles<T> {
    median: T,
    p99: T,
    p99_9: T,
    p99_99: T,
}

#[derive(Deserialize)]
struct Ranks {
    count: f64,
    share: f64,
    ranks: [Option<f64>; 2],
}

#[derive(Deserialize)]
struct Ratios {
    dividend: Vec<f64>,
    divisor: Vec<f64>,
    paired: [f64; 3],
    unpaired: [f64; 3],
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("reference.json")).expect("what reference.py writes")
}

/// Uniform number between 0 and 1 (SplitMix64).
fn uniform(series: u64, at: u64) -> f64 {
    let mut state = series.wrapping_add((at + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^= state >> 31;
    ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

fn series(summary: &Summary) -> Vec<u64> {
    let count = summary.count as u64;
    let value = |at: u64| {
        let one = uniform(summary.series, at);
        let other = uniform(summary.series, count + at);
        let ns = match summary.distribution.as_str() {
            "uniform" => 1e5 + 1e5 * one,
            "exponential" => -1e5 * one.ln(),
            "lognormal" => {
                let normal = (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos();
                1e5 * (0.5 * normal).exp()
            }
            "pareto" => 1e5 * one.powf(-1.0 / 2.5),
            name => panic!("unknown distribution {name}"),
        };
        (ns + 0.5).floor() as u64
    };
    (0..count).map(value).collect()
}

fn is_near(actual: f64, expected: f64, relative: f64) -> bool {
    (actual - expected).abs() <= relative * expected.abs()
}

#[test]
fn summaries_are_those_of_numpy() {
    for expected in reference().summaries {
        let all = Statistics::of(series(&expected));
        let name = format!("series {}, {}", expected.series, expected.distribution);
        let exact = [
            (all.min, Some(expected.min)),
            (all.max, Some(expected.max)),
            (all.median, expected.quantiles.median),
            (all.p99, expected.quantiles.p99),
            (all.p99_9, expected.quantiles.p99_9),
            (all.p99_99, expected.quantiles.p99_99),
        ];
        for (actual, expected) in exact {
            assert_eq!(actual, expected, "{name}");
        }
        let near = [
            (all.mean, Some(expected.mean)),
            (all.variance, Some(expected.variance)),
            (all.standard_deviation, Some(expected.standard_deviation)),
            (all.pdv_mean, Some(expected.pdv_mean)),
            (all.jitter, Some(expected.max - expected.min)),
        ];
        for (actual, expected) in near {
            let (actual, expected) = (actual.unwrap(), expected.unwrap());
            assert!(
                is_near(actual, expected, 1e-10),
                "{name}: {actual} {expected}"
            );
        }
        if let Some(actual) = all.pdv_p99 {
            assert!(
                is_near(actual, expected.pdv_p99.unwrap(), 1e-12),
                "{name}: {actual}"
            );
        }
    }
}

#[test]
fn intervals_of_independent_values_are_close_to_those_of_scipy() {
    for expected in reference().summaries {
        let all = Statistics::of(series(&expected));
        let intervals = [
            (all.median_95, expected.independent_95.median),
            (all.p99_95, expected.independent_95.p99),
            (all.p99_9_95, expected.independent_95.p99_9),
        ];
        for (actual, theirs) in intervals {
            let (Some([low, high]), Some([their_low, their_high])) = (actual, theirs) else {
                assert_eq!(actual, theirs, "series {}", expected.series);
                continue;
            };
            // Ours take the estimated dependence into account.
            let width = (high - low) / (their_high - their_low);
            assert!(
                (0.6..1.4).contains(&width),
                "series {}: {width}",
                expected.series
            );
            assert!(low < their_high && their_low < high);
        }
    }
}

#[test]
fn fractional_ranks_are_those_of_the_beta_distribution() {
    for Ranks {
        count,
        share,
        ranks,
    } in reference().ranks
    {
        let deviation = (count * share * (1.0 - share)).sqrt();
        for (probability, expected) in [0.975, 0.025].into_iter().zip(ranks) {
            let actual = fractional_rank(count, share, probability);
            match (actual, expected) {
                (Some(actual), Some(expected)) => assert!(
                    (actual - expected).abs() < 0.03 * deviation,
                    "{count} {share}: {actual} {expected}"
                ),
                _ => assert_eq!(actual, expected, "{count} {share} {probability}"),
            }
        }
    }
}

#[test]
fn binomial_ranks_enclose_the_fractional_ones() {
    for expected in reference().integer_ranks {
        let Ranks {
            count,
            share,
            ranks,
        } = expected;
        let [Some(low), Some(high)] = ranks else {
            panic!("no ranks of {count}");
        };
        let rank = |probability| fractional_rank(count, share, probability);
        // A binomial rank above the number of values is no rank.
        if high > count {
            continue;
        }
        // The normal approximation may be a tenth of a rank off.
        let is_enclosed = |rank: f64, least: f64| (least - 0.1..=least + 1.1).contains(&rank);
        assert!(
            is_enclosed(rank(0.975).unwrap(), low),
            "{count} {share} {low}"
        );
        assert!(
            is_enclosed(rank(0.025).unwrap(), high - 1.0),
            "{count} {share} {high}"
        );
    }
}

#[test]
fn intervals_of_ratios_are_those_of_scipy() {
    let Ratios {
        dividend,
        divisor,
        paired,
        unpaired,
    } = reference().ratios;
    let check = |actual: Option<Interval>, expected: [f64; 3]| {
        let Interval { value, low, high } = actual.unwrap();
        let pairs = [value, low, high].into_iter().zip(expected);
        for (actual, expected) in pairs {
            assert!(is_near(actual, expected, 1e-7), "{actual} {expected}");
        }
    };
    check(paired_ratio(&dividend), paired);
    check(unpaired_ratio(&dividend, &divisor), unpaired);
}
