//! What the programs of both sides printed, and what came of a cell by that.

use std::collections::BTreeMap;

use super::cell::{Cell, Direction, Extensibility, Known, Outcome};

/// Samples that every writer writes (`lab/interop/programs/typed.h`).
const SAMPLES: usize = 3;

/// The lines of programs, by topic.
#[derive(Default)]
pub(super) struct Lines(BTreeMap<String, Vec<String>>);

impl Lines {
    /// Adds what a program printed.
    pub(super) fn add(&mut self, printed: &str) {
        // The last line may not have been written to its end.
        let whole = printed.rsplit_once('\n').map_or("", |(whole, _)| whole);
        for line in whole.lines() {
            if let Some((topic, said)) = line.split_once(' ') {
                self.0.entry(topic.into()).or_default().push(said.into());
            }
        }
    }

    fn of(&self, topic: &str) -> &[String] {
        self.0.get(topic).map_or(&[], Vec::as_slice)
    }
}

/// Both sides.
pub(super) struct Seen {
    pub(super) ours: Lines,
    pub(super) theirs: Lines,
}

/// The sample of a number, as every program prints it.
fn sample(number: usize) -> String {
    let value = number as f64 + 0.125;
    let stamp = 0xffff_ffff_0000_0000_u64 + number as u64;
    format!(
        "sample left/3,72623859790382856,axle,0.5+-2.25/{number}/{value}/{stamp}/1,11,a,;2,22,bcd,1.5/,north/\
         1+9223372036854775808"
    )
}

impl Seen {
    /// Whether both sides printed all that this outcome has, and nothing that it has not. An error is what they printed.
    pub(super) fn is(&self, cell: Cell, outcome: Outcome) -> Result<(), String> {
        let topic = cell.topic();
        let (ours, theirs) = (self.ours.of(&topic), self.theirs.of(&topic));
        let is_ours = cell.direction == Direction::FromIsolane;
        let (writer, reader) = match is_ours {
            true => (ours, theirs),
            false => (theirs, ours),
        };
        let has = |lines: &[String], line: &str| lines.iter().any(|said| said == line);
        let begins = |lines: &[String], word: &str| lines.iter().any(|it| it.starts_with(word));
        let are_matched = has(writer, "matched") && has(reader, "matched");
        let samples = reader.iter().filter(|it| it.starts_with("sample"));
        let is_silent = are_matched && has(writer, "written") && samples.clone().count() == 0;
        let are_read = are_matched
            && samples.cloned().eq((0..SAMPLES).map(sample))
            && !begins(reader, "rejected")
            && !begins(reader, "lost");
        let is_ended = has(reader, "disposed");
        let is_apart = |side: &[String]| {
            has(side, "incompatible DATA_REPRESENTATION") && !has(side, "matched")
        };
        let holds = match outcome {
            Outcome::Delivered => are_read && is_ended,
            Outcome::NotMatched => is_apart(writer) && is_apart(reader),
            // By the name of the encapsulation where isolane reads.
            Outcome::Refused if is_ours => is_silent,
            Outcome::Refused => {
                let encapsulation = match cell.theirs.extensibility {
                    Extensibility::Final => "rejected CDR2_LE",
                    Extensibility::Appendable => "rejected D_CDR2_LE",
                };
                is_silent && has(reader, encapsulation)
            }
            Outcome::Impossible(_) => begins(theirs, "impossible"),
            Outcome::Known(Known::OneSided) => is_apart(ours) && !begins(reader, "sample"),
            Outcome::Known(Known::Silent) => is_silent,
            Outcome::Known(Known::EndUnread) => are_read && !is_ended,
        };
        match holds {
            true => Ok(()),
            false => Err(format!("isolane {ours:?}, peer {theirs:?}")),
        }
    }

    /// The outcome that a cell must have, if it has, else the one that it has instead; `None`: none of them.
    pub(super) fn outcome(&self, cell: Cell, expected: Outcome) -> Option<Outcome> {
        let all = [
            expected,
            Outcome::Impossible(""),
            Outcome::Delivered,
            Outcome::NotMatched,
            Outcome::Refused,
            Outcome::Known(Known::OneSided),
            Outcome::Known(Known::Silent),
            Outcome::Known(Known::EndUnread),
        ];
        all.into_iter()
            .find(|&outcome| self.is(cell, outcome).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(cell: Cell, ours: &[&str], theirs: &[&str]) -> Seen {
        let lines = |said: &[&str]| {
            let mut lines = Lines::default();
            let topic = cell.topic();
            said.iter()
                .for_each(|it| lines.add(&format!("{topic} {it}\n")));
            lines
        };
        Seen {
            ours: lines(ours),
            theirs: lines(theirs),
        }
    }

    #[test]
    fn an_outcome_takes_the_word_of_both_sides() {
        let cells = Cell::of(Direction::ToIsolane);
        let cell = cells[0];
        let samples: Vec<String> = (0..SAMPLES).map(sample).collect();
        let read: Vec<&str> = ["matched"]
            .into_iter()
            .chain(samples.iter().map(String::as_str))
            .chain(["disposed"])
            .collect();
        let written = ["matched", "written"];
        let outcome = |ours: &[&str], theirs: &[&str]| {
            seen(cell, ours, theirs).outcome(cell, Outcome::Delivered)
        };
        assert_eq!(outcome(&read, &written), Some(Outcome::Delivered));
        let end_unread = Some(Outcome::Known(Known::EndUnread));
        assert_eq!(outcome(&read[..4], &written), end_unread);
        let [first, rest @ ..] = &read[..] else {
            panic!()
        };
        assert_eq!(
            outcome(&[&[*first, rest[1]], rest].concat(), &written),
            None,
            "one twice"
        );
        let incompatible = ["incompatible DATA_REPRESENTATION"];
        assert_eq!(
            outcome(&incompatible, &incompatible),
            Some(Outcome::NotMatched)
        );
        let one_sided = outcome(&incompatible, &["matched"]);
        assert_eq!(one_sided, Some(Outcome::Known(Known::OneSided)));
        let other = ["matched", "rejected D_CDR2_LE"];
        assert_ne!(
            outcome(&other, &written),
            Some(Outcome::Refused),
            "its type is final"
        );
        let refused = ["matched", "rejected CDR2_LE"];
        assert_eq!(outcome(&refused, &written), Some(Outcome::Refused));
        let silent = Some(Outcome::Known(Known::Silent));
        assert_eq!(outcome(&["matched"], &written), silent);
        let impossible = outcome(&[], &["impossible Bad Parameter"]);
        assert_eq!(impossible, Some(Outcome::Impossible("")));
    }

    #[test]
    fn a_line_that_is_not_at_its_end_is_not_read() {
        let mut lines = Lines::default();
        lines.add("a matched\na sam");
        assert_eq!(lines.of("a"), ["matched"]);
    }
}
