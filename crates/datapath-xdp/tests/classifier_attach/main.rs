//! Tests of attaching the classifier to interfaces: success, refusal, and removal with its owner.
//!
//! Each test runs on a thread with its own network namespace. The kernel must allow loading programs (root). Otherwise
//! the tests print a message, and fail in CI.

#[path = "../hosts/mod.rs"]
mod hosts;
mod namespace;
#[path = "../packet_socket/mod.rs"]
mod packet_socket;
mod rights;
#[path = "../udp_frame/mod.rs"]
mod udp_frame;

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, UdpSocket};
use std::num::NonZeroU32;
use std::process::{Command, Stdio};
use std::time::Duration;

use isolane_datapath::flow::{Budget, OverBudget, RateLimit};
use isolane_datapath_xdp::classifier::{
    Action, AttachMode, Classifier, ClassifierConfig, ClassifierError, Flow, FlowReason, FlowSlot,
    Replenisher, Way,
};
use isolane_wire::level::Level;

use crate::hosts::{eventually, index_of, ip};
use crate::namespace::{ADDRESS, PAIR, PORT, enter, frame, send};

/// Time limit of operations that take no time on an idle machine.
const PATIENCE: Duration = Duration::from_secs(10);

const SLOT: FlowSlot = FlowSlot(3);

/// Environment variable of a run of this program that is to be killed.
const VICTIM: &str = "ISOLANE_TEST_VICTIM";

fn load(config: &ClassifierConfig) -> Classifier {
    Classifier::load(config).unwrap_or_else(|error| panic!("{error}"))
}

fn flow(rate_limit: Option<RateLimit>) -> Flow {
    Flow {
        destination: ADDRESS,
        port: PORT,
        source: None,
        way: Way::Lane(Level::MAX),
        is_critical: true,
        rate_limit,
    }
}

fn rate_limit(capacity: u32, period: Duration) -> RateLimit {
    RateLimit {
        budget: Budget {
            capacity: NonZeroU32::new(capacity).unwrap(),
            period,
        },
        over: OverBudget::Drop,
    }
}

