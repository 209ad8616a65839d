//! Tests of command-line arguments of `isolane`: output and exit code.

mod command;

use command::{Folder, isolane, run};

const GOOD: &str = "domain = 3\n[host.a]\ninterface = \"lo\"\n\
    [topic.Square]\ntype = \"ShapeType\"\nkeyed = true\nlevel = 6\nperiod = \"20ms\"\n\
    max_bytes = 256\nreliability = \"best-effort\"\nhistory = 4\nfrom = [\"a\"]\nto = [\"a\"]\n\
    [topic.Other]\ntype = \"vehicle::Other\"\nmax_bytes = 8\nfrom = [\"a\"]\nto = [\"a\"]\n";

#[test]
fn config_prints_the_description_with_the_source_of_each_value() {
    let folder = Folder::new("config-good");
    let mut command = isolane(&["config"]);
    let (code, out, err) = run(command.current_dir(folder.write("isolane.toml", GOOD)));
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let line = |start: &'static str| {
        out.lines()
            .find(|line| line.starts_with(start))
            .unwrap_or(start)
    };
    assert!(line("domain = 3").ends_with("# isolane.toml:1"), "{out}");
    assert!(line("level = 6").ends_with("# isolane.toml:7"), "{out}");
    assert!(line("datapath = \"auto\"").ends_with("# default"), "{out}");
}

#[test]
fn the_command_line_wins_over_the_environment_and_that_over_the_description() {
    let folder = Folder::new("config-layers");
    let path = folder.write("other.toml", GOOD);
    let domain = |arguments: &[&str], environment: &[(&str, &str)]| {
        let mut command = isolane(arguments);
        let (code, out, err) = run(command.envs(environment.iter().copied()).current_dir(path));
        assert_eq!(code, 0, "{err}");
        out.lines().next().expect("a line").to_owned()
    };
    let both = [("ISOLANE_CONFIG", "other.toml"), ("ISOLANE_DOMAIN", "5")];
    assert!(domain(&["config"], &both[..1]).ends_with("# other.toml:1"));
    let line = domain(&["config"], &both);
    assert!(line.starts_with("domain = 5 ") && line.ends_with("# environment ISOLANE_DOMAIN"));
    let line = domain(&["config", "--domain", "7"], &both);
    assert!(line.starts_with("domain = 7 ") && line.ends_with("# command line --domain"));
}

#[test]
fn config_as_json_has_every_value_with_its_source() {
    let folder = Folder::new("config-json");
    let path = folder.write("isolane.toml", GOOD);
    let (code, out, err) = run(isolane(&["config", "--json", "-"]).current_dir(path));
    assert_eq!((code, err.as_str()), (0, ""));
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(json["schema"], "isolane/config/3");
    assert_eq!(json["domain"]["value"], 3);
    assert_eq!(json["domain"]["source"], "isolane.toml:1");
    let square = &json["topics"][0];
    assert_eq!(square["name"]["value"], "Square");
    assert_eq!(square["period_us"]["value"], 20_000.0);
    assert!(square["deadline_us"]["value"].is_null());
    assert_eq!(square["durability"]["source"], "default");
    assert_eq!(json["hosts"][0]["interface"]["value"], "lo");
}

#[test]
fn config_refuses_a_datapath_that_does_not_exist_with_those_that_do() {
    let folder = Folder::new("config-datapath");
    for datapath in ["xdp-poll", "xdp-l2", "memory", "shm", "dpdk-l2", "rdma-ud"] {
        let text = GOOD.replace("\"lo\"\n", &format!("\"lo\"\ndatapath = \"{datapath}\"\n"));
        let path = folder.write("isolane.toml", &text);
        for arguments in [&["config"][..], &["config", "--json", "-"]] {
            let (code, out, err) = run(isolane(arguments).current_dir(path));
            assert_eq!((code, out.as_str()), (2, ""), "{err}");
            let unknown = format!("\"{datapath}\" is not known");
            for part in ["isolane.toml:4:", &unknown, "\"auto\", \"xdp\" or \"udp\""] {
                assert!(err.contains(part), "no {part} in {err}");
            }
        }
    }
}

#[test]
fn the_example_is_a_good_description() {
    let (code, example, _) = run(&mut isolane(&["config", "--example"]));
    assert_eq!(code, 0);
    assert!(example.starts_with('#') && example.contains("[topic.BrakePressure]"));
    let folder = Folder::new("config-example");
    let path = folder.write("isolane.toml", &example);
    let (code, printed, err) = run(isolane(&["config"]).current_dir(path));
    assert_eq!((code, err.as_str()), (0, ""));
    // The output is a valid description.
    let path = folder.write("printed.toml", &printed);
    let (code, _, err) = run(isolane(&["config", "--config", "printed.toml"]).current_dir(path));
    assert_eq!((code, err.as_str()), (0, ""));
}

#[test]
fn a_bad_description_shows_all_its_problems_at_their_places() {
    let bad = GOOD
        .replace("level = 6", "levle = 6")
        .replace("\"20ms\"", "20");
    let folder = Folder::new("config-bad");
    let path = folder.write("isolane.toml", &bad);
    let (code, out, err) = run(isolane(&["config"]).current_dir(path));
    assert_eq!((code, out.as_str()), (2, ""));
    for said in [
        "isolane.toml:7:1",
        "levle = 6",
        "did you mean `level`?",
        "isolane.toml:8:10",
    ] {
        assert!(err.contains(said), "no \"{said}\" in\n{err}");
    }
}

