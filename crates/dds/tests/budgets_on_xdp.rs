//! Tests of budgets on the datapath `xdp`, which enforces them, between two network namespaces joined by a veth pair.
//!
//! The test runs itself again inside its own namespace, and once more, as the sender, inside another. It needs root;
//! without root it prints a message, and fails in CI.

use std::{
    num::NonZeroU32,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use isolane::{
    Budget, DataReader, DatapathFactory, InterfaceRateLimit, Interfaces, Level, OverBudget,
    Participant, Qos, RateLimit, TopicType, UdpOptions, XdpOptions,
};

/// Environment variable with the part of the test that a process runs.
const PART: &str = "ISOLANE_TEST_PART";
const NAME: &str = "a_budget_is_kept_and_changed_while_datagrams_come";
/// Time limit, longer than any step needs on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(TopicType, Debug, Clone, PartialEq, Default)]
struct Tick {
    number: u32,
}

fn qos() -> Qos {
    Qos::best_effort()
        .level(Level::new(5).unwrap())
        .keep_last(64)
}

fn participant(interface: &str, datapath: impl DatapathFactory + 'static) -> Participant {
    let interfaces = Interfaces::Named(vec![interface.to_owned()]);
    let builder = Participant::builder(0).interfaces(interfaces);
    builder.datapath(datapath).build().unwrap()
}

fn run(command: &str) -> bool {
    let mut words = command.split(' ');
    let mut command = Command::new(words.next().unwrap());
    command
        .args(words)
        .status()
        .is_ok_and(|status| status.success())
}

/// Another namespace, which exists as long as its process.
struct Namespace(Child);

impl Namespace {
    fn new() -> Self {
        let mut command = Command::new("unshare");
        command.args(["--net", "sleep", "600"]);
        let child = command.spawn().expect("unshare");
        let namespace = Self(child);
        let own = std::fs::read_link("/proc/self/ns/net").unwrap();
        let other = || std::fs::read_link(format!("/proc/{}/ns/net", namespace.0.id())).unwrap();
        while other() == own {
            thread::sleep(Duration::from_millis(5));
        }
        namespace
    }

    fn enter(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.0.id().to_string(), "-n"]);
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Writes a sample each millisecond for the duration of the test.
fn send() {
    let participant = participant("far0", UdpOptions::default());
    let writer = participant.create_writer::<Tick>("Ticks", &qos()).unwrap();
    let level = Level::new(5).unwrap();
    let mut number = 0;
    let millisecond = Duration::from_millis(1);
    let timer = participant.create_timer("tick", level, millisecond, Duration::ZERO, move |_| {
        number += 1;
        let _ = writer.write(&Tick { number });
    });
    timer.unwrap();
    participant.run_for(4 * PATIENCE);
}

/// Number of datagrams of the reader's flow that were dropped because its budget was used up.
fn over_budget(reader: &DataReader<Tick>) -> u64 {
    let decisions = reader.flow().expect("its own flow").decisions;
    let over = decisions
        .into_iter()
        .filter(|(name, _)| name.contains("budget"));
    over.map(|(_, count)| count).sum()
}

/// Runs until this number of further samples has arrived.
fn take_more(participant: &Participant, reader: &DataReader<Tick>, samples: u64) {
    let delivered = || reader.ledger().accounted;
    let wanted = delivered() + samples;
    let come = participant.run_until(PATIENCE, || delivered() >= wanted);
    assert!(come, "{:?}, {:?}", reader.ledger(), reader.flow());
}

fn receive() {
    let far = Namespace::new();
    let far_pid = far.0.id();
    assert!(run("ip link set lo up"));
    assert!(run(&format!(
        "ip link add near0 type veth peer name far0 netns {far_pid}"
    )));
    assert!(run("ip address add 10.9.1.1/24 dev near0") && run("ip link set near0 up"));
    let enter = format!("nsenter -t {far_pid} -n ip");
    assert!(run(&format!("{enter} address add 10.9.1.2/24 dev far0")));
    assert!(run(&format!("{enter} link set far0 up")));

    let xdp = XdpOptions::default();
    let participant = participant("near0", xdp);
    assert_eq!(participant.datapath(), "xdp");
    let budget = |capacity| Budget {
        capacity: NonZeroU32::new(capacity).unwrap(),
        period: Duration::from_millis(100),
    };
    // The budget is set before there is an endpoint, and kept until there is one.
    let (two, five) = (Level::new(2).unwrap(), Level::new(5).unwrap());
    let small = RateLimit {
        budget: budget(3),
        over: OverBudget::Drop,
    };
    participant.set_level_limit(two, Some(small)).unwrap();
    let all = InterfaceRateLimit {
        topics: Some((budget(1_000), 100)),
        foreign: None,
    };
    participant.set_interface_limit(all).unwrap();
    assert!(participant.observe().flows.is_empty());
    let reader = participant
        .create_reader::<Tick>("Ticks", &qos().budget(budget(5), OverBudget::Drop))
        .unwrap();
    let second = participant.create_reader::<Tick>("More ticks", &qos().level(two));
    let _second = second.unwrap();
    let flows = participant.observe().flows;
    let is_rate_limited = flows.iter().filter(|flow| flow.rate_limit == Some(small));
    assert!(
        is_rate_limited.clone().count() > 0
            && is_rate_limited.clone().all(|flow| flow.lane == two.into()),
        "{flows:?}"
    );
    let warnings = participant.warnings();
    assert!(
        warnings.iter().all(|warning| !warning.contains("enforced")),
        "{warnings:?}"
    );
    let flow = reader.flow().expect("its own flow");
    assert_eq!(flow.rate_limit.map(|with| with.budget), Some(budget(5)));

    let mut sender = far.enter();
    sender.arg(std::env::current_exe().unwrap());
    sender
        .args(["--exact", NAME, "--nocapture"])
        .env(PART, "send");
    let sender = Namespace(sender.stdout(Stdio::null()).spawn().unwrap());

    // Fifty of a thousand datagrams a second are accepted.
    take_more(&participant, &reader, 20);
    let dropped = over_budget(&reader);
    assert!(dropped > 0, "{:?}", reader.flow());

    // Without a budget, no more datagrams are dropped.
    reader.set_budget(None).unwrap();
    let before = over_budget(&reader);
    take_more(&participant, &reader, 200);
    assert_eq!(over_budget(&reader), before);
    assert_eq!(reader.flow().unwrap().rate_limit, None);

    // With another budget, dropping begins again.
    reader.set_budget(Some(small)).unwrap();
    let is_over = participant.run_until(PATIENCE, || over_budget(&reader) > before);
    assert!(is_over, "{:?}", reader.flow());

    // A level that has an open lane.
    participant.set_level_limit(five, Some(small)).unwrap();
    let flows = participant.observe().flows.into_iter();
    let of_level: Vec<_> = flows.filter(|flow| flow.lane == five.into()).collect();
    assert_eq!(
        of_level.len(),
        3,
        "its port, its group, and the reader's: {of_level:?}"
    );
    assert!(
        of_level.iter().all(|flow| flow.rate_limit == Some(small)),
        "{of_level:?}"
    );
    participant.set_level_limit(five, None).unwrap();

    // A flow is removed with its reader.
    drop(reader);
    let flows = participant.observe().flows;
    assert!(flows.iter().all(|flow| flow.flow.is_none()), "{flows:?}");
    drop(sender);
}

#[test]
fn a_budget_is_kept_and_changed_while_datagrams_come() {
    match std::env::var(PART).as_deref() {
        Ok("send") => return send(),
        Ok(_) => return receive(),
        Err(_) => {}
    }
    if !run("unshare --net true") {
        let in_ci = std::env::var_os("CI").is_some();
        assert!(!in_ci, "CI must allow network namespaces");
        eprintln!("this takes root: nothing was tried");
        return;
    }
    let mut inside = Command::new("unshare");
    inside.arg("--net").arg(std::env::current_exe().unwrap());
    inside
        .args(["--exact", NAME, "--nocapture"])
        .env(PART, "receive");
    assert!(
        inside.status().unwrap().success(),
        "the run inside has failed"
    );
}
