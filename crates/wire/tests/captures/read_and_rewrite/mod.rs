//! Every message of every capture: read without a remainder, and written again.
//!
//! *Without a remainder* means: every submessage is known or a vendor's own; every parameter of every list
//! is known or a vendor's own, and its value ends where its type does; every payload is read as the type
//! that its writer has.
//!
//! A submessage, list or payload is *canonical* if isolane writes the same bytes for its content. For a list this
//! applies to each parameter, in the order of arrival: the sender chooses the parameters and their order. For a
//! payload it applies to the sample and its padding to a multiple of four in the DATA. The standard allows other
//! forms: big-endian, a last submessage without a length, wider sets. No sender in these captures uses them, and a
//! submessage that did would fail the test by name. `table.txt` holds the expected counts; after an intended change,
//! `GOLDEN=write` in the environment writes the file again.

mod form;
mod lists;
mod payloads;

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use isolane_wire::message::{HEADER_BYTES, Header, Submessage, Submessages};

use self::{form::Form, lists::Lists, payloads::Payloads};
use crate::conversation::{CONVERSATIONS, conversation};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/captures");
const EXPECTED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/captures/read_and_rewrite/table.txt"
);

/// Contents of a capture.
#[derive(Default)]
struct Tally {
    messages: usize,
    /// Number of submessages of each form.
    forms: BTreeMap<Form, usize>,
    lists: Lists,
    payloads: Payloads,
}

impl Tally {
    fn of(name: &str, said: &[crate::conversation::Said]) -> Self {
        let mut tally = Self::default();
        assert!(
            said.is_sorted_by_key(|said| said.time_us),
            "{name}: in order"
        );
        for said in said {
            let is_of_the_two_hosts = said.source.starts_with(&[10, 78, 0]);
            assert!(is_of_the_two_hosts && said.source_port != 0, "{name}");
            let message = &said.message;
            let header = Header::parse(message).unwrap_or_else(|error| panic!("{name}: {error}"));
            let mut written = [0; HEADER_BYTES];
            header.emit(&mut written);
            assert_eq!(written, message[..HEADER_BYTES], "{name}: a header");
            tally.messages += 1;
            let mut submessages = Submessages::new(message, HEADER_BYTES);
            loop {
                let start = submessages.offset();
                let Some(submessage) = submessages.next() else {
                    break;
                };
                let bytes = &message[start..submessages.offset()];
                let submessage =
                    submessage.unwrap_or_else(|error| panic!("{name}: {error} in {bytes:02x?}"));
                *tally.forms.entry(Form::of(&submessage, bytes)).or_default() += 1;
                tally.look_inside(name, &header, &submessage);
            }
            assert_eq!(submessages.offset(), message.len(), "{name}: a remainder");
        }
        tally
    }

    fn look_inside(&mut self, name: &str, header: &Header, submessage: &Submessage<'_>) {
        match submessage {
            Submessage::Data(data) => {
                if let Some(list) = &data.inline_qos {
                    self.lists.add_inline(list);
                }
                self.payloads.add(name, header, data, &mut self.lists);
            }
            Submessage::DataFrag(data) => {
                if let Some(list) = &data.inline_qos {
                    self.lists.add_inline(list);
                }
                self.payloads.add_fragments(header, data);
            }
            _ => {}
        }
    }
}

#[test]
fn every_message_of_every_capture_is_read_without_a_remainder_and_written_again() {
    let mut table = String::new();
    for name in CONVERSATIONS {
        let conversation = conversation(Path::new(FOLDER), name);
        let tally = Tally::of(name, &conversation.said);
        let line = |table: &mut String, text: &str| writeln!(table, "{text}").unwrap();
        line(&mut table, name);
        line(
            &mut table,
            &format!(
                "  frames       {}: {} messages, {} IP fragments, {} packets cut off, {} other frames",
                conversation.frames,
                tally.messages,
                conversation.ip_fragments,
                conversation.incomplete,
                conversation.other_frames
            ),
        );
        line(
            &mut table,
            &format!("  submessages  {}", form::description(&tally.forms)),
        );
        line(
            &mut table,
            &format!("  lists        {}", tally.lists.description()),
        );
        for description in tally.payloads.description() {
            line(&mut table, &format!("  payloads     {description}"));
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
