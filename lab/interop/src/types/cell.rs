//! The cells of the matrix, and what must come of each.

use std::fmt;

use super::peer::Peer;

/// How a type may change (XTypes 1.3 §7.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extensibility {
    Final,
    Appendable,
}

/// DATA_REPRESENTATION of an endpoint: what it offers or requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Representation {
    Xcdr1,
    Xcdr2,
    /// Readers only: a writer offers one.
    Both,
}

/// Who writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    FromIsolane,
    ToIsolane,
}

/// The type and the representation of an endpoint.
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

/// What comes of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All samples and the end of the instance.
    Delivered,
    /// Both sides say that DATA_REPRESENTATION is incompatible.
    NotMatched,
    /// They match, and the reader refuses the samples: the extensibility of a type is not announced.
    Refused,
    /// This version of the peer has no such endpoint.
    Impossible(&'static str),
    /// Of this version of the peer it is known that something else comes of it.
    Known(Known),
}

/// How a peer deviates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// It does not announce its representation and matches any: only isolane says that they do not match.
    OneSided,
    /// It requests a representation that it does not read for such a type: they match and nothing is delivered.
    Silent,
    /// It reads the samples, and not the end of the instance.
    EndUnread,
}

impl Extensibility {
    pub(super) const ALL: [Self; 2] = [Self::Final, Self::Appendable];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Final => "final",
            Self::Appendable => "appendable",
        }
    }
}

impl Representation {
    /// What a writer can have.
    const OFFERED: [Self; 2] = [Self::Xcdr1, Self::Xcdr2];
    /// What a reader can have.
    const REQUESTED: [Self; 3] = [Self::Xcdr1, Self::Xcdr2, Self::Both];

    /// As the programs' arguments say it.
    fn digits(self) -> &'static str {
        match self {
            Self::Xcdr1 => "1",
            Self::Xcdr2 => "2",
            Self::Both => "12",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Xcdr1 => "XCDR1",
            Self::Xcdr2 => "XCDR2",
            Self::Both => "both",
        }
    }

    /// Whether a reader of it takes what a writer offers.
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
        let representations: &[Representation] = match is_writer {
            true => &Representation::OFFERED,
            false => &Representation::REQUESTED,
        };
        let of = |extensibility| {
            representations.iter().map(move |&representation| Self {
                extensibility,
                representation,
            })
        };
        Extensibility::ALL.into_iter().flat_map(of).collect()
    }
}

impl Cell {
    /// Those of a direction, by isolane's side and then by the peer's.
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
        let mut cells = Self::of(Direction::FromIsolane);
        cells.extend(Self::of(Direction::ToIsolane));
        cells
    }

    /// The name of its topic. The programs know the extensibility of isolane's type by the first word.
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

    /// The argument of a program for its endpoint.
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

    /// What must come of it with a peer.
    pub(super) fn expected(self, peer: Peer) -> Outcome {
        if let Some(known) = peer.known(self) {
            return known;
        }
        self.by_the_standards()
    }

    /// What the standards ask for: representations are matched, and extensibilities are part of the type.
    pub(super) fn by_the_standards(self) -> Outcome {
        let (writer, reader) = self.writer_and_reader();
        if !reader.representation.takes(writer.representation) {
            return Outcome::NotMatched;
        }
        // XCDR1 is the same for both extensibilities.
        let is_alike = writer.representation == Representation::Xcdr1
            || writer.extensibility == reader.extensibility;
        match is_alike {
            true => Outcome::Delivered,
            false => Outcome::Refused,
        }
    }
}

impl Outcome {
    /// As the table has it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::NotMatched => "not matched",
            Self::Refused => "refused",
            Self::Impossible(_) => "impossible",
            Self::Known(Known::OneSided) => "not matched (by isolane)",
            Self::Known(Known::Silent) => "silent",
            Self::Known(Known::EndUnread) => "delivered, without the end",
        }
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
}
