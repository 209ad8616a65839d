//! `isolane bench compare`: two results, cell by cell.

use std::path::{Path, PathBuf};

use clap::Args;
use isolane_bench::record::Dataset;
use isolane_bench::report::{self, MeasuredResult, Of};

use super::{measure, scenarios};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{print_json_or, tell};
use crate::values::Destination;

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// Folder of a measurement, or its `report.json`
    #[arg(value_name = "A")]
    a: PathBuf,
    /// Folder or `report.json` of the measurement to compare with A
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Write the comparison as JSON to this file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<Destination>,
}

impl Compare {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let reports = [scenarios::read(&self.a)?, scenarios::read(&self.b)?];
        let times = [times_of(&self.a), times_of(&self.b)];
        let result = |path: &Path, of: usize| MeasuredResult {
            name: path.display().to_string(),
            report: &reports[of],
            times: &times[of],
        };
        let comparison = report::compare_results(&result(&self.a, 0), &result(&self.b, 1));
        print_json_or(&comparison, self.json.as_ref(), report::comparison_text)
    }
}

/// Returns the function that reads the round trips of a run. A file has none.
fn times_of(path: &Path) -> impl Fn(u32) -> Option<Vec<u64>> {
    let data = path.is_dir().then(|| Dataset::in_folder(path));
    move |number| {
        let read = measure::times(data.as_ref()?, number, Of::Rtt);
        read.map_err(|error| tell(format!("run {number} has no times: {error}")))
            .ok()
    }
}
