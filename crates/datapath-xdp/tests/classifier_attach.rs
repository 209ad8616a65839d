//! The classifier on interfaces: attached, refused, and gone with its owner.
//!
//! Each test has a network namespace of its own thread. The kernel must let the tests load programs
//! (root): where it does not they say so, and fail in CI.

use std::io::{self, BufRead, BufReader};
use std::net::{Ipv4Addr, UdpSocket};
use std::num::NonZeroU32;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use isolane_datapath::flow::{Budget, Over, Protection};
use isolane_datapath_xdp::classifier::{
    Action, AttachMode, Classifier, ClassifierConfig, ClassifierError, Flow, FlowReason, FlowSlot,
    Replenisher, Way,
};
use isolane_wire::ethernet::{self, EtherType, MacAddress};
use isolane_wire::level::Level;
use isolane_wire::{ipv4, udp};

/// How long something may take that takes no time on an idle machine.
const PATIENCE: Duration = Duration::from_secs(10);

const ADDRESS: [u8; 4] = [10, 0, 0, 1];
const PORT: u16 = 7_411;
const SLOT: FlowSlot = FlowSlot(3);

/// Set for a run of this program that is to be killed.
const VICTIM: &str = "ISOLANE_TEST_VICTIM";

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status();
    let done = status.is_ok_and(|status| status.success());
    assert!(done, "ip {arguments}");
}

fn load(config: &ClassifierConfig) -> Classifier {
    Classifier::load(config).unwrap_or_else(|error| panic!("{error}"))
}

/// A namespace of this thread with a pair of interfaces, `lane0` and `lane1`, that are up; false where
/// nothing can be tried.
fn enter(pair: &str) -> bool {
    match Classifier::load(&ClassifierConfig::default()) {
        Ok(_) => {}
        Err(error @ (ClassifierError::Denied { .. } | ClassifierError::UserNamespace)) => {
            let in_ci = std::env::var_os("CI").is_some();
            assert!(!in_ci, "CI must allow this: {error}");
            eprintln!("nothing was tried: {error}");
            return false;
        }
        Err(error) => panic!("{error}"),
    }
    // SAFETY: no memory is passed; only this thread changes its network.
    let unshared = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    assert_eq!(unshared, 0, "{}", io::Error::last_os_error());
    ip(pair);
    for interface in ["lo", "lane0", "lane1"] {
        ip(&format!("link set {interface} up"));
    }
    true
}

const PAIR: &str = "link add lane0 type veth peer name lane1";

fn index(name: &str) -> u32 {
    let name = std::ffi::CString::new(name).unwrap();
    // SAFETY: the name is a string of C.
    unsafe { libc::if_nametoindex(name.as_ptr()) }
}

fn flow(protection: Option<Protection>) -> Flow {
    Flow {
        destination: ADDRESS,
        port: PORT,
        source: None,
        way: Way::Lane(Level::MAX),
        is_critical: true,
        protection,
    }
}

fn protection(capacity: u32, period: Duration) -> Protection {
    Protection {
        budget: Budget {
            capacity: NonZeroU32::new(capacity).unwrap(),
            period,
        },
        over: Over::Drop,
    }
}

/// A frame of the flow.
fn frame() -> Vec<u8> {
    let payload = b"RTPS and more";
    let datagram = udp::Repr {
        source_port: 4_000,
        destination_port: PORT,
        payload_len: payload.len(),
    };
    let packet = ipv4::Repr {
        source: [10, 0, 0, 2],
        destination: ADDRESS,
        protocol: ipv4::PROTOCOL_UDP,
        dscp: 0,
        time_to_live: 1,
        dont_fragment: true,
        identification: 0,
        payload_len: datagram.buffer_len() + payload.len(),
    };
    let header = ethernet::Repr {
        destination: MacAddress::BROADCAST,
        source: MacAddress([2, 0, 0, 0, 0, 1]),
        tags: Default::default(),
        ether_type: EtherType::IPV4,
    };
    let mut bytes = [0; 100];
    let at = header.emit(&mut bytes);
    let at = at + packet.emit(&mut bytes[at..]);
    let at = at + datagram.emit(&mut bytes[at..]);
    [&bytes[..at], payload].concat()
}

