//! Asks a tool of the system, and waits for its answer no longer than is reasonable: one that waits for a lock of
//! the kernel's rules may wait for ever. Nor longer than whoever asks wants to.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::limits::{FILTER_TOOL_END, FILTER_TOOL_LOOK, FILTER_TOOL_PATIENCE, MAX_RULES_BYTES};

/// Until when tools are waited for: all that are asked for one answer share it.
#[derive(Clone, Copy)]
pub(super) struct Patience<'a> {
    whole: Duration,
    until: Instant,
    /// Whether the answer is not wanted any more.
    is_stopped: &'a dyn Fn() -> bool,
}

impl<'a> Patience<'a> {
    pub(super) fn begin(is_stopped: &'a dyn Fn() -> bool) -> Self {
        Self::of(FILTER_TOOL_PATIENCE, is_stopped)
    }

    fn of(whole: Duration, is_stopped: &'a dyn Fn() -> bool) -> Self {
        Self {
            whole,
            until: Instant::now() + whole,
            is_stopped,
        }
    }

    fn is_over(self) -> bool {
        Instant::now() >= self.until || (self.is_stopped)()
    }

    /// Why there is no answer of a tool that was asked so.
    fn excuse(self, tool: &str, arguments: &[&str]) -> String {
        if (self.is_stopped)() {
            return format!("{tool} was not waited for");
        }
        let (seconds, command) = (self.whole.as_secs_f32(), arguments.join(" "));
        format!(
            "{tool} did not answer within {seconds} s: another program may hold the rules, see what `{tool} {command}` does"
        )
    }
}

/// What a tool writes to standard output.
///
/// # Errors
/// Why there is no answer, in words.
pub(super) fn answer(
    tool: &str,
    arguments: &[&str],
    patience: Patience<'_>,
) -> Result<String, String> {
    if (patience.is_stopped)() {
        return Err(patience.excuse(tool, arguments));
    }
    let mut child = Command::new(tool)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // What it starts ends with it.
        .process_group(0)
        .spawn()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => format!("there is no command `{tool}` here"),
            _ => format!("{tool}: {error}"),
        })?;
    // It may say more than a pipe holds: both are read while it runs.
    let said = child.stdout.take().map(read_all);
    let complained = child.stderr.take().map(read_all);
    let status = wait(&mut child, || patience.is_over());
    let said = said.and_then(|said| receive(&said, patience));
    let complained = complained.and_then(|said| receive(&said, patience));
    let Some((status, said)) = status.zip(said) else {
        end(child);
        return Err(patience.excuse(tool, arguments));
    };
    if !status.success() {
        let line = first_line(&complained.unwrap_or_default());
        return Err(format!("{tool} says: {line}"));
    }
    if said.len() as u64 > MAX_RULES_BYTES {
        return Err(format!("{tool} says more than is read"));
    }
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// Reads to the end, or a little more than is wanted, beside what else is done.
fn read_all(from: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut from = from;
        let mut read = Vec::new();
        let end = from
            .by_ref()
            .take(MAX_RULES_BYTES + 1)
            .read_to_end(&mut read);
        if end.is_ok() {
            // Who has stopped waiting wants it no more.
            let _ = sender.send(read);
        }
        // Else the tool would wait for somebody to read the rest.
        let _ = std::io::copy(&mut from, &mut std::io::sink());
    });
    receiver
}

/// What was read, as soon as all was.
fn receive(read: &Receiver<Vec<u8>>, patience: Patience<'_>) -> Option<Vec<u8>> {
    loop {
        match read.recv_timeout(FILTER_TOOL_LOOK) {
            Ok(read) => return Some(read),
            Err(RecvTimeoutError::Timeout) if !patience.is_over() => {}
            Err(_) => return None,
        }
    }
}

fn wait(child: &mut Child, is_over: impl Fn() -> bool) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if !is_over() => std::thread::sleep(FILTER_TOOL_LOOK),
            _ => return None,
        }
    }
}

/// Ends it, and what it has started.
fn end(mut child: Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        // It may have ended by itself meanwhile.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let until = Instant::now() + FILTER_TOOL_END;
    if wait(&mut child, || Instant::now() >= until).is_none() {
        // The kernel does not let go of one that waits for it; when it does, the tool is gone.
        std::thread::spawn(move || child.wait());
    }
}

/// What may be repeated of it.
fn first_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().next().unwrap_or_default();
    line.chars()
        .filter(|it| !it.is_control())
        .take(120)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, patience: Duration) -> Result<String, String> {
        answer("sh", &["-c", script], Patience::of(patience, &|| false))
    }

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn what_a_tool_says_is_read_however_much_more_than_a_pipe_holds_it_is() {
        let all = shell("seq 1 40000", PATIENCE).expect("it ends");
        assert!(all.ends_with("39999\n40000\n"), "{} bytes", all.len());
        let bytes = MAX_RULES_BYTES + 1;
        let too_much = shell(&format!("yes | head -c {bytes}"), PATIENCE);
        assert_eq!(too_much, Err("sh says more than is read".into()));
    }

    #[test]
    fn a_tool_that_refuses_is_quoted() {
        let refused = shell("echo 'not permitted' >&2; exit 1", PATIENCE);
        assert_eq!(refused, Err("sh says: not permitted".into()));
        let absent = answer("no-such-tool", &[], Patience::of(PATIENCE, &|| false));
        assert_eq!(
            absent,
            Err("there is no command `no-such-tool` here".into())
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
            // Whoever inherits it may take a while to note its end.
            let until = Instant::now() + PATIENCE;
            while is_running(started) {
                assert!(Instant::now() < until, "{script}: it was left behind");
                std::thread::sleep(FILTER_TOOL_LOOK);
            }
        }
        let _ = std::fs::remove_file(&file);
    }

    /// A process that has ended and is still in the table runs no more.
    fn is_running(process: Pid) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }

    #[test]
    fn a_tool_whose_answer_is_not_wanted_any_more_is_not_waited_for() {
        let begin = Instant::now();
        let is_stopped = || begin.elapsed() > Duration::from_millis(200);
        for script in ["sleep 1000", "sleep 1000 &"] {
            let patience = Patience::of(PATIENCE, &is_stopped);
            let stopped = answer("sh", &["-c", script], patience);
            assert_eq!(stopped, Err("sh was not waited for".into()));
        }
        assert!(begin.elapsed() < PATIENCE / 4, "{:?}", begin.elapsed());
    }

    #[test]
    fn tools_share_the_time_there_is() {
        let patience = Patience::of(Duration::from_secs(2), &|| false);
        let begin = Instant::now();
        let ask = || answer("sh", &["-c", "sleep 1000"], patience).expect_err("it sleeps");
        for _ in 0..20 {
            assert!(ask().contains("did not answer"));
        }
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "each had its own"
        );
    }
}
