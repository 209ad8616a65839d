//! Tests of formal mistakes: unknown keys and tables, wrong syntax, and files that are not text.

use isolane_model::{Problem, System};

use super::{KINDS, NAME, assert_says, at, problem_of, problems, topic_with};

#[test]
fn a_misspelt_key_is_an_error_with_a_suggestion() {
    let text = topic_with("dealine = \"400us\"");
    let problem = problem_of("dealine = \"400us\"");
    assert_eq!(at(&problem, &text), (8, 1, "dealine"));
    assert_eq!(problem.what(), "unknown key `dealine` in [topic.T]");
    assert_eq!(problem.help(), Some("did you mean `deadline`?"));
}

#[test]
fn an_unknown_key_like_none_that_is_known_gets_the_list() {
    let problem = problem_of("colour = \"red\"");
    assert!(
        problem
            .help()
            .expect("help")
            .starts_with("known here: `type`, `level`,")
    );
    let root = problems("hots = 1\n");
    assert_eq!(root[0].help(), Some("did you mean `host`?"));
}

#[test]
fn the_plain_form_shows_line_column_and_the_line() {
    let plain = format!("{:#}", problem_of("  level = 9"));
    assert_eq!(
        plain,
        "isolane.toml:8:11: error: `level` in [topic.T] must be a whole number from 0 to 7\n  \
         level = 9\n          ^ 9 is out of range\n  help: 7 is the most critical"
    );
}

#[test]
fn columns_count_characters() {
    let text = "domain = 0\n[topic.\"é\"]\nköy = 1\n";
    let all = problems(text);
    let key = all.iter().find(|problem| problem.what().contains("köy"));
    // A bare key must be ASCII, so this is a syntax error at the character.
    assert!(key.is_none());
    assert!(
        all.iter().any(|problem| problem.line() == Some(3)),
        "{all:#?}"
    );
    let spaced = problems("domain = 0\n\"é\" = 1\n");
    assert_eq!(at(&spaced[0], "domain = 0\n\"é\" = 1\n"), (2, 1, "\"é\""));
}

#[test]
fn a_name_that_is_given_twice_is_one_mistake() {
    let text = topic_with("level = 1\nlevel = 2");
    assert_eq!(at(&problems(&text)[0], &text), (9, 1, "level"));

    let text = format!("{}[topic.T]\ntype = \"T\"\nmax_bytes = 1\n", topic_with(""));
    let found = problems(&text);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].what(), "the table of `T` is given twice");
    assert_eq!(found[0].line(), Some(11));
}

#[test]
fn all_problems_of_a_file_are_reported_in_its_order() {
    let text = "domain = 500\n[host.left]\ninterfac = \"eth0\"\ncore = -1\n\
                [topic.T]\ntype = \"\"\nlevel = 9\nfrom = [\"leftt\"]\nto = []\n\
                [topic.U]\nlevel = = 3\nperiod = \"x\"\n";
    let found = problems(text);
    let lines: Vec<_> = found.iter().filter_map(Problem::line).collect();
    assert!(lines.is_sorted(), "{found:#?}");
    for line in [1, 3, 4, 6, 7, 8, 9, 11, 12] {
        assert!(
            lines.contains(&line),
            "nothing about line {line}: {found:#?}"
        );
    }
}

#[test]
fn after_a_broken_header_only_syntax_is_reported() {
    let text = topic_with("").replace("[host.right]", "[host.right");
    let found = problems(&text);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].line(), Some(3));
}

#[test]
fn tables_have_names() {
    for (text, what, help) in [
        ("topic = 3", "", "[topic.NAME]"),
        ("[topic]\nlevel = 3", "", "[topic.NAME]"),
        ("[[host]]\ncore = 3", "", "[host.NAME]"),
        ("[host.\"a b\"]\ninterface = \"lo\"", "name of a host", ""),
        ("[topic.\"a\\n\"]", "name of a topic", ""),
    ] {
        assert_says(&problems(text)[0], what, help);
    }
}

#[test]
fn what_is_no_text_is_said_to_be_none() {
    let found = System::from_bytes(b"domain = 0\n\xff\n", NAME, KINDS).expect_err("not UTF-8");
    assert!(found[0].what().contains("line 2"), "{}", found[0].what());
    assert_eq!(found[0].span(), None, "what is no text is not drawn");
    let long = vec![b'#'; isolane_model::limits::MAX_FILE_BYTES + 1];
    let found = System::from_bytes(&long, NAME, KINDS).expect_err("too long");
    assert!(found[0].what().contains("longer than"));
    assert_eq!(found[0].span(), None);
}

#[test]
fn a_value_that_was_forgotten_is_said_to_be_missing() {
    for line in ["domain =", "domain = # which one?"] {
        let found = System::from_toml(line, NAME, KINDS).expect_err("no value");
        assert_eq!(found[0].what(), "a value is missing", "{line}");
    }
    let found = System::from_toml("domain = five", NAME, KINDS).expect_err("no number");
    assert_ne!(found[0].what(), "a value is missing");
}

#[test]
fn a_file_that_is_not_there_says_how_to_write_one() {
    let found = System::load("no/such/isolane.toml", KINDS).expect_err("it is not there");
    assert_says(
        &found[0],
        "no/such/isolane.toml",
        "isolane config --example",
    );
}

#[test]
fn what_is_missing_at_the_end_is_marked_at_the_last_character() {
    let text = "topic = [\"x\"";
    let found = problems(text);
    assert_eq!(
        (found[0].line(), found[0].column()),
        (Some(1), Some(12)),
        "{found:#?}"
    );
}
