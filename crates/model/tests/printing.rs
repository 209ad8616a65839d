//! Tests of printing: a system is printed completely, with the source of each value, and reads back as the same system.

use isolane_datapath::{Kinds, udp::UdpKind};
use isolane_datapath_xdp::xdp::XdpKind;
use isolane_model::{Domain, Source, Sourced, System, example};

const KINDS: Kinds = &[&XdpKind, &UdpKind];

fn read(text: &str) -> System {
    System::from_toml(text, "isolane.toml", KINDS).expect("a good description")
}

/// Line of `text` that starts with `start`.
fn line<'t>(text: &'t str, start: &str) -> &'t str {
    text.lines()
        .find(|line| line.starts_with(start))
        .unwrap_or_else(|| panic!("no {start} in\n{text}"))
}

#[test]
fn what_is_printed_reads_back_as_the_same_system() {
    let awkward = "domain = 3\n[host.a]\ninterface = \"lo\"\nwaiting = \"spin\"\n\
        protect = { topics = { capacity = 9, period = \"100us\" }, \
        others = { capacity = 1, period = \"10s\" } }\n\
        xdp = { vlan = 0, queues = { 0 = 7, 7 = 0 }, levels = [7, 0], receive_frames = 96, \
        mode = \"zero-copy\", busy_poll = true, attach = \"generic\" }\n\
        [topic.\"rt/a \\\"b\\\" \\\\ é\"]\ntype = \"x::dds_::Y_\"\nkeyed = true\nmax_bytes = 1\n\
        period = \"1500ns\"\nhistory = \"all\"\nfrom = [\"a\"]\nto = [\"a\"]\n\
        budget = { capacity = 70000, period = \"1s\", over = \"demote\" }\n";
    for text in [example(), awkward, ""] {
        let system = read(text);
        let plain = system.to_toml();
        assert_eq!(read(&plain).to_toml(), plain);
        assert_eq!(read(&system.to_toml_with_sources()).to_toml(), plain);
    }
    assert_eq!(read(awkward).topics()[0].name.value, "rt/a \"b\" \\ é");
    assert!(line(&read(awkward).to_toml(), "period").ends_with("\"1500ns\""));
}

#[test]
fn every_line_names_its_source() {
    let text = read(example()).to_toml_with_sources();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (_, source) = line
            .rsplit_once(" # ")
            .unwrap_or_else(|| panic!("no source: {line}"));
        assert!(
            source.starts_with("isolane.toml:") || source.starts_with("default"),
            "{line}"
        );
    }
    assert!(
        line(&text, "domain").ends_with("# isolane.toml:5"),
        "{text}"
    );
    assert!(line(&text, "durability").ends_with("# default"), "{text}");
}

#[test]
fn every_printed_source_is_the_line_of_its_value() {
    let printed = read(example()).to_toml_with_sources();
    let lines: Vec<&str> = example().lines().collect();
    let from_file = printed
        .lines()
        .filter_map(|line| line.rsplit_once(" # isolane.toml:"));
    let mut compared = 0;
    for (setting, number) in from_file {
        let original = lines[number.parse::<usize>().expect("a number") - 1];
        let key = setting.split(" = ").next().expect("a first part").trim();
        // Nested tables are printed with dots.
        let key = match key {
            header if header.starts_with('[') => header,
            key => key.rsplit('.').next().expect("a last part"),
        };
        assert!(
            original.starts_with(key),
            "{setting} is not in line {number}: {original}"
        );
        compared += 1;
    }
    assert!(compared > 25, "only {compared} values come from the file");
}

#[test]
fn a_value_of_the_command_line_says_so() {
    let mut system = read(example());
    let domain = Domain::new(7).expect("a domain");
    system.set_domain(Sourced::new(domain, Source::CommandLine("--domain")));
    let text = system.to_toml_with_sources();
    let line = line(&text, "domain");
    assert!(
        line.starts_with("domain = 7 ") && line.ends_with("# command line --domain"),
        "{line}"
    );
}

#[test]
fn the_name_of_the_file_cannot_break_out_of_its_comment() {
    let system = System::from_toml(example(), "a\nlevel = 9", KINDS).expect("a good description");
    read(&system.to_toml_with_sources());
}
