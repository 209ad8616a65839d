//! Environment of a result: results are only comparable on the same machine.

use std::fs;

use isolane_tune::{ClockError, Facts, clock_error, one_way_bound, probe_clock};
use serde::{Deserialize, Serialize};

use crate::clock::micros;

/// Machine, program and command line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Release and build of the kernel.
    pub kernel: String,
    /// Name of the processor.
    pub cpu: Option<String>,
    /// Cores this process may use.
    pub cores: u32,
    /// Whether the kernel is built with PREEMPT_RT.
    pub realtime_kernel: bool,
    /// Commit the program was built from.
    pub commit: Option<String>,
    /// Exact command line.
    pub command: String,
    /// Whether the program ran as root.
    pub root: bool,
    /// State of the machine's clock at the start of the measurement.
    #[serde(default)]
    pub clock: Clock,
}

/// State of a machine's clock, which determines the error of one-way delays to other machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// Kernel clock source, such as `tsc`.
    pub source: Option<String>,
    /// Whether the clock is synchronised, according to the kernel.
    pub is_kept: Option<bool>,
    /// Error bound in microseconds; null if unknown.
    pub error_bound_us: Option<f64>,
    /// Reference of the error bound, if known.
    pub against: Option<String>,
    /// Description of the error.
    pub error: String,
    /// Error bound in microseconds of a one-way delay to a machine whose clock is equally synchronised to the same
    /// source, under the assumptions in `error`.
    pub one_way_bound_us: Option<f64>,
    /// Reason why one-way delays to another machine are refused; null if they are not.
    pub one_way_refused: Option<String>,
}

impl Clock {
    /// Clock state from collected facts.
    fn of(facts: &Facts) -> Clock {
        let error = clock_error(facts);
        let (error_bound_us, against) = match &error {
            ClockError::Bound {
                nanoseconds,
                against,
                ..
            } => (Some(micros(*nanoseconds)), Some(against.clone())),
            _ => (None, None),
        };
        let bound = one_way_bound(&error, &error);
        Clock {
            source: facts.kernel.clocksource.clone(),
            is_kept: facts.clock.is_kept,
            error_bound_us,
            against,
            error: error.to_string(),
            one_way_bound_us: bound.as_ref().ok().map(|bound| micros(bound.nanoseconds())),
            one_way_refused: bound.err().map(|refusal| refusal.to_string()),
        }
    }

    /// One-line description.
    pub fn words(&self) -> String {
        let source = self.source.as_deref().unwrap_or("an unknown source");
        let one_way = match self.one_way_bound_us {
            Some(bound_us) => format!(
                "machines whose clocks are kept as well, by the same source, mean something beyond {bound_us} us; shorter ones are \
                 refused"
            ),
            None => "other machines are refused".to_owned(),
        };
        format!(
            "the kernel's, from {source}; {}; one-way delays to {one_way}",
            self.error
        )
    }
}

impl Environment {
    /// Probes the machine and this process.
    pub fn probe() -> Environment {
        Environment::of(&probe_clock())
    }

    /// Builds the environment with the clock state from `facts`, without querying the synchronisation daemon.
    pub(super) fn of(facts: &Facts) -> Environment {
        let system = rustix::system::uname();
        let kernel = [system.release(), system.version()].map(|text| text.to_string_lossy());
        let words: Vec<String> = std::env::args_os()
            .map(|word| quoted(&word.to_string_lossy()))
            .collect();
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
            command: words.join(" "),
            root: rustix::process::geteuid().is_root(),
            clock: Clock::of(facts),
        }
    }
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
    use isolane_tune::{Ptp, PtpDelay, PtpPort, PtpState};

    use super::*;

    #[test]
    fn this_machine_has_a_kernel_and_cores() {
        let environment = Environment::of(&Facts::default());
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

    fn kept_by(program: &str) -> Clock {
        let mut facts = Facts::default();
        facts.programs.push(program.to_owned());
        facts.clock.is_kept = Some(true);
        facts.clock.maximum_error_us = Some(850);
        Clock::of(&facts)
    }

    #[test]
    fn what_is_known_of_the_clock_is_recorded_and_what_delays_to_others_are_worth() {
        let mut facts = Facts::default();
        facts.programs.push("ptp4l".to_owned());
        facts.clock.ptp = Some(Ptp {
            grandmaster: "aabbcc.fffe.ddeeff".to_owned(),
            has_grandmaster: true,
            master_offset_ns: 35_000,
            steps_removed: Some(1),
            mean_path_delay_ns: Some(65_000),
            is_tai: Some(false),
            ports: vec![PtpPort {
                state: PtpState::Slave,
                delay: PtpDelay::EndToEnd,
                stamps_in_hardware: Some(false),
                ..PtpPort::default()
            }],
            ..Ptp::default()
        });
        let clock = Clock::of(&facts);
        assert_eq!(clock.error_bound_us, Some(100.0));
        let against = clock.against.as_deref().expect("a source");
        assert!(against.contains("aabbcc.fffe.ddeeff"), "{against}");
        // Sum of both machines' bounds.
        assert_eq!(clock.one_way_bound_us, Some(200.0));
        assert_eq!(clock.one_way_refused, None);
        let words = clock.words();
        for part in [
            "wait nowhere on the way",
            "by the same source, mean something beyond 200 us",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
    }

    #[test]
    fn what_chrony_tells_the_kernel_is_no_bound_between_machines() {
        let clock = kept_by("chronyd");
        assert_eq!((clock.error_bound_us, clock.one_way_bound_us), (None, None));
        assert!(
            clock.words().contains("whose time it is"),
            "{}",
            clock.words()
        );
    }

    #[test]
    fn where_nobody_tells_how_far_the_clock_is_off_delays_to_others_are_refused() {
        let clock = kept_by("systemd-timesyn");
        assert_eq!((clock.error_bound_us, clock.one_way_bound_us), (None, None));
        let why = clock.one_way_refused.as_deref().expect("a reason");
        assert!(why.contains("timedatectl timesync-status"), "{why}");
        assert!(
            clock.words().ends_with("to other machines are refused"),
            "{}",
            clock.words()
        );
    }

    #[test]
    fn a_command_can_be_pasted_back() {
        assert_eq!(quoted("--json"), "--json");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
