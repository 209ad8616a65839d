//! Cells of the type matrix, the required outcome of each, and the outcome in both sides' output.

use std::collections::BTreeMap;
use std::fmt;

use strum::{Display, EnumIter, IntoEnumIterator, IntoStaticStr, VariantArray};

use super::super::combination::Axis;
use super::Peer;

/// Extensibility of a type (XTypes 1.3 §7.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub(super) enum Extensibility {
    Final,
    Appendable,
}

/// DATA_REPRESENTATION of an endpoint: offered or requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
pub(super) enum Representation {
    #[strum(serialize = "XCDR1")]
    Xcdr1,
    #[strum(serialize = "XCDR2")]
    Xcdr2,
    /// Readers only: a writer offers one representation.
    #[strum(serialize = "both")]
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
pub(super) enum Direction {
    FromIsolane,
    ToIsolane,
}

/// Type and representation of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Side {
    pub(super) extensibility: Extensibility,
    pub(super) representation: Representation,
}

/// A writer and a reader, one of isolane and one of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) direction: Direction,
    pub(super) ours: Side,
    pub(super) theirs: Side,
}

/// Outcome of a cell, displayed with its word in the table.
#[derive(Clone, Copy, Debug, Display, EnumIter, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The peer's version cannot create an endpoint with the cell's representation and extensibility.
    #[strum(serialize = "impossible")]
    Impossible(&'static str),
    /// All samples and the end of the instance arrive.
    #[strum(serialize = "delivered")]
    Delivered,
    /// Both sides report DATA_REPRESENTATION as incompatible.
    #[strum(serialize = "not matched")]
    NotMatched,
    /// The endpoints match and the reader rejects the samples: a type's extensibility is not announced.
    #[strum(serialize = "refused")]
    Refused,
    /// Known deviation: the peer does not announce its representation and matches any; only isolane reports the
    /// mismatch.
    #[strum(serialize = "not matched (by isolane)")]
    OneSided,
    /// Known deviation: the peer requests a representation that it cannot read for the cell's type; the endpoints match
    /// and no sample arrives.
    #[strum(serialize = "silent")]
    Silent,
    /// Known deviation: the peer reads the samples, but not the end of the instance.
    #[strum(serialize = "delivered, without the end")]
    EndUnread,
}

impl Representation {
    /// Argument of the programs.
    fn digits(self) -> &'static str {
        match self {
            Self::Xcdr1 => "1",
            Self::Xcdr2 => "2",
            Self::Both => "12",
        }
    }

    /// Returns true when a reader with this representation accepts what a writer offers.
    fn takes(self, offered: Self) -> bool {
        self == Self::Both || self == offered
    }
}

impl fmt::Display for Side {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (extensibility, representation) =
            (self.extensibility.word(), self.representation.word());
        write!(formatter, "{extensibility} {representation}")
    }
}

impl Side {
    pub(super) fn all(is_writer: bool) -> Vec<Self> {
        let representations = Representation::ALL.iter();
        let representations =
            representations.filter(|&&it| !(is_writer && it == Representation::Both));
        let of = |&extensibility| {
            representations.clone().map(move |&representation| Self {
                extensibility,
                representation,
            })
        };
        Extensibility::ALL.iter().flat_map(of).collect()
    }
}

impl Cell {
    /// Cells of a direction, by isolane's side and then by the peer's.
    pub(super) fn of(direction: Direction) -> Vec<Self> {
        let is_ours = direction == Direction::FromIsolane;
        let cells = Side::all(is_ours).into_iter().flat_map(|ours| {
            let theirs = Side::all(!is_ours).into_iter();
            theirs.map(move |theirs| Self {
                direction,
                ours,
                theirs,
            })
        });
        cells.collect()
    }

    pub(super) fn all() -> Vec<Self> {
        Direction::ALL.iter().copied().flat_map(Self::of).collect()
    }

    /// Topic name. Its first word selects the extensibility in isolane's program.
    pub(super) fn topic(self) -> String {
        let arrow = match self.direction {
            Direction::FromIsolane => "to",
            Direction::ToIsolane => "from",
        };
        format!(
            "{}_{}_{arrow}_{}_{}",
            self.ours.extensibility.word(),
            self.ours.representation.digits(),
            self.theirs.extensibility.word(),
            self.theirs.representation.digits()
        )
    }

    /// Argument of a program for its endpoint.
    pub(super) fn argument(self, is_isolane: bool) -> String {
        let side = if is_isolane { self.ours } else { self.theirs };
        let is_writer = is_isolane == (self.direction == Direction::FromIsolane);
        let kind = if is_writer { 'w' } else { 'r' };
        format!("{kind}:{}:{}", self.topic(), side.representation.digits())
    }

    fn writer_and_reader(self) -> (Side, Side) {
        match self.direction {
            Direction::FromIsolane => (self.ours, self.theirs),
            Direction::ToIsolane => (self.theirs, self.ours),
        }
    }

    /// Required outcome with a peer.
    pub(super) fn expected(self, peer: Peer) -> Outcome {
        let known = peer.known(self);
        known.unwrap_or_else(|| self.by_the_standards())
    }

