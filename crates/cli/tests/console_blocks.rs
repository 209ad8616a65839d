//! Tests of README and documents: each console block does what it shows, each page that is generated is current, and
//! each link leads somewhere.
//!
//! A block of ```` ```console ```` is run line by line in a network namespace with the interface `eth0`, all blocks of a
//! page in one folder:
//! - `$ isolane ...` is run; `sudo` is dropped, since the test is root. `&` at the end lets it run until the block ends.
//! - `# ... exit code N` at the end of a line is the expected exit code, otherwise 0.
//! - Lines below a command are its expected output: any digits match any digits, and `...` matches any text, or any
//!   lines. Without such lines the output may be anything.
//! - `<!-- file: NAME -->` above a block writes the block to that file.
//!
//! Blocks that cannot be run are ```` ```console,not-run ````, with `<!-- not run: REASON -->` above.
//!
//! `ISOLANE_UPDATE_DOCUMENTS=1 cargo test -p isolane-cli --test console_blocks` writes the generated pages.

mod command;

use std::{
    env, fs,
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use command::{Folder, PATIENCE, isolane, run};
use isolane::observe::{Counts, reader_counts, writer_counts};
use isolane::{ReaderLedger, WriterLedger};

const INSIDE: &str = "ISOLANE_INSIDE_NAMESPACE";
const UPDATE: &str = "ISOLANE_UPDATE_DOCUMENTS";
/// Interface of the blocks. Its peer is in the same namespace, so that both have a carrier.
const INTERFACE: &str = "ip link add eth0 type veth peer name eth0-peer && ip address add 10.91.0.1/24 dev eth0 \
                         && ip link set eth0 up && ip link set eth0-peer up && ip link set lo up && exec \"$0\" \"$@\"";
/// Time for a command in the background to start, and for one to end after SIGINT.
const START: Duration = Duration::from_secs(1);
/// Most console lines that may be not run, in percent.
const MAX_NOT_RUN_PERCENT: usize = 50;
const MAX_README_LINES: usize = 130;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README and documents: their paths from the root, and texts.
fn pages() -> Vec<(String, String)> {
    fn collect(folder: &str, paths: &mut Vec<String>) {
        for entry in fs::read_dir(root().join(folder)).expect("a folder") {
            let entry = entry.expect("an entry");
            let path = format!("{folder}/{}", entry.file_name().to_str().expect("UTF-8"));
            if entry.path().is_dir() {
                collect(&path, paths);
            } else if path.ends_with(".md") {
                paths.push(path);
            }
        }
    }
    let mut paths = vec![String::from("README.md")];
    collect("docs", &mut paths);
    paths.sort();
    let read = |path: String| {
        let text = fs::read_to_string(root().join(&path)).expect("a page");
        (path, text)
    };
    paths.into_iter().map(read).collect()
}

/// Fenced block of a page.
struct Block {
    /// Number of the line of its fence.
    line: usize,
    /// Words behind the fence: `console`, `rust,no_run`.
    info: String,
    /// Line above the fence.
    above: String,
    lines: Vec<String>,
}

impl Block {
    /// Value of the comment `<!-- KEY: VALUE -->` above the block.
    fn comment(&self, key: &str) -> Option<&str> {
        let inner = self.above.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
        inner.strip_prefix(key)?.strip_prefix(": ")
    }

    fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Number of lines with a command.
    fn commands(&self) -> usize {
        let is_command = |line: &&String| line.contains("$ ");
        self.lines.iter().filter(is_command).count()
    }
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    let mut above = "";
    for (index, line) in page.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => {
                open = Some(Block {
                    line: index + 1,
                    info: info.into(),
                    above: above.into(),
                    lines: Vec::new(),
                });
            }
            (Some(_), Some("")) => blocks.extend(open.take()),
            (Some(block), _) => block.lines.push(line.into()),
            (None, None) => {}
        }
        above = line;
    }
    assert!(open.is_none(), "a block has no end");
    blocks
}

/// Command of a block, with its expected output.
struct Step<'a> {
    command: String,
    is_in_background: bool,
    code: i32,
    output: &'a [String],
}

