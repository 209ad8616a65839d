//! libFuzzer: instrumented builds of the targets, and their runs.
//!
//! Stable Rust has the compiler pass for the instrumentation. So the build needs neither nightly nor `cargo fuzz`, only
//! a C++ compiler for libFuzzer. (`cargo +nightly fuzz run --features libfuzzer TARGET` also uses AddressSanitizer, for
//! the unsafe code that participants use.)

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use isolane_support::workspace::cargo;
use isolane_support::{Result, command};

/// Compiler options for edge coverage with counters, and for traced comparisons, from which libFuzzer learns the values
/// that the code compares with.
const COVERAGE: [&str; 6] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
];

/// Maximum length of an input in bytes, the same as `isolane_fuzz::limits::MAX_INPUT_BYTES`.
const MAX_INPUT_BYTES: usize = 4096;
/// Time after which an input counts as a hang. Most inputs take less than a millisecond.
const HANG_SECONDS: u64 = 20;
/// Memory above which an input counts as an unbounded allocation. A participant has about 60 MiB of frames.
const MEMORY_MIB: u64 = 2048;

/// Targets, built as libFuzzer programs.
pub(super) struct Fuzzer {
    /// Folder of the package `fuzz`.
    home: PathBuf,
    /// Folder of the built targets, and of inputs found beyond the saved corpus.
    folder: PathBuf,
    programs: PathBuf,
}

/// Result of one run.
#[derive(Debug, Clone, Default)]
pub(super) struct Ran {
    pub(super) inputs: u64,
    pub(super) seconds: f64,
    /// Number of edges of the code that some input has reached.
    pub(super) coverage: u64,
    /// Number of inputs in the corpus.
    pub(super) corpus: u64,
    /// File of the failing input.
    pub(super) finding: Option<String>,
    /// Panic message.
    pub(super) message: Option<String>,
}

impl Fuzzer {
    /// Builds these targets.
    pub(super) fn build(home: &Path, folder: &Path, targets: &[&str]) -> Result<Self> {
        let host = host()?;
        let build_folder = folder.join("libfuzzer");
        let mut build = cargo();
        build
            .args(["build", "--release", "--features", "libfuzzer"])
            .arg("--manifest-path")
            .arg(home.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(&build_folder)
            // With `--target`, these flags do not apply to code that runs during the build (macros, scripts).
            .args(["--target", &host])
            .env(
                "RUSTFLAGS",
                [&COVERAGE[..], &["--cfg", "fuzzing"]].concat().join(" "),
            );
        for target in targets {
            build.args(["--bin", target]);
        }
        command::run(&mut build)?;
        Ok(Self {
            home: home.into(),
            folder: folder.into(),
            programs: build_folder.join(host).join("release"),
        })
    }

    /// Runs a target, starting from its corpus, for `time` or until a failure.
    pub(super) fn run(&self, target: &str, time: Duration) -> Result<Ran> {
        let artifacts = self.home.join("artifacts").join(target);
        fs::create_dir_all(&artifacts)?;
        let grown = self.grown(target);
        fs::create_dir_all(&grown)?;
        let log = self.folder.join(format!("{target}.log"));
        let start = Instant::now();
        let mut fuzz = Command::new(self.programs.join(target));
        fuzz.arg(format!("-max_total_time={}", time.as_secs().max(1)))
            .arg(format!("-timeout={HANG_SECONDS}"))
            // Otherwise an input that is slow, but does not hang, would be reported like a finding.
            .arg(format!("-report_slow_units={HANG_SECONDS}"))
            .arg(format!("-rss_limit_mb={MEMORY_MIB}"))
            .arg(format!("-max_len={MAX_INPUT_BYTES}"))
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            .args(["-print_final_stats=1", "-verbosity=1"])
            .arg(&grown)
            .arg(self.home.join("corpus").join(target))
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log)?);
        let status = fuzz
            .status()
            .map_err(|error| command::cannot_start(&fuzz, &error))?;
        let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
        let mut ran = read_log(&text);
        ran.seconds = start.elapsed().as_secs_f64();
        if !status.success() && ran.finding.is_none() {
            return Err(format!(
                "{target} ended without a finding: {status}; {}",
                log.display()
            )
            .into());
        }
        if let Some(input) = ran.finding.take_if(|input| is_timeout(input))
            && !self.is_found_again(target, &mut ran, &input)?
        {
            fs::remove_file(&input)?;
        }
        Ok(ran)
    }

    /// Repeats an input that hung, and returns whether it hangs again. libFuzzer measures wall-clock time, so an input
    /// may appear to hang on a busy machine. A deterministic target that hangs does so again.
    fn is_found_again(&self, target: &str, ran: &mut Ran, input: &str) -> Result<bool> {
        let mut again = Command::new(self.programs.join(target));
        again
            .arg(format!("-timeout={HANG_SECONDS}"))
            .arg(input)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let start = Instant::now();
        let is_found = !again
            .status()
            .map_err(|error| command::cannot_start(&again, &error))?
            .success();
        if is_found {
            ran.finding = Some(input.to_owned());
        } else {
            ran.message = None;
            eprintln!(
                "{target}: an input took more than {HANG_SECONDS} s, and {:.1} s when it ran again: the machine was busy",
                start.elapsed().as_secs_f64()
            );
        }
        Ok(is_found)
    }

    /// Writes to a folder a minimal set of inputs with the coverage of the saved corpus and the inputs found since.
    pub(super) fn minimise(&self, target: &str, into: &Path) -> Result<()> {
        let mut merge = Command::new(self.programs.join(target));
        merge
            .args(["-set_cover_merge=1", "-verbosity=0"])
            .arg(format!("-max_len={MAX_INPUT_BYTES}"))
            .arg(into)
            .arg(self.home.join("corpus").join(target))
            .arg(self.grown(target))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command::run(&mut merge)
    }

    /// Folder of inputs found beyond the saved corpus.
    pub(super) fn grown(&self, target: &str) -> PathBuf {
        self.folder.join("corpus").join(target)
    }
}

