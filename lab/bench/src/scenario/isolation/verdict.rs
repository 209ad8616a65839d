//! Verdict on a trial.
//!
//! A missing counter is not zero: it fails the trial, as a wrong value does. With all mechanisms on, each counter must
//! be zero. A companion must have its own counter above zero. Its `unaccounted` must be zero, except in the companion
//! without the ledger, because loss without a strict link is still named.

use serde::{Deserialize, Serialize};

use super::{Counter, Counts, Mechanism, Trial};
use crate::report::{Disturbance, EndLanes, Run};
use crate::scenario::ScenarioError;
use crate::scenario::in_process_load::HISTORY_SAMPLES;
use crate::scenario::transport::{BulkReader, Transport};

/// Minimum share of the configured rate that a flood must reach to fill the link. Its senders have ordinary priority,
/// so other work of the machine delays them.
const LEAST_OF_FILLING: f64 = 0.8;
/// Minimum share of the configured rate that a flood must reach to overrun the link: 1.5 times the link's rate is
/// enough.
const LEAST_OF_OVERRUN: f64 = 0.5;

/// Result of a trial: an element of `trials` in a result (`isolane/isolation/1`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Description of the trial.
    pub name: String,
    /// Datapath: `udp` or `xdp`.
    pub datapath: String,
    /// Disabled mechanism of a companion: `priorities-and-lanes`, `strict-link`, `recycling` or `ledger`; null for
    /// none.
    pub without: Option<Mechanism>,
    /// Required counters: `inversions`, `lost`, `touched`, `unaccounted`. Sockets reserve no buffers, so they have no
    /// `touched`.
    pub has: Vec<Counter>,
    /// Counter values; null if a counter is missing, which fails the trial if the counter is required.
    pub counts: Counts,
    /// Less urgent activations begun after a critical sample's kernel timestamp, when the preceding poll did not yet
    /// return the sample. These are inversions by timestamp, and no decision of the executor. Sum of both ends, not
    /// judged; null if the trial could not be run.
    pub kernel_late: Option<u64>,
    /// Critical round trips scheduled.
    pub samples: u64,
    /// Datagrams of the flood that reached the link, or samples of the participants' own bulk, both directions
    /// together.
    pub bulk: u64,
    /// Achieved rate of the flood as a multiple of the link's, in the slower direction; null without a flood.
    pub factor: Option<f64>,
    /// Datagrams that the full bulk lane dropped, or samples left in the bulk reader's cache, as evidence that bulk is
    /// not drained. The lower count of the two ends; null where bulk is drained, or addresses no lane.
    pub unread: Option<u64>,
    /// Reason why the run is invalid: its ledgers do not balance, or the machine was too slow. Expected only in the
    /// companion without the ledger.
    pub invalid: Option<String>,
    /// Reason why the trial failed; null if it passed.
    pub fault: Option<String>,
}

impl Trial {
    /// Judges a run of this trial.
    pub fn judge(&self, run: &Run) -> Verdict {
        let ledger = run.ledger.as_ref();
        let flood = ledger.and_then(|ledger| ledger.flood.as_ref());
        let of_flood = flood.map(|flood| flood.a_to_b.sent + flood.b_to_a.sent);
        let factor = flood.map(|flood| flood.a_to_b.factor.min(flood.b_to_a.factor));
        let inside = run.disturbed.and_then(|disturbed| disturbed.bulk_delivered);
        let mut verdict = Verdict {
            counts: Counts::of(run),
            kernel_late: Some(run.kernel_late.total),
            samples: run.samples,
            bulk: of_flood.or(inside).unwrap_or(0),
            factor,
            unread: self.unread(run),
            invalid: run.invalid.clone(),
            ..self.without_result()
        };
        verdict.fault = self.fault(&verdict, has_ingress_drops(run));
        verdict
    }

    /// Returns whether a stall of the machine spoilt the run: frames were dropped before the cable, or the disturbance
    /// was too weak. A violation with all mechanisms on counts even under a weak disturbance.
    pub fn is_spoilt(&self, run: &Run) -> bool {
        let verdict = self.judge(run);
        let is_weak = run.disturbed.is_some_and(|disturbed| !disturbed.enough)
            || self.weak_flood(&verdict).is_some();
        let is_above = |counter| verdict.counts.get(counter) > Some(0);
        let is_violated = self.without.is_none() && Counter::ALL.into_iter().any(is_above);
        has_ingress_drops(run) || (is_weak && !is_violated)
    }

    /// Verdict on a trial that could not be run.
    pub fn not_made(&self, why: &ScenarioError) -> Verdict {
        Verdict {
            fault: Some(why.to_string()),
            ..self.without_result()
        }
    }

    fn without_result(&self) -> Verdict {
        Verdict {
            name: self.name.clone(),
            datapath: self.config.scenario.datapath.clone(),
            without: self.without,
            has: self.counters(),
            counts: Counts::default(),
            kernel_late: None,
            samples: 0,
            bulk: 0,
            factor: None,
            unread: None,
            invalid: None,
            fault: None,
        }
    }

