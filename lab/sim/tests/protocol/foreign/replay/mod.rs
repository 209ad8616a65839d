//! Captures of two participants, replayed to a local participant in the place of either of them.
//!
//! The local participant replaces one of the two: it has that one's GUID prefix and an endpoint like the announced
//! one. It receives the other's messages at the captured times. Where the replaced one wrote a sample, the local
//! participant writes the same. Its repair requests are answered as the other would have answered them. Only the
//! entity ids of user endpoints are changed in received messages, since a local participant numbers its own.
//!
//! `table.txt` has the expected state, and the test compares it exactly (`GOLDEN=write` in the environment writes it
//! again). For each capture and each replaced participant it has the numbers of known participants, endpoints and
//! matches, at most and at the end. For a reader it also has the received samples and ends of instances, compared with
//! those sent, and for a writer the acknowledged samples. Two captures are incomplete for a known reason: the writer of
//! `fin-f-u` keeps one sample of each instance, and wrote five before its announcement arrived; large samples arrive in
//! fragments.

mod cast;
mod heard;
mod place;

use std::{fmt::Write as _, path::Path};

use self::{cast::Cast, place::Place};
use crate::conversation::{CONVERSATIONS, conversation};

const FOLDER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../crates/wire/tests/captures"
);
const EXPECTED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/protocol/foreign/replay/table.txt"
);

#[test]
fn every_conversation_leads_either_of_the_two_to_the_state_it_must_lead_to() {
    let mut table = String::new();
    for name in CONVERSATIONS {
        let conversation = conversation(Path::new(FOLDER), name);
        let cast = Cast::of(name, &conversation.said);
        writeln!(table, "{name}").expect("a string");
        for one in &cast.participants {
            let mut place = Place::of(name, &cast, one);
            place.prepare(&conversation.said);
            for said in &conversation.said {
                place.hear(said);
            }
            writeln!(table, "  {}", place.description()).expect("a string");
        }
    }
    if std::env::var_os("GOLDEN").is_some_and(|wish| wish == "write") {
        std::fs::write(EXPECTED, &table).expect("the table");
    }
    let expected = std::fs::read_to_string(EXPECTED).expect("the table");
    if table != expected {
        let differs = |(found, expected): &(&str, &str)| found != expected;
        let first = table.lines().zip(expected.lines()).find(differs);
        panic!("{table}\n`table.txt` says otherwise, first here: {first:?}");
    }
}
