//! The scenario's tables: a seed's cells, and what the worst seed says.

use std::fmt::{self, Write as _};

use super::Seed;
use super::cell::{self, Path};
use super::trace::Traced;

/// Aims of lanes beside the flood over lanes without, at p99.9 and at the maximum.
const AIM_P99_9: f64 = 1.2;
const AIM_MAX: f64 = 1.5;
/// The aim of untuned sockets' maximum over the lane's, both beside the flood.
const AIM_SOCKETS: f64 = 10.0;

/// A seed's cells.
pub(super) fn of_seed(cells: &[cell::Result]) -> String {
    let mut text = format!(
        "{:16} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6}  hash of the samples\n",
        "microseconds", "disturbed", "median", "p99", "p99.9", "max", "lost"
    );
    for result in cells {
        let disturbed = if result.cell.is_disturbed {
            "yes"
        } else {
            "no"
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:16} {disturbed:>9} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>6}  {}",
            result.cell.path,
            result.median_us,
            result.p99_us,
            result.p99_9_us,
            result.max_us,
            result.run.lost,
            result.samples_hash
        );
        if let Some(reason) = &result.run.invalid {
            let _ = writeln!(text, "INVALID: {reason}");
        }
    }
    text
}

/// Whose time round trips took: on average, and the slowest ones', without and beside the flood.
pub(super) fn of_traced(cells: &[Traced]) -> String {
    let mut text = String::new();
    for traced in cells {
        let beside = match (traced.is_disturbed, traced.with_locks) {
            (false, _) => "undisturbed",
            (true, false) => "beside the flood",
            (true, true) => "beside the flood, with locks",
        };
        let _ = writeln!(
            text,
            "lane {beside}: p99.9 {:.1} us, max {:.1} us\n{:44} {:>9} {:>9}",
            traced.p99_9_us, traced.max_us, "on average in a trip", "all", "slowest"
        );
        let account = &traced.account;
        for share in &account.slow {
            let mut all = account.all.iter();
            let of_all = all.find(|other| other.what == share.what);
            let of_all = of_all.map_or(0.0, |other| other.mean);
            let _ = writeln!(text, "{:44} {of_all:>9.1} {:>9.1}", share.what, share.mean);
        }
        let _ = writeln!(text, "the slowest:");
        for line in &account.slowest {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

/// Ratios of a seed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ratios {
    seed: u64,
    /// Lanes beside the flood over lanes without.
    p99_9: f64,
    max: f64,
    /// Untuned sockets over lanes, both beside the flood.
    sockets_max: f64,
}

impl Ratios {
    fn of(seed: &Seed) -> Option<Ratios> {
        let cell = |path: Path, is_disturbed: bool| {
            let mut cells = seed.cells.iter();
            cells.find(|result| result.cell == cell::Cell { path, is_disturbed })
        };
        let quiet = cell(Path::LaneTuned, false)?;
        let lane = cell(Path::LaneTuned, true)?;
        let sockets = cell(Path::SocketsUntuned, true)?;
        Some(Ratios {
            seed: seed.seed,
            p99_9: lane.p99_9_us / quiet.p99_9_us,
            max: lane.max_us / quiet.max_us,
            sockets_max: sockets.max_us / lane.max_us,
        })
    }
}

/// What all seeds say.
#[derive(Debug)]
pub(super) struct Summary {
    ratios: Vec<Ratios>,
    /// What makes the whole no result.
    faults: Vec<String>,
}

impl Summary {
    pub(super) fn of(seeds: &[Seed]) -> Summary {
        let mut faults = Vec::new();
        for seed in seeds {
            if !seed.is_repeatable {
                faults.push(format!(
                    "seed {}: two boots told different things",
                    seed.seed
                ));
            }
            for result in &seed.cells {
                if let Some(reason) = &result.run.invalid {
                    faults.push(format!(
                        "seed {}, {}: {reason}",
                        seed.seed, result.cell.path
                    ));
                }
            }
        }
        Summary {
            ratios: seeds.iter().filter_map(Ratios::of).collect(),
            faults,
        }
    }

    /// Whether the numbers are what they say: aims may be missed, but not told wrongly.
    pub(super) fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:>6} {:>24} {:>24} {:>34}",
            "seed",
            "lane, flood/quiet p99.9",
            "lane, flood/quiet max",
            "untuned sockets/lane, flood, max"
        )?;
        for ratios in &self.ratios {
            writeln!(
                f,
                "{:>6} {:>24.2} {:>24.2} {:>34.2}",
                ratios.seed, ratios.p99_9, ratios.max, ratios.sockets_max
            )?;
        }
        let largest = |of: fn(&Ratios) -> f64| self.ratios.iter().map(of).fold(0.0, f64::max);
        let smallest = self.ratios.iter().map(|ratios| ratios.sockets_max);
        let worst = [
            largest(|ratios| ratios.p99_9),
            largest(|ratios| ratios.max),
            smallest.fold(f64::INFINITY, f64::min),
        ];
        writeln!(
            f,
            "{:>6} {:>24.2} {:>24.2} {:>34.2}",
            "worst", worst[0], worst[1], worst[2]
        )?;
        let met = |is_met: bool| if is_met { "met" } else { "missed" };
        writeln!(
            f,
            "{:>6} {:>24} {:>24} {:>34}",
            "aim",
            format!("{AIM_P99_9}: {}", met(worst[0] <= AIM_P99_9)),
            format!("{AIM_MAX}: {}", met(worst[1] <= AIM_MAX)),
            format!("{AIM_SOCKETS}: {}", met(worst[2] >= AIM_SOCKETS)),
        )?;
        self.faults
            .iter()
            .try_for_each(|fault| writeln!(f, "FAILED: {fault}"))
    }
}
