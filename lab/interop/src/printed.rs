//! Parsed output of a cell's programs.
//!
//! A subscriber prints a line for each event: `TOPIC COLOR x y [size]` for a sample (a suffix about its additional
//! payload may follow), `TOPIC COLOR STATE` for the end of the instance. A publisher reports the number of changes it
//! has written, and encodes the running number of each sample in x and y. For a peer, x and y are both this number.
//! isolane moves its shape over [`CANVAS`], so x and y wrap around.

use strum::Display;

use super::side::{COLOR, TOPIC};

/// Width and height of the canvas of `isolane pub`. A position repeats after 2,160 samples, more than a cell writes.
const CANVAS: [u32; 2] = [240, 270];

/// Event that a subscriber printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Sample with this running number.
    Sample(u32),
    /// End of the instance.
    Ended(State),
}

/// Not-alive instance state (DDS 1.4 §2.2.2.5.1.3), displayed with its name in the standard.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq)]
pub(super) enum State {
    #[strum(serialize = "NOT_ALIVE_DISPOSED")]
    Disposed,
    #[strum(serialize = "NOT_ALIVE_NO_WRITERS")]
    NoWriters,
}

/// Running number of a sample.
pub(super) fn number(event: Event) -> Option<u32> {
    match event {
        Event::Sample(number) => Some(number),
        Event::Ended(_) => None,
    }
}

/// Events of a subscriber's output in the order of arrival; any other line is an error. An incomplete last line is
/// ignored: the program may be writing it, or was killed.
pub(super) fn events(printed: &str) -> Result<Vec<Event>, String> {
    let whole_lines = printed.rfind('\n').map_or("", |end| &printed[..=end]);
    whole_lines.lines().map(event).collect()
}

fn event(line: &str) -> Result<Event, String> {
    let words = line.split_whitespace().collect::<Vec<_>>();
    let event = match words[..] {
        [TOPIC, COLOR, x, y, size, ..] if size.starts_with('[') => match (x.parse(), y.parse()) {
            (Ok(x), Ok(y)) => running_number([x, y]).map(Event::Sample),
            _ => None,
        },
        [TOPIC, COLOR, "NOT_ALIVE_DISPOSED_INSTANCE_STATE"] => Some(Event::Ended(State::Disposed)),
        [TOPIC, COLOR, "NOT_ALIVE_NO_WRITERS_INSTANCE_STATE"] => {
            Some(Event::Ended(State::NoWriters))
        }
        _ => None,
    };
    event.ok_or_else(|| format!("neither a sample of {COLOR} {TOPIC} nor its end: {line:?}"))
}

/// Running number of the sample at this position.
fn running_number([x, y]: [u32; 2]) -> Option<u32> {
    if x == y {
        return Some(x);
    }
    let [width, height] = CANVAS;
    let candidates = (x..width * height).step_by(width as usize);
    let is_there = |number: &u32| number % height == y && x < width;
    candidates.take(height as usize).find(is_there)
}

/// Number of changes a publisher has written, from its line `N written`. The end of an instance is a change, too.
pub(super) fn changes_written(said: &str) -> Option<u32> {
    said.lines().find_map(|line| {
        let (count, rest) = line.split_once(" written")?;
        (rest.is_empty() || rest.starts_with(',')).then(|| count.parse().ok())?
    })
}

/// Returns true once a publisher reports that it waits for a subscriber or writes.
pub(super) fn has_begun(said: &str) -> bool {
    let is_beginning =
        |line: &str| line.starts_with("waiting for") || line.starts_with("publishing");
    said.lines().any(is_beginning)
}

/// Datagrams of the topic's level by path, from the final report of `isolane -vv`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Carried {
    pub(super) received: u64,
    pub(super) received_by_lane: u64,
    pub(super) sent: u64,
    pub(super) sent_by_lane: u64,
}

impl Carried {
    /// Parses `level 0: received 9 of 9; sent 4 of 4; 8 received_by_lane, 4 sent_by_lane`.
    pub(super) fn of(said: &str) -> Option<Self> {
        let counts = said
            .lines()
            .find_map(|line| line.strip_prefix("level 0: received "))?;
        let words = counts
            .split([' ', ',', ';'])
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>();
        let number = |word: Option<&&str>| word.and_then(|word| word.parse().ok());
        let named = |name: &str| {
            let pairs = words.windows(2).find(|pair| pair[1] == name);
            pairs.and_then(|pair| number(pair.first())).unwrap_or(0)
        };
        let sent = words.iter().position(|word| *word == "sent")?;
        Some(Self {
            received: number(words.first())?,
            received_by_lane: named("received_by_lane"),
            sent: number(words.get(sent + 1))?,
            sent_by_lane: named("sent_by_lane"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_by_the_lane_is_read() {
        let said = "level 0: 9 datagrams, 0 priority inversions\n\
                    level 0: received 9 of 12; sent 5 of 5; 8 received_by_lane, 4 sent_by_lane, 4 kick\n";
        let carried = Carried {
            received: 9,
            received_by_lane: 8,
            sent: 5,
            sent_by_lane: 4,
        };
        assert_eq!(Carried::of(said), Some(carried));
        assert_eq!(Carried::of("3 written"), None);
    }

    #[test]
    fn samples_and_ends_are_read_in_order() {
        let printed = "Square     BLUE       007 007 [20]\n\
                       Square     BLUE       NOT_ALIVE_NO_WRITERS_INSTANCE_STATE\n\
                       Square     BLUE       100000 100000 [20]\n\
                       Square     BLUE       NOT_ALIVE_DISPOSED_INSTANCE_STATE\n";
        assert_eq!(
            events(printed).unwrap(),
            [
                Event::Sample(7),
                Event::Ended(State::NoWriters),
                Event::Sample(100_000),
                Event::Ended(State::Disposed),
            ]
        );
    }

    #[test]
    fn positions_are_numbers_for_longer_than_a_cell_writes() {
        for sample in 0..2160 {
            assert_eq!(running_number([sample % 240, sample % 270]), Some(sample));
        }
        assert_eq!(running_number([100_007, 100_007]), Some(100_007));
        // No sample has these positions.
        assert_eq!(running_number([0, 1]), None);
        assert_eq!(running_number([240, 0]), None);
    }

    #[test]
    fn a_line_that_is_being_written_waits() {
        assert_eq!(
            events("Square BLUE 1 1 [20]\nSqua"),
            Ok(vec![Event::Sample(1)])
        );
        assert_eq!(events("Square BLUE 1 1 [2"), Ok(vec![]));
    }

    #[test]
    fn any_other_line_is_a_fault() {
        for stray in [
            "Circle BLUE 000 000 [20]",
            "Square RED 000 000 [20]",
            "Square BLUE x y [20]",
            "Square ? NOT_ALIVE_DISPOSED_INSTANCE_STATE",
            "Square BLUE ALIVE_INSTANCE_STATE",
            "oops",
            "",
        ] {
            assert!(events(&format!("{stray}\n")).is_err(), "{stray:?}");
        }
    }

    #[test]
    fn the_number_of_changes_is_what_the_publisher_says_it_is() {
        let said = "waiting for a subscriber of Square\n12 written, 11 sent; 0 readers matched\n";
        assert_eq!(changes_written(said), Some(12));
        assert_eq!(changes_written("publishing\n7 written\n"), Some(7));
        assert_eq!(changes_written("nothing was written\n"), None);
        assert_eq!(changes_written(""), None);
    }
}
