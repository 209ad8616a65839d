//! Findings about lanes on devices, and about receive processing of other frames.

use isolane_datapath::Kinds;
use isolane_datapath::kind::{DatapathKind, Met};
use isolane_hostnet::limits::MAX_POLL_WAIT;
use isolane_hostnet::napi::{Policy, Polling, QueueState};
use serde_json::Value;

use super::Findings;
use crate::facts::Facts;
use crate::needs::Needs;

pub(super) fn examine(facts: &Facts, needs: &Needs, kinds: Kinds, findings: &mut Findings) {
    let described = needs.interface.as_deref();
    for lanes in &facts.lanes {
        let name = lanes.interface.as_str();
        if described.is_some_and(|described| described != name) {
            continue;
        }
        for kind in kinds {
            if let Some(facts) = lanes.facts.get(kind.name()) {
                requirements(*kind, facts, name, findings);
            }
        }
        receive_work(name, &lanes.napi, findings);
        polling(name, &lanes.napi, findings);
    }
}

/// Reports unmet requirements of a kind of datapath. The findings are informational: topics flow without lanes.
fn requirements(kind: &dyn DatapathKind, facts: &Value, name: &str, findings: &mut Findings) {
    let requirements = match kind.requirements(&facts.to_string()) {
        Ok(requirements) => requirements,
        Err(error) => {
            return findings.warn(
                &format!("lane.facts.{name}"),
                format!(
                    "the recorded facts of the datapath {} on {name} cannot be read: {error}",
                    kind.name()
                ),
                "it is unknown whether lanes work here",
                "record the machine again: isolane doctor --facts",
            );
        }
    };
    if requirements.iter().all(|it| it.met != Met::No) {
        findings.ok(
            &format!("lane.works.{name}"),
            format!("{name} can have dedicated lanes (datapath {})", kind.name()),
        );
    }
    for requirement in requirements.iter().filter(|it| it.met != Met::Yes) {
        findings.info(
            &format!("lane.{}.{name}", requirement.id),
            requirement.found.as_str(),
            &requirement.cost,
            requirement.remedy.as_str(),
        );
    }
}

/// Warns of NAPI threads of the ordinary scheduling class, which are worse than no threads.
fn receive_work(name: &str, queues: &[QueueState], findings: &mut Findings) {
    let id = format!("lane.receive-work.{name}");
    let threads: Vec<(u32, Option<Policy>)> = queues
        .iter()
        .filter_map(|queue| Some((queue.queue, queue.thread.as_ref()?.policy)))
        .collect();
    if threads.is_empty() {
        return;
    }
    let class = |policy: &Option<Policy>| match policy {
        Some(Policy::Fifo(priority)) => format!("FIFO {priority}"),
        Some(Policy::RoundRobin(priority)) => format!("RR {priority}"),
        Some(Policy::Ordinary) => String::from("ordinary"),
        Some(Policy::Other(number)) => format!("class {number}"),
        None => String::from("unknown"),
    };
    let list: Vec<String> = threads
        .iter()
        .map(|(queue, policy)| format!("queue {queue} {}", class(policy)))
        .collect();
    let what = format!("threads receive the frames of {name}: {}", list.join(", "));
    let is_ordinary = |(_, policy): &(u32, Option<Policy>)| *policy == Some(Policy::Ordinary);
    if threads.iter().any(is_ordinary) {
        findings.warn(
            &id,
            what,
            "a starved thread of ordinary priority later processes a whole budget of frames with soft interrupts \
             disabled: for up to milliseconds, nothing else runs on its core",
            format!(
                "give each thread a real-time priority (chrt -f -p PRIORITY THREAD): the critical queue's thread \
                 above the applications, those of bulk queues below them; or use no threads: echo 0 > \
                 /sys/class/net/{name}/threaded"
            ),
        );
    } else {
        findings.ok(&id, what);
    }
}