/// Sends frames on an interface, as they are.
fn send(interface: &str, count: usize) {
    // SAFETY: no memory is passed.
    let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    assert!(socket >= 0, "{}", io::Error::last_os_error());
    // SAFETY: just opened, and nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: zeros are a valid address.
    let mut to: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    to.sll_family = libc::AF_PACKET as u16;
    to.sll_ifindex = index(interface) as i32;
    let frame = frame();
    for _ in 0..count {
        // SAFETY: both buffers are valid for the lengths given with them.
        let sent = unsafe {
            libc::sendto(
                socket.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
                (&raw const to).cast(),
                size_of_val(&to) as u32,
            )
        };
        assert_eq!(sent, frame.len() as isize, "{}", io::Error::last_os_error());
    }
}

/// Waits until it is so; what it takes is not the question.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
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
    // Three pass to the kernel, since no lane is bound, and the rest is beyond the budget.
    let budget = protection(3, Duration::from_secs(10));
    classifier.set_flow(SLOT, &flow(Some(budget))).unwrap();
    assert_eq!(classifier.attached_to(), None);
    classifier
        .attach(index("lane0"), AttachMode::Native)
        .unwrap();
    assert_eq!(classifier.attached_to(), Some(index("lane0")));
    assert!(matches!(
        classifier.attach(index("lane0"), AttachMode::Native),
        Err(ClassifierError::AlreadyAttached)
    ));

    send("lane1", 10);
    eventually("all have arrived", || {
        classifier.counts().flow(SLOT).total() == 10
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

    // Gone with its value; the interface goes on.
    drop(classifier);
    send("lane1", 5);
    for _ in 0..5 {
        socket.recv_from(&mut [0; 100]).unwrap();
    }
    let mut next = load(&ClassifierConfig::default());
    next.attach(index("lane0"), AttachMode::Native).unwrap();
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

    let often = protection(5, Duration::from_micros(100));
    classifier.set_flow(SLOT, &flow(Some(often))).unwrap();
    for _ in 0..3 {
        use_up(&mut classifier);
        eventually("filled up", || classifier.left(SLOT) == Some(5));
    }
    // Longer than the test: what is used up stays so.
    let seldom = protection(5, Duration::from_secs(10));
    classifier.protect(SLOT, Some(seldom)).unwrap();
    use_up(&mut classifier);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(classifier.left(SLOT), Some(0));
    // And shorter again, without waiting for the end of the long period.
    let often = protection(7, Duration::from_millis(1));
    classifier.protect(SLOT, Some(often)).unwrap();
    use_up(&mut classifier);
    eventually("filled up", || classifier.left(SLOT) == Some(7));
    classifier.protect(SLOT, None).unwrap();
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
    let budget = protection(1, Duration::from_millis(1));
    classifier.set_flow(SLOT, &flow(Some(budget))).unwrap();
    assert_eq!(
        classifier.replenish(5_000),
        Some(1_005_000),
        "a period from now"
    );
    let mut action = || classifier.judge(&frame(), None).unwrap().action();
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
    first.attach(index("lane0"), AttachMode::Native).unwrap();
    for mode in [AttachMode::Native, AttachMode::Generic] {
        let mut second = load(&ClassifierConfig::default());
        let refused = second.attach(index("lane0"), mode).unwrap_err();
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
    assert_eq!(first.attached_to(), Some(index("lane0")));
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
    let error = refused(index("lo"));
    assert!(matches!(&error, ClassifierError::NoNativeMode { interface } if interface == "lo"));
    assert!(error.to_string().contains("datapath udp"), "{error}");
    let error = refused(index("lane0"));
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
    let error = refused(index("lane1"));
    assert!(
        matches!(error, ClassifierError::MtuTooLarge { .. }),
        "{error}"
    );

    // Who asks for it gets the mode that every interface has.
    classifier.attach(index("lo"), AttachMode::Generic).unwrap();
    assert_eq!(classifier.attached_to(), Some(index("lo")));
}

#[test]
fn an_interface_that_goes_takes_its_link_along() {
    if !enter(PAIR) {
        return;
    }
    let mut classifier = load(&ClassifierConfig::default());
    classifier
        .attach(index("lane0"), AttachMode::Native)
        .unwrap();
    ip("link set lane0 name other0");
    assert_eq!(classifier.attached_to(), Some(index("other0")), "renamed");
    ip("link delete other0");
    assert_eq!(classifier.attached_to(), None);
    // Nothing is left to attach to, and everything else still works.
    classifier.set_flow(SLOT, &flow(None)).unwrap();
    assert_eq!(classifier.counts().flow(SLOT).total(), 0);
}

#[test]
fn a_program_goes_with_its_killed_owner() {
    if std::env::var_os(VICTIM).is_some() {
        let mut classifier = load(&ClassifierConfig::default());
        classifier
            .attach(index("lane0"), AttachMode::Native)
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
        .attach(index("lane0"), AttachMode::Native)
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
            .attach(index("lane0"), AttachMode::Native)
            .is_ok()
    });
    send("lane1", 1);
    eventually("a frame arrives", || classifier.counts().total() > 0);
}

/// The effective capabilities of this thread from now on.
fn keep_only(capabilities: &[u32]) {
    #[repr(C)]
    struct Header {
        version: u32,
        thread: i32,
    }
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Word {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    let mut header = Header {
        version: 0x2008_0522,
        thread: 0,
    };
    let mut words = [Word {
        effective: 0,
        permitted: !0,
        inheritable: 0,
    }; 2];
    // SAFETY: a header and two words are what this version takes.
    let got = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, &raw mut words) };
    assert_eq!(got, 0, "{}", io::Error::last_os_error());
    for (place, word) in words.iter_mut().enumerate() {
        let mut of_word = capabilities
            .iter()
            .filter(|number| **number as usize / 32 == place);
        word.effective = of_word
            .by_ref()
            .fold(0, |bits, number| bits | 1 << (number % 32));
    }
    // SAFETY: as above.
    let set = unsafe { libc::syscall(libc::SYS_capset, &raw mut header, &raw const words) };
    assert_eq!(set, 0, "{}", io::Error::last_os_error());
}

