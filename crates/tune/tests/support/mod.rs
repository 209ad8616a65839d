//! Recorded machines, a description for them, and golden files.

#![allow(dead_code, reason = "each test uses a part")]

use std::path::{Path, PathBuf};

use isolane_datapath::Kinds;
use isolane_datapath_xdp::xdp::XdpKind;
use isolane_model::{ProfileName, Source, Sourced, System, Tuning};
use isolane_tune::steer::{Tuple, entry_of};
use isolane_tune::{
    Direction, Facts, Finding, FlowQueue, FlowQueues, KnownQueue, Needs, Plan, Setting, Step,
    Value, plan,
};

/// The machines that plans are made for, with the queue that a description of each puts level 7 on.
pub(crate) const MACHINES: [(&str, u32); 14] = [
    ("igc", 3),
    ("igb", 1),
    ("igb-emulated", 1),
    ("ixgbe", 7),
    ("ice", 7),
    ("mlx5", 7),
    ("stmmac", 4),
    ("virtio_net", 1),
    ("veth", 1),
    ("e1000e", 0),
    ("r8169", 0),
    ("tuned-board", 0),
    ("untuned-vm", 0),
    ("broken-laptop", 0),
];

/// Kinds of datapaths, as in the command.
pub(crate) const KINDS: Kinds = &[&XdpKind];

/// Findings with these kinds.
pub(crate) fn examine(facts: &Facts, needs: &Needs) -> Vec<Finding> {
    isolane_tune::examine(facts, needs, KINDS)
}

/// A machine as it was recorded.
pub(crate) fn machine(name: &str) -> Facts {
    let text =
        std::fs::read_to_string(file(&format!("machines/{name}.json"))).expect("a recording");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The text of a file that a step writes.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::Document(document) => document.text(),
        other => panic!("no document: {other:?}"),
    }
}

/// Two hosts: requests and replies at level 7, a state that is acknowledged at level 5, video at level 1. What
/// `left` receives comes to this queue; its executor is on that core.
pub(crate) fn description(queue: u32, core: u16, more: &str) -> System {
    description_at(7000, queue, core, more)
}

/// As [`description`], with the controller's ports from `port` on.
pub(crate) fn description_at(port: u16, queue: u32, core: u16, more: &str) -> System {
    let text = format!(
        r#"
        [host.left]
        interface = "eth0"
        core = {core}
        xdp.queues = {{ 7 = {queue} }}
        [host.right]
        interface = "eth0"
        core = 1
        xdp.queues = {{ 7 = 1 }}
        [topic.Request]
        type = "T"
        level = 7
        period = "500us"
        max_bytes = 64
        reliability = "best-effort"
        from = ["left"]
        to = ["right"]
        [topic.Reply]
        type = "T"
        level = 7
        period = "500us"
        max_bytes = 64
        reliability = "best-effort"
        from = ["right"]
        to = ["left"]
        [topic.State]
        type = "T"
        level = 5
        max_bytes = 128
        from = ["right"]
        to = ["left"]
        [topic.Video]
        type = "T"
        level = 1
        period = "100us"
        max_bytes = 1400
        reliability = "best-effort"
        from = ["right"]
        to = ["left"]
        [participant.controller]
        host = "left"
        address = "10.0.0.1"
        port = {port}
        writes = ["Request"]
        reads = ["Reply", "State", "Video"]
        [participant.wheel]
        host = "right"
        address = "10.0.0.2"
        port = 7016
        writes = ["Reply", "State", "Video"]
        reads = ["Request"]
        {more}
        "#
    );
    System::from_toml(&text, "isolane.toml", KINDS).expect("a description")
}

/// The needs of `left`, on the machine's last core but with its siblings considered.
pub(crate) fn needs(facts: &Facts, queue: u32) -> Needs {
    let core = match facts.origin.contains("X520") {
        true => 15,
        false if facts.origin.contains("RTL8168") => 3,
        false => facts.cores.online.last().copied().unwrap_or(0),
    };
    Needs::of_system(&description(queue, core, ""), Some("left"), "").expect("a host")
}

/// A named profile.
pub(crate) fn profile(name: ProfileName) -> Tuning {
    Tuning::of(Sourced::new(name, Source::CommandLine("--profile")))
}