fn steps(block: &Block) -> Vec<Step<'_>> {
    let is_command = |line: &String| line.starts_with("$ ");
    let starts: Vec<usize> = (0..block.lines.len())
        .filter(|index| is_command(&block.lines[*index]))
        .collect();
    let ends = starts.iter().copied().skip(1).chain([block.lines.len()]);
    let step = |(start, end): (usize, usize)| {
        let line = &block.lines[start][2..];
        let (command, comment) = line.split_once(" #").unwrap_or((line, ""));
        let command = command.trim_end();
        let code = comment
            .split_once("exit code ")
            .map_or("0", |(_, code)| code);
        Step {
            command: command.trim_end_matches('&').replace("sudo ", ""),
            is_in_background: command.ends_with(" &"),
            code: code.trim().parse().expect("an exit code ends the line"),
            output: &block.lines[start + 1..end],
        }
    };
    starts.iter().copied().zip(ends).map(step).collect()
}

/// Text in which each run of digits is `0`, and each run of blanks one blank.
fn normalised(line: &str) -> String {
    let mut result = String::new();
    for word in line.split_whitespace() {
        if !result.is_empty() {
            result.push(' ');
        }
        for letter in word.chars() {
            match letter {
                '0'..='9' if result.ends_with('0') => {}
                '0'..='9' => result.push('0'),
                other => result.push(other),
            }
        }
    }
    result
}

fn line_fits(expected: &str, actual: &str) -> bool {
    let (expected, mut rest) = (normalised(expected), normalised(actual));
    let mut parts = expected.split("...");
    let first = parts.next().expect("split yields a part");
    let Some(behind) = rest.strip_prefix(first).map(String::from) else {
        return false;
    };
    rest = behind;
    let mut last = None;
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = rest[at + part.len()..].into();
        last = Some(part);
    }
    rest.is_empty() || last == Some("")
}

fn fits(expected: &[String], actual: &[&str]) -> bool {
    match (expected, actual) {
        ([], _) => actual.is_empty(),
        ([first, rest @ ..], _) if first == "..." => {
            (0..=actual.len()).any(|skipped| fits(rest, &actual[skipped..]))
        }
        ([first, rest @ ..], [line, others @ ..]) => line_fits(first, line) && fits(rest, others),
        ([_, ..], []) => false,
    }
}

/// Running command, with all that it starts. Its output goes to a file.
struct Shell {
    child: Child,
    output: PathBuf,
}

impl Shell {
    fn start(command: &str, folder: &Folder, number: usize) -> Self {
        let output = folder.0.join(format!("output-{number}"));
        let file = File::create(&output).expect("a file");
        let program = Path::new(env!("CARGO_BIN_EXE_isolane"));
        let folder_of_program = program.parent().expect("a folder").display();
        let path = env::var("PATH").expect("a path");
        // With `exec`, the exit code is the command's own, also after a signal to the whole group.
        let exec = if command.contains('|') { "" } else { "exec " };
        let child = Command::new("setsid")
            .args(["sh", "-c", &format!("{exec}{command}")])
            .current_dir(&folder.0)
            .env("PATH", format!("{folder_of_program}:{path}"))
            .env_remove("ISOLANE_CONFIG")
            .env_remove("ISOLANE_DOMAIN")
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a second descriptor"))
            .stderr(file)
            .spawn()
            .expect("setsid, of util-linux");
        Self { child, output }
    }

