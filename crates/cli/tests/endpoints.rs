//! Tests of `pub`, `sub` and `ls` with each other, by unicast on 127.0.0.1: nothing leaves the machine.
//!
//! Each test has its own domain. It waits for the output of the programs, never for a time, and interrupts a program
//! whose work is done.

mod command;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use command::PATIENCE;

/// A command in a domain, on the loopback interface.
fn isolane(domain: u32, arguments: &[&str]) -> Command {
    let mut command = command::isolane(arguments);
    command.args(["--domain", &domain.to_string()]).args([
        "--interface",
        "lo",
        "--peer",
        "127.0.0.1",
    ]);
    command
}

/// Output of a program, line by line.
struct Output {
    lines: Receiver<String>,
    text: String,
}

impl Output {
    fn of(stream: impl Read + Send + 'static) -> Self {
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stream).lines() {
                let _ = sender.send(line.expect("UTF-8"));
            }
        });
        Self {
            lines,
            text: String::new(),
        }
    }

    fn wait_for(&mut self, words: &str) {
        loop {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
                panic!("\"{words}\" never came in\n{}", self.text);
            };
            self.text.push_str(&line);
            self.text.push('\n');
            if line.contains(words) {
                return;
            }
        }
    }

    /// Returns the remaining output after the program's end, which must come within [`PATIENCE`] of its last line.
    fn rest(mut self) -> String {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    self.text.push_str(&line);
                    self.text.push('\n');
                }
                Err(RecvTimeoutError::Disconnected) => return self.text,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end:\n{}", self.text),
            }
        }
    }
}

/// Program, which is killed if its test fails first.
struct Running {
    child: Child,
    out: Option<Output>,
    err: Option<Output>,
}

struct Ended {
    code: i32,
    out: String,
    err: String,
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let out = child.stdout.take().map(Output::of);
        let err = child.stderr.take().map(Output::of);
        Self { child, out, err }
    }

    fn prints(&mut self, words: &str) {
        self.out.as_mut().expect("it was not ended").wait_for(words);
    }

    fn tells(&mut self, words: &str) {
        self.err.as_mut().expect("it was not ended").wait_for(words);
    }

    /// Waits until the program ends by itself.
    fn end(mut self) -> Ended {
        let (out, err) = (self.out.take(), self.err.take());
        let (out, err) = (
            out.expect("it was not ended").rest(),
            err.expect("it was not ended").rest(),
        );
        let code = self.child.wait().expect("it ends").code();
        let code = code.unwrap_or_else(|| panic!("ended by a signal\n{err}"));
        Ended { code, out, err }
    }

    /// Sends SIGINT.
    fn interrupt(self) -> Ended {
        self.signal("-INT")
    }

    fn signal(self, signal: &str) -> Ended {
        let process = self.child.id().to_string();
        let kill = Command::new("kill").args([signal, &process]).status();
        assert!(kill.expect("kill exists").success());
        self.end()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // This has no effect on a program that has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn a_reliable_subscriber_prints_the_requested_number_of_samples_in_order() {
    let sub = ["sub", "Square", "--reliable", "--count", "20"];
    let sub = Running::start(&mut isolane(201, &sub));
    let publisher = words("pub Square --history all --count 200 --period 2ms");
    let publisher = Running::start(&mut isolane(201, &publisher)).end();
    let sub = sub.end();
    let expected: String = (0..20)
        .map(|n| format!("Square     BLUE       {n:03} {n:03} [20]\n"))
        .collect();
    assert_eq!(sub.out, expected, "{}", sub.err);
    assert!(sub.err.contains("20 samples printed\n"), "{}", sub.err);
    assert!(sub.err.contains("in all: "), "{}", sub.err);
    assert!(publisher.err.contains("200 written"), "{}", publisher.err);
    let codes = (sub.code, publisher.code);
    assert_eq!(codes, (0, 0), "{}{}", sub.err, publisher.err);
}