#[test]
fn an_attached_program_decides_of_what_arrives_and_others_pass() {
    if !enter(PAIR) {
        return;
    }
    ip("address add 10.0.0.1/24 dev lane0");
    let socket = UdpSocket::bind((Ipv4Addr::from(ADDRESS), PORT)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut classifier = load(&ClassifierConfig::default());
    // Three frames pass to the kernel, because no lane is bound. The others exceed the budget.
    let budget = rate_limit(3, Duration::from_secs(10));
    classifier.set_flow(SLOT, &flow(Some(budget))).unwrap();
    assert_eq!(classifier.attached_to(), None);
    classifier
        .attach(index_of("lane0"), AttachMode::Native)
        .unwrap();
    assert_eq!(classifier.attached_to(), Some(index_of("lane0")));
    assert!(matches!(
        classifier.attach(index_of("lane0"), AttachMode::Native),
        Err(ClassifierError::AlreadyAttached)
    ));

    send("lane1", 10);
    eventually("all have arrived", || {
        (classifier.counts().flow(SLOT).total() == 10).then_some(())
    });
    let counts = classifier.counts().flow(SLOT);
    assert_eq!(counts.get(FlowReason::NoLane), 3);
    assert_eq!(counts.get(FlowReason::OverBudget), 7);
    assert_eq!(classifier.left(SLOT), Some(0));
    for _ in 0..3 {
        let mut bytes = [0; 100];
        let (length, _) = socket.recv_from(&mut bytes).unwrap();
        assert_eq!(&bytes[..length], b"RTPS and more");
    }

    // The program is detached when its owner is dropped, and the interface continues.
    drop(classifier);
    send("lane1", 5);
    for _ in 0..5 {
        socket.recv_from(&mut [0; 100]).unwrap();
    }
    let mut next = load(&ClassifierConfig::default());
    next.attach(index_of("lane0"), AttachMode::Native).unwrap();
}

#[test]
fn a_budget_is_filled_up_by_the_kernel() {
    if !enter(PAIR) {
        return;
    }
    let config = ClassifierConfig {
        traces: true,
        ..ClassifierConfig::default()
    };
    let mut classifier = load(&config);
    assert_eq!(classifier.replenisher(), Replenisher::KernelTimer);
    assert_eq!(classifier.replenish(0), None);
    let use_up = |classifier: &mut Classifier| {
        while classifier.judge(&frame(), None).unwrap().action() != Action::Drop {}
    };

    let often = rate_limit(5, Duration::from_micros(100));
    classifier.set_flow(SLOT, &flow(Some(often))).unwrap();
    for _ in 0..3 {
        use_up(&mut classifier);
        eventually("filled up", || {
            classifier.left(SLOT).filter(|&left| left == 5)
        });
    }
    // The period is longer than the test, so the budget is not replenished.
    let seldom = rate_limit(5, Duration::from_secs(10));
    classifier.set_rate_limit(SLOT, Some(seldom)).unwrap();
    use_up(&mut classifier);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(classifier.left(SLOT), Some(0));
    // The period is shortened, and replenishment does not wait for the end of the long one.
    let often = rate_limit(7, Duration::from_millis(1));
    classifier.set_rate_limit(SLOT, Some(often)).unwrap();
    use_up(&mut classifier);
    eventually("filled up", || {
        classifier.left(SLOT).filter(|&left| left == 7)
    });
    classifier.set_rate_limit(SLOT, None).unwrap();
    assert_eq!(classifier.left(SLOT), None);
    assert_eq!(classifier.replenisher(), Replenisher::KernelTimer);
}

#[test]
fn without_timers_budgets_are_filled_up_when_they_are_looked_at() {
    if !enter(PAIR) {
        return;
    }
    let config = ClassifierConfig {
        timers: false,
        traces: true,
        ..ClassifierConfig::default()
    };
    let mut classifier = load(&config);
    assert_eq!(classifier.replenisher(), Replenisher::UserSpace);
    assert_eq!(classifier.replenish(1_000), None, "nothing has a budget");
    let budget = rate_limit(1, Duration::from_millis(1));
    classifier.set_flow(SLOT, &flow(Some(budget))).unwrap();
    assert_eq!(
        classifier.replenish(5_000),
        Some(1_005_000),
        "a period from now"
    );
    let action = || classifier.judge(&frame(), None).unwrap().action();
    assert_eq!((action(), action()), (Action::Pass, Action::Drop));
    classifier.replenish(1_004_999);
    assert_eq!(classifier.left(SLOT), Some(0));
    assert_eq!(classifier.replenish(1_005_100), Some(2_005_000), "in step");
    assert_eq!(classifier.left(SLOT), Some(1));
    assert_eq!(classifier.replenish(9_000_000), Some(10_000_000), "afresh");
}

#[test]
fn a_foreign_program_is_named_and_left_alone() {
    if !enter(PAIR) {
        return;
    }
    let mut first = load(&ClassifierConfig::default());
    first.attach(index_of("lane0"), AttachMode::Native).unwrap();
    for mode in [AttachMode::Native, AttachMode::Generic] {
        let mut second = load(&ClassifierConfig::default());
        let refused = second.attach(index_of("lane0"), mode).unwrap_err();
        let message = refused.to_string();
        let ClassifierError::Foreign { interface, program } = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(interface, "lane0");
        assert_eq!(
            program.name_and_tag,
            Some(("isolane".to_owned(), first.tag()))
        );
        let own = std::process::id();
        assert!(
            program.owners.iter().any(|(process, _)| *process == own),
            "{program}"
        );
        assert!(message.contains(&first.tag().to_string()), "{message}");
    }
    assert_eq!(first.attached_to(), Some(index_of("lane0")));
}

#[test]
fn a_foreign_program_without_owner_is_left_alone_until_it_is_removed_as_we_say() {
    if !enter(PAIR) {
        return;
    }
    let object = concat!(env!("CARGO_MANIFEST_DIR"), "/classifier/classifier.bpf.o");
    ip(&format!(
        "link set dev lane0 xdp object {object} section xdp"
    ));
    let mut classifier = load(&ClassifierConfig::default());
    let refused = classifier.attach(index_of("lane0"), AttachMode::Native);
    let refused = refused.unwrap_err();
    let ClassifierError::Foreign { program, .. } = &refused else {
        panic!("{refused:?}");
    };
    assert_eq!(program.owners, []);
    let remedy = "ip link set dev lane0 xdp off";
    assert!(refused.to_string().contains(remedy), "{refused}");
    ip("link set dev lane0 xdp off");
    classifier
        .attach(index_of("lane0"), AttachMode::Native)
        .unwrap();
}

#[test]
fn what_cannot_run_a_program_is_named_with_its_remedy() {
    if !enter(
        "link add lane0 numrxqueues 1 numtxqueues 4 type veth peer name lane1 numrxqueues 4 numtxqueues 4",
    ) {
        return;
    }
    let mut classifier = load(&ClassifierConfig::default());
    let mut refused = |interface: u32| {
        let error = classifier.attach(interface, AttachMode::Native);
        error.unwrap_err()
    };
    let error = refused(index_of("lo"));
    assert!(matches!(&error, ClassifierError::NoNativeMode { interface } if interface == "lo"));
    assert!(error.to_string().contains("datapath udp"), "{error}");
    let error = refused(index_of("lane0"));
    assert!(
        matches!(error, ClassifierError::TooFewQueues { .. }),
        "{error}"
    );
    let error = refused(4_711);
    assert!(
        matches!(
            error,
            ClassifierError::NoInterface {
                interface_index: 4_711
            }
        ),
        "{error}"
    );
    ip("link set lane0 mtu 9000");
    let error = refused(index_of("lane1"));
    assert!(
        matches!(error, ClassifierError::MtuTooLarge { .. }),
        "{error}"
    );

    // Every interface has the generic mode, but it must be requested.
    classifier
        .attach(index_of("lo"), AttachMode::Generic)
        .unwrap();
    assert_eq!(classifier.attached_to(), Some(index_of("lo")));
}

#[test]
fn an_interface_that_goes_takes_its_link_along() {
    if !enter(PAIR) {
        return;
    }
    let mut classifier = load(&ClassifierConfig::default());
    classifier
        .attach(index_of("lane0"), AttachMode::Native)
        .unwrap();
    ip("link set lane0 name other0");
    assert_eq!(
        classifier.attached_to(),
        Some(index_of("other0")),
        "renamed"
    );
    ip("link delete other0");
    assert_eq!(classifier.attached_to(), None);
    // There is no interface left to attach to, and everything else still works.
    classifier.set_flow(SLOT, &flow(None)).unwrap();
    assert_eq!(classifier.counts().flow(SLOT).total(), 0);
}

#[test]
fn a_program_goes_with_its_killed_owner() {
    if std::env::var_os(VICTIM).is_some() {
        let mut classifier = load(&ClassifierConfig::default());
        classifier
            .attach(index_of("lane0"), AttachMode::Native)
            .unwrap();
        println!("{VICTIM} is attached");
        loop {
            std::thread::park();
        }
    }
    if !enter(PAIR) {
        return;
    }
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "a_program_goes_with_its_killed_owner",
            "--nocapture",
        ])
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let is_attached = lines
        .map_while(Result::ok)
        .any(|line| line.contains(VICTIM));
    assert!(is_attached, "the victim ended before");

    let mut classifier = load(&ClassifierConfig::default());
    let refused = classifier
        .attach(index_of("lane0"), AttachMode::Native)
        .unwrap_err();
    let ClassifierError::Foreign { program, .. } = &refused else {
        panic!("{refused}");
    };
    let owners: Vec<u32> = program.owners.iter().map(|owner| owner.0).collect();
    assert_eq!(owners, [victim.id()]);

    victim.kill().unwrap();
    victim.wait().unwrap();
    eventually("the hook is free", || {
        classifier
            .attach(index_of("lane0"), AttachMode::Native)
            .ok()
    });
    send("lane1", 1);
    eventually("a frame arrives", || {
        (classifier.counts().total() > 0).then_some(())
    });
}