    /// Waits for the end; `None` if there is none.
    fn wait(&mut self, patience: Duration) -> Option<i32> {
        let end = Instant::now() + patience;
        loop {
            if let Some(status) = self.child.try_wait().expect("it was started") {
                return status.code();
            }
            if Instant::now() > end {
                return None;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn signal(&self, signal: &str) {
        let group = format!("-{}", self.child.id());
        // The group may have ended by itself.
        let _ = Command::new("kill").args([signal, "--", &group]).output();
    }

    fn printed(&self) -> String {
        fs::read_to_string(&self.output).expect("UTF-8")
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.signal("-KILL");
        let _ = self.child.wait();
    }
}

/// Runs a block; returns what was not as expected.
fn failures(block: &Block, folder: &Folder) -> Vec<String> {
    let mut failures = Vec::new();
    let mut background = Vec::new();
    for (number, step) in steps(block).into_iter().enumerate() {
        let command = &step.command;
        assert!(
            command.starts_with("isolane "),
            "line {}: {command}: mark the block as not-run, and say why",
            block.line
        );
        let mut shell = Shell::start(command, folder, number);
        if step.is_in_background {
            thread::sleep(START);
            background.push((step.command, shell));
            continue;
        }
        let code = shell.wait(PATIENCE);
        let printed = shell.printed();
        let lines: Vec<&str> = printed.lines().collect();
        if code != Some(step.code) {
            failures.push(format!("{command}: exit code {code:?}\n{printed}"));
        } else if !step.output.is_empty() && !fits(step.output, &lines) {
            failures.push(format!("{command}: printed\n{printed}"));
        }
    }
    for (command, mut shell) in background {
        shell.signal("-INT");
        let code = shell.wait(PATIENCE);
        if !matches!(code, Some(0 | 130)) {
            failures.push(format!(
                "{command} &: exit code {code:?}\n{}",
                shell.printed()
            ));
        }
    }
    failures
}

/// Runs this test again in a network namespace with an interface. Without the right to do so it prints a message, and
/// fails in CI.
fn in_namespace(test: &str, inside: impl FnOnce()) {
    if env::var_os(INSIDE).is_some() {
        return inside();
    }
    // Lanes need root of the machine, not of a user namespace.
    let is_allowed = Command::new("unshare").args(["--net", "true"]).status();
    if !is_allowed.is_ok_and(|status| status.success()) {
        assert!(env::var_os("CI").is_none(), "CI must run this as root");
        eprintln!("this takes root, for a network namespace: nothing was tried");
        return;
    }
    let status = Command::new("unshare")
        .args(["--net", "sh", "-c", INTERFACE])
        .arg(env::current_exe().expect("this program"))
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .status();
    assert!(status.expect("unshare").success(), "the run inside failed");
}

#[test]
fn every_console_block_does_what_it_shows() {
    in_namespace("every_console_block_does_what_it_shows", || {
        let mut failed = Vec::new();
        for (path, text) in pages() {
            let folder = Folder::new(&format!("page-{}", path.replace('/', "-")));
            for block in blocks(&text) {
                if let Some(name) = block.comment("file") {
                    folder.write(name, &block.text());
                }
                if block.info != "console" {
                    continue;
                }
                let started = Instant::now();
                for failure in failures(&block, &folder) {
                    failed.push(format!("{path}:{}: {failure}", block.line));
                }
                println!("{path}:{}: {:.1?}", block.line, started.elapsed());
            }
        }
        assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    });
}

#[test]
fn blocks_that_are_not_run_say_why_and_are_few() {
    let (mut run, mut not_run) = (0, 0);
    for (path, text) in pages() {
        for block in blocks(&text) {
            match block.info.as_str() {
                "console" => run += block.commands(),
                "console,not-run" => {
                    let reason = block.comment("not run");
                    assert!(reason.is_some(), "{path}:{}: no reason", block.line);
                    not_run += block.commands();
                }
                // Commands are in console blocks, where they are run.
                "" | "sh" | "bash" | "shell" => {
                    assert!(!block.text().contains("isolane "), "{path}:{}", block.line);
                }
                _ => {}
            }
        }
    }
    println!("{run} console lines are run, {not_run} are not");
    let percent = not_run * 100 / (run + not_run);
    assert!(percent <= MAX_NOT_RUN_PERCENT, "{percent} % are not run");
}

#[test]
fn output_is_compared_by_words_and_without_numbers() {
    let expected = ["a 1 b", "..."].map(String::from);
    assert!(fits(&expected, &["a 22   b", "anything", "else"]));
    assert!(!fits(&expected, &["a b"]));
    assert!(line_fits("... and ...", "this 7 and that"));
    assert!(line_fits("one ... three", "one two three"));
    assert!(!line_fits("one ... three", "one two four"));
    assert!(!fits(&expected[..1], &["a 1 b", "more"]));
}

#[test]
fn the_readme_is_short_and_has_the_example_programs() {
    let readme = fs::read_to_string(root().join("README.md")).expect("a page");
    let lines = readme.lines().count();
    assert!(lines <= MAX_README_LINES, "{lines} lines");
    for name in ["hello_publisher", "hello_subscriber"] {
        let path = root().join(format!("examples/src/bin/{name}.rs"));
        let program = fs::read_to_string(path).expect("an example");
        let program: String = program
            .lines()
            .skip_while(|line| line.starts_with("//!") || line.is_empty())
            .map(|line| format!("{line}\n"))
            .collect();
        assert!(readme.contains(&program), "README has another {name}");
    }
}

#[test]
fn every_page_with_a_program_is_compiled() {
    let library = fs::read_to_string(root().join("crates/dds/src/lib.rs")).expect("a source");
    for (path, text) in pages() {
        for block in blocks(&text) {
            let is_rust = block.info.starts_with("rust");
            let is_ignored = block.info.contains("ignore");
            assert!(!is_ignored, "{path}:{} is not compiled", block.line);
            let is_compiled = library.contains(&format!("\"{path}\""));
            assert!(
                !is_rust || is_compiled,
                "{path} is not in crates/dds/src/lib.rs"
            );
        }
    }
}

/// Anchor of a heading, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = heading.chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        _ => letter.is_alphanumeric().then_some(letter),
    });
    kept.collect()
}