#[test]
fn a_terminal_that_is_closed_ends_a_command_as_ctrl_c_does() {
    let mut publisher = Running::start(&mut isolane(217, &["pub", "Square"]));
    publisher.tells("waiting for a subscriber");
    let ended = publisher.signal("-HUP");
    assert_eq!(ended.code, 130, "{}", ended.err);
    assert!(ended.err.contains("0 written"), "{}", ended.err);
}

#[test]
fn an_interrupted_list_shows_what_it_has_heard() {
    let mut publisher = Running::start(&mut isolane(231, &["pub", "Square"]));
    publisher.tells("waiting for a subscriber");
    // The participant announces itself every few seconds.
    let waits = [1, 2, 4, 8, 16].map(Duration::from_secs);
    let is_shown = waits.into_iter().any(|wait| {
        let mut list = Running::start(&mut isolane(231, &["ls", "--seconds", "60"]));
        list.tells("listening for 60 s");
        thread::sleep(wait);
        let ended = list.interrupt();
        assert_eq!(ended.code, 130, "{}", ended.err);
        // The list shows the policies that differ from the default, and no others.
        let mut lines = ended.out.lines();
        let writer = lines.find(|line| line.contains("writer \"Square\""));
        writer.is_some_and(|line| {
            assert!(line.contains("DATA_REPRESENTATION XCDR1"), "{line}");
            assert!(!line.contains("DEADLINE"), "{line}");
            true
        })
    });
    assert!(is_shown);
}

#[test]
fn the_option_and_the_described_key_bound_how_many_participants_are_known() {
    let folder = command::Folder::new("bound");
    let text = "[host.a]\ninterface = \"lo\"\nmax_participants = 1\n";
    let path = folder.write("bound.toml", text).join("bound.toml");
    let path = path.to_str().expect("UTF-8");
    let mut publishers = [(); 3].map(|()| Running::start(&mut isolane(230, &["pub", "Square"])));
    for publisher in &mut publishers {
        publisher.tells("waiting for a subscriber");
    }
    let bounds = [
        &["--max-participants", "1"][..],
        &["--config", path, "--host", "a"],
    ];
    for bound in bounds {
        let list = [&["ls", "--seconds", "3"], bound].concat();
        let listed = Running::start(&mut isolane(230, &list)).end();
        let full = "the list is incomplete, because the tables of this command had no room";
        assert!(listed.err.contains(full), "{}", listed.err);
        assert!(listed.err.contains("max_participants"), "{}", listed.err);
        assert_eq!(
            listed.out.matches("isolane pub").count(),
            1,
            "{}",
            listed.out
        );
    }
    let are_all_known = (0..5).any(|_| {
        let listed = Running::start(&mut isolane(230, &["ls", "--seconds", "3"])).end();
        listed.out.matches("isolane pub").count() == 3
    });
    assert!(are_all_known);
}

#[test]
fn the_end_of_an_instance_is_printed_as_requested() {
    for (domain, option, state) in [
        (202, "--dispose-at-end", "NOT_ALIVE_DISPOSED"),
        (203, "--unregister-at-end", "NOT_ALIVE_NO_WRITERS"),
    ] {
        let mut sub = Running::start(&mut isolane(domain, &["sub", "Circle", "--reliable"]));
        let mut publisher = words("pub Circle --color RED --count 3 --period 2ms");
        publisher.push(option);
        let publisher = Running::start(&mut isolane(domain, &publisher)).end();
        sub.prints("NOT_ALIVE");
        let sub = sub.interrupt();
        let last = sub.out.lines().find(|line| line.contains("NOT_ALIVE"));
        let expected = format!("Circle     RED        {state}_INSTANCE_STATE");
        assert_eq!(last, Some(expected.as_str()), "{}", sub.err);
        let codes = (sub.code, publisher.code);
        assert_eq!(codes, (130, 0), "{}{}", sub.err, publisher.err);
    }
}

