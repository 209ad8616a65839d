//! Expectations of a block: counters of each run that must be zero, or above zero.
//!
//! Stalls of a machine cause any latency, but no priority inversion, no critical loss and no use of reserved buffers.
//! These are counted. A run with all isolation mechanisms must have none. A companion run without one mechanism must have
//! some, which proves that the counter works.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::Run;
use crate::scenario::ScenarioError;
use crate::scenario::flow::Flow;
use crate::scenario::rtt::{Outcome, weak_flood};

/// Maximum number of attempts at a run that the machine spoils, or that fails.
pub const TRIES: u32 = 3;

/// Share of the CPU time of a stream's cores above which a hypervisor spoils a stream.
const MAX_STOLEN: f64 = 0.01;

/// Isolation counter of a run.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Counter {
    /// Priority inversions of all levels at both ends. Null if an end delivered samples without a receive timestamp, for
    /// which inversions cannot be detected.
    Inversions,
    /// Critical round trips that did not return.
    Lost,
    /// Polls at both ends that found fewer free buffers than are reserved for the critical lane. Buffers that the
    /// critical lane itself took do not count. Null if an end reserves no buffers (sockets).
    Touched,
    /// Critical samples in no named count, summed over the hops. Null unless samples were written in both directions.
    Unaccounted,
}

/// Isolation counters of a run; null if the run does not have the counter.
pub type Counters = BTreeMap<Counter, Option<u64>>;

impl Counter {
    /// All counters.
    pub const ALL: [Counter; 4] = [
        Counter::Inversions,
        Counter::Lost,
        Counter::Touched,
        Counter::Unaccounted,
    ];

    /// Counters of a run that did not count.
    pub(crate) fn unknown() -> Counters {
        Counter::ALL.map(|counter| (counter, None)).into()
    }

    pub(crate) fn all_of(run: &Run) -> Counters {
        let counters = Counter::ALL.map(|counter| (counter, counter.of(run)));
        counters.into()
    }

    fn of(self, run: &Run) -> Option<u64> {
        let ways: Option<&[Flow; 2]> = run.flows.as_slice().try_into().ok();
        match self {
            Counter::Inversions => {
                let ([pings, pongs], judged) = (ways?, run.inversions.judged);
                let are_judged =
                    judged.pong >= pings.delivered.max(1) && judged.ping >= pongs.delivered.max(1);
                are_judged.then_some(run.inversions.all_levels)
            }
            Counter::Lost => (run.samples > 0).then_some(run.lost),
            Counter::Touched => {
                let lanes = run.lanes.as_ref()?;
                Some(lanes.ping.reserve_touched? + lanes.pong.reserve_touched?)
            }
            Counter::Unaccounted => {
                let written = ways.filter(|ways| ways.iter().all(|way| way.written > 0))?;
                Some(written.iter().map(Flow::unaccounted).sum())
            }
        }
    }
}

/// Expected value of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expected {
    /// 0.
    Zero,
    /// 1 or more.
    AboveZero,
}

/// Expectations of a block's runs; empty for a block that expects nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Expectations(BTreeMap<Counter, Expected>);

impl Expectations {
    /// Returns whether the block expects nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reasons why the run is not as expected, if it is not.
    ///
    /// The run must be valid, unless it is expected to have unaccounted samples, which make it invalid. It must have each
    /// counter, because a missing counter is not zero. Sockets have no `touched`.
    pub fn fault(&self, run: &Run) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let is_unbalanced = self.expects(Counter::Unaccounted, Expected::AboveZero);
        let mut faults: Vec<String> = match (&run.invalid, is_unbalanced) {
            (None, true) => vec!["the run is valid".to_owned()],
            (Some(_), true) if ingress_drops(run) == 0 => weak_flood(run).into_iter().collect(),
            (invalid, _) => invalid.clone().into_iter().collect(),
        };
        let missing = |counter| {
            let is_of_run = counter != Counter::Touched || run.settings.datapath == "xdp";
            is_of_run && run.counter(counter).is_none()
        };
        let zero =
            |counter| self.expects(counter, Expected::AboveZero) && run.counter(counter) == Some(0);
        let wrong: [(&str, &dyn Fn(Counter) -> bool); 3] = [
            ("not counted", &missing),
            ("above 0", &|counter| self.is_violated(counter, run)),
            ("not above 0", &zero),
        ];
        for (what, is_wrong) in wrong {
            let names = Counter::ALL.into_iter().filter(|it| is_wrong(*it));
            let names: Vec<&str> = names.map(Into::into).collect();
            if !names.is_empty() {
                faults.push(format!("{what}: {}", names.join(", ")));
            }
        }
        (!faults.is_empty()).then(|| faults.join("; "))
    }

    /// Returns whether the machine spoilt the run: it dropped frames before the cable, or the disturbance was too weak.
    /// A counter that must be zero and is not counts also under a weak disturbance.
    fn is_spoilt(&self, run: &Run) -> bool {
        let is_weak =
            run.disturbed.is_some_and(|disturbed| !disturbed.enough) || weak_flood(run).is_some();
        let is_violated = Counter::ALL.into_iter().any(|it| self.is_violated(it, run));
        ingress_drops(run) > 0 || (is_weak && !is_violated)
    }

    /// Measures a run and judges it. A run is measured again, up to [`TRIES`] times, if the machine spoils it, and a run
    /// with expectations also if it fails; `discarded` is then called with the number of the attempt and the reason.
    pub fn measure(
        &self,
        once: impl Fn() -> Result<Outcome, ScenarioError>,
        discarded: impl Fn(u32, &str),
    ) -> Result<Outcome, ScenarioError> {
        let mut attempt = 1;
        loop {
            let mut measured = once();
            let why = match &mut measured {
                Err(error) => Some(error.to_string()).filter(|_| !self.is_empty()),
                Ok(Outcome { run, .. }) => {
                    run.unexpected = self.fault(run);
                    let spoilt = run.unexpected.clone().filter(|_| self.is_spoilt(run));
                    spoilt.or_else(|| theft(run))
                }
            };
            match why.filter(|_| attempt < TRIES) {
                Some(why) => discarded(attempt, &why),
                None => {
                    if let Ok(Outcome { run, .. }) = &mut measured {
                        run.invalid = run.invalid.take().or_else(|| theft(run));
                    }
                    return measured;
                }
            }
            attempt += 1;
        }
    }

    /// Returns whether this value of the counter is expected.
    pub fn expects(&self, counter: Counter, expected: Expected) -> bool {
        self.0.get(&counter) == Some(&expected)
    }

    fn is_violated(&self, counter: Counter, run: &Run) -> bool {
        self.expects(counter, Expected::Zero) && run.counter(counter) > Some(0)
    }
}

