//! Samples with their times beside the events that might have cost some: what was lost, when, and how
//! long none came.

use std::fmt;

use serde::Serialize;

/// The longest silence that is no interruption: traffic goes on. What a pair writes in that time is the
/// most that best effort may lose at one event, or a sample now and then would hide any loss.
const LONGEST_SILENCE_MS: u32 = 500;

/// As a pair that sends lost samples again is called.
const RELIABLE: &str = "reliable";

/// A sample, and when it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) number: u32,
    pub(super) at_ns: u64,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Programs attached to both interfaces.
    Attach,
    /// They were killed.
    Kill,
    /// They were told to leave, and did.
    Leave,
}

/// What happened when: from the cause until it is over.
#[derive(Default)]
pub(super) struct Events(Vec<(Kind, [u64; 2])>);

impl Events {
    pub(super) fn add(&mut self, kind: Kind, from_ns: u64, to_ns: u64) {
        self.0.push((kind, [from_ns, to_ns]));
    }

    /// The place of the first event within this time, and what it was.
    fn within(&self, [from_ns, to_ns]: [u64; 2]) -> Option<(usize, Kind)> {
        let overlaps = |[from, to]: [u64; 2]| from <= to_ns && from_ns <= to;
        let mut events = self.0.iter().enumerate();
        let first = events.find(|(_, event)| overlaps(event.1));
        first.map(|(place, event)| (place, event.0))
    }
}

/// What one pair lost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct PairReport {
    pub(super) reliability: &'static str,
    /// From the first sample that was taken on: before, the subscriber may not have been matched.
    pub(super) written: u64,
    pub(super) received: u64,
    /// All of them, so that a reliable pair's must be none.
    pub(super) lost: u64,
    pub(super) lost_at_attach: u64,
    pub(super) lost_at_kill: u64,
    pub(super) lost_at_leave: u64,
    pub(super) lost_elsewhere: u64,
    /// At the event that cost most, and what one may cost.
    pub(super) most_lost_at_event: u64,
    pub(super) most_lost_allowed: u64,
    /// The longest time without a sample around an event, and anywhere else.
    pub(super) longest_silence_at_event_ms: f64,
    pub(super) longest_silence_elsewhere_ms: f64,
}

impl PairReport {
    /// Of a pair that writes a sample each period. An error when samples came twice or out of order.
    pub(super) fn new(
        reliability: &'static str,
        period_ms: u32,
        written: u32,
        taken: &[Taken],
        events: &Events,
    ) -> Result<Self, String> {
        let (Some(first), Some(last)) = (taken.first(), taken.last()) else {
            return Err(format!("{reliability}: no sample came"));
        };
        let mut report = Self {
            reliability,
            written: u64::from(written.saturating_sub(first.number)),
            received: taken.len() as u64,
            lost: 0,
            lost_at_attach: 0,
            lost_at_kill: 0,
            lost_at_leave: 0,
            lost_elsewhere: u64::from(written.saturating_sub(last.number + 1)),
            most_lost_at_event: 0,
            most_lost_allowed: match reliability {
                RELIABLE => 0,
                _ => u64::from(LONGEST_SILENCE_MS / period_ms),
            },
            longest_silence_at_event_ms: 0.0,
            longest_silence_elsewhere_ms: 0.0,
        };
        let mut lost_at_each = vec![0; events.0.len()];
        for pair in taken.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            if after.number <= before.number {
                return Err(format!(
                    "{reliability}: sample {} came after {}",
                    after.number, before.number
                ));
            }
            let event = events.within([before.at_ns, after.at_ns]);
            let silence_ms = after.at_ns.saturating_sub(before.at_ns) as f64 / 1e6;
            let longest = match event {
                Some(_) => &mut report.longest_silence_at_event_ms,
                None => &mut report.longest_silence_elsewhere_ms,
            };
            *longest = longest.max(silence_ms);
            let lost = u64::from(after.number - before.number - 1);
            if let Some((place, _)) = event {
                lost_at_each[place] += lost;
            }
            *match event.map(|(_, kind)| kind) {
                Some(Kind::Attach) => &mut report.lost_at_attach,
                Some(Kind::Kill) => &mut report.lost_at_kill,
                Some(Kind::Leave) => &mut report.lost_at_leave,
                None => &mut report.lost_elsewhere,
            } += lost;
        }
        report.most_lost_at_event = lost_at_each.into_iter().max().unwrap_or(0);
        report.lost = report.lost_at_attach
            + report.lost_at_kill
            + report.lost_at_leave
            + report.lost_elsewhere;
        Ok(report)
    }

    /// Whether the pair went on as it may expect: a reliable one loses nothing, best effort only around
    /// events and so much at each, and neither is ever silent for long.
    pub(super) fn judge(&self) -> Result<(), String> {
        let is_reliable = self.reliability == RELIABLE;
        if (is_reliable && self.lost > 0) || self.lost_elsewhere > 0 {
            return Err(format!("the pair lost what it must not: {self}"));
        }
        if self.most_lost_at_event > self.most_lost_allowed {
            return Err(format!("the pair lost too much at one event: {self}"));
        }
        let silence_ms = self
            .longest_silence_at_event_ms
            .max(self.longest_silence_elsewhere_ms);
        if silence_ms > f64::from(LONGEST_SILENCE_MS) {
            return Err(format!("the pair was interrupted: {self}"));
        }
        Ok(())
    }
}