/// Parses libFuzzer's log on standard error.
fn read_log(text: &str) -> Ran {
    let mut ran = Ran::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.windows(2) {
            match (pair[0], pair[1]) {
                ("cov:", number) => ran.coverage = number.parse().unwrap_or(ran.coverage),
                ("corp:", pair) => {
                    let count = pair.split('/').next().and_then(|count| count.parse().ok());
                    ran.corpus = count.unwrap_or(ran.corpus);
                }
                ("stat::number_of_executed_units:", number) => {
                    ran.inputs = number.parse().unwrap_or(ran.inputs);
                }
                _ => {}
            }
        }
        if let Some((_, path)) = line.split_once("Test unit written to ") {
            ran.finding = Some(path.trim().into());
        }
        if line.contains("panicked at") || line.contains("ERROR: libFuzzer") {
            ran.message.get_or_insert_with(|| line.trim().into());
        }
    }
    // After a hang, libFuzzer prints no final count, so the last line with a count is used.
    if ran.inputs == 0 {
        let counts = text.lines().filter_map(|line| line.strip_prefix('#'));
        let mut counts = counts.filter_map(|line| line.split_whitespace().next()?.parse().ok());
        ran.inputs = counts.next_back().unwrap_or(0);
    }
    ran
}

/// Returns true if libFuzzer saved an input because it took too long.
fn is_timeout(input: &str) -> bool {
    let name = Path::new(input).file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with("timeout-"))
}

/// Returns the target triple of this machine.
fn host() -> Result<String> {
    let version = command::output(Command::new("rustc").arg("-vV"))?;
    let version = String::from_utf8(version)?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("`rustc -vV` names no host")?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_took_too_long_is_tried_again() {
        assert!(is_timeout("artifacts/model/timeout-63"));
        assert!(!is_timeout("artifacts/timeout-model/crash-12"));
    }

    #[test]
    fn a_run_that_found_nothing_is_read() {
        let log = "#287\tINITED cov: 1982 ft: 7216 corp: 130/47Kb exec/s: 0 rss: 36Mb\n\
                   #13567\tDONE   cov: 2294 ft: 11432 corp: 868/363Kb lim: 1512 exec/s: 1043\n\
                   stat::number_of_executed_units: 13567\n";
        let ran = read_log(log);
        assert_eq!((ran.inputs, ran.coverage, ran.corpus), (13_567, 2294, 868));
        assert_eq!(ran.finding, None);
    }

    #[test]
    fn a_finding_is_read_with_its_words() {
        let log = "#2000\tNEW    cov: 10 ft: 11 corp: 3/9b\n\
                   thread '<unnamed>' panicked at src/bytes.rs:3:9:\n\
                   artifact_prefix='x/'; Test unit written to x/crash-12\n";
        let ran = read_log(log);
        assert_eq!(ran.finding.as_deref(), Some("x/crash-12"));
        assert_eq!(
            ran.message.as_deref(),
            Some("thread '<unnamed>' panicked at src/bytes.rs:3:9:")
        );
        assert_eq!(ran.inputs, 2000);
    }
}