#[test]
fn a_pair_that_cannot_match_says_so_while_it_runs_and_at_its_end() {
    let mut sub = Running::start(&mut isolane(204, &["sub", "Square", "--reliable"]));
    let mut publisher = Running::start(&mut isolane(204, &["pub", "Square", "--best-effort"]));
    sub.tells("offers less than is requested in RELIABILITY");
    publisher.tells("requests more than is offered in RELIABILITY");
    for (ended, others) in [
        (sub.interrupt(), "writer"),
        (publisher.interrupt(), "reader"),
    ] {
        assert_eq!(ended.code, 130, "{}", ended.err);
        let end = format!("1 {others} did not match, the last because of RELIABILITY");
        assert!(ended.err.contains(&end), "{}", ended.err);
        let reports = ended.err.matches("does not match").count();
        assert_eq!(reports, 1, "reported once: {}", ended.err);
        // The library's warning about the same problem is shown only with a more verbose log.
        assert!(!ended.err.contains("warning"), "{}", ended.err);
    }
}

#[test]
fn a_subscriber_that_hears_too_little_in_its_time_ends_with_no() {
    let sub = words("sub Square --count 1 --seconds 1");
    let sub = Running::start(&mut isolane(207, &sub)).end();
    assert_eq!((sub.code, sub.out.as_str()), (1, ""));
    assert!(sub.err.contains("no writer is matched"), "{}", sub.err);
}

#[test]
fn no_sample_is_lost_without_a_name() {
    let sub = words("sub Square --reliable --history 1 -v");
    let mut sub = Running::start(&mut isolane(208, &sub));
    let publisher = words("pub Square --history 1 --count 300 --period 1ms --dispose-at-end");
    let publisher = Running::start(&mut isolane(208, &publisher)).end();
    // The last line of the publisher's output.
    sub.prints("NOT_ALIVE_DISPOSED");
    let sub = sub.interrupt();
    let count = |said: &str, name: &str| -> u64 {
        let counts = said.split([',', ':', ';', '\n']).map(words);
        let found = counts.filter_map(|words| match words[..] {
            [number, word, ..] if word == name => number.parse::<u64>().ok(),
            _ => None,
        });
        found.sum()
    };
    let written = count(&publisher.err, "written");
    assert_eq!(written, 301, "{}", publisher.err);
    let names = ["delivered", "lost", "evicted", "rejected", "skipped"];
    let named: u64 = names.iter().map(|name| count(&sub.err, name)).sum();
    assert_eq!(named, written, "{}{}", sub.err, publisher.err);
    assert!(sub.err.contains("history = 1 "), "{}", sub.err);
}

#[test]
fn samples_too_large_for_a_subscriber_are_reported_while_it_runs_and_at_its_end() {
    let sub = words("sub Square --reliable --max-bytes 20");
    let mut sub = Running::start(&mut isolane(213, &sub));
    let publisher = words("pub Square --history all --count 20 --period 2ms");
    let publisher = Running::start(&mut isolane(213, &publisher)).end();
    sub.tells("samples too large for their reader");
    let sub = sub.interrupt();
    assert_eq!(publisher.code, 0, "it is not kept: {}", publisher.err);
    for part in ["topic Square", "the reader accepts 24", "--max-bytes"] {
        assert!(sub.err.contains(part), "{part}: {}", sub.err);
    }
    let end = "in all: 0 delivered, 20 too large";
    assert!(sub.err.contains(end), "{}", sub.err);
    // The end of an instance without samples is no sample either.
    assert_eq!(sub.out, "");
}

/// Runs isolane with an address space of `kib` KiB (ulimit -v).
fn within(kib: u32, arguments: &[&str]) -> Ended {
    let isolane = env!("CARGO_BIN_EXE_isolane");
    let script = format!("ulimit -v {kib}; exec {isolane} \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh"]).args(arguments);
    command.args(["--domain", "214", "--interface", "lo"]);
    command
        .env_remove("ISOLANE_DOMAIN")
        .env_remove("ISOLANE_CONFIG");
    command.stdin(Stdio::null());
    let ended = command.output().expect("the shell starts");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ended {
        // The loader is killed if there is too little memory even for it.
        code: ended.status.code().unwrap_or(-1),
        out: text(ended.stdout),
        err: text(ended.stderr),
    }
}

