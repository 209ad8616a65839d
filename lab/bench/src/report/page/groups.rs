//! Groups of runs for one figure: runs that differ only in the compared property.

use plotters::style::RGBColor;

use super::figure::{Bucket, Curve, CurveStyle};
use crate::cable::Arbiter;
use crate::report::{Disturbance, Order, Place, ReceiveWork, Run, Scenario, Stage, Step, summary};
use crate::scenario::plan::Part;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// The link between the hosts, and other traffic on it.
    Link,
    /// The hosts' receive work.
    Receive,
    /// Other work of the participant.
    InProcess,
}

/// Runs of one figure, undisturbed ones first.
#[derive(Clone, Debug)]
pub(super) struct Group<'a> {
    pub(super) subject: Subject,
    pub(super) title: String,
    pub(super) runs: Vec<&'a Run>,
}

impl Subject {
    pub(super) const ALL: [Subject; 3] = [Subject::Link, Subject::Receive, Subject::InProcess];

    pub(super) fn title(self) -> &'static str {
        match self {
            Subject::Link => "The link",
            Subject::Receive => "Receive work on the hosts",
            Subject::InProcess => "Inside the participant",
        }
    }

    /// Parts of the demo about this subject, whose explanations the page shows.
    pub(super) fn explanation(self) -> &'static [Part] {
        match self {
            Subject::Link => &[Part::Link, Part::Arbiter],
            Subject::Receive => &[Part::Lane],
            Subject::InProcess => &[Part::Executor],
        }
    }
}

impl Group<'_> {
    /// Curves of the runs, with distinguishing names: those of the summary if it has all these runs.
    pub(super) fn curves(&self) -> Vec<Curve> {
        let labels: Option<Vec<_>> = self.runs.iter().map(|run| summary::label(run)).collect();
        let names: Vec<String> = match labels {
            Some(labels) => labels.into_iter().map(str::to_owned).collect(),
            None => self.runs.iter().map(|run| name(run)).collect(),
        };
        let runs = self.runs.iter().zip(names);
        runs.map(|(run, name)| curve(run, name)).collect()
    }
}

/// All figures of a result, in the order of the runs. A run without a counterpart has its own figure.
pub(super) fn of(runs: &[Run]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for run in runs {
        if groups
            .iter()
            .any(|group| group.runs.iter().any(|member| std::ptr::eq(*member, run)))
        {
            continue;
        }
        if is_about_receive_work(run) {
            groups.extend(of_receive_work(runs, run));
            continue;
        }
        let alike = || {
            let others = runs.iter().filter(|other| !is_about_receive_work(other));
            others.filter(|other| is_alike(other, run) && other.datapath == run.datapath)
        };
        let inside: Vec<Disturbance> =
            distinct(alike().filter_map(|run| run.disturbance.filter(is_in_process)));
        // Baselines used only by storms are in the storms' figure.
        let is_elsewhere = alike().all(is_quiet_baseline)
            && runs
                .iter()
                .any(|other| is_about_receive_work(other) && is_alike(other, run));
        if inside.is_empty() && !is_elsewhere {
            groups.push(group(Subject::Link, alike().collect()));
        }
        for disturbance in inside {
            let members =
                alike().filter(|run| run.disturbance.is_none_or(|of_run| of_run == disturbance));
            groups.push(group(Subject::InProcess, members.collect()));
        }
    }
    groups
}

/// Receive-work figures of a run: one per disturbance, each with the undisturbed runs.
fn of_receive_work<'a>(runs: &'a [Run], run: &Run) -> Vec<Group<'a>> {
    let alike = || {
        runs.iter().filter(|other| {
            let is_compared = is_about_receive_work(other) || is_quiet_baseline(other);
            is_compared && is_alike(other, run)
        })
    };
    let condition_of = |run: &Run| (run.disturbance, run.bulk_reader.is_some());
    let disturbed = distinct(
        alike()
            .filter(|run| run.disturbance.is_some())
            .map(condition_of),
    );
    if disturbed.is_empty() {
        return vec![group(Subject::Receive, alike().collect())];
    }
    let of_one = |one: (Option<Disturbance>, bool)| {
        let members = alike().filter(|run| run.disturbance.is_none() || condition_of(run) == one);
        group(Subject::Receive, members.collect())
    };
    disturbed.into_iter().map(of_one).collect()
}

fn group(subject: Subject, mut runs: Vec<&Run>) -> Group<'_> {
    runs.sort_by_key(|run| run.disturbance.is_some());
    let run = runs[0];
    let disturbed = runs.iter().find(|run| run.disturbance.is_some());
    let condition = disturbed.map_or("undisturbed", |run| disturbance_of(run));
    let over = match subject {
        // These figures compare the datapaths.
        Subject::Receive => String::new(),
        Subject::Link | Subject::InProcess => format!(" over {}", run.datapath),
    };
    let title = format!(
        "{} B{over}, published by a {}: {condition}",
        run.payload_bytes,
        run.publisher.word()
    );
    Group {
        subject,
        title,
        runs,
    }
}

