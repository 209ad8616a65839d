//! Asks a tool of the system, and waits for its answer no longer than is reasonable: one that waits for a lock of
//! the kernel's rules may wait for ever.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::limits::{FILTER_TOOL_LOOK, FILTER_TOOL_PATIENCE, MAX_FILE_BYTES};

/// What a tool writes to standard output.
///
/// # Errors
/// Why there is no answer, in words.
pub(super) fn answer(tool: &str, arguments: &[&str]) -> Result<String, String> {
    answer_within(tool, arguments, FILTER_TOOL_PATIENCE)
}

fn answer_within(tool: &str, arguments: &[&str], patience: Duration) -> Result<String, String> {
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
    let until = Instant::now() + patience;
    let rest = || until.saturating_duration_since(Instant::now());
    let status = wait(&mut child, until);
    let said = said.and_then(|said| said.recv_timeout(rest()).ok());
    let complained = complained.and_then(|said| said.recv_timeout(rest()).ok());
    let Some((status, said)) = status.zip(said) else {
        end(&mut child);
        let command = arguments.join(" ");
        return Err(format!(
            "{tool} did not answer within {} s: another program may hold the rules, see what `{tool} {command}` does",
            patience.as_secs_f32()
        ));
    };
    if !status.success() {
        let line = first_line(&complained.unwrap_or_default());
        return Err(format!("{tool} says: {line}"));
    }
    if said.len() as u64 > MAX_FILE_BYTES {
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
            .take(MAX_FILE_BYTES + 1)
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

fn wait(child: &mut Child, until: Instant) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < until => std::thread::sleep(FILTER_TOOL_LOOK),
            _ => return None,
        }
    }
}

/// Ends it, and what it has started.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        // It may have ended by itself meanwhile.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
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
        answer_within("sh", &["-c", script], patience)
    }

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn what_a_tool_says_is_read_however_much_more_than_a_pipe_holds_it_is() {
        let all = shell("seq 1 40000", PATIENCE).expect("it ends");
        assert!(all.ends_with("39999\n40000\n"), "{} bytes", all.len());
        let too_much = shell("yes | head -c 5000000", PATIENCE);
        assert_eq!(too_much, Err("sh says more than is read".into()));
    }

    #[test]
    fn a_tool_that_refuses_is_quoted() {
        let refused = shell("echo 'not permitted' >&2; exit 1", PATIENCE);
        assert_eq!(refused, Err("sh says: not permitted".into()));
        let absent = answer_within("no-such-tool", &[], PATIENCE);
        assert_eq!(
            absent,
            Err("there is no command `no-such-tool` here".into())
        );
    }

    #[test]
    fn a_tool_that_never_answers_is_ended_with_what_it_started() {
        for script in ["sleep 1000", "sleep 1000 & echo a", "sleep 1000 & wait"] {
            let begin = Instant::now();
            let never = shell(script, Duration::from_millis(200)).expect_err("it sleeps");
            assert!(never.contains("did not answer within 0.2 s"), "{never}");
            assert!(begin.elapsed() < Duration::from_secs(500), "{script}");
        }
    }
}