#[test]
fn a_missing_capability_is_named_and_no_more_than_three_are_needed() {
    const ENOUGH: [(u32, &str); 3] = [(39, "CAP_BPF"), (38, "CAP_PERFMON"), (12, "CAP_NET_ADMIN")];
    if !enter(PAIR) {
        return;
    }
    let missing = || match Classifier::load(&ClassifierConfig::default()) {
        Err(ClassifierError::Denied { missing }) => missing.0,
        other => panic!("{other:?}"),
    };
    keep_only(&[]);
    assert_eq!(missing(), ["CAP_BPF", "CAP_PERFMON", "CAP_NET_ADMIN"]);
    for (capability, name) in ENOUGH {
        let others = ENOUGH.map(|(other, _)| other);
        let others: Vec<u32> = others
            .into_iter()
            .filter(|other| *other != capability)
            .collect();
        keep_only(&others);
        assert_eq!(missing(), [name]);
    }

    keep_only(&ENOUGH.map(|(capability, _)| capability));
    let mut classifier = load(&ClassifierConfig::default());
    classifier
        .attach(index("lane0"), AttachMode::Native)
        .unwrap();
    let budget = protection(5, Duration::from_millis(1));
    classifier.set_flow(SLOT, &flow(Some(budget))).unwrap();
    assert_eq!(classifier.replenisher(), Replenisher::KernelTimer);
    // Who the program belongs to may be asked by CAP_SYS_ADMIN only.
    let mut second = load(&ClassifierConfig::default());
    let refused = second
        .attach(index("lane0"), AttachMode::Native)
        .unwrap_err();
    assert!(
        matches!(&refused, ClassifierError::Foreign { program, .. } if program.name_and_tag.is_none()),
        "{refused}"
    );
}

#[test]
fn capabilities_of_a_user_namespace_are_told_from_those_that_count() {
    const INSIDE: &str = "ISOLANE_TEST_INSIDE_NAMESPACE";
    const NAME: &str = "capabilities_of_a_user_namespace_are_told_from_those_that_count";
    if std::env::var_os(INSIDE).is_some() {
        let refused = Classifier::load(&ClassifierConfig::default());
        assert!(
            matches!(refused, Err(ClassifierError::UserNamespace)),
            "{refused:?}"
        );
        return;
    }
    let unshare = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        let inside = command
            .arg("--map-root-user")
            .args(arguments)
            .env(INSIDE, "1");
        inside.status().is_ok_and(|status| status.success())
    };
    if !unshare(&["true"]) {
        let in_ci = std::env::var_os("CI").is_some();
        assert!(!in_ci, "CI must allow user namespaces");
        eprintln!("no user namespace can be made here: nothing was tried");
        return;
    }
    let program = std::env::current_exe().unwrap();
    let program = program.to_str().unwrap();
    assert!(unshare(&[program, "--exact", NAME, "--nocapture"]));
}