/// Returns whether two runs are comparable: they differ at most in disturbance, order, arbiter and way of receiving.
fn is_alike(one: &Run, other: &Run) -> bool {
    let setting = |run: &Run| {
        let sizes = (run.payload_bytes, run.rate_hz);
        (run.publisher, sizes, run.repetition)
    };
    setting(one) == setting(other) && one.is_on_link_of(other)
}

/// Returns whether a run shows the cost of receive work, or a remedy against it.
fn is_about_receive_work(run: &Run) -> bool {
    run.disturbance == Some(Disturbance::Storm)
        || run.bulk_reader.is_some()
        || run.receive_work != ReceiveWork::Softirq
        || run.stages.contains(&Stage::Xdp)
}

/// Returns whether a run is a storm's baseline: undisturbed, with jobs by priority.
fn is_quiet_baseline(run: &Run) -> bool {
    run.disturbance.is_none() && run.order == Order::Priority
}

fn is_in_process(disturbance: &Disturbance) -> bool {
    disturbance.is_in_process()
}

/// Values without repetitions, in their order.
pub(super) fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}

fn disturbance_of(run: &Run) -> &'static str {
    match (run.disturbance, run.bulk_reader) {
        (Some(Disturbance::Flood), Some(_)) => "flood for a bulk reader",
        (disturbance, _) => disturbance.map_or("undisturbed", Disturbance::word),
    }
}

/// Name that distinguishes a run within its figure.
pub(super) fn name(run: &Run) -> String {
    let disturbance = disturbance_of(run);
    let order = match run.order {
        Order::Priority => "",
        Order::Fifo => ", jobs first in first out",
    };
    let link = match run.arbiter() {
        Some(Arbiter::Strict) => ", link strict",
        Some(Arbiter::Fifo)
            if run
                .disturbance
                .is_some_and(|of_run| !is_in_process(&of_run)) =>
        {
            ", link first in first out"
        }
        _ => "",
    };
    let is_apart = run.cores.is_some_and(|cores| cores.ping != cores.pong);
    let executor = match run.order {
        Order::Priority if is_apart || run.disturbance.as_ref().is_some_and(is_in_process) => {
            ", jobs by priority"
        }
        _ => "",
    };
    let remedy = match Step::of_run(run) {
        Some(step) if is_about_receive_work(run) => format!(", {}", step.word()),
        _ => String::new(),
    };
    format!("{disturbance}{executor}{order}{link}{remedy}")
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
/// Colour of runs that no step describes.
const OTHER: RGBColor = RGBColor(128, 128, 128);

/// Style of a run's curve and bar: the colour means the step, a dashed line an undisturbed run, and a thin line a
/// disturbed link that sends frames in order of arrival.
pub(super) fn style(run: &Run) -> CurveStyle {
    let scenario = Scenario::of_run(run);
    let of_step = STEP_COLOURS
        .iter()
        .find(|(step, _)| step.of(scenario.clone()) == scenario);
    let is_outside = run
        .disturbance
        .is_some_and(|of_run| of_run.place() == Place::Link);
    let is_fifo_link = is_outside && run.arbiter() == Some(Arbiter::Fifo);
    let (colour, width) = match of_step {
        Some((Step::SocketALevel, _)) if is_fifo_link => (FIFO_LINK, 2),
        Some((Step::OneSocket, colour)) => (*colour, 2),
        Some((_, colour)) => (*colour, if is_fifo_link { 1 } else { 2 }),
        None => (OTHER, 2),
    };
    CurveStyle {
        colour,
        is_dashed: run.disturbance.is_none(),
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::silent_run;

    #[test]
    fn a_colour_means_the_same_step_in_every_figure() {
        let mut colours: Vec<String> = Vec::new();
        for step in Step::ALL {
            let [quiet, storm] = [None, Some(Disturbance::Storm)].map(|disturbance| {
                let mut run = silent_run(disturbance);
                let scenario = step.of(Scenario::of_run(&run));
                run.stages = scenario.stages;
                run.order = scenario.order;
                run.datapath = scenario.datapath;
                run.receive_work = scenario.receive_work;
                style(&run)
            });
            assert_eq!(quiet.colour, storm.colour, "{step:?}");
            assert!(quiet.is_dashed && !storm.is_dashed);
            colours.push(quiet.css_colour());
        }
        colours.sort_unstable();
        colours.dedup();
        assert_eq!(colours.len(), Step::ALL.len());
    }
}