    /// Computes [`Verdict::unread`].
    fn unread(&self, run: &Run) -> Option<u64> {
        let dropped = |end: &EndLanes| {
            let foreign = end.foreign.as_ref();
            let full = self.names_of_full();
            let drops = full.iter().filter_map(|name| foreign?.drops.get(*name));
            drops.sum::<u64>()
        };
        let lanes = run.lanes.as_ref()?;
        let of_ends = match self.config.bulk_reader? {
            BulkReader::Drains => return None,
            BulkReader::Keeps => [&lanes.ping, &lanes.pong].map(|end| end.bulk_kept),
            BulkReader::DoesNotDrain => [&lanes.ping, &lanes.pong].map(dropped),
        };
        of_ends.into_iter().min()
    }

    /// Drop reasons of an undrained lane's datagrams.
    fn names_of_full(&self) -> &'static [&'static str] {
        match self.config.transport {
            Transport::Udp => &["kernel_overflow"],
            Transport::Xdp(lanes) if !lanes.overcommits => &["ring_full"],
            // The ring never fills, because the buffer pool is exhausted first.
            Transport::Xdp(lanes) if lanes.recycles => &["recycled_driver", "recycled_queue"],
            Transport::Xdp(_) => &["fill_empty"],
        }
    }

    /// Minimum of [`Verdict::unread`].
    fn least_unread(&self) -> u64 {
        match self.config.bulk_reader {
            None | Some(BulkReader::Drains) => 0,
            Some(BulkReader::Keeps) => HISTORY_SAMPLES.into(),
            Some(BulkReader::DoesNotDrain) => 1,
        }
    }

    /// Reason why the trial failed. `has_ingress_drops`: the machine dropped frames before the cable, which invalidates
    /// any run.
    fn fault(&self, verdict: &Verdict, has_ingress_drops: bool) -> Option<String> {
        let is_to_balance = has_ingress_drops || self.without != Some(Mechanism::Ledger);
        match &verdict.invalid {
            Some(why) if is_to_balance => return Some(why.clone()),
            None if !is_to_balance => return Some("the run balances without names".to_owned()),
            _ => {}
        }
        if verdict.bulk == 0 {
            return Some("there was no bulk".to_owned());
        }
        let (unread, least) = (verdict.unread.unwrap_or(0), self.least_unread());
        if unread < least {
            return Some(format!(
                "bulk was drained although its reader was to be full: {unread} datagrams or samples were left or dropped, at least {least} are required"
            ));
        }
        let (weak, miscounted) = (self.weak_flood(verdict), self.miscounted(&verdict.counts));
        match self.without {
            None => miscounted.or(weak),
            // A weak flood may be the reason for a low counter.
            Some(_) => weak.or(miscounted),
        }
    }

    /// Reports a flood below its minimum rate.
    fn weak_flood(&self, verdict: &Verdict) -> Option<String> {
        if self.config.scenario.disturbance != Some(Disturbance::Flood) {
            return None;
        }
        let (reached, asked) = (verdict.factor.unwrap_or(0.0), self.config.flood.factor);
        let share = match asked < 1.0 {
            true => LEAST_OF_FILLING,
            false => LEAST_OF_OVERRUN,
        };
        (reached < asked * share).then(|| {
            format!("the flood reached {reached:.2} times the link's rate, {asked} were wanted")
        })
    }

    /// Reports missing or wrong counters.
    fn miscounted(&self, counts: &Counts) -> Option<String> {
        let named = |is_wrong: &dyn Fn(Counter) -> bool| {
            let wrong = self.counters().into_iter().filter(|one| is_wrong(*one));
            let names: Vec<&str> = wrong.map(Counter::name).collect();
            (!names.is_empty()).then(|| names.join(", "))
        };
        if let Some(names) = named(&|counter| counts.get(counter).is_none()) {
            return Some(format!("not counted: {names}"));
        }
        let is_above = |counter: Counter| counts.get(counter) > Some(0);
        if let Some(mechanism) = self.without
            && !is_above(mechanism.counter())
        {
            return Some(format!(
                "{} is not above 0 without {}: it counts nothing",
                mechanism.counter().name(),
                mechanism.name()
            ));
        }
        let must_be_0 = |counter| match self.without {
            None => true,
            Some(mechanism) => counter == Counter::Unaccounted && mechanism.counter() != counter,
        };
        named(&|counter| must_be_0(counter) && is_above(counter))
            .map(|names| format!("above 0: {names}"))
    }
}