    /// Outcome by the standards: representations are matched, and extensibility is part of the type.
    pub(super) fn by_the_standards(self) -> Outcome {
        let (writer, reader) = self.writer_and_reader();
        if !reader.representation.takes(writer.representation) {
            return Outcome::NotMatched;
        }
        // XCDR1 has the same encoding for both extensibilities.
        let is_alike = writer.representation == Representation::Xcdr1
            || writer.extensibility == reader.extensibility;
        match is_alike {
            true => Outcome::Delivered,
            false => Outcome::Refused,
        }
    }
}

/// Samples that every writer writes (`lab/interop/programs/typed.h`).
const SAMPLES: usize = 3;

/// Output lines of programs, by topic.
#[derive(Default)]
pub(super) struct Lines(BTreeMap<String, Vec<String>>);

impl Lines {
    pub(super) fn add(&mut self, printed: &str) {
        // The last line may be incomplete.
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

/// Output of both sides.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) ours: Lines,
    pub(super) theirs: Lines,
}

/// Sample line with this number, the same in every program.
fn sample(number: usize) -> String {
    let value = number as f64 + 0.125;
    let stamp = 0xffff_ffff_0000_0000_u64 + number as u64;
    format!(
        "sample left/3,72623859790382856,axle,0.5+-2.25/{number}/{value}/{stamp}/1,11,a,;2,22,bcd,1.5/,north/\
         1+9223372036854775808"
    )
}

impl Seen {
    /// Checks that both sides printed all lines of this outcome and no other. The error quotes them.
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
            // Only isolane's reader reports the encapsulation identifier that it rejects.
            Outcome::Refused if is_ours => is_silent,
            Outcome::Refused => {
                let encapsulation = match cell.theirs.extensibility {
                    Extensibility::Final => "rejected CDR2_LE",
                    Extensibility::Appendable => "rejected D_CDR2_LE",
                };
                is_silent && has(reader, encapsulation)
            }
            Outcome::Impossible(_) => begins(theirs, "impossible"),
            Outcome::OneSided => is_apart(ours) && !begins(reader, "sample"),
            Outcome::Silent => is_silent,
            Outcome::EndUnread => are_read && !is_ended,
        };
        match holds {
            true => Ok(()),
            false => Err(format!("isolane {ours:?}, peer {theirs:?}")),
        }
    }

    /// Returns the outcome that a cell's output shows: the expected one if it fits, otherwise the first that fits;
    /// `None` if none does.
    pub(super) fn outcome(&self, cell: Cell, expected: Outcome) -> Option<Outcome> {
        let mut all = [expected].into_iter().chain(Outcome::iter());
        all.find(|&outcome| self.is(cell, outcome).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matrix_is_the_product_and_each_cell_has_its_own_topic() {
        let cells = Cell::all();
        assert_eq!(cells.len(), 2 * 2 * 2 * 3 * 2);
        let topics: std::collections::BTreeSet<_> = cells.iter().map(|cell| cell.topic()).collect();
        assert_eq!(topics.len(), cells.len());
    }

    #[test]
    fn each_cell_of_one_representation_on_either_side_is_in_ci_with_some_peer() {
        let is_one = |side: Side| side.representation != Representation::Both;
        let cells = Cell::all().into_iter();
        for cell in cells.filter(|cell| is_one(cell.theirs)) {
            let is_had = |peer: &Peer| !matches!(cell.expected(*peer), Outcome::Impossible(_));
            assert!(Peer::CI.iter().any(is_had), "{cell:?}");
        }
    }

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
        let cell = Cell::of(Direction::ToIsolane)[0];
        let samples: Vec<String> = (0..SAMPLES).map(sample).collect();
        let [first, second, third] = [0, 1, 2].map(|number| samples[number].as_str());
        let read = ["matched", first, second, third, "disposed"];
        let twice = ["matched", first, first, second, third, "disposed"];
        let written = ["matched", "written"];
        let incompatible = ["incompatible DATA_REPRESENTATION"];
        let cases: [(&[&str], &[&str], Option<Outcome>); 9] = [
            (&read, &written, Some(Outcome::Delivered)),
            (&read[..4], &written, Some(Outcome::EndUnread)),
            (&twice, &written, None),
            (&incompatible, &incompatible, Some(Outcome::NotMatched)),
            (&incompatible, &["matched"], Some(Outcome::OneSided)),
            // The encapsulation of an appendable type, but its type is final.
            (
                &["matched", "rejected D_CDR2_LE"],
                &written,
                Some(Outcome::Silent),
            ),
            (
                &["matched", "rejected CDR2_LE"],
                &written,
                Some(Outcome::Refused),
            ),
            (&["matched"], &written, Some(Outcome::Silent)),
            (
                &[],
                &["impossible Bad Parameter"],
                Some(Outcome::Impossible("")),
            ),
        ];
        for (ours, theirs, outcome) in cases {
            let seen = seen(cell, ours, theirs);
            let found = seen.outcome(cell, Outcome::Delivered);
            assert_eq!(found, outcome, "{ours:?} {theirs:?}");
        }
    }

    #[test]
    fn a_line_that_is_not_at_its_end_is_not_read() {
        let mut lines = Lines::default();
        lines.add("a matched\na sam");
        assert_eq!(lines.of("a"), ["matched"]);
    }
}
