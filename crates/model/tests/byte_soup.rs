//! Tests of arbitrary file contents: reading returns a system or problems and never panics, and each problem lies in
//! the text.

use isolane_datapath::{Kinds, udp::UdpKind};
use isolane_datapath_xdp::xdp::XdpKind;
use isolane_model::{System, example};
use proptest::prelude::*;

const KINDS: Kinds = &[&XdpKind, &UdpKind];

/// Checks the properties of every file.
fn read(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match System::from_bytes(bytes, "soup.toml", KINDS) {
        Ok(system) => {
            let printed = system.to_toml();
            let again =
                System::from_toml(&printed, "again", KINDS).expect("what is printed reads back");
            assert_eq!(again.to_toml(), printed);
        }
        Err(problems) => {
            assert!(!problems.is_empty(), "refused without a reason:\n{text}");
            for problem in problems {
                let Some(span) = problem.span() else {
                    // The text is never too long, but a file that is not text has no line to show.
                    assert!(std::str::from_utf8(bytes).is_err(), "{problem}:\n{text}");
                    continue;
                };
                assert!(
                    text.get(span.clone()).is_some(),
                    "{span:?} is not in\n{text}"
                );
                assert!(problem.line() <= Some(text.lines().count() + 1));
                assert!(!format!("{problem:#}").is_empty());
            }
        }
    }
}

/// Pieces of descriptions, valid and invalid.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("[topic.A]\n"),
        Just("[topic.\"é\\u0000\"]"),
        Just("[[topic]]"),
        Just("[topic"),
        Just("[host.h]\n"),
        Just("interface = \"eth0\"\n"),
        Just("[host]\n"),
        Just("domain = "),
        Just("type = \"T\"\n"),
        Just("max_bytes = 64\n"),
        Just("level = "),
        Just("period = "),
        Just("deadline = \"2ms\"\n"),
        Just("history = "),
        Just("\"all\"\n"),
        Just("max_samples = "),
        Just("from = [\"h\"]\n"),
        Just("to = [\"h\", "),
        Just("]"),
        Just("budget = {"),
        Just("}"),
        Just("budget.capacity = "),
        Just("[host.h.protect.topics]\n"),
        Just("capacity = "),
        Just("reserved = "),
        Just("[host.h.xdp]\n"),
        Just("queues = { "),
        Just("levels = [7, "),
        Just("receive_entries = "),
        Just("7\n"),
        Just("-0x7fffffffffffffff\n"),
        Just("1e400\n"),
        Just("99999999999999999999\n"),
        Just("1979-05-27\n"),
        Just("\"1ms\"\n"),
        Just("\""),
        Just("'''"),
        Just("\"\"\""),
        Just("\r"),
        Just("\n"),
        Just("= "),
        Just(","),
        Just("\u{feff}"),
        Just("ü"),
        Just("💥"),
        Just("keyed = true\n"),
        Just("#"),
        Just("."),
        Just("\\"),
    ]
    .prop_map(str::to_owned)
}

proptest! {
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read(&bytes);
    }

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        read(text.as_bytes());
    }

    #[test]
    fn any_pieces_of_descriptions(pieces in prop::collection::vec(piece(), 0..40)) {
        read(pieces.concat().as_bytes());
    }

    #[test]
    fn the_example_with_a_part_replaced(
        place in 0..example().len(),
        removed in 0..40_usize,
        put in piece(),
    ) {
        let mut bytes = example().as_bytes().to_vec();
        let end = (place + removed).min(bytes.len());
        bytes.splice(place..end, put.bytes());
        read(&bytes);
    }
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    read("a = ".repeat(10_000).as_bytes());
    read(format!("a = {}", "[".repeat(100_000)).as_bytes());
    read(format!("[{}a]", "a.".repeat(50_000)).as_bytes());
}