#[test]
fn memory_that_cannot_be_had_at_the_start_is_an_error_with_the_amount() {
    let history = ["sub", "S", "--seconds", "1", "--max-bytes", "16000000"];
    let small = ["sub", "S", "--seconds", "1"];
    // The program itself takes some of the memory, more without optimisation.
    let is_reported = |arguments: &[&str], words: &str| {
        (10..100).step_by(2).any(|mib| {
            let ended = within(mib << 10, arguments);
            assert!(!ended.err.contains("panicked"), "{mib} MiB: {}", ended.err);
            ended.code == 3 && ended.err.contains(words) && ended.err.contains("ulimit -v")
        })
    };
    assert!(is_reported(&small, "bytes of memory are left for frames"));

    // From too little memory even for the loader, up to enough.
    let enough = (10..100)
        .step_by(2)
        .find(|mib| within(mib << 10, &small).code == 0);
    let enough = enough.expect("100 MiB are enough") << 10;
    for kib in (enough - (9 << 10)..enough).step_by(96) {
        let ended = within(kib, &small);
        assert!([0, 3].contains(&ended.code), "{kib} KiB: {}", ended.err);
    }

    let ended = within(4 << 20, &history);
    assert_eq!(ended.code, 2, "{}", ended.err);
    for part in ["of the participant's 67108864 are left", "sample_memory"] {
        assert!(ended.err.contains(part), "{part}: {}", ended.err);
    }
}

#[test]
fn a_late_transient_local_subscriber_gets_the_history() {
    // The history holds the samples of more than a minute.
    let publisher = words("pub Square --durability transient-local --history 1000 --period 100ms");
    let publisher = Running::start(&mut isolane(205, &publisher));
    let early = words("sub Square --durability transient-local --count 3");
    let early = Running::start(&mut isolane(205, &early)).end();
    assert_eq!(early.code, 0, "{}", early.err);
    let late = words("sub Square --durability transient-local --count 3");
    let late = Running::start(&mut isolane(205, &late)).end();
    // These samples were written before the late subscriber started; the early one has them too.
    assert_eq!(late.out, early.out, "{}", late.err);
    assert!(late.out.starts_with("Square     BLUE       000 000 [20]\n"));
    let publisher = publisher.interrupt();
    assert_eq!((late.code, publisher.code), (0, 130));
}

#[test]
fn samples_as_json_are_a_line_each_with_value_and_info() {
    let sub = words("sub Square --reliable --count 2 --json -");
    let sub = Running::start(&mut isolane(209, &sub));
    let publisher = words("pub Square --history all --count 2 --color RED --dispose-at-end");
    let publisher = Running::start(&mut isolane(209, &publisher)).end();
    let sub = sub.end();
    let lines: Vec<serde_json::Value> = sub
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines[1]["topic"], "Square");
    assert_eq!(lines[1]["value"]["color"], "RED");
    assert_eq!(lines[1]["value"]["x"], 1);
    assert_eq!(lines[1]["info"]["sequence"], 2);
    assert_eq!(lines[1]["info"]["instance_state"], "ALIVE");
    assert!(lines[1]["info"]["source_timestamp_us"].as_f64() > Some(0.0));
    // The end of the instance, if it arrived before the subscriber ended.
    assert!(lines[2..].iter().all(|line| line["value"].is_null()));
    let codes = (sub.code, publisher.code);
    assert_eq!(codes, (0, 0), "{}{}", sub.err, publisher.err);
}

#[test]
fn with_peers_on_the_loopback_missing_multicast_is_not_reported() {
    let quiet = Running::start(&mut isolane(211, &words("ls --seconds 1"))).end();
    assert!(!quiet.err.contains("no multicast on"), "{}", quiet.err);
    let loud = Running::start(&mut isolane(211, &words("ls --seconds 1 -v"))).end();
    assert!(loud.err.contains("no multicast on"), "{}", loud.err);
    // Without participants, the possible reasons are printed.
    assert_eq!(quiet.out, "no participant announced itself\n");
    for said in ["--domain", "--peer", "isolane spy"] {
        assert!(quiet.err.contains(said), "no {said} in {}", quiet.err);
    }
}

