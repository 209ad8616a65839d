//! `isolane pub` and `sub` as participants of a description: two processes that match without discovery, in a separate
//! network namespace.

mod command;
#[path = "../../../tests/support/own_namespace.rs"]
mod own_namespace;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use command::{Folder, Running, isolane, run};
use own_namespace::in_namespace;

/// The description that both sides use.
fn description(announces: &str, level: u8) -> String {
    format!(
        r#"
[host.here]
interface = "lo"

[topic.Square]
type = "ShapeType"
keyed = true
level = {level}
max_bytes = 160
reliability = "reliable"
history = 8
from = ["here"]
to = ["here"]

[participant.pedal]
host = "here"
address = "127.0.0.1"
port = 7000
announces = "{announces}"
writes = ["Square"]

[participant.wheel]
host = "here"
address = "127.0.0.1"
port = 7010
announces = "{announces}"
reads = ["Square"]
"#
    )
}

/// The description from the documentation, in which nothing is announced. So a sample can arrive only by the
/// description.
fn of_the_page() -> &'static str {
    let page = include_str!("../../../docs/how-to/static-discovery.md");
    let (_, behind) = page.split_once("```toml\n").expect("a file on the page");
    let (file, _) = behind.split_once("```").expect("its end");
    assert!(file.contains("announces = \"nothing\""));
    file
}

/// Starts one of the participants.
fn start(command: &str, participant: &str, file: &str) -> Running {
    let mut command = isolane(&[command, "Square", "--config", file]);
    command.args(["--participant", participant]);
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::null());
    Running(piped.spawn().expect("the command starts"))
}

#[test]
fn two_processes_talk_that_announce_nothing_and_one_that_is_killed_is_met_again() {
    in_namespace(
        "two_processes_talk_that_announce_nothing_and_one_that_is_killed_is_met_again",
        || {
            let folder = Folder::new("described");
            folder.write("isolane.toml", of_the_page());
            let file = folder.file("isolane.toml");
            let mut reader = start("sub", "wheel", &file);
            let printed = reader.0.stdout.take().expect("piped");
            let mut lines = BufReader::new(printed).lines();
            for _ in 0..3 {
                let mut writer = start("pub", "pedal", &file);
                for _ in 0..5 {
                    let line = lines.next().expect("a sample").expect("UTF-8");
                    assert!(line.contains("BLUE"), "{line}");
                }
                writer.kill();
            }
        },
    );
}

#[test]
fn why_names_who_is_absent_and_who_follows_another_description() {
    in_namespace(
        "why_names_who_is_absent_and_who_follows_another_description",
        || {
            let folder = Folder::new("described-why");
            folder.write("isolane.toml", &description("itself", 5));
            folder.write("other.toml", &description("itself", 4));
            let (file, other) = (folder.file("isolane.toml"), folder.file("other.toml"));
            let ask = || {
                let mut why = isolane(&["why", "Square", "--json", "-", "--seconds", "3"]);
                why.args(["--no-other-domains", "--config", &file]);
                why.args(["--peer", "127.0.0.1"]);
                let (code, out, err) = run(&mut why);
                let answer: Value =
                    serde_json::from_str(&out).unwrap_or_else(|why| panic!("{why}: {out}{err}"));
                let reasons = answer["reasons"].as_array().expect("a list").iter();
                let ids = reasons.map(|it| it["id"].as_str().expect("a word").to_owned());
                (code, ids.collect::<Vec<_>>(), answer)
            };
            let until = |what: &str, wanted: &[&str]| {
                let mut said = None;
                for _ in 0..10 {
                    let (code, ids, answer) = ask();
                    if wanted.iter().all(|id| ids.iter().any(|it| it == id)) {
                        return (code, answer);
                    }
                    said = Some(answer);
                }
                panic!("{what}: {said:#?}");
            };
            let _writer = start("pub", "pedal", &file);
            let (code, _) = until("one is absent", &["described-absent"]);
            assert_eq!(code, 1);

            let differing = start("sub", "wheel", &other);
            let (code, answer) = until("one differs", &["described-otherwise"]);
            assert_eq!(code, 1);
            let reasons = answer["reasons"].to_string();
            assert!(reasons.contains("wheel") && reasons.contains("isolane.toml"));
            drop(differing);

            let _agreeing = start("sub", "wheel", &file);
            let (code, answer) = until("both agree", &["described"]);
            assert_eq!((code, &answer["communicates"]), (0, &Value::Bool(true)));
        },
    );
}

#[test]
fn a_participant_that_is_not_described_is_refused_by_name() {
    let folder = Folder::new("described-wrong");
    folder.write("isolane.toml", &description("all", 5));
    let file = folder.file("isolane.toml");
    let refused = |arguments: &[&str]| {
        let (code, _, err) = run(&mut isolane(arguments));
        assert_eq!(code, 2, "{err}");
        err
    };
    let err = refused(&["pub", "Square", "--config", &file, "--participant", "pedl"]);
    assert!(
        err.contains("pedl") && err.contains("pedal, wheel"),
        "{err}"
    );
    let err = refused(&["pub", "Square", "--participant", "pedal"]);
    assert!(err.contains("--config FILE"), "{err}");
}

#[test]
fn a_domain_whose_ports_the_description_has_is_refused_with_what_to_do() {
    let folder = Folder::new("described-domain");
    // Ports of domain 3: 8150 to 8399.
    let text = description("all", 5).replace("port = 7010", "port = 8160");
    folder.write("isolane.toml", &text);
    let file = folder.file("isolane.toml");
    for arguments in [
        &["pub", "Square", "--participant", "pedal"][..],
        &["why", "Square"],
    ] {
        let mut command = isolane(arguments);
        let (code, _, err) = run(command.args(["--config", &file, "--domain", "3"]));
        assert_eq!(code, 2, "{err}");
        for said in [
            "domain 3 (command line --domain)",
            "\"wheel\"",
            "8160 to 8167",
            "leave that domain out",
        ] {
            assert!(err.contains(said), "{said}: {err}");
        }
    }
}
