//! The two sides of a run, by what they printed.

use super::judge::Judgement;
use super::printed::Printed;

/// What both printed.
pub(crate) struct Sides {
    pub(crate) publisher: Printed,
    pub(crate) subscriber: Printed,
}

impl Sides {
    /// What holds of every run: both say that they are done, and no writer that left has disposed
    /// what it was not told to dispose.
    pub(super) fn check_ends(&self) -> Judgement {
        for (side, name) in [
            (&self.publisher, "publisher"),
            (&self.subscriber, "subscriber"),
        ] {
            if side.last() != Some("Done.") {
                return Err(format!(
                    "the {name} does not end with `Done.`, but with {:?}",
                    side.last()
                ));
            }
        }
        let created = ["Create topic: Square", "Create reader for topic: Square"];
        match created.iter().find(|line| !self.subscriber.has(line)) {
            Some(line) => Err(format!("the subscriber did not print: {line}")),
            None => Ok(()),
        }
    }
}
