//! Environment of a result: results are only comparable on the same machine.

use std::fs;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// Machine, program and command line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Release and build of the kernel.
    pub kernel: String,
    /// Name of the processor.
    pub cpu: Option<String>,
    /// Cores this process may use.
    pub cores: u32,
    /// True when the kernel is built with PREEMPT_RT.
    pub realtime_kernel: bool,
    /// Commit the program was built from.
    pub commit: Option<String>,
    /// Exact command line.
    pub command: String,
    /// True when the program ran as root.
    pub root: bool,
    /// Time at which the session began, in UTC as in RFC 3339.
    #[serde(default)]
    pub began: Option<String>,
    /// State of the kernel's clock at the start of the measurement.
    #[serde(default)]
    pub clock: Clock,
}

/// State of the kernel's clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// Kernel clock source, such as `tsc`.
    pub source: Option<String>,
    /// True when the kernel reports the clock as synchronised.
    pub is_kept: Option<bool>,
}

impl Clock {
    /// Reads the clock source and the synchronisation state.
    fn probe() -> Clock {
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        Clock {
            source: fs::read_to_string(source)
                .ok()
                .map(|text| text.trim().to_owned()),
            is_kept: isolane_hostnet::kernel::clock_is_synchronised().ok(),
        }
    }

    /// One-line description.
    pub fn words(&self) -> String {
        let source = self.source.as_deref().unwrap_or("an unknown source");
        let state = match self.is_kept {
            Some(true) => "synchronised",
            Some(false) => "not synchronised",
            None => "unknown whether synchronised",
        };
        format!("the kernel's, from {source}; {state}")
    }
}

impl Environment {
    /// Probes the machine and this process.
    pub fn probe() -> Environment {
        let system = rustix::system::uname();
        let kernel = [system.release(), system.version()].map(|text| text.to_string_lossy());
        Environment {
            kernel: kernel.join(" "),
            cpu: fs::read_to_string("/proc/cpuinfo")
                .ok()
                .as_deref()
                .and_then(cpu_name),
            cores: rustix::thread::sched_getaffinity(None).map_or(0, |cores| cores.count()),
            realtime_kernel: fs::read_to_string("/sys/kernel/realtime")
                .is_ok_and(|text| text.trim() == "1"),
            commit: option_env!("ISOLANE_COMMIT").map(str::to_owned),
            command: command_line(
                std::env::args_os().map(|word| word.to_string_lossy().into_owned()),
            ),
            root: rustix::process::geteuid().is_root(),
            began: Some(humantime::format_rfc3339_seconds(SystemTime::now()).to_string()),
            clock: Clock::probe(),
        }
    }
}

/// Lines about the origin of a result: its title, time, machine and command of each session, and the scenario.
pub fn origin<'a>(
    title: &str,
    sessions: impl IntoIterator<Item = &'a Environment>,
    scenario_sha256: &str,
) -> String {
    let session = |of: &Environment| {
        format!(
            "measured: {}, {} cores, Linux {}, isolane {}\ncommand: {}\n",
            of.began.as_deref().unwrap_or("at an unknown time"),
            of.cores,
            of.kernel.split(' ').next().unwrap_or_default(),
            of.commit.as_deref().unwrap_or("of an unknown commit"),
            of.command
        )
    };
    let sessions: String = sessions.into_iter().map(session).collect();
    format!("{title}\n{sessions}scenario: SHA-256 {scenario_sha256}\n")
}

/// Command line for a shell; `cargo xtask` for the program that cargo runs.
fn command_line(words: impl Iterator<Item = String>) -> String {
    let words = words.enumerate().map(|(index, word)| match index {
        0 if word.ends_with("/xtask") => "cargo xtask".to_owned(),
        _ => quoted(&word),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// First processor's name; the key is "model name" on x86, and "Hardware" or "Processor" on some ARM kernels.
fn cpu_name(cpuinfo: &str) -> Option<String> {
    let of_key = |wanted: &str| {
        let values = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        let mut matching = values.filter(|(key, _)| key.trim() == wanted);
        matching.next().map(|(_, value)| value.trim().to_owned())
    };
    ["model name", "Hardware", "Processor"]
        .into_iter()
        .find_map(of_key)
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,+@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_origin_names_time_machine_command_and_scenario() {
        let words = ["target/debug/xtask", "testbed", "a b"].map(str::to_owned);
        let environment = Environment {
            kernel: "6.1 #1 SMP".to_owned(),
            cores: 2,
            commit: Some("abc".to_owned()),
            command: command_line(words.into_iter()),
            began: Some("2026-11-28T00:00:00Z".to_owned()),
            ..Environment::probe()
        };
        assert_eq!(
            origin("Title", [&environment], "123"),
            "Title\nmeasured: 2026-11-28T00:00:00Z, 2 cores, Linux 6.1, isolane abc\n\
             command: cargo xtask testbed 'a b'\nscenario: SHA-256 123\n"
        );
    }

    #[test]
    fn this_machine_has_a_kernel_and_cores() {
        let environment = Environment::probe();
        assert!(
            environment
                .kernel
                .starts_with(|first: char| first.is_ascii_digit())
        );
        assert!(environment.cores >= 1);
        assert!(!environment.command.is_empty());
    }

    #[test]
    fn the_processor_has_a_name_on_x86_and_on_arm() {
        let x86 = "processor\t: 0\nmodel name\t: Some CPU @ 2.5GHz\nmodel name\t: other\n";
        assert_eq!(cpu_name(x86).as_deref(), Some("Some CPU @ 2.5GHz"));
        assert_eq!(
            cpu_name("Hardware\t: A board\n").as_deref(),
            Some("A board")
        );
        assert_eq!(cpu_name("flags: x\n"), None);
    }

    #[test]
    fn a_clock_is_described_by_its_source_and_synchronisation() {
        let words = |is_kept| {
            let source = Some("tsc".to_owned());
            Clock { source, is_kept }.words()
        };
        assert_eq!(words(Some(true)), "the kernel's, from tsc; synchronised");
        assert_eq!(
            words(Some(false)),
            "the kernel's, from tsc; not synchronised"
        );
        assert!(words(None).ends_with("unknown whether synchronised"));
    }

    #[test]
    fn a_command_can_be_pasted_back() {
        assert_eq!(quoted("--json"), "--json");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