#[test]
fn a_warning_is_printed_and_the_description_is_used() {
    let odd = GOOD.replace(
        "period = \"20ms\"",
        "period = \"20ms\"\ndeadline = \"30ms\"",
    );
    let folder = Folder::new("config-odd");
    let path = folder.write("isolane.toml", &odd);
    let (code, out, err) = run(isolane(&["config"]).current_dir(path));
    assert_eq!(code, 0, "{err}");
    assert!(
        out.contains("deadline = \"30ms\"") && err.contains("longer than the period"),
        "{err}"
    );
}

#[test]
fn a_description_that_is_not_there_is_wrong_configuration() {
    let folder = Folder::new("config-none");
    let (code, out, err) = run(isolane(&["config"]).current_dir(&folder.0));
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("cannot read isolane.toml"), "{err}");
    let command = "isolane config --example > isolane.toml";
    let alone = err.lines().any(|line| line.trim() == command);
    assert!(alone, "to be pasted: {err}");
}

#[test]
fn wrong_usage_ends_with_2_and_says_what_would_be_right() {
    for (arguments, said) in [
        (&[][..], "Usage: isolane"),
        (&["pup", "Square"], "pub"),
        (&["pub"], "TOPIC"),
        (&["pub", ""], "cannot be the name of a topic"),
        (&["pub", "Square", "--level", "8"], "0 to 7"),
        (
            &["pub", "Square", "--reliable", "--best-effort"],
            "cannot be used with",
        ),
        (
            &["pub", "Square", "--dispose-at-end", "--unregister-at-end"],
            "cannot be used with",
        ),
        (&["pub", "Square", "--period", "33"], "33 has no unit"),
        (
            &["bench", "throughput", "--latency-budget", "0"],
            "leave the option out",
        ),
        (&["pub", "Square", "--history", "0"], "from 1 to"),
        (
            &["pub", "Square", "--durability", "persistent"],
            "volatile, transient-local",
        ),
        (
            &["pub", "Square", "--representation", "xml"],
            "xcdr1, xcdr2",
        ),
        (&["pub", "Square", "--size", "-1"], "-1 is not in"),
        (&["spy", "--kind", "dtaa"], "a similar value exists: 'data'"),
        (&["sub", "Square", "--peer", "localhost"], "IPv4"),
        (&["sub", "Square", "--peer", "10.0.0.1:0"], "IPv4"),
        (&["sub", "Square", "--count", "0"], "--count"),
        (&["ls", "--domain", "233"], "0 to 232"),
        (&["ls", "--interface", "a/b"], "no interface"),
        (&["demo", "--datapath", "udp,carrier-pigeon"], "xdp"),
        (&["demo", "--full", "--payload", "64,64"], "twice"),
        (&["demo", "--payload", "1401"], "12 to 1400"),
        (&["demo", "--payload", "64"], "--full"),
        (&["demo", "--datapath", "memory"], "--full"),
        (&["demo", "--domain", "3"], "takes no --domain"),
        (&["demo", "--config", "x.toml"], "takes no --config"),
        (&["bench", "rtt", "--payload", "4"], "12 to 1400"),
        (&["bench", "rtt", "--disturbance", "quake"], "none, flood"),
        (
            &["bench", "rtt", "--interface", "lo"],
            "takes no --interface",
        ),
        (
            &["bench", "throughput", "--payload", "60001"],
            "12 to 60000",
        ),
        (&["config", "--interface", "lo"], "takes no --interface"),
    ] {
        let (code, out, err) = run(&mut isolane(arguments));
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(err.contains(said), "{arguments:?}: no \"{said}\" in\n{err}");
    }
    let (code, _, err) = run(isolane(&["ls"]).env("ISOLANE_DOMAIN", "many"));
    assert_eq!(code, 2);
    assert!(
        err.contains("ISOLANE_DOMAIN") && err.contains("0 to 232"),
        "{err}"
    );
}

#[test]
fn a_topic_of_another_type_is_refused() {
    let folder = Folder::new("pub-type");
    let path = folder.write("isolane.toml", GOOD);
    let mut command = isolane(&["pub", "Other", "--config", "isolane.toml"]);
    let (code, _, err) = run(command.current_dir(path));
    assert_eq!(code, 2);
    assert!(
        err.contains("isolane.toml:15") && err.contains("ShapeType"),
        "{err}"
    );
}

#[test]
fn the_help_of_every_command_ends_with_the_exit_codes() {
    for command in [
        &[][..],
        &["demo"],
        &["pub"],
        &["sub"],
        &["ls"],
        &["why"],
        &["config"],
        &["bench"],
        &["bench", "rtt"],
        &["bench", "throughput"],
        &["bench", "run"],
        &["bench", "list"],
        &["bench", "show"],
        &["bench", "report"],
    ] {
        let (code, out, _) = run(isolane(command).arg("--help"));
        assert_eq!(code, 0, "{command:?}");
        // The terminal determines the line breaks.
        let words = out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.ends_with(
                "Exit codes: 0 success; 1 the answer is no; 2 wrong usage; 3 the machine forbids it; \
                 130 interrupted"
            ),
            "{command:?}: {out}"
        );
    }
}