/// Text without blocks, where brackets are no links.
fn prose(text: &str) -> String {
    let mut is_inside = false;
    let outside = text.lines().filter(|line| {
        let is_fence = line.starts_with("```");
        is_inside ^= is_fence;
        !is_fence && !is_inside
    });
    outside.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut broken = Vec::new();
    let mut all = pages();
    for path in ["ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        let text = fs::read_to_string(root().join(path)).expect("a page");
        all.push((path.into(), text));
    }
    for (path, text) in &all {
        let folder = Path::new(path).parent().expect("a folder");
        let text = prose(text);
        let links = text.split("](").skip(1);
        let links = links.filter_map(|rest| rest.split_once(')').map(|(link, _)| link));
        for link in links.filter(|link| !link.starts_with("http")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => root().join(path),
                file => root().join(folder).join(file),
            };
            if !target.exists() {
                broken.push(format!("{path}: {link}"));
                continue;
            }
            if !heading.is_empty() {
                let page = prose(&fs::read_to_string(target).expect("a page"));
                let mut headings = page.lines().filter(|line| line.starts_with('#'));
                if !headings.any(|line| anchor(line) == heading) {
                    broken.push(format!("{path}: {link}"));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_book_has_every_page() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).expect("a page");
    for (path, _) in pages() {
        let Some(name) = path.strip_prefix("docs/") else {
            continue;
        };
        let is_listed = name == "SUMMARY.md" || summary.contains(&format!("]({name})"));
        assert!(is_listed, "docs/SUMMARY.md lacks {name}");
    }
}

/// Checks that a page has this text, or writes it if that is asked for.
fn check_generated(path: &str, text: &str) {
    let file = root().join(path);
    if env::var_os(UPDATE).is_some() {
        return fs::write(file, text).expect("the page can be written");
    }
    let page = fs::read_to_string(file).expect("a page");
    let differing = page
        .lines()
        .zip(text.lines())
        .find(|(left, right)| left != right);
    assert!(
        page == text,
        "{path} is not current; {UPDATE}=1 writes it. First difference: {differing:?}"
    );
}

/// Help of a command and of its subcommands, as sections of a page.
fn help(command: &[&str], page: &mut String) {
    let mut arguments = command.to_vec();
    arguments.push("--help");
    // Without these variables and a terminal, clap wraps at 100 columns.
    let (code, text, error) = run(isolane(&arguments)
        .env_remove("COLUMNS")
        .env_remove("LINES"));
    assert_eq!(code, 0, "{arguments:?}: {error}");
    let name = [&["isolane"], command].concat().join(" ");
    *page += &format!("\n## {name}\n\n```text\n{}\n```\n", text.trim_end());
    let mut is_listed = false;
    let names = text.lines().filter_map(|line| {
        // A list of commands ends with an empty line; `isolane --help` has two lists.
        is_listed = matches!(line, "Commands:" | "More:") || (is_listed && !line.is_empty());
        let name = line.strip_prefix("  ")?.split([' ', ',']).next()?;
        (is_listed && !name.is_empty() && name != "help").then_some(name)
    });
    for name in names {
        help(&[command, &[name]].concat(), page);
    }
}

#[test]
fn the_command_reference_is_what_the_command_prints() {
    let mut page = String::from(
        "# Command line\n\nThis page is the `--help` of every command. A test checks that it is current, and \
         `ISOLANE_UPDATE_DOCUMENTS=1 cargo test\n-p isolane-cli --test console_blocks` writes it. `isolane man DIR` \
         writes manual pages, `isolane completions SHELL` completions.\n",
    );
    help(&[], &mut page);
    assert!(
        page.contains("## isolane tune apply"),
        "subcommands are missing"
    );
    check_generated("docs/reference/cli.md", &page);
}

/// Page with another text in the block below `<!-- generated: NAME -->`.
fn with_block(page: &str, name: &str, text: &str) -> String {
    let comment = format!("<!-- generated: {name} -->\n");
    let (before, rest) = page.split_once(&comment).expect("the comment");
    let (fence, rest) = rest.split_once('\n').expect("a fence");
    let (_, behind) = rest.split_once("```").expect("its end");
    let behind = behind.trim_start_matches(|letter| letter != '\n');
    format!("{before}{comment}{fence}\n{}\n```{behind}", text.trim_end())
}

#[test]
fn the_description_reference_has_the_example_and_every_key_of_tune() {
    const PATH: &str = "docs/reference/isolane-toml.md";
    let (code, example, error) = run(&mut isolane(&["config", "--example"]));
    assert_eq!(code, 0, "{error}");
    let folder = Folder::new("description-reference");
    folder.write("isolane.toml", &example);
    let (code, printed, error) = run(isolane(&["config"]).current_dir(&folder.0));
    assert_eq!(code, 0, "{error}");
    let keys = printed.lines().filter(|line| line.starts_with("tune."));
    let keys: Vec<&str> = keys.map(str::trim_end).collect();
    assert!(keys.len() > 10, "{printed}");
    let page = fs::read_to_string(root().join(PATH)).expect("a page");
    let page = with_block(&page, "isolane config --example", &example);
    check_generated(PATH, &with_block(&page, "isolane config", &keys.join("\n")));
}

#[test]
fn the_reference_of_counts_names_every_count() {
    let page = fs::read_to_string(root().join("docs/reference/counts.md")).expect("a page");
    let (reader, writer) = page.split_once("## Writer").expect("two tables");
    let missing = |table: &str, counts: Counts| -> Vec<String> {
        let cells = table
            .lines()
            .filter_map(|line| line.strip_prefix("| ")?.split('|').next());
        let names: Vec<&str> = cells.flat_map(|cell| cell.trim().split(", ")).collect();
        let words = counts.keys().map(|name| name.replace('_', " "));
        words
            .filter(|name| !names.contains(&name.as_str()))
            .collect()
    };
    assert_eq!(
        missing(reader, reader_counts(&ReaderLedger::default())),
        [""; 0]
    );
    assert_eq!(
        missing(writer, writer_counts(&WriterLedger::default())),
        [""; 0]
    );
}

#[test]
fn the_json_reference_names_every_schema_of_the_sources() {
    fn collect(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.ends_with("tests") && !path.ends_with("target") {
                collect(&path, found);
            } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("tests.rs") {
                let text = fs::read_to_string(&path).expect("a source");
                let schemas = text.split("\"isolane/").skip(1);
                let schemas = schemas.filter_map(|rest| rest.split_once('"'));
                found.extend(schemas.map(|(name, _)| format!("isolane/{name}")));
            }
        }
    }
    let page = fs::read_to_string(root().join("docs/reference/json.md")).expect("a page");
    let mut schemas = Vec::new();
    for folder in ["crates", "lab", "xtask"] {
        collect(&root().join(folder), &mut schemas);
    }
    let is_schema = |name: &&String| {
        let version = name.rsplit('/').next().expect("a part");
        name.split('/').count() == 3 && version.parse::<u32>().is_ok_and(|version| version < 9)
    };
    for schema in schemas.iter().filter(is_schema) {
        assert!(page.contains(&format!("`{schema}`")), "no {schema}");
    }
    assert!(schemas.len() > 10, "{schemas:?}");
}