impl fmt::Display for PairReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} pair: {} of {} samples, lost at attach {}, at kill {}, at leave {}, elsewhere {}, \
             at most {} at one event (allowed: {}), silent for at most {:.1} ms at events, {:.1} ms \
             elsewhere (allowed: {LONGEST_SILENCE_MS})",
            self.reliability,
            self.received,
            self.written,
            self.lost_at_attach,
            self.lost_at_kill,
            self.lost_at_leave,
            self.lost_elsewhere,
            self.most_lost_at_event,
            self.most_lost_allowed,
            self.longest_silence_at_event_ms,
            self.longest_silence_elsewhere_ms
        )
    }
}

/// What a subscriber with `--times` printed: `TOPIC COLOR x y [size] nanoseconds`. What is said at the
/// end of the instance is no sample.
pub(super) fn samples(printed: &str, topic: &str) -> Result<Vec<Taken>, String> {
    let mut samples = Vec::new();
    for line in printed.lines() {
        let words = line.split_whitespace().collect::<Vec<_>>();
        match words[..] {
            [of, _, x, _, _, at] if of == topic => match (x.parse(), at.parse()) {
                (Ok(number), Ok(at_ns)) => samples.push(Taken { number, at_ns }),
                _ => return Err(format!("no sample with its time: {line:?}")),
            },
            [of, _, _] if of == topic => {}
            _ => return Err(format!("no sample with its time: {line:?}")),
        }
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A sample a millisecond, but for those.
    fn taken(missing: &[u32]) -> Vec<Taken> {
        let numbers = (0..100).filter(|number| !missing.contains(number));
        let taken = numbers.map(|number| Taken {
            number,
            at_ns: u64::from(number) * MS,
        });
        taken.collect()
    }

    fn events() -> Events {
        let mut events = Events::default();
        events.add(Kind::Attach, 20 * MS, 25 * MS);
        events.add(Kind::Kill, 60 * MS, 65 * MS);
        events
    }

    fn report(reliability: &'static str, missing: &[u32]) -> PairReport {
        PairReport::new(reliability, 1, 100, &taken(missing), &events()).unwrap()
    }

    #[test]
    fn what_is_missing_is_counted_beside_its_event() {
        let report = report("best-effort", &[21, 22, 64, 80]);
        assert_eq!((report.received, report.written), (96, 100));
        assert_eq!((report.lost_at_attach, report.lost_at_kill), (2, 1));
        assert_eq!((report.lost_elsewhere, report.lost), (1, 4));
        assert_eq!(report.longest_silence_at_event_ms, 3.0);
        assert!(report.judge().is_err());
    }

    #[test]
    fn only_best_effort_loses_and_only_around_events() {
        assert!(report("best-effort", &[21, 64]).judge().is_ok());
        assert!(report("reliable", &[21]).judge().is_err());
        assert!(report("reliable", &[]).judge().is_ok());
        // The last one is lost, too, if nothing comes behind it.
        assert!(report("best-effort", &[99]).judge().is_err());
    }

    #[test]
    fn a_long_silence_is_an_interruption_though_nothing_is_lost() {
        // Behind the kill, and where nothing happened.
        for from in [61, 81] {
            let mut taken = taken(&[]);
            for sample in &mut taken[from..] {
                sample.at_ns += 600 * MS;
            }
            let report = PairReport::new("reliable", 1, 100, &taken, &events()).unwrap();
            assert!(
                report.judge().unwrap_err().contains("interrupted"),
                "{from}"
            );
        }
    }

    #[test]
    fn an_event_costs_best_effort_no_more_than_the_longest_silence_does() {
        // A sample in ten is taken while the event lasts, so no silence is long.
        let judged = |period_ms: u32, lasts_ms: u64| {
            let is_kill = |number: &u32| (1_901..1_909).contains(number);
            let is_over = |number: &u32| u64::from(*number) >= lasts_ms && !is_kill(number);
            let is_taken = |number: &u32| is_over(number) || number.is_multiple_of(10);
            let taken = (0..2_000).filter(is_taken).map(|number| Taken {
                number,
                at_ns: u64::from(number) * MS,
            });
            let mut events = Events::default();
            events.add(Kind::Attach, 0, lasts_ms * MS);
            // What another event cost is its own.
            events.add(Kind::Kill, 1_900 * MS, 1_910 * MS);
            let taken = taken.collect::<Vec<_>>();
            let report = PairReport::new("best-effort", period_ms, 2_000, &taken, &events);
            report.unwrap().judge()
        };
        assert_eq!(judged(1, 550), Ok(()));
        let refused = judged(1, 570).unwrap_err();
        assert!(
            refused.contains("at most 513 at one event (allowed: 500"),
            "{refused}"
        );
        assert!(judged(2, 550).is_err());
    }

    #[test]
    fn samples_are_read_with_their_times() {
        let printed = "Pair       BLUE       007 007 [20] 12\n\
                       Pair       BLUE       NOT_ALIVE_NO_WRITERS_INSTANCE_STATE\n";
        let taken = Taken {
            number: 7,
            at_ns: 12,
        };
        assert_eq!(samples(printed, "Pair"), Ok(vec![taken]));
        assert!(samples("Pair BLUE 007 007 [20]\n", "Pair").is_err());
        let repeated = [taken, taken];
        assert!(PairReport::new("reliable", 1, 9, &repeated, &Events::default()).is_err());
    }
}