/// Every described flow measured at its intended queue, at both ends; and its entry as learnt, where a device
/// does not tell its key.
pub(crate) fn verified(needs: &Needs) -> FlowQueues {
    let mut placement = learnt(needs);
    for flow in &needs.flows {
        placement.flows.push(FlowQueue {
            tuple: flow.tuple,
            queue: KnownQueue::Measured { queue: flow.queue },
        });
    }
    placement
}

/// The entries of a device with its own key, as a learner reports them.
pub(crate) fn learnt(needs: &Needs) -> FlowQueues {
    let key: Vec<u8> = (0..40)
        .map(|byte: u8| byte.wrapping_mul(73) ^ 0x35)
        .collect();
    let entry = |tuple: Tuple| entry_of(&key, tuple, 128).expect("an entry");
    let flows = needs
        .flows
        .iter()
        .filter(|flow| flow.direction == Direction::Receive);
    FlowQueues {
        flows: flows
            .map(|flow| FlowQueue {
                tuple: flow.tuple,
                queue: KnownQueue::Computed {
                    entry: entry(flow.tuple),
                },
            })
            .collect(),
        ..FlowQueues::default()
    }
}

/// A file next to the tests.
pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name)
}

/// Compares with a golden file; with `UPDATE_GOLDEN=1` writes it, to be looked at.
pub(crate) fn golden(name: &str, text: &str) {
    let path = file(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).expect("a golden file");
        return;
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    // The first line that differs; a whole plan is too much to be shown twice.
    let mut lines = (1..).zip(known.lines().zip(text.lines()));
    let differs = lines.find(|(_, (known, planned))| known != planned);
    assert!(
        known == text,
        "{name} is not what is planned now, from here on: {differs:?}; if it should be: UPDATE_GOLDEN=1, and look at \
         the difference"
    );
}

/// A plan as it is written.
pub(crate) fn json(plan: &Plan) -> String {
    serde_json::to_string_pretty(plan).expect("JSON") + "\n"
}

/// Whether it gives threads priorities.
pub(crate) fn has_priorities(plan: &Plan) -> bool {
    plan.steps
        .iter()
        .any(|step| matches!(step.setting, Setting::Thread { .. }))
}

/// What a driver does not take of a step: it would refuse it, or take it for something else.
pub(crate) fn refused(facts: &Facts, step: &Step) -> Option<&'static str> {
    match (&step.setting, &step.to) {
        (Setting::Coalescing { interface }, Value::Coalescing(to)) => {
            let device = facts.device(interface)?;
            let has = device.coalescing.unwrap_or_default();
            let is_pair = device.interrupts.iter().any(|it| it.name.contains("TxRx"));
            let sends_otherwise = to.tx_usecs.is_some() && to.tx_usecs != has.tx_usecs;
            match (device.driver.as_deref()?, to.rx_usecs?) {
                ("igb" | "igc", _) if is_pair && sends_otherwise => Some(
                    "Queue Pair mode enabled, both Rx and Tx coalescing controlled by rx-usecs",
                ),
                ("igb" | "igc" | "e1000e", 2 | 5..=9) => Some("Invalid argument"),
                ("igb" | "igc" | "e1000e" | "ixgbe", 1) => Some("a mode"),
                ("igb" | "igc" | "e1000e", 3 | 4) => Some("a mode, or Invalid argument"),
                _ => None,
            }
        }
        (
            Setting::FlowRule {
                interface,
                location,
            },
            Value::Rule(_),
        ) => {
            let rules = facts.device(interface)?.flow_rules.as_ref()?;
            let is_taken = rules.rules.contains_key(location) || rules.others.contains(location);
            is_taken.then_some("File exists")
        }
        _ => None,
    }
}

/// The machine once a plan was carried out.
pub(crate) fn simulate(facts: &mut Facts, plan: &Plan) {
    for step in &plan.steps {
        facts.simulate(&step.setting, &step.to);
    }
}

/// A machine on which a plan with what was learnt of its hash was carried out: it steers.
pub(crate) fn steering(name: &str) -> (Facts, Needs, Plan) {
    let (_, queue) = MACHINES
        .into_iter()
        .find(|(known, _)| *known == name)
        .expect("known");
    let mut facts = machine(name);
    let needs = needs(&facts, queue);
    let first = plan(
        &facts,
        &needs,
        &profile(ProfileName::Latency),
        &learnt(&needs),
    );
    simulate(&mut facts, &first);
    (facts, needs, first)
}