#[test]
fn a_topic_that_the_named_description_does_not_have_is_reported() {
    let path = std::env::temp_dir().join(format!("isolane-topics-{}.toml", std::process::id()));
    let text = isolane_model::example().replace("vehicle::BrakePressure", "ShapeType");
    std::fs::write(&path, text).expect("a temporary file");
    let path = path.to_str().expect("UTF-8");
    let of = |topic| {
        let line = ["sub", topic, "--seconds", "1", "--config", path];
        Running::start(&mut isolane(212, &line)).end().err
    };
    let unknown = of("BreakPressure");
    assert!(
        unknown.contains("note:") && unknown.contains("BreakPressure"),
        "{unknown}"
    );
    let known = of("BrakePressure");
    assert!(!known.contains("has no topic"), "{known}");
    // This test does not concern the interface and datapath to use.
    assert!(known.contains("none of the description's hosts"), "{known}");
    let _ = std::fs::remove_file(path);
}

#[test]
fn a_described_deadline_is_counted_for_each_sample_and_announced_with_the_period() {
    let folder = command::Folder::new("deadline");
    let sub_of = |domain, deadline: &str| {
        let text = format!(
            "[host.a]\ninterface = \"lo\"\n[topic.Square]\ntype = \"ShapeType\"\nmax_bytes = 64\n\
             period = \"2ms\"\ndeadline = \"{deadline}\"\nhistory = 100\nfrom = [\"a\"]\nto = [\"a\"]\n"
        );
        let path = folder
            .write(&format!("{domain}.toml"), &text)
            .join(format!("{domain}.toml"));
        let path = path.to_str().expect("UTF-8");
        let of = |line: &str| {
            let described = ["--config", path, "--host", "a"];
            let arguments: Vec<&str> = words(line).into_iter().chain(described).collect();
            Running::start(&mut isolane(domain, &arguments))
        };
        let sub = of("sub Square --count 20 -v");
        let publisher = of("pub Square --count 400");
        let sub = sub.end();
        publisher.interrupt();
        assert_eq!(sub.code, 0, "{}", sub.err);
        sub.err
    };
    let late = sub_of(213, "1us");
    // Counts all samples that were taken, including those beyond `--count`.
    let delivered = late.split("in all: ").nth(1).expect(&late);
    let (delivered, _) = delivered.split_once(" delivered").expect(&late);
    let counted = format!("Square: {delivered} samples missed the deadline of 1us");
    assert!(late.contains(&counted), "{late}");
    assert!(late.contains("deadline = 1us "), "{late}");
    let in_time = sub_of(214, "59s");
    let counted = "Square: no sample missed the deadline of 59s";
    assert!(in_time.contains(counted), "{in_time}");
}

