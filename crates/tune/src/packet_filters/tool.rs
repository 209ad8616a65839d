//! Runs a system tool with limits on its time and its output. A tool that waits for the lock of the kernel's rules
//! could otherwise wait forever.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::limits::{FILTER_TOOL_POLL_INTERVAL, FILTER_TOOL_TIMEOUT, MAX_RULES_BYTES};

/// Time limit for tools; all tools that run for one answer share it.
#[derive(Clone, Copy)]
pub(super) struct Deadline<'a> {
    whole: Duration,
    begin: Instant,
    /// Returns true when the caller no longer wants the answer.
    is_stopped: &'a dyn Fn() -> bool,
}

impl<'a> Deadline<'a> {
    pub(super) fn begin(is_stopped: &'a dyn Fn() -> bool) -> Self {
        Self {
            whole: FILTER_TOOL_TIMEOUT,
            begin: Instant::now(),
            is_stopped,
        }
    }
}

/// Runs a tool and returns its standard output.
///
/// # Errors
/// The reason why there is no output.
pub(super) fn answer(
    tool: &str,
    arguments: &[&str],
    deadline: Deadline<'_>,
) -> Result<String, String> {
    let mut child = Command::new(tool)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A separate process group, so that processes started by the tool can be killed with it.
        .process_group(0)
        .spawn()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => format!("command `{tool}` is not installed"),
            _ => format!("{tool}: {error}"),
        })?;
    let (sender, receiver) = channel();
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    // The tool may print more than a pipe holds, so a thread reads its output while it runs.
    thread::spawn(move || {
        let printed = up_to(MAX_RULES_BYTES + 1, output);
        // The receiver may have stopped waiting.
        let _ = sender.send((printed, up_to(MAX_COMPLAINT_BYTES, errors)));
    });
    let mut read = None;
    let (status, (printed, complaint)) = loop {
        read = read.or_else(|| receiver.try_recv().ok());
        // The tool is not waited for before all output is read, so its process group id is not reused.
        if read.is_some()
            && let Ok(Some(status)) = child.try_wait()
            && let Some(read) = read.take()
        {
            break (status, read);
        }
        let is_stopped = (deadline.is_stopped)();
        if is_stopped || deadline.begin.elapsed() >= deadline.whole {
            if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                // The tool may have ended by itself meanwhile.
                let _ = kill_process_group(group, Signal::KILL);
            }
            // The kernel may not end the tool at once.
            thread::spawn(move || child.wait());
            return Err(match is_stopped {
                true => format!("{tool} was stopped on request"),
                false => format!(
                    "{tool} did not answer within {} s: another program may hold the rules, see what `{tool} {}` does",
                    deadline.whole.as_secs_f32(),
                    arguments.join(" ")
                ),
            });
        }
        thread::sleep(FILTER_TOOL_POLL_INTERVAL);
    };
    if printed.len() as u64 > MAX_RULES_BYTES {
        return Err(format!("the output of {tool} is too long"));
    }
    if !status.success() {
        let text = String::from_utf8_lossy(&complaint);
        let line = text.lines().next().unwrap_or_default();
        let line: String = line.chars().filter(|it| !it.is_control()).collect();
        return Err(format!("{tool} failed: {line}"));
    }
    Ok(String::from_utf8_lossy(&printed).into_owned())
}

/// Maximum bytes of standard error that an error repeats.
const MAX_COMPLAINT_BYTES: u64 = 120;

fn up_to(bytes: u64, from: Option<impl Read>) -> Vec<u8> {
    let mut read = Vec::new();
    if let Some(from) = from {
        // After an error, the bytes read so far are used.
        let _ = from.take(bytes).read_to_end(&mut read);
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(whole: Duration, is_stopped: &dyn Fn() -> bool) -> Deadline<'_> {
        let begin = Instant::now();
        Deadline {
            whole,
            begin,
            is_stopped,
        }
    }

    fn shell(script: &str, deadline: Duration) -> Result<String, String> {
        answer("sh", &["-c", script], within(deadline, &|| false))
    }

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn what_a_tool_says_is_read_however_much_more_than_a_pipe_holds_it_is() {
        let all = shell("seq 1 40000", PATIENCE).expect("it ends");
        assert!(all.ends_with("39999\n40000\n"), "{} bytes", all.len());
        let bytes = MAX_RULES_BYTES + 1;
        let too_much = shell(&format!("yes | head -c {bytes}"), PATIENCE);
        assert_eq!(too_much, Err("the output of sh is too long".into()));
    }

    #[test]
    fn a_tool_that_refuses_is_quoted() {
        let refused = shell("echo 'not permitted' >&2; exit 1", PATIENCE);
        assert_eq!(refused, Err("sh failed: not permitted".into()));
        let absent = answer("no-such-tool", &[], within(PATIENCE, &|| false));
        assert_eq!(
            absent,
            Err("command `no-such-tool` is not installed".into())
        );
    }

    #[test]
    fn a_tool_that_never_answers_is_ended_with_what_it_started() {
        let file = std::env::temp_dir().join(format!("isolane-tool-{}", std::process::id()));
        let name = file.to_str().expect("UTF-8");
        for script in [
            "sleep 1000 & echo $! >FILE",
            "sleep 1000 & echo $! >FILE; wait",
        ] {
            let script = script.replace("FILE", name);
            let never = shell(&script, Duration::from_secs(2)).expect_err("it sleeps");
            assert!(never.contains("did not answer within 2 s"), "{never}");
            let started = std::fs::read_to_string(&file).expect("the shell wrote it");
            let started: i32 = started.trim().parse().expect("a number");
            let started = Pid::from_raw(started).expect("of a process");
            // The process that adopts the orphan may reap it late.
            let until = Instant::now() + PATIENCE;
            while is_running(started) {
                assert!(Instant::now() < until, "{script}: it was left behind");
                thread::sleep(FILTER_TOOL_POLL_INTERVAL);
            }
        }
        let _ = std::fs::remove_file(&file);
    }

    /// Returns whether a process runs; a zombie does not.
    fn is_running(process: Pid) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }

    #[test]
    fn a_tool_whose_answer_is_not_wanted_any_more_is_not_waited_for() {
        let begin = Instant::now();
        let is_stopped = || begin.elapsed() > Duration::from_millis(200);
        for script in ["sleep 1000", "sleep 1000 &"] {
            let deadline = within(PATIENCE, &is_stopped);
            let stopped = answer("sh", &["-c", script], deadline);
            assert_eq!(stopped, Err("sh was stopped on request".into()));
        }
        assert!(begin.elapsed() < PATIENCE / 4, "{:?}", begin.elapsed());
    }

    #[test]
    fn tools_share_the_time_there_is() {
        let deadline = within(Duration::from_secs(2), &|| false);
        let begin = Instant::now();
        let ask = || answer("sh", &["-c", "sleep 1000"], deadline).expect_err("it sleeps");
        for _ in 0..20 {
            assert!(ask().contains("did not answer"));
        }
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "each had its own"
        );
    }
}
