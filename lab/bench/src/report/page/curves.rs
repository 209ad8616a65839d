//! Figures of a block: the runs of one figure differ in the first compared factor.

use plotters::style::RGBColor;
use toml::Table;

use super::figure::{Bucket, Curve, CurveStyle};
use crate::cable::Arbiter;
use crate::experiment::Block;
use crate::report::compare::words;
use crate::report::{Order, Place, Report, Run, Stage, Step};

/// Runs of one figure, undisturbed ones first.
pub(super) struct Figure<'a> {
    pub(super) title: String,
    pub(super) runs: Vec<&'a Run>,
    pub(super) curves: Vec<Curve>,
}

/// Figures of a block, from the first repetition.
pub(super) fn figures<'a>(report: &'a Report, index: usize) -> Vec<Figure<'a>> {
    let block = &report.scenario.blocks[index];
    // A factor with one level is not compared.
    let is_varied = |name: &str| {
        let mut factors = block.factors.iter();
        factors.all(|factor| factor.name != name || factor.levels.len() > 1)
    };
    let mut compared = block.comparisons.iter().map(|it| it.factor.as_str());
    let compared = compared.find(|name| is_varied(name));
    let mut groups: Vec<(Table, Vec<&'a Run>)> = Vec::new();
    let of_block =
        |run: &&Run| run.block == Some(index) && run.repetition == 1 && run.stream.is_none();
    for run in report.runs.iter().filter(of_block) {
        let Some(cell) = &run.cell else { continue };
        let mut key = cell.values();
        match compared {
            None | Some("label") => key.clear(),
            Some(factor) => _ = key.remove(factor),
        }
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, runs)) => runs.push(run),
            None => groups.push((key, vec![run])),
        }
    }
    let figure = |(_, mut runs): (Table, Vec<&'a Run>)| {
        runs.sort_by_key(|run| run.settings.disturbance.is_some());
        let curves = runs.iter().map(|run| {
            let name = match (run.label(), compared) {
                (Some(label), _) => label.to_owned(),
                (None, Some(factor)) => of_factors(run, &[factor]),
                (None, None) => name(report, run),
            };
            curve(run, name)
        });
        let others = block.factors.iter().map(|factor| factor.name.as_str());
        let others: Vec<&str> = others.filter(|name| Some(*name) != compared).collect();
        Figure {
            title: match compared {
                None | Some("label") => String::new(),
                Some(_) => of_factors(runs[0], &others),
            },
            curves: curves.collect(),
            runs,
        }
    };
    groups.into_iter().map(figure).collect()
}

/// Name of a run by its label, or by the factors of its block.
pub(super) fn name(report: &Report, run: &Run) -> String {
    let block: Option<&Block> = run
        .block
        .and_then(|index| report.scenario.blocks.get(index));
    let factors = block.map_or(&[][..], |block| &block.factors);
    let names: Vec<&str> = factors.iter().map(|factor| factor.name.as_str()).collect();
    run.label()
        .map_or_else(|| of_factors(run, &names), str::to_owned)
}

fn of_factors(run: &Run, names: &[&str]) -> String {
    let value = |name: &&str| Some(words(name, &run.cell.as_ref()?.value(name)?));
    let values = names.iter().filter_map(value);
    values.collect::<Vec<_>>().join(", ")
}

/// Colour of each step, on a light and on a dark ground. The first six are distinguishable with any colour vision (Okabe
/// and Ito, 2008).
const STEP_COLOURS: [(Step, RGBColor); 7] = [
    (Step::OneSocket, RGBColor(213, 94, 0)),
    (Step::SocketALevel, RGBColor(0, 114, 178)),
    (Step::Budgets, RGBColor(0, 158, 115)),
    (Step::Lane, RGBColor(204, 121, 167)),
    (Step::Xdp, RGBColor(176, 156, 0)),
    (Step::NapiPriorities, RGBColor(86, 180, 233)),
    (Step::Steering, RGBColor(150, 90, 40)),
];
/// Colour of a socket per level on a link that sends the flood in order of arrival.
const FIFO_LINK: RGBColor = RGBColor(230, 159, 0);
/// Style of a run's curve and bar: the colour means the mechanisms, a dashed line an undisturbed run, and a thin line a
/// disturbed link that sends frames in order of arrival.
pub(super) fn style(run: &Run) -> CurveStyle {
    let has = |stage| run.settings.stages.contains(&stage);
    let step = match run.cell.as_ref().and_then(|cell| cell.step) {
        Some(step) => step,
        None if run.settings.order == Order::Fifo => Step::OneSocket,
        None if has(Stage::Budgets) => Step::Budgets,
        None if has(Stage::Xdp) => Step::Lane,
        None => Step::SocketALevel,
    };
    let is_outside = run
        .settings
        .disturbance
        .is_some_and(|of_run| of_run.place() == Place::Link);
    let is_fifo_link = is_outside && run.arbiter() == Some(Arbiter::Fifo);
    let of_step = STEP_COLOURS.iter().find(|(known, _)| *known == step);
    let colour = of_step.map_or(FIFO_LINK, |(_, colour)| *colour);
    let (colour, width) = match step {
        Step::SocketALevel if is_fifo_link => (FIFO_LINK, 2),
        Step::OneSocket => (colour, 2),
        _ => (colour, if is_fifo_link { 1 } else { 2 }),
    };
    CurveStyle {
        colour,
        is_dashed: run.settings.disturbance.is_none(),
        width,
    }
}

fn curve(run: &Run, name: String) -> Curve {
    let distribution = run.distribution.rtt_us.iter();
    let buckets = distribution.flat_map(|distribution| &distribution.0);
    let buckets = buckets.map(|&(low_us, high_us, count)| Bucket {
        low_us,
        high_us,
        count,
    });
    Curve {
        name,
        style: style(run),
        buckets: buckets.collect(),
        samples: run.samples,
        shape: run.shape.clone(),
    }
}
