//! Serialisation of a snapshot as a line of JSON. A step writes a few items, whatever the number of jobs and endpoints.

use serde::Serialize;

use super::schema::Snapshot;
use crate::limits::OBSERVED_ITEMS;

/// Line of JSON and the progress of its serialisation.
#[derive(Debug, Default)]
pub(crate) struct JsonWriter {
    bytes: Vec<u8>,
    section: u8,
    /// Items of the section written so far.
    items: usize,
}

impl JsonWriter {
    /// Starts another line, with the same memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        (self.section, self.items) = (0, 0);
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes a few more items. Returns false at the end of the line.
    pub(crate) fn step(&mut self, snapshot: &Snapshot) -> bool {
        match self.section {
            0 => {
                self.member("{\"schema\":", &snapshot.schema);
                self.member(",\"participant\":", &snapshot.participant);
                self.section = 1;
            }
            1 => self.list("jobs", &snapshot.jobs),
            2 => self.list("work", &snapshot.work),
            3 => self.list("levels", &snapshot.levels),
            4 => self.list("lanes", &snapshot.lanes),
            5 => self.list("writers", &snapshot.writers),
            6 => self.list("readers", &snapshot.readers),
            7 => self.list("interfaces", &snapshot.interfaces),
            8 => self.list("flows", &snapshot.flows),
            9 => self.list("rings", &snapshot.rings),
            _ => {
                self.bytes.extend_from_slice(b"}\n");
                return false;
            }
        }
        true
    }

    fn list(&mut self, name: &str, items: &[impl Serialize]) {
        if self.items == 0 {
            self.bytes.extend_from_slice(b",\"");
            self.bytes.extend_from_slice(name.as_bytes());
            self.bytes.extend_from_slice(b"\":[");
        }
        let end = items.len().min(self.items + OBSERVED_ITEMS);
        for (place, item) in items.iter().enumerate().take(end).skip(self.items) {
            self.member(if place > 0 { "," } else { "" }, item);
        }
        self.items = end;
        if end == items.len() {
            self.bytes.push(b']');
            self.section += 1;
            self.items = 0;
        }
    }

    fn member(&mut self, before: &str, value: &impl Serialize) {
        self.bytes.extend_from_slice(before.as_bytes());
        let written = serde_json::to_writer(&mut self.bytes, value);
        debug_assert!(written.is_ok(), "memory takes all, and keys are texts");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Network, Participant, observe::snapshot::Identity};

    #[test]
    fn a_line_written_in_steps_is_the_snapshot() {
        let network = Network::new(1);
        let builder = Participant::builder(0).memory(&network, [10, 0, 0, 1]);
        let participant = builder.build().unwrap();
        participant.run_for(std::time::Duration::from_millis(2));
        let (snapshot, _) = Snapshot::of(&participant.core().state.borrow(), &Identity::default());
        assert!(
            snapshot.jobs.len() > OBSERVED_ITEMS,
            "it takes several steps"
        );
        let mut text = JsonWriter::default();
        for _ in 0..2 {
            text.clear();
            let mut steps = 0;
            while text.step(&snapshot) {
                steps += 1;
            }
            assert!(steps > 10, "{steps}");
            let line = std::str::from_utf8(text.bytes()).unwrap();
            assert_eq!(line.matches('\n').count(), 1, "{line}");
            assert_eq!(serde_json::from_str::<Snapshot>(line).unwrap(), snapshot);
        }
    }
}