/// Checks polling intervals: with deferred interrupts, the interval is part of every response time.
fn polling(name: &str, queues: &[QueueState], findings: &mut Findings) {
    let id = format!("lane.polling.{name}");
    // Polling needs both values; otherwise every frame raises an interrupt.
    let is_on = |polling: &Polling| polling.idle_polls > 0 && !polling.wait.is_zero();
    let polled: Vec<(u32, Polling)> = queues
        .iter()
        .filter_map(|queue| Some((queue.queue, queue.polling.filter(is_on)?)))
        .collect();
    let Some(longest) = polled.iter().map(|(_, polling)| polling.wait).max() else {
        // If the kernel reports nothing about a queue, no finding is made.
        if !queues.is_empty() && queues.iter().all(|queue| queue.polling.is_some()) {
            findings.ok(
                &id,
                format!(
                    "each frame of {name} raises an interrupt, unless its queue is already being served; there is no \
                     polling"
                ),
            );
        }
        return;
    };
    let list: Vec<String> = polled
        .iter()
        .map(|(queue, Polling { wait, idle_polls })| {
            format!("queue {queue} every {wait:?}, until {idle_polls} polls found no frame")
        })
        .collect();
    let what = format!(
        "after an interrupt, the kernel polls {name}: {}; a frame waits at most {longest:?} for a poll",
        list.join(", ")
    );
    if longest > MAX_POLL_WAIT {
        findings.warn(
            &id,
            what,
            "a frame may wait that long for each poll, longer than critical topics can tolerate",
            format!(
                "use interrupts only: echo 0 > /sys/class/net/{name}/napi_defer_hard_irqs; or poll more often: echo \
                 50000 > /sys/class/net/{name}/gro_flush_timeout (in ns)"
            ),
        );
    } else {
        findings.ok(&id, what);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use isolane_datapath_xdp::xdp::XdpKind;
    use isolane_hostnet::napi::ThreadState;
    use isolane_hostnet::netdev::XdpFeatures;
    use isolane_hostnet::xdp_facts::{Device, Sockets, XdpFacts};

    use super::super::{Finding, Severity};
    use super::*;
    use crate::facts::LanePrerequisites;

    fn xdp_facts() -> XdpFacts {
        XdpFacts {
            kernel_release: String::from("6.12.5"),
            interface: String::from("eth0"),
            device: Some(Device {
                is_up: true,
                has_carrier: true,
                has_address: true,
                mtu_bytes: Some(1500),
                features: Some(XdpFeatures {
                    runs_programs: true,
                    redirects: true,
                    has_zero_copy: true,
                }),
                made_receive_queues: Some(2),
                ..Device::default()
            }),
            ..XdpFacts::default()
        }
    }

    fn lanes_of(facts: Value) -> LanePrerequisites {
        LanePrerequisites {
            interface: String::from("eth0"),
            facts: [(String::from("xdp"), facts)].into(),
            napi: Vec::new(),
        }
    }

    fn lanes() -> LanePrerequisites {
        lanes_of(serde_json::to_value(xdp_facts()).expect("JSON"))
    }

    fn findings(lanes: LanePrerequisites, needs: &Needs) -> Vec<Finding> {
        let facts = Facts {
            lanes: vec![lanes],
            ..Facts::default()
        };
        let mut findings = Findings::default();
        examine(&facts, needs, &[&XdpKind], &mut findings);
        findings.0
    }

    fn ids(findings: &[Finding]) -> Vec<(&str, Severity)> {
        let id = |finding: &Finding| finding.severity;
        findings
            .iter()
            .map(|finding| (finding.id.as_str(), id(finding)))
            .collect()
    }

    #[test]
    fn where_lanes_work_one_line_says_so() {
        let found = findings(lanes(), &Needs::of_domain(0));
        assert_eq!(ids(&found), [("lane.works.eth0", Severity::Ok)]);
    }

    #[test]
    fn each_obstacle_is_reported_with_its_remedy() {
        let facts = XdpFacts {
            sockets: Sockets::Refused,
            ..xdp_facts()
        };
        let lanes = lanes_of(serde_json::to_value(facts).expect("JSON"));
        let found = findings(lanes, &Needs::of_domain(0));
        assert_eq!(ids(&found), [("lane.sockets.eth0", Severity::Info)]);
        assert!(found[0].remedy.contains("cap_net_raw"));
    }

    #[test]
    fn facts_that_a_kind_cannot_read_are_reported() {
        let found = findings(lanes_of(Value::from(7)), &Needs::of_domain(0));
        assert_eq!(ids(&found), [("lane.facts.eth0", Severity::Warn)]);
        assert!(found[0].what.contains("datapath xdp on eth0"));
    }

    #[test]
    fn interfaces_that_the_description_does_not_name_are_left_out() {
        let needs = Needs {
            interface: Some(String::from("eth1")),
            ..Needs::of_domain(0)
        };
        assert_eq!(ids(&findings(lanes(), &needs)), []);
    }

    #[test]
    fn receive_work_at_the_ordinary_class_is_a_warning() {
        let queue = |queue, policy| QueueState {
            queue,
            instance: 100 + queue,
            interrupt: None,
            thread: Some(ThreadState {
                process_id: 7,
                policy: Some(policy),
                cores: vec![0],
            }),
            polling: None,
        };
        let mut with_priorities = lanes();
        with_priorities.napi = vec![queue(0, Policy::Fifo(75)), queue(1, Policy::Fifo(60))];
        let found = findings(with_priorities, &Needs::of_domain(0));
        assert_eq!(found[1].severity, Severity::Ok);
        assert!(found[1].what.contains("queue 0 FIFO 75, queue 1 FIFO 60"));
        let mut demoted = lanes();
        demoted.napi = vec![queue(0, Policy::Fifo(75)), queue(1, Policy::Ordinary)];
        let found = findings(demoted, &Needs::of_domain(0));
        assert_eq!(found[1].id, "lane.receive-work.eth0");
        assert_eq!(found[1].severity, Severity::Warn);
    }

    #[test]
    fn polling_is_shown_and_a_warning_where_frames_wait_too_long_for_it() {
        let polled = |wait, idle_polls| {
            let mut polled = lanes();
            polled.napi = vec![QueueState {
                queue: 3,
                instance: 103,
                interrupt: None,
                thread: None,
                polling: Some(Polling { wait, idle_polls }),
            }];
            findings(polled, &Needs::of_domain(0))
        };
        let often = polled(Duration::from_micros(50), 10);
        assert_eq!(
            ids(&often)[1..],
            [("lane.polling.eth0", Severity::Ok)],
            "{often:?}"
        );
        assert!(often[1].what.contains("queue 3 every 50µs"));
        let seldom = polled(MAX_POLL_WAIT * 2, 10);
        assert_eq!(ids(&seldom)[1..], [("lane.polling.eth0", Severity::Warn)]);
        assert!(seldom[1].remedy.contains("napi_defer_hard_irqs"));
    }

    #[test]
    fn that_nothing_is_polled_is_said_where_the_kernel_tells_of_all_queues() {
        let queue = |queue, polling| QueueState {
            queue,
            instance: 100 + queue,
            interrupt: None,
            thread: None,
            polling,
        };
        let found = |queues: &[QueueState]| {
            let mut lanes = lanes();
            lanes.napi = queues.to_vec();
            findings(lanes, &Needs::of_domain(0)).split_off(1)
        };
        let never = Polling {
            idle_polls: 10,
            ..Polling::OFF
        };
        let off = found(&[queue(0, Some(Polling::OFF)), queue(1, Some(never))]);
        assert_eq!(ids(&off), [("lane.polling.eth0", Severity::Ok)]);
        assert!(
            off[0]
                .what
                .contains("each frame of eth0 raises an interrupt")
        );
        let half_known = found(&[queue(0, Some(Polling::OFF)), queue(1, None)]);
        assert_eq!(ids(&half_known), []);
    }
}