fn has_ingress_drops(run: &Run) -> bool {
    let cable = run.cable.as_ref();
    cable.is_some_and(|cable| cable.ingress_drops > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::isolation::trials;
    use crate::scenario::transport::Lanes;

    const NONE_ABOVE_0: Counts = Counts {
        inversions: Some(0),
        lost: Some(0),
        touched: Some(0),
        unaccounted: Some(0),
    };

    fn of(transport: Transport, without: Option<Mechanism>) -> Trial {
        let mut all = trials(transport, 1).into_iter();
        let trial = all.find(|trial| trial.without == without);
        trial.expect("there is such a trial")
    }

    fn over_lanes(without: Option<Mechanism>) -> Trial {
        of(Transport::Xdp(Lanes::default()), without)
    }

    /// Verdict with all counters at 0 and the intended disturbance.
    fn sound(trial: &Trial) -> Verdict {
        Verdict {
            counts: NONE_ABOVE_0,
            bulk: 1,
            factor: Some(trial.config.flood.factor),
            unread: Some(trial.least_unread()),
            ..trial.without_result()
        }
    }

    fn with(counts: Counts, counter: Counter, count: Option<u64>) -> Counts {
        let mut counts = counts;
        *match counter {
            Counter::Inversions => &mut counts.inversions,
            Counter::Lost => &mut counts.lost,
            Counter::Touched => &mut counts.touched,
            Counter::Unaccounted => &mut counts.unaccounted,
        } = count;
        counts
    }

    #[test]
    fn with_all_mechanisms_each_counter_must_be_there_and_0() {
        let kept = over_lanes(None);
        assert_eq!(kept.miscounted(&NONE_ABOVE_0), None);
        for counter in Counter::ALL {
            let above = kept.miscounted(&with(NONE_ABOVE_0, counter, Some(1)));
            assert_eq!(above, Some(format!("above 0: {}", counter.name())));
            let missing = kept.miscounted(&with(NONE_ABOVE_0, counter, None));
            assert_eq!(missing, Some(format!("not counted: {}", counter.name())));
        }
    }

    #[test]
    fn sockets_need_not_count_what_they_do_not_have_and_nothing_else() {
        let kept = of(Transport::Udp, None);
        for counter in Counter::ALL {
            let missing = kept.miscounted(&with(NONE_ABOVE_0, counter, None));
            assert_eq!(missing.is_none(), counter == Counter::Touched);
        }
    }

    #[test]
    fn a_companion_must_count_and_lose_nothing_without_a_name() {
        for mechanism in Mechanism::ALL {
            let companion = over_lanes(Some(mechanism));
            assert!(companion.miscounted(&NONE_ABOVE_0).is_some());
            let counted = with(NONE_ABOVE_0, mechanism.counter(), Some(1));
            assert_eq!(companion.miscounted(&counted), None);
            let unnamed = companion.miscounted(&with(counted, Counter::Unaccounted, Some(1)));
            assert_eq!(unnamed.is_none(), mechanism == Mechanism::Ledger);
        }
    }

    #[test]
    fn a_flood_that_was_none_shows_nothing() {
        let kept = over_lanes(None);
        assert_eq!(kept.fault(&sound(&kept), false), None);
        for factor in [None, Some(0.7)] {
            let weak = Verdict {
                factor,
                ..sound(&kept)
            };
            let fault = kept.fault(&weak, false).expect("0.9 were wanted");
            assert!(fault.contains("0.9 were wanted"), "{fault}");
            let violated = Verdict {
                counts: with(NONE_ABOVE_0, Counter::Lost, Some(1)),
                ..weak
            };
            let fault = kept.fault(&violated, false);
            assert_eq!(fault.as_deref(), Some("above 0: lost"));
        }
    }

    #[test]
    fn a_reader_that_does_not_drain_must_leave_bulk_unread() {
        let all = trials(Transport::Udp, 1).into_iter();
        for trial in all.filter(|trial| trial.without.is_none()) {
            let of = |unread| Verdict {
                unread,
                ..sound(&trial)
            };
            let least = trial.least_unread();
            assert_eq!(trial.fault(&of(Some(least)), false), None);
            for none in [None, least.checked_sub(1)] {
                let fault = trial.fault(&of(none), false);
                assert_eq!(fault.is_none(), least == 0, "{}", trial.name);
            }
        }
    }

    #[test]
    fn only_without_names_a_run_may_not_balance_and_there_it_must_not() {
        let judged = |without, invalid: Option<&str>, is_spoilt| {
            let trial = over_lanes(without);
            let counts = match without {
                None => NONE_ABOVE_0,
                Some(mechanism) => with(NONE_ABOVE_0, mechanism.counter(), Some(1)),
            };
            let verdict = Verdict {
                counts,
                invalid: invalid.map(str::to_owned),
                ..sound(&trial)
            };
            trial.fault(&verdict, is_spoilt)
        };
        let why = Some("it does not balance");
        for without in [None, Some(Mechanism::StrictLink)] {
            assert_eq!(judged(without, None, false), None);
            assert!(judged(without, why, false).is_some());
        }
        let ledger = Some(Mechanism::Ledger);
        assert_eq!(judged(ledger, why, false), None);
        assert!(judged(ledger, None, false).is_some());
        assert!(judged(ledger, why, true).is_some(), "for another reason");
    }
}
