//! Samples with their times beside the events that might have cost some: what was lost, when, and how
//! long none came.

use std::fmt;

use serde::Serialize;

/// The longest silence around an event that is no interruption: traffic goes on.
const LONGEST_SILENCE_MS: f64 = 500.0;

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

    /// The first event within this time.
    fn within(&self, [from_ns, to_ns]: [u64; 2]) -> Option<Kind> {
        let overlaps = |[from, to]: [u64; 2]| from <= to_ns && from_ns <= to;
        let mut events = self.0.iter();
        events.find(|event| overlaps(event.1)).map(|event| event.0)
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
    /// The longest time without a sample around an event, and anywhere else.
    pub(super) longest_silence_at_event_ms: f64,
    pub(super) longest_silence_elsewhere_ms: f64,
}

impl PairReport {
    /// An error when samples came twice or out of order.
    pub(super) fn new(
        reliability: &'static str,
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
            longest_silence_at_event_ms: 0.0,
            longest_silence_elsewhere_ms: 0.0,
        };
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
            *match event {
                Some(Kind::Attach) => &mut report.lost_at_attach,
                Some(Kind::Kill) => &mut report.lost_at_kill,
                Some(Kind::Leave) => &mut report.lost_at_leave,
                None => &mut report.lost_elsewhere,
            } += u64::from(after.number - before.number - 1);
        }
        report.lost = report.lost_at_attach
            + report.lost_at_kill
            + report.lost_at_leave
            + report.lost_elsewhere;
        Ok(report)
    }

    /// Whether the pair went on as it may expect: a reliable one loses nothing, best effort only around
    /// events, and neither is silent for long after one.
    pub(super) fn judge(&self) -> Result<(), String> {
        let is_reliable = self.reliability == "reliable";
        if (is_reliable && self.lost > 0) || self.lost_elsewhere > 0 {
            return Err(format!("the pair lost what it must not: {self}"));
        }
        if self.longest_silence_at_event_ms > LONGEST_SILENCE_MS {
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
             silent for at most {:.1} ms at events, {:.1} ms elsewhere",
            self.reliability,
            self.received,
            self.written,
            self.lost_at_attach,
            self.lost_at_kill,
            self.lost_at_leave,
            self.lost_elsewhere,
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
        PairReport::new(reliability, 100, &taken(missing), &events()).unwrap()
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
        let mut taken = taken(&[]);
        for sample in &mut taken[61..] {
            sample.at_ns += 600 * MS;
        }
        let report = PairReport::new("reliable", 100, &taken, &events()).unwrap();
        assert!(report.judge().is_err());
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
        assert!(PairReport::new("reliable", 9, &repeated, &Events::default()).is_err());
    }
}
