//! Comparison of running participants' core and scheduling policy with the description, for `doctor`.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use isolane::observe::ParticipantSample;
use isolane_model::Host;
use isolane_tune::{Finding, Severity};

use super::top::discovery::Watcher;
use super::top::sample::Seen;

/// Time limit for the participants' snapshots, which are published once a second.
const PATIENCE: Duration = Duration::from_secs(2);
/// Polling interval.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Findings about the running participants of a domain, on a host with a described core or priority.
pub(super) fn examine(host: &Host, domain: u32) -> Vec<Finding> {
    if host.core.value.is_none() && host.priority.value.is_none() {
        return Vec::new();
    }
    // Without /proc no participant can be found.
    let running = running(domain).unwrap_or_default();
    running
        .iter()
        .map(|participant| compare(host, participant))
        .collect()
}

/// Snapshots of a domain's participants.
fn running(domain: u32) -> io::Result<Vec<ParticipantSample>> {
    let mut watcher = Watcher::new(Some(domain));
    let begun = Instant::now();
    loop {
        watcher.look()?;
        let seen = watcher.sample().participants;
        let is_settled = |seen: &Seen| seen.snapshot.is_some() || seen.problem.is_some();
        if seen.iter().all(is_settled) || begun.elapsed() >= PATIENCE {
            let snapshots = seen.into_iter().filter_map(|seen| seen.snapshot);
            return Ok(snapshots.map(|snapshot| snapshot.participant).collect());
        }
        thread::sleep(LOOK_EVERY);
    }
}

fn compare(host: &Host, participant: &ParticipantSample) -> Finding {
    let mut differs = Vec::new();
    if let Some(core) = host.core.value
        && participant.allowed_cores != [usize::from(core)]
    {
        let cores: Vec<_> = participant
            .allowed_cores
            .iter()
            .map(usize::to_string)
            .collect();
        let cores = cores.join(", ");
        differs.push(format!(
            "may run on cores {cores}, and not on core {core} alone"
        ));
    }
    if let Some(priority) = host.priority.value {
        let wanted = format!("SCHED_FIFO {priority}");
        let policy = participant.policy.as_deref().unwrap_or("an unknown policy");
        if policy != wanted {
            differs.push(format!("runs under {policy}, and not under {wanted}"));
        }
    }
    let ParticipantSample { pid, name, .. } = participant;
    let id = format!("scheduler.participant.{pid}.{}", participant.number);
    let who = format!("participant \"{name}\" of process {pid}");
    if differs.is_empty() {
        return Finding {
            id,
            severity: Severity::Ok,
            what: format!("{who} has the described core and policy"),
            cost: String::new(),
            remedy: String::new(),
        };
    }
    Finding {
        id,
        severity: Severity::Warn,
        what: format!("{who} {}", differs.join("; it ")),
        cost: "other programs delay its loop, and the kernel may move it to another core".into(),
        remedy: format!(
            "start it with the description (isolane sub TOPIC --config FILE --host {}; a program: Builder::core and \
             Builder::realtime), and read what it says of refused rights",
            host.name.value
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(keys: &str) -> Host {
        let text = format!("[host.a]\ninterface = \"lo\"\n{keys}");
        let system = isolane_model::System::from_toml(&text, "isolane.toml", isolane::DATAPATHS);
        system
            .expect("a description")
            .host("a")
            .expect("it is there")
            .clone()
    }

    fn participant(allowed: &[usize], policy: &str) -> ParticipantSample {
        let sample = serde_json::json!({
            "pid": 7, "number": 0, "name": "arm", "domain": 0, "guid_prefix": "", "datapath": "udp",
            "at_us": 0.0, "allowed_cores": allowed, "policy": policy, "participants": 0, "notes": [],
            "counters": {}, "frames_out": 0, "frames_armed": 0, "frames_lent": 0, "no_frame": 0,
            "imbalance": null, "observers_refused": 0, "observers_dropped": 0,
        });
        serde_json::from_value(sample).expect("a participant")
    }

    #[test]
    fn a_participant_that_runs_elsewhere_than_described_is_a_warning() {
        let described = host("core = 1\npriority = 70\n");
        let found = compare(&described, &participant(&[0, 1], "SCHED_OTHER"));
        assert_eq!(found.severity, Severity::Warn);
        for words in [
            "cores 0, 1",
            "core 1 alone",
            "SCHED_OTHER",
            "SCHED_FIFO 70",
            "process 7",
        ] {
            assert!(found.what.contains(words), "no {words} in {}", found.what);
        }
        let found = compare(&described, &participant(&[1], "SCHED_OTHER"));
        assert!(!found.what.contains("cores"), "{}", found.what);
        let found = compare(&described, &participant(&[1], "SCHED_FIFO 70"));
        assert_eq!(found.severity, Severity::Ok);
    }

    #[test]
    fn without_a_description_nothing_is_found() {
        assert_eq!(examine(&host(""), 0), []);
    }
}