#[test]
fn the_described_core_and_priority_are_those_of_the_thread_that_runs_the_loop() {
    let folder = command::Folder::new("core");
    let text = "[host.a]\ninterface = \"lo\"\ncore = 0\npriority = 5\n\
         [host.b]\ninterface = \"lo\"\ncore = 1000\nscheduling = \"required\"\n";
    let path = folder.write("core.toml", text).join("core.toml");
    let path = path.to_str().expect("UTF-8");
    let line = ["sub", "Square", "-v", "--config", path, "--host", "a"];
    let mut sub = Running::start(&mut isolane(215, &line));
    let publisher = Running::start(&mut isolane(215, &["pub", "Square"]));
    sub.prints("Square");
    let of = |process: &Running, name: &str| {
        let path = format!("/proc/{}/{name}", process.child.id());
        std::fs::read_to_string(path).expect("the process runs")
    };
    let cores = |process| {
        let status = of(process, "status");
        let list = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        list.expect("a list").trim().to_owned()
    };
    assert_eq!(cores(&sub), "0");
    // For comparison, without a description.
    let own = std::fs::read_to_string("/proc/self/status").expect("one's own");
    assert!(own.contains(&format!("Cpus_allowed_list:\t{}\n", cores(&publisher))));
    // `doctor` compares both with the description.
    let mut doctor = command::isolane(&["doctor", "--all", "--config", path, "--host", "a"]);
    let (_, found, err) = command::run(doctor.args(["--domain", "215"]));
    let line_of = |process: &Running| {
        let id = format!("[scheduler.participant.{}.0]", process.child.id());
        let line = found.lines().find(|line| line.contains(&id));
        line.unwrap_or_else(|| panic!("no {id} in {found}{err}"))
    };
    let all = format!("cores {}", cores(&publisher).replace("0-1", "0, 1"));
    assert!(line_of(&publisher).starts_with("  WARN"), "{found}");
    assert!(line_of(&publisher).contains(&all) || cores(&publisher) != "0-1");
    assert!(!line_of(&sub).contains("may run on"), "{found}");
    let stat = of(&sub, "stat");
    let fields: Vec<&str> = stat
        .rsplit_once(") ")
        .expect("a name")
        .1
        .split(' ')
        .collect();
    let sub = sub.interrupt();
    match sub
        .err
        .contains("SCHED_FIFO with priority 5 is not permitted")
    {
        true => assert!(sub.err.contains("CAP_SYS_NICE"), "{}", sub.err),
        false => assert_eq!(fields[37..39], ["5", "1"], "priority and policy: {stat}"),
    }
    publisher.interrupt();
    let line = ["sub", "Square", "--config", path, "--host", "b"];
    let refused = Running::start(&mut isolane(215, &line)).end();
    assert_eq!(refused.code, 3, "{}", refused.err);
    assert!(
        refused.err.contains("core 1000 is not online"),
        "{}",
        refused.err
    );
}

#[test]
fn said_twice_verbose_tells_what_happens_inside() {
    let mut sub = Running::start(&mut isolane(210, &["sub", "Square", "-v", "-v"]));
    let mut publisher = Running::start(&mut isolane(210, &["pub", "Square", "-v", "-v"]));
    sub.tells("1 writer matched");
    publisher.tells("1 reader matched");
    sub.prints("BLUE");
    for ended in [sub.interrupt(), publisher.interrupt()] {
        for said in ["receive discovery", " Square: ", "datagrams:", "protocol: "] {
            assert!(ended.err.contains(said), "no {said} in {}", ended.err);
        }
    }
}

#[test]
fn ls_lists_participants_and_endpoints_as_json() {
    let sub = Running::start(&mut isolane(206, &["sub", "Triangle", "--level", "5"]));
    // Repeats until the subscriber is discovered.
    let endpoint = (0..30).find_map(|_| {
        let list = words("ls --seconds 1 --json -");
        let list = Running::start(&mut isolane(206, &list)).end();
        assert_eq!(list.code, 0, "{}", list.err);
        let json: serde_json::Value = serde_json::from_str(&list.out).expect("JSON");
        assert_eq!(json["schema"], "isolane/ls/2");
        let endpoint = json["participants"][0]["endpoints"][0].clone();
        (!endpoint.is_null()).then_some(endpoint)
    });
    let endpoint = endpoint.expect("the subscriber is heard");
    assert_eq!(endpoint["topic"], "Triangle");
    assert_eq!(endpoint["kind"], "reader");
    assert_eq!(endpoint["level"], 5);
    assert_eq!(sub.interrupt().code, 130);
}

#[test]
fn an_interface_that_is_not_there_is_named_with_those_that_are() {
    let mut command = command::isolane(&["sub", "Square", "--interface", "nowhere0"]);
    let ended = Running::start(&mut command).end();
    assert_eq!(ended.code, 3);
    assert!(ended.err.contains("nowhere0"), "{}", ended.err);
    assert!(ended.err.contains("lo"), "{}", ended.err);
}
