//! Reports of `pub` and `sub` on remote endpoints: incompatible ones with the policy, and with `-v -v` also matches.

use isolane::Incompatible;

use crate::output::{count_of, tell};

/// Kind of the local endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Writer,
    Reader,
}

/// Reporter of matches and of incompatible endpoints. Remembers the numbers that it reported last.
#[derive(Debug)]
pub(super) struct MatchReport {
    side: Side,
    tells_matches: bool,
    matched: usize,
    most_matched: usize,
    /// Last incompatible endpoint, and the number of incompatible endpoints so far.
    incompatible: Option<Incompatible>,
}

impl MatchReport {
    /// Creates a report without matches.
    pub(super) fn new(side: Side, verbosity: u8) -> Self {
        Self {
            side,
            tells_matches: verbosity > 1,
            matched: 0,
            most_matched: 0,
            incompatible: None,
        }
    }

    /// Reports changes of matched and incompatible endpoints since the last call.
    pub(super) fn look(&mut self, matched: usize, incompatible: Option<Incompatible>) {
        if let Some(news) = self.news_of_matches(matched) {
            tell(news);
        }
        if let Some(news) = self.news_of_incompatible(incompatible) {
            tell(news);
        }
    }

    /// Reports at the end how many endpoints were incompatible.
    pub(super) fn tell_end(&self) {
        if let Some(found) = self.incompatible {
            tell(format!(
                "{} did not match, the last because of {}",
                count_of(found.total.into(), self.others()),
                found.policy.name()
            ));
        }
    }

    /// Number of matched endpoints as text, with their maximum number if that was larger.
    pub(super) fn matched(&self) -> String {
        let matched = count_of(self.matched as u64, self.others());
        match self.most_matched {
            most if most > self.matched => {
                format!("{matched} matched at the end, at most {most} at once")
            }
            _ => format!("{matched} matched"),
        }
    }

    fn news_of_matches(&mut self, matched: usize) -> Option<String> {
        let is_new = self.tells_matches && matched != self.matched;
        self.matched = matched;
        self.most_matched = self.most_matched.max(matched);
        is_new.then(|| format!("{} matched", count_of(matched as u64, self.others())))
    }

    fn news_of_incompatible(&mut self, incompatible: Option<Incompatible>) -> Option<String> {
        let known = self.incompatible.map_or(0, |known| known.total);
        let found = incompatible.filter(|found| found.total > known)?;
        self.incompatible = incompatible;
        let difference = match self.side {
            Side::Writer => "requests more than is offered",
            Side::Reader => "offers less than is requested",
        };
        Some(format!(
            "a {} does not match: it {difference} in {policy} ({}). Give both sides the same value",
            self.others(),
            found.other,
            policy = found.policy.name()
        ))
    }

    /// Kind of the remote endpoints.
    fn others(&self) -> &'static str {
        match self.side {
            Side::Writer => "reader",
            Side::Reader => "writer",
        }
    }
}

#[cfg(test)]
mod tests {
    use isolane::{Guid, PolicyId};

    use super::*;

    #[test]
    fn each_incompatible_endpoint_is_reported_once() {
        let mut report = MatchReport::new(Side::Reader, 0);
        let other = Guid::default();
        let found = |total| {
            Some(Incompatible {
                other,
                policy: PolicyId::RELIABILITY,
                total,
                total_change: total,
            })
        };
        assert_eq!(report.news_of_incompatible(None), None);
        let news = report.news_of_incompatible(found(1)).expect("news");
        assert!(news.contains("RELIABILITY") && news.contains(&other.to_string()));
        assert_eq!(report.news_of_incompatible(found(1)), None);
        assert!(report.news_of_incompatible(found(2)).is_some());
    }

    #[test]
    fn who_has_left_before_the_end_was_matched_all_the_same() {
        let mut report = MatchReport::new(Side::Writer, 0);
        assert_eq!(report.matched(), "0 readers matched");
        report.look(2, None);
        assert_eq!(report.matched(), "2 readers matched");
        report.look(1, None);
        assert_eq!(
            report.matched(),
            "1 reader matched at the end, at most 2 at once"
        );
    }

    #[test]
    fn matches_are_reported_on_request() {
        let mut quiet = MatchReport::new(Side::Writer, 1);
        assert_eq!(quiet.news_of_matches(1), None);
        let mut loud = MatchReport::new(Side::Writer, 2);
        assert_eq!(loud.news_of_matches(1).as_deref(), Some("1 reader matched"));
        assert_eq!(loud.news_of_matches(1), None);
        assert_eq!(
            loud.news_of_matches(0).as_deref(),
            Some("0 readers matched")
        );
    }
}
