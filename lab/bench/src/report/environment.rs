//! Where a result was measured: nothing means the same on another machine.

use std::fs;

use isolane_tune::{ClockError, Facts, clock_error, one_way_bound, probe_clock};
use serde::{Deserialize, Serialize};

use crate::clock::micros;

/// The machine, the program and how it was called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Release and build of the kernel.
    pub kernel: String,
    /// The processor's name.
    pub cpu: Option<String>,
    /// Cores this process may use.
    pub cores: u32,
    /// Whether the kernel is built with PREEMPT_RT.
    pub realtime_kernel: bool,
    /// What the program was built from.
    pub commit: Option<String>,
    /// The exact command.
    pub command: String,
    /// Whether it ran as root.
    pub root: bool,
    /// What was known of the machine's clock when the measurement began.
    #[serde(default)]
    pub clock: Clock,
}

/// What is known of a machine's clock: what one-way delays between it and others would be worth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// What the kernel takes the time from, `tsc`.
    pub source: Option<String>,
    /// Whether somebody keeps it, as the kernel was told.
    pub is_kept: Option<bool>,
    /// How far it may be off, in microseconds; null where that cannot be told.
    pub error_bound_us: Option<f64>,
    /// What it is kept by, if it is known how far it is off that.
    pub against: Option<String>,
    /// What is known of its error, in words.
    pub error: String,
    /// What a one-way delay would have to be beyond, to a machine whose clock is kept as well by the same source, where what
    /// `error` says it is provided with is so.
    pub one_way_bound_us: Option<f64>,
    /// Why no one-way delay to another machine would be told; null where it would.
    pub one_way_refused: Option<String>,
}

impl Clock {
    /// What facts say of it.
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

    /// A line for people.
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
    /// Looks at the machine and this process.
    pub fn probe() -> Environment {
        Environment::of(&probe_clock())
    }

    /// The same, with what facts say of the clock: whoever keeps that is not asked.
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

/// The first processor's name: x86 says "model name", some ARM kernels "Hardware" or "Processor".
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

/// A word as a shell would have to be given it.
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
        // Of both machines.
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