/// Reason why a stream is invalid, if the hypervisor took too much CPU time from it.
fn theft(run: &Run) -> Option<String> {
    let stolen = run.stream.as_ref()?.stolen?;
    (stolen > MAX_STOLEN).then(|| {
        format!(
            "the hypervisor took {:.1} % of the CPU time",
            stolen * 100.0
        )
    })
}

fn ingress_drops(run: &Run) -> u64 {
    let ledger = run.ledger.as_ref();
    ledger.map_or(0, |ledger| ledger.cable.ingress_drops())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::report::tests::silent_run;
    use crate::report::{Disturbed, Stream};

    const KEPT: &str = "inversions = 'zero'\nlost = 'zero'\ntouched = 'zero'\nunaccounted = 'zero'";

    fn expecting(text: &str) -> Expectations {
        toml::from_str(text).expect("expectations")
    }

    fn run(datapath: &str, of: impl Fn(Counter) -> Option<u64>) -> Run {
        let mut run = silent_run(None);
        run.settings.datapath = datapath.to_owned();
        run.counters = Counter::ALL.map(|counter| (counter, of(counter))).into();
        run
    }

    #[test]
    fn each_counter_must_be_there_and_as_expected() {
        let kept = expecting(KEPT);
        assert_eq!(kept.fault(&run("xdp", |_| Some(0))), None);
        for counter in Counter::ALL {
            let name: &str = counter.into();
            let with = |value| run("xdp", move |it| if it == counter { value } else { Some(0) });
            let (above, missing) = (kept.fault(&with(Some(1))), kept.fault(&with(None)));
            assert_eq!(above, Some(format!("above 0: {name}")));
            assert_eq!(missing, Some(format!("not counted: {name}")));
            let of_sockets = kept.fault(&run("udp", |it| (it != counter).then_some(0)));
            assert_eq!(of_sockets.is_none(), counter == Counter::Touched);
            let companion = expecting(&format!("{name} = 'above-zero'"));
            let zero = companion.fault(&with(Some(0))).expect("it counts nothing");
            assert!(zero.ends_with(&format!("not above 0: {name}")), "{zero}");
            let mut counted = with(Some(1));
            counted.invalid = (counter == Counter::Unaccounted).then(|| "no balance".to_owned());
            assert_eq!(companion.fault(&counted), None);
        }
    }

    #[test]
    fn a_run_is_invalid_only_where_unaccounted_samples_are_expected() {
        let mut run = run("udp", |_| Some(1));
        let (ledger, link) = (
            expecting("unaccounted = 'above-zero'"),
            expecting("lost = 'above-zero'"),
        );
        assert_eq!(ledger.fault(&run).as_deref(), Some("the run is valid"));
        assert_eq!(link.fault(&run), None);
        run.invalid = Some("it does not balance".to_owned());
        assert_eq!(ledger.fault(&run), None);
        assert_eq!(link.fault(&run), run.invalid);
        assert_eq!(
            Expectations::default().fault(&run),
            None,
            "nothing is expected"
        );
    }

    #[test]
    fn a_run_that_the_machine_spoils_is_measured_again_but_not_a_violation() {
        let attempts = |expect: &Expectations, lost| {
            let count = Cell::new(0);
            let once = || {
                count.set(count.get() + 1);
                let mut run = run("udp", |_| Some(lost));
                run.invalid = Some("too little".to_owned());
                run.disturbed = Some(Disturbed::default());
                Ok(Outcome::of_stream(run))
            };
            let run = expect.measure(once, |_, _| ()).expect("a run").run;
            assert_eq!(run.unexpected.is_some(), !expect.is_empty());
            count.get()
        };
        assert_eq!(attempts(&expecting(KEPT), 0), TRIES);
        assert_eq!(attempts(&expecting(KEPT), 1), 1);
        assert_eq!(attempts(&Expectations::default(), 0), 1);
    }

    #[test]
    fn a_stream_without_its_share_of_the_cores_is_measured_again() {
        let attempts = |stolen| {
            let count = Cell::new(0);
            let once = || {
                count.set(count.get() + 1);
                let mut run = run("udp", |_| None);
                run.stream = Some(Stream {
                    stolen,
                    ..Stream::default()
                });
                Ok(Outcome::of_stream(run))
            };
            let measured = Expectations::default().measure(once, |_, _| ());
            let run = measured.expect("a run").run;
            (count.get(), run.invalid.is_some())
        };
        assert_eq!(attempts(None), (1, false));
        assert_eq!(attempts(Some(MAX_STOLEN)), (1, false));
        assert_eq!(attempts(Some(0.02)), (TRIES, true));
    }
}
